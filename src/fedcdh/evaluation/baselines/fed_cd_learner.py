"""The local learner of Fed-CD: beliefs about arrows, updated by closed-form regressions instead of networks.

Beliefs are two matrices of logits (ENCO): G_ij says whether there is an arrow i → j at all, and T_ij = −T_ji which way
an edge between the two points. An arrow has the probability s(G_ij) s(T_ij), s the logistic function.

A client draws graphs from the beliefs. For every variable j with the inputs P that a graph gives it, the effect of
another variable i is the change of the loss

    Δ_ij = loss_j(P ∪ i) − loss_j(P \\ i),   loss_j(P) = ½ log of the residual variance of x_j on features of P,

with the residual variance divided by the degrees of freedom, so that an input that explains nothing has Δ near 0. All
Δ come from the second moments of the client's features. Descent (Adam) then changes

- G_ij by s'(G_ij) s(T_ij) (Δ_ij + sparsity), unless the client has intervened on j;
- T_ij, where the client has intervened on i, by s'(T_ij) s(G_ij) (Δ_ij + sparsity): a variable that was set from
  outside predicts its effects only;
- T_ij, where no client has intervened, by s'(T_ij) max(s(G_ij), s(G_ji)) (Δ_ij − Δ_ji) with the same inputs for both:
  zero for linear functions, and the curvature of the mechanism else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.column_scales import centre_columns
from fedcdh.summaries.features import Hermite

Bools = npt.NDArray[np.bool_]
FeatureMap = Callable[[Array], Array]
"""Maps one standardised column to its features, rows × width; the first of them is the column itself."""
_RIDGE = 1e-6  # relative to the mean square of a feature: for collinear features only
_MIN_VARIANCE = 1e-12
_ROUNDING = 1e-9  # of a loss
_INPUT_SHARE = 1 / 3  # of the rows: features of all inputs together may be no more


def keep_values(column: Array) -> Array:
    """Return the column alone: linear mechanisms."""
    return column[:, None]


def add_hermite_features(column: Array) -> Array:
    """Return the column and four eigenfunctions of the Gaussian kernel: nonlinear mechanisms."""
    return np.column_stack([column, Hermite(width=4)(np.arcsinh(column))])


@dataclass(frozen=True)
class LearnerSettings:
    """The settings of a local learner: steps and drawn graphs per round, step size, and the cost of an arrow."""

    steps: int = 5
    graphs: int = 10
    rate: float = 0.2
    sparsity: float = 0.02


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Logits of existence G and of direction T = −Tᵀ."""

    existence: Array
    direction: Array

    @classmethod
    def open(cls, variables: int) -> Beliefs:
        """Return beliefs without any knowledge."""
        return cls(np.zeros((variables, variables)), np.zeros((variables, variables)))

    @property
    def chances(self) -> Array:
        """Return the probability of every arrow."""
        found = np.asarray(expit(self.existence) * expit(self.direction))
        np.fill_diagonal(found, 0.0)
        return found


class ClosedFormLearner:
    """The moments of one client's features, and the variables that it has intervened on."""

    def __init__(
        self,
        rows: Array,
        features: FeatureMap,
        targets: frozenset[int],
        uses_curvature: bool,
        settings: LearnerSettings,
        draw: np.random.Generator,
    ) -> None:
        blocks = [features(column) for column in rows.T]
        self._width = blocks[0].shape[1]
        self._rows, self._variables = len(rows), rows.shape[1]
        design = centre_columns(np.column_stack(blocks))
        moments = design.T @ design / len(rows)
        scale = np.diag(moments)
        self._moments = moments + _RIDGE * np.diag(np.where(scale > 0, scale, 1.0))
        self._varies = scale[:: self._width] > 0
        self._targets = np.isin(np.arange(self._variables), sorted(targets))
        self._uses_curvature, self._settings, self._draw = uses_curvature, settings, draw
        self._curvature = self._mean_curvature() if uses_curvature else np.zeros_like(moments[:1, :1])

    def learn(self, beliefs: Beliefs) -> Beliefs:
        """Return the beliefs after some steps that start at the ones received."""
        existence, direction = beliefs.existence.copy(), beliefs.direction.copy()
        on_existence, on_direction = _Adam(existence, self._settings.rate), _Adam(direction, self._settings.rate)
        for _ in range(self._settings.steps):
            now = Beliefs(existence, direction)
            effects = self._mean_effects(now.chances)
            slopes = self._slopes(now, effects)
            existence = on_existence.step(existence, slopes.existence)
            direction = on_direction.step(direction, slopes.direction)
        return Beliefs(existence, direction)

    def _slopes(self, beliefs: Beliefs, effects: Array) -> Beliefs:
        """Return the gradients of G and T, in the same form."""
        exists, points = expit(beliefs.existence), expit(beliefs.direction)
        cost = effects + self._settings.sparsity
        existence = exists * (1 - exists) * points * cost
        existence[:, self._targets] = 0.0  # their mechanisms were replaced
        if self._uses_curvature:
            informed = np.maximum(exists, exists.T) * self._curvature
        else:
            onto = np.where(self._targets[:, None] & ~self._targets[None, :], exists * cost, 0.0)
            informed = onto - onto.T
        direction = points * (1 - points) * informed
        for found in (existence, direction):
            np.fill_diagonal(found, 0.0)
            found[~self._varies] = found[:, ~self._varies] = 0.0
        return Beliefs(existence, direction)

    def _mean_effects(self, chances: Array) -> Array:
        """Return Δ_ij, averaged over graphs that are drawn from the beliefs."""
        total = np.zeros_like(chances)
        for _ in range(self._settings.graphs):
            graph = self._draw.random(chances.shape) < chances
            for head in np.flatnonzero(~self._targets & self._varies).tolist():
                total[:, head] += self._effects_on(head, self._limit_inputs(graph[:, head]))
        return total / self._settings.graphs

    def _effects_on(self, head: int, inputs: Bools) -> Array:
        """Return loss(inputs ∪ i) − loss(inputs \\ i) of one variable, for every i."""
        width, place = self._width, head * self._width
        free = self._rows - 1 - width * int(inputs.sum())
        left, inverse, columns = self._remove(inputs)
        variance = max(float(left[place, place]), _MIN_VARIANCE)
        effects = np.zeros(self._variables)
        others = np.flatnonzero(~inputs)
        explained = self._explained_by(left, others, place)
        effects[others] = 0.5 * np.log(
            np.maximum(variance - explained, _MIN_VARIANCE) / variance * (free / max(free - width, 1))
        )
        slopes = inverse @ self._moments[columns, place]
        for number, tail in enumerate(np.flatnonzero(inputs).tolist()):
            part = slice(number * width, (number + 1) * width)
            lost = float(slopes[part] @ np.linalg.solve(inverse[part, part], slopes[part]))
            effects[tail] = 0.5 * np.log(variance / (variance + lost) * ((free + width) / max(free, 1)))
        effects[head] = 0.0
        return effects

    def _explained_by(self, left: Array, tails: npt.NDArray[np.intp], place: int) -> Array:
        """Return how much of the variance at a place the features of each variable explain."""
        blocks = tails[:, None] * self._width + np.arange(self._width)
        cross = left[blocks, place]
        inside = left[blocks[:, :, None], blocks[:, None, :]]
        return np.asarray(np.einsum("ij,ij->i", cross, np.linalg.solve(inside, cross[:, :, None])[:, :, 0]))

    def _remove(self, inputs: Bools) -> tuple[Array, Array, npt.NDArray[np.intp]]:
        """Return the moments left after regression on the inputs, the inputs' inverse moments, and their columns."""
        columns = np.flatnonzero(np.repeat(inputs, self._width))
        inverse: Array = np.asarray(np.linalg.inv(self._moments[np.ix_(columns, columns)]), dtype=np.float64)
        across = self._moments[columns]
        return self._moments - across.T @ inverse @ across, inverse, columns

    def _limit_inputs(self, inputs: Bools) -> Bools:
        """Leave out inputs at random where their features would be too many for the rows."""
        most = max(int(_INPUT_SHARE * self._rows) // self._width, 0)
        if inputs.sum() <= most:
            return inputs
        kept = self._draw.permutation(np.flatnonzero(inputs))[:most]
        return np.isin(np.arange(self._variables), kept)

    def _mean_curvature(self) -> Array:
        """Return Δ_ij − Δ_ji with the same inputs for both, averaged over sets of inputs drawn at random."""
        total, count = np.zeros((self._variables,) * 2), np.zeros((self._variables,) * 2)
        for inputs in self._draw_inputs():
            left, _, _ = self._remove(inputs)
            outside = np.flatnonzero(~inputs & self._varies)
            for head in outside.tolist():
                place = head * self._width
                variance = max(float(left[place, place]), _MIN_VARIANCE)
                rest = outside[outside != head]
                gain = np.log(np.maximum(variance - self._explained_by(left, rest, place), _MIN_VARIANCE) / variance)
                total[rest, head] += 0.5 * gain
                count[rest, head] += 1
        mean = total / np.maximum(count, 1)
        difference = mean - mean.T
        difference[np.abs(difference) < _ROUNDING] = 0.0  # Adam would turn rounding into directions
        return np.asarray(difference)

    def _draw_inputs(self) -> Iterator[Bools]:
        yield np.zeros(self._variables, dtype=np.bool_)
        for _ in range(2 * self._settings.graphs):
            yield self._limit_inputs(np.asarray(self._draw.random(self._variables) < _OPEN_CHANCE))


_OPEN_CHANCE = 0.25  # of an arrow before anything is known: s(0) s(0)


class _Adam:
    """Take steps whose length does not depend on the scale of the loss (Kingma and Ba 2015, with their constants)."""

    def __init__(self, like: Array, rate: float) -> None:
        self._first, self._second = np.zeros_like(like), np.zeros_like(like)
        self._rate, self._steps = rate, 0

    def step(self, values: Array, slope: Array) -> Array:
        self._steps += 1
        self._first = 0.9 * self._first + 0.1 * slope
        self._second = 0.999 * self._second + 0.001 * slope * slope
        mean = self._first / (1 - 0.9**self._steps)
        size = np.sqrt(self._second / (1 - 0.999**self._steps))
        return values - self._rate * mean / (size + 1e-8)
