"""FedDAG (Gao, Chen, Shen, Liu, Gong and Bondell, TMLR 2023): clients train masked predictions, the server averages.

Every client has a model of two levels. Logits U say how likely each arrow is; in every step a mask is drawn from them,
sigmoid((U + logistic noise) / temperature), which is nearly 0 or 1 and still has a gradient. Mechanisms predict every
variable from all others behind that mask. A client takes steps (Adam) down

    half the mean squared error + sparsity · Σ mask + α h + ρ h² / 2,   h = tr exp(mask ∘ mask) − variables,

where h is 0 only if the mask has no circle, and α and ρ grow until it has none (augmented Lagrangian). Every so many
steps the logits are averaged: with sharing="graph" they alone (GS-FedDAG, for clients whose mechanisms differ), with
sharing="all" the parameters of the mechanisms, too (AS-FedDAG).

Least squares know no scales: whatever makes effects vary more than their causes tells the method directions.

What is otherwise than in the authors' program: there, h is what the first client happened to draw last; here the server
draws a mask from the averaged logits, so that no client is the first. There, all clients draw the same noise; here each
draws its own. A circle that is left in the end loses its weakest arrow. The authors' program for linear data averages
weights without any mask, which is another method (NOTEARS, averaged); here mechanism="linear" puts linear mechanisms
behind the same masks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from scipy.linalg import expm
from scipy.special import expit

from fedcdh.baselines.base import Array, Found, Wire, dag_of_weights
from fedcdh.baselines.mask_networks import Linear, Mechanism, Networks
from fedcdh.errors import BaselineFailed, DataError, SettingsError
from fedcdh.simulate import generator

Sharing = Literal["graph", "all"]
Kind = Literal["mlp", "linear"]


def feddag(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    sharing: Sharing = "graph",
    mechanism: Kind = "mlp",
    sparsity: float = 0.01,
    temperature: float = 0.2,
    rate: float = 0.03,
    steps: int = 1000,
    steps_alone: int = 100,
    updates: int = 20,
    layers: int = 4,
    width: int = 16,
    rho: float = 6e-3,
    growth: float = 10.0,
) -> Found:
    """The DAG on which the clients agree, and what they sent to get there.

    `steps` are taken between two updates of α and ρ, of which there are at most `updates` of α; after every
    `steps_alone` of them, and after the last, the server averages. `rate` is the step size of Adam; networks have so
    many hidden `layers` of so many units (`width`). ρ starts at `rho` and grows by the factor `growth` whenever h has
    not fallen to a quarter. Defaults are those with which the authors run their examples.
    """
    _check(tables, names, sharing, mechanism)
    settings = _Settings(sharing, mechanism, sparsity, temperature, rate, steps, steps_alone, layers, width)
    server = _Server(tables, settings, seed)
    _without_circles(server, updates, rho, growth)
    return Found(dag_of_weights(expit(server.logits), names, 0.5), server.wire.traffic)


_TOLERANCE = 1e-6  # of h; the authors' 1e-10 comes to about this in their single precision
_RHO_AT_MOST = 1e14
_UPDATES_AT_LEAST = 3
_FALLEN = 0.25


@dataclass(frozen=True)
class _Settings:
    sharing: Sharing
    mechanism: Kind
    sparsity: float
    temperature: float
    rate: float
    steps: int
    steps_alone: int
    layers: int
    width: int

    def mechanisms(self, rows: Array) -> Mechanism:
        return Linear(rows) if self.mechanism == "linear" else Networks(rows, self.layers, self.width)


def _without_circles(server: _Server, updates: int, rho: float, growth: float) -> None:
    """The augmented Lagrangian: train, weigh circles more heavily, train again, until there are none."""
    alpha, before = 0.0, np.inf
    for update in range(1, updates + 1):
        while rho < _RHO_AT_MOST:
            server.train(alpha, rho)
            left = server.circles()
            if left <= _FALLEN * before:
                break
            rho *= growth
        else:
            return
        if max(left, server.circles(noise=False)) <= _TOLERANCE and update > _UPDATES_AT_LEAST:
            return
        before = left
        alpha += rho * left


class _Server:
    """Knows the average of what clients sent last, and no row."""

    def __init__(self, tables: Mapping[str, Array], settings: _Settings, seed: int) -> None:
        self.wire = Wire(len(tables))
        self._settings = settings
        self._generator = generator(seed, "feddag", "server")
        self._clients = [_Client(name, tables[name], settings, seed) for name in sorted(tables)]
        self.logits = self._clients[0].logits.copy()  # before the first average all are 0

    def train(self, alpha: float, rho: float) -> None:
        """So many steps at every client, with averages on the way and at the end."""
        left = self._settings.steps
        while left > 0:
            alone = min(left, self._settings.steps_alone)
            for client in self._clients:
                client.train(alone, alpha, rho)
            self._average()
            left -= alone

    def _average(self) -> None:
        self.logits = self._averaged([client.logits for client in self._clients])
        for client in self._clients:
            client.logits[...] = self.logits
        if self._settings.sharing == "all":
            parameters = self._averaged([client.parameters for client in self._clients])
            for client in self._clients:
                client.parameters[...] = parameters

    def _averaged(self, held: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The plain mean of what every client holds, after it went up the wire, and down to all of them."""
        average = np.mean([self.wire.to_server(message) for message in held], axis=0)
        if not np.isfinite(average).all():
            raise BaselineFailed(
                "training went astray: parameters are no longer finite, which happens where values are very large; "
                "standardise the variables, or take a smaller rate"
            )
        return self.wire.to_clients(average)

    def circles(self, noise: bool = True) -> float:
        """h of a mask drawn from the average, or of the one without noise."""
        drawn = self._generator.logistic(size=self.logits.shape) if noise else 0.0
        return acyclicity(mask_of(self.logits, drawn, self._settings.temperature))[0]


class _Client:
    """One client: its rows, its copy of the logits, its mechanisms, and the noise it draws.

    All clients start with the same parameters, drawn from the seed, without which averages of networks mean nothing.
    """

    def __init__(self, name: str, rows: Array, settings: _Settings, seed: int) -> None:
        self._settings = settings
        self._mechanism = settings.mechanisms(np.asarray(rows, dtype=np.float64))
        self._generator = generator(seed, "feddag", "client", name)
        self.logits = np.zeros((rows.shape[1], rows.shape[1]))
        self.parameters = self._mechanism.initial(generator(seed, "feddag", "parameters"))
        self._on_logits = _Adam(self.logits, settings.rate)
        self._on_parameters = _Adam(self.parameters, settings.rate)

    def train(self, steps: int, alpha: float, rho: float) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # the server refuses what comes of it
            for _ in range(steps):
                found = self.slopes(self._generator.logistic(size=self.logits.shape), alpha, rho)
                self._on_logits.step(self.logits, found.logits)
                self._on_parameters.step(self.parameters, found.parameters)

    def slopes(self, noise: Array, alpha: float, rho: float) -> LocalSlopes:
        """The local loss with this noise in the mask, and its gradients."""
        settings = self._settings
        mask = mask_of(self.logits, noise, settings.temperature)
        fit = self._mechanism.slopes(self.parameters, mask)
        circles, away = acyclicity(mask)
        loss = fit.loss + settings.sparsity * float(mask.sum()) + alpha * circles + 0.5 * rho * circles**2
        steepest = fit.mask + settings.sparsity + (alpha + rho * circles) * away
        return LocalSlopes(loss, steepest * mask * (1 - mask) / settings.temperature, fit.parameters)


class LocalSlopes(NamedTuple):
    """What a client minimises, at one point and with one draw of noise."""

    loss: float
    logits: Array
    parameters: npt.NDArray[Any]


class _Adam:
    """Steps of one length whatever the scale of the loss (Kingma and Ba, 2015, with their constants)."""

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


def mask_of(logits: Array, noise: Array | float, temperature: float) -> Array:
    """A binary concrete draw for every arrow; no variable sees itself."""
    mask = expit((logits + noise) / temperature)
    np.fill_diagonal(mask, 0.0)
    return np.asarray(mask)


def acyclicity(mask: Array) -> tuple[float, Array]:
    """tr exp(mask ∘ mask) − variables, which is 0 for a DAG and above for all else, and its gradient.

    >>> acyclicity(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0.0]]))[0]
    0.0
    >>> round(acyclicity(np.array([[0, 1.0], [1, 0]]))[0], 3)  # e + 1/e − 2
    1.086
    """
    walks = expm(mask * mask)
    return float(np.trace(walks)) - len(mask), 2 * walks.T * mask


def _check(tables: Mapping[str, Array], names: Sequence[str], sharing: str, mechanism: str) -> None:
    for given, value, known in (("sharing", sharing, Sharing), ("mechanism", mechanism, Kind)):
        if value not in get_args(known):
            raise SettingsError(f"{given} is {value!r}; expected one of {', '.join(map(repr, get_args(known)))}")
    if not tables:
        raise DataError("there is no client; give at least one table")
    for client, table in tables.items():
        if table.ndim != 2 or table.shape[1] != len(names) or not len(table):
            raise DataError(
                f"the table of {client!r} has shape {table.shape}; expected rows × {len(names)} variables, "
                "and at least one row"
            )
