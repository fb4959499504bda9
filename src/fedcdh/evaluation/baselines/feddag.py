"""FedDAG (Gao et al., TMLR 2023): clients train masked predictions, and the server averages them.

Every client has a model of two levels. Logits U say how likely each arrow is. In every step a mask is drawn from them,
sigmoid((U + logistic noise) / temperature), which is nearly 0 or 1 and still has a gradient. Mechanisms predict every
variable from all others behind that mask. A client takes steps (Adam) down

    half the mean squared error + sparsity · Σ mask + α h + ρ h² / 2,   h = tr exp(mask ∘ mask) − variables,

where h is 0 only if the mask has no cycle, and α and ρ grow until it has none (augmented Lagrangian). After a number of
steps the logits are averaged: with sharing="graph" they alone (GS-FedDAG, for clients whose mechanisms differ), with
sharing="all" the parameters of the mechanisms, too (AS-FedDAG).

Least squares depend on scales: data in which effects vary more than their causes show the method directions.

With mechanism="linear" the mechanisms behind the masks are linear. The authors' own program for linear data has no
mask: weights of arrows take the place of logits, noise and mechanisms. This is NOTEARS, averaged. Here it is
mechanism="weights", for which sharing makes no difference.

This module differs from the authors' program in four points. There, h is what the first client happened to draw last;
here the server draws a mask from the averaged logits, so that no client is the first. There, all clients draw the same
noise; here each draws its own. Rows are centred at their client where mechanisms are linear. A cycle that remains in
the end loses its weakest arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from scipy.linalg import expm
from scipy.special import expit, logit

from fedcdh._runtime.array_types import Array
from fedcdh.errors import BaselineError, DataError, SettingsError
from fedcdh.evaluation.baselines.feddag_networks import (
    LinearMechanism,
    MaskedMechanism,
    NetworkMechanism,
    WeightsMechanism,
)
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel, dag_of_weights
from fedcdh.evaluation.simulation import keyed_generator
from fedcdh.graphs.partial_graph import PartialGraph

SharingMode = Literal["graph", "all"]
MechanismKind = Literal["mlp", "linear", "weights"]


@dataclass(frozen=True)
class FedDagTraining:
    """The settings of FedDAG: how clients train, and how the server removes cycles.

    `steps` are taken between two evaluations of h. The server averages after every `local_steps` of them, and after the
    last. α is raised at most `updates` times. ρ starts at `rho` and grows by the factor `growth` whenever h has not
    fallen to a quarter. `sparsity` weighs the mask, and `rate` is the step size of Adam.

    At the start masks are open by chance, and h grows exponentially with the number of variables. Beyond the ten
    variables of the authors' examples `rho` is therefore made smaller (`scale_penalty`).
    """

    sparsity: float = 0.01
    temperature: float = 0.2
    rate: float = 0.03
    steps: int = 300
    local_steps: int = 50
    updates: int = 20
    rho: float = 6e-3
    growth: float = 10.0
    layers: int = 4  # hidden ones of a network
    width: int = 16


MASKED_TRAINING = FedDagTraining()
"""Settings of the authors' examples, except that they take 1000 steps and average after every 100.

The two were compared on a few raw linear studies with linear mechanisms only, where fewer steps were no worse.
"""

UNMASKED_TRAINING = FedDagTraining(sparsity=0.1, rate=1e-3, steps=1500, local_steps=300, rho=1.0)
"""Settings of the authors' example of linear data, except that ρ grows to 10¹⁴, not to 10¹⁶."""


def run_feddag(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    sharing: SharingMode = "graph",
    mechanism: MechanismKind = "mlp",
    training: FedDagTraining | None = None,
) -> BaselineResult:
    """Find the DAG on which the clients agree, and count what they send for it.

    `training` is MASKED_TRAINING unless given, or UNMASKED_TRAINING for mechanism="weights".
    """
    _check_arguments(tables, names, sharing, mechanism)
    training = training or (UNMASKED_TRAINING if mechanism == "weights" else MASKED_TRAINING)
    server = _FedDagServer(tables, sharing, mechanism, training, seed)
    if mechanism != "weights":  # weights start at 0, where h is 0 for any number of variables
        training = replace(training, rho=scale_penalty(training.rho, len(names), training.temperature))
    _solve_lagrangian(server, training)
    return BaselineResult(server.found(names), server.channel.traffic)


_EXAMPLE_VARIABLES = 10  # those of the authors' examples, for which they print their starting penalty


def scale_penalty(rho: float, variables: int, temperature: float) -> float:
    """Return the starting ρ for this many variables: the slope of ρ h² / 2 is never above that at ten variables.

    A steeper slope does lasting harm: Adam divides by the root of the mean squared gradient, which forgets in thousands
    of steps. Masks that the first steps have closed then stay closed.

    >>> [f"{scale_penalty(6e-3, variables, 0.2):.1e}" for variables in (10, 18, 30)]
    ['6.0e-03', '7.2e-06', '2.4e-10']
    """
    if variables <= _EXAMPLE_VARIABLES:
        return rho
    return rho * _first_slope(_EXAMPLE_VARIABLES, temperature) / _first_slope(variables, temperature)


def _first_slope(variables: int, temperature: float) -> float:
    """Return h times its slope in one entry, where every entry has the mean square of a mask drawn at the start."""
    chances = (np.arange(1000) + 0.5) / 1000
    drawn = expit(logit(chances) / temperature)
    size = float(np.sqrt(np.mean(drawn * drawn)))
    acyclicity, slopes = acyclicity_of_mask(_clear_diagonal(np.full((variables, variables), size)))
    return acyclicity * float(slopes[0, 1])


_TOLERANCE = 1e-6  # of h; the authors' 1e-10 comes to about this in their single precision
_MAX_RHO = 1e14
_MIN_UPDATES = 3
_SUFFICIENT_DECREASE = 0.25


def _solve_lagrangian(server: _FedDagServer, training: FedDagTraining) -> None:
    """Train, weigh cycles more heavily, and train again, until there are none (augmented Lagrangian)."""
    alpha, rho, before = 0.0, training.rho, np.inf
    for update in range(1, training.updates + 1):
        while rho < _MAX_RHO:
            server.train(alpha, rho)
            left = server.acyclicity()
            if left <= _SUFFICIENT_DECREASE * before:
                break
            rho *= training.growth
        else:
            return
        if max(left, server.acyclicity(noise=False)) <= _TOLERANCE and update > _MIN_UPDATES:
            return
        before = left
        alpha += rho * left


class _FedDagServer:
    """The average of what clients sent last; the server sees no row."""

    def __init__(
        self,
        tables: Mapping[str, Array],
        sharing: SharingMode,
        mechanism: MechanismKind,
        training: FedDagTraining,
        seed: int,
    ) -> None:
        self.channel = CountingChannel(len(tables))
        self._sharing, self._training = sharing, training
        self._gate = _make_mask(mechanism, training)
        self._generator = keyed_generator(seed, "feddag", "server")
        self._clients = [_FedDagClient(name, tables[name], mechanism, training, seed) for name in sorted(tables)]
        self.logits = self._clients[0].logits.copy()  # before the first average all are 0

    def found(self, names: Sequence[str]) -> PartialGraph:
        return dag_of_weights(self._gate.strengths(self.logits), names, self._gate.threshold)

    def train(self, alpha: float, rho: float) -> None:
        """Train at every client, with averages on the way and at the end."""
        penalties = self.channel.to_clients(np.array([alpha, rho])).tolist()
        left = self._training.steps
        while left > 0:
            alone = min(left, self._training.local_steps)
            for client in self._clients:
                client.train(alone, *penalties)
            self._average()
            left -= alone

    def _average(self) -> None:
        self.logits = self._average_over_clients([client.logits for client in self._clients])
        for client in self._clients:
            client.logits[...] = self.logits
        if self._sharing == "all" and self._clients[0].parameters.size:
            parameters = self._average_over_clients([client.parameters for client in self._clients])
            for client in self._clients:
                client.parameters[...] = parameters

    def _average_over_clients(self, held: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return the mean of what every client sends, and send it back to all of them."""
        average = np.mean([self.channel.to_server(message) for message in held], axis=0)
        if not np.isfinite(average).all():
            raise BaselineError(
                "found parameters that are not finite during training, as happens with very large values; expected "
                "finite "
                "ones; standardise the variables, or take a smaller rate"
            )
        return self.channel.to_clients(average)

    def acyclicity(self, noise: bool = True) -> float:
        """Return h of a mask drawn from the average, or of the mask without noise."""
        drawn = self._generator.logistic(size=self.logits.shape) if noise else 0.0
        return acyclicity_of_mask(self._gate.mask(self.logits, drawn))[0]


class _FedDagClient:
    """The rows, logits, mechanisms and noise generator of one client.

    All clients start with the same parameters, drawn from the seed; otherwise averages of networks would have no
    meaning.
    """

    def __init__(self, name: str, rows: Array, mechanism: MechanismKind, training: FedDagTraining, seed: int) -> None:
        self._training = training
        self._gate = _make_mask(mechanism, training)
        self._mechanism = _make_mechanism(mechanism, np.asarray(rows, dtype=np.float64), training)
        self._generator = keyed_generator(seed, "feddag", "client", name)
        self.logits = np.zeros((rows.shape[1], rows.shape[1]))
        self.parameters = self._mechanism.initial(keyed_generator(seed, "feddag", "parameters"))
        self._on_logits = _AdamOptimiser(self.logits, training.rate)
        self._on_parameters = _AdamOptimiser(self.parameters, training.rate)

    def train(self, steps: int, alpha: float, rho: float) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # the server refuses parameters that are not finite
            for _ in range(steps):
                found = self.slopes(self._generator.logistic(size=self.logits.shape), alpha, rho)
                self._on_logits.step(self.logits, found.logits)
                self._on_parameters.step(self.parameters, found.parameters)

    def slopes(self, noise: Array, alpha: float, rho: float) -> LocalGradient:
        """Return the local loss with this noise in the mask, and its gradients."""
        sparsity = self._training.sparsity
        mask = self._gate.mask(self.logits, noise)
        fit = self._mechanism.slopes(self.parameters, mask)
        acyclicity, gradient = acyclicity_of_mask(mask)
        loss = fit.loss + sparsity * float(np.abs(mask).sum()) + alpha * acyclicity + 0.5 * rho * acyclicity**2
        steepest = fit.mask + sparsity * np.sign(mask) + (alpha + rho * acyclicity) * gradient
        return LocalGradient(loss, steepest * self._gate.slope(mask), fit.parameters)


class LocalGradient(NamedTuple):
    """The objective of a client, at one point and with one draw of noise."""

    loss: float
    logits: Array
    parameters: npt.NDArray[Any]


class _AdamOptimiser:
    """Take steps whose length does not depend on the scale of the loss (Kingma and Ba, 2015, with their constants)."""

    def __init__(self, like: npt.NDArray[Any], rate: float) -> None:
        self._first, self._second = np.zeros_like(like), np.zeros_like(like)
        self._rate, self._steps = rate, 0

    def step(self, values: npt.NDArray[Any], gradient: npt.NDArray[Any]) -> None:
        self._steps += 1
        self._first += 0.1 * (gradient - self._first)
        self._second += 0.001 * (gradient * gradient - self._second)
        even = float(np.sqrt(1 - 0.999**self._steps))
        scale = np.sqrt(self._second)
        scale += 1e-8 * even
        values -= (self._rate * even / (1 - 0.9**self._steps)) * (self._first / scale)


class _ConcreteMask:
    """Turn logits into a mask: a binary concrete draw for every arrow."""

    threshold = 0.5

    def __init__(self, temperature: float) -> None:
        self._temperature = temperature

    def mask(self, logits: Array, noise: Array | float) -> Array:
        return _clear_diagonal(expit((logits + noise) / self._temperature))

    def slope(self, mask: Array) -> Array:
        return mask * (1 - mask) / self._temperature

    def strengths(self, logits: Array) -> Array:
        return np.asarray(expit(logits))


class _PlainWeights:
    """Use the logits as weights, without mask and noise."""

    threshold = 0.3

    def mask(self, logits: Array, noise: Array | float) -> Array:
        return _clear_diagonal(logits.copy())

    def slope(self, mask: Array) -> Array:
        return 1 - np.identity(len(mask))

    def strengths(self, logits: Array) -> Array:
        return logits


def _make_mask(mechanism: MechanismKind, training: FedDagTraining) -> _ConcreteMask | _PlainWeights:
    return _PlainWeights() if mechanism == "weights" else _ConcreteMask(training.temperature)


def _make_mechanism(mechanism: MechanismKind, rows: Array, training: FedDagTraining) -> MaskedMechanism:
    if mechanism == "mlp":
        return NetworkMechanism(rows, training.layers, training.width)
    return LinearMechanism(rows) if mechanism == "linear" else WeightsMechanism(rows)


def _clear_diagonal(mask: Array) -> Array:
    """Set the diagonal to 0, since no variable predicts itself."""
    np.fill_diagonal(mask, 0.0)
    return mask


def acyclicity_of_mask(mask: Array) -> tuple[float, Array]:
    """Return tr exp(mask ∘ mask) − variables, which is 0 for a DAG and positive otherwise, and its gradient.

    >>> acyclicity_of_mask(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0.0]]))[0]
    0.0
    >>> round(acyclicity_of_mask(np.array([[0, 1.0], [1, 0]]))[0], 3)  # e + 1/e − 2
    1.086
    """
    walks = expm(mask * mask)
    return float(np.trace(walks)) - len(mask), 2 * walks.T * mask


def _check_arguments(tables: Mapping[str, Array], names: Sequence[str], sharing: str, mechanism: str) -> None:
    for given, value, known in (("sharing", sharing, SharingMode), ("mechanism", mechanism, MechanismKind)):
        if value not in get_args(known):
            raise SettingsError(
                f"{given} is {value!r}; expected one of {', '.join(map(repr, get_args(known)))}; choose one of these",
                parameter=given,
            )
    if not tables:
        raise DataError("found no client; expected at least one; give at least one table")
    for client, table in tables.items():
        if table.ndim != 2 or table.shape[1] != len(names) or not len(table):
            raise DataError(
                f"the table of {client!r} has shape {table.shape}; expected rows × {len(names)} variables, "
                "and at least one row; correct the table"
            )
