"""One set of coordinates for all regressions: each variable's features, made orthonormal over all rows of the study.

Regressions do not care which basis spans a variable's functions, so we take the one in which linear algebra is safe:
the pooled covariance of every variable's block is the identity. Features that say nothing new (all nonlinear features
of a binary variable, one level of each categorical one, everything of a constant) drop out here, once, and the number
of columns that are left is the honest number of degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.errors import SettingsError
from fedcdh.inference.batched_regression import Matrices, add_jitter, pillai_test, solve_regularized
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.plan import Categorical
from fedcdh.summaries.summary import MAX_CONSTANT_VARIANCE

Chosen = npt.NDArray[np.bool_]

MIN_NEW_VARIANCE = 1e-6
"""A feature is kept if at least this share of its variance is not explained by the features before it. The rounding of
features to the grid leaves less, 5e-7 in the square of a normal variable."""
CURVATURE_ALPHA = 0.05
"""Level at which a variable counts as having nonlinear effects; `benchmarks.bench_feature_settings` compares
others."""
_VARIABLES_PER_BLOCK = 64  # variables
_MAX_CACHED_SUMS = 2  # of clients that are kept: they are asked for again and again, and may be large


class BlockTransform(NamedTuple):
    """Where the features of a variable stand in the plan, where its columns stand here, and what these are made of."""

    features: slice
    columns: slice
    weights: Array  # (columns, features)


@dataclass(frozen=True, eq=False)
class Basis:
    """Second moments per client in orthonormal coordinates."""

    spans: dict[str, Indices]  # the columns of each variable
    targets: dict[str, Indices]  # those whose mean is tested: the linear one, or all of a categorical variable
    predictors: dict[str, Indices]  # those that regressions use: all, or the linear one where it says as much
    squares: dict[str, tuple[float, float]]  # e₁² = const + b e₁ + c e₂ of a continuous variable's first two columns
    rows: Array  # per client
    scatter: Array  # (clients, columns, columns): Σ over the client's rows, about the *client's* mean; or one for all
    means: Array  # (clients, columns): the client's mean; pooled means are zero
    levels: dict[str, Array]  # of a categorical variable, its standardised indicators in terms of its columns
    transforms: dict[
        str, BlockTransform
    ]  # of each variable: from features, less their pooled means, to these coordinates

    @classmethod
    def of(cls, cohort: Cohort | Aggregate) -> Basis:
        if cohort.total.noise:
            raise SettingsError(
                "these sums have noise, which regressions would take for dependence; use independence.noisy, or "
                "discover_from, which chooses it by itself"
            )
        places = cohort.plan.layout.spans
        turns, spans, targets, squares, levels, columns = {}, {}, {}, {}, {}, 0
        for variable in cohort.plan.variables:
            name, categorical = variable.name, isinstance(variable, Categorical)
            centre, scatter = cohort.total.means_and_scatter(places[name])
            covariance = scatter / cohort.total.rows
            found = _orthonormalize(covariance)
            place = slice(columns, columns := columns + len(found))
            turns[name] = BlockTransform(places[name], place, np.array(found).reshape(len(found), len(centre)))
            spans[name] = np.arange(place.start, place.stop)
            targets[name] = spans[name] if categorical else spans[name][:1]
            squares[name] = (0.0, 0.0) if categorical else _square_coefficients(found, covariance, centre)
            if categorical:
                levels[name] = _standardize_indicators(found, covariance)
        scatter = _transform_scatter(cohort, list(turns.values()))
        sizes = np.array(cohort.client_rows, dtype=np.float64)
        apart = cohort.means - cohort.total.means
        means = np.concatenate([apart[:, turn.features] @ turn.weights.T for turn in turns.values()], axis=1)
        basis = cls(spans, targets, {}, squares, sizes, scatter, means, levels, turns)
        basis.predictors.update(_select_predictors(basis.within, spans, targets, basis.total_rows - len(sizes)))
        return basis

    def can_regress(self, conditions: int) -> Chosen:
        """Which clients have rows enough for a regression of their own on so many columns: two rows each, and a few."""
        return np.asarray(self.rows - 1 >= 2 * conditions + 5)

    @property
    def total_rows(self) -> float:
        return float(self.rows.sum())

    @property
    def has_client_scatter(self) -> bool:
        """Whether the scatter of every client is known, or only that of all clients together."""
        return len(self.scatter) == len(self.rows)

    def each(self, clients: Chosen) -> Matrices:
        """The scatter of each of these clients, none of them copied."""
        if clients.all():
            return self.scatter
        return [scatter for scatter, chosen in zip(self.scatter, clients, strict=True) if chosen]

    def pool_scatter(self, clients: Chosen) -> Array:
        """The scatter of these clients together, each about its own mean."""
        if clients.all():
            return self.within
        asked = clients.tobytes()
        found = self._sums.get(asked)
        if found is None:
            found = np.asarray(sum(self.each(clients), start=np.zeros(self.scatter.shape[1:])))
            for old in list(self._sums)[: 1 - _MAX_CACHED_SUMS]:  # threads may be here at the same time
                self._sums.pop(old, None)
            self._sums[asked] = found
        return found

    @cached_property
    def _sums(self) -> dict[bytes, Array]:
        """What `all_of` was asked last."""
        return {}

    @cached_property
    def change(self) -> Array:
        """From features, less their pooled means, to these coordinates: (columns, columns of the plan)."""
        turns = list(self.transforms.values())
        found = np.zeros((turns[-1].columns.stop, turns[-1].features.stop))
        for turn in turns:
            found[turn.columns, turn.features] = turn.weights
        return found

    @cached_property
    def moments(self) -> Array:
        """Σ of products of [1, coordinates], per client where clients are known apart, else of all in one."""
        rows = self.rows if self.has_client_scatter else np.array([self.total_rows])
        columns = 1 + self.means.shape[1]
        found = np.zeros((len(rows), columns, columns))
        found[:, 1:, 1:] = self.scatter
        for client, (count, means) in enumerate(zip(self.rows, self.means, strict=True)):
            place = found[client if self.has_client_scatter else 0]
            place[0, 0] += count
            place[0, 1:] += count * means
            place[1:, 0] += count * means
            place[1:, 1:] += np.outer(count * means, means)
        return found

    @cached_property
    def total(self) -> Array:
        """Scatter of all rows about the pooled mean: within clients plus between their means."""
        found = (self.means.T * self.rows) @ self.means
        found += self.within  # in place: it may be large
        return np.asarray(found)

    @cached_property
    def within(self) -> Array:
        """Scatter of all rows, each about its client's mean."""
        return np.asarray(self.scatter.sum(axis=0))


def _orthonormalize(covariance: Array) -> list[Array]:
    """Gram-Schmidt in the given order, in the geometry of the covariance; twice, which is enough for full accuracy."""
    found: list[Array] = []
    for j, variance in enumerate(np.diag(covariance)):
        if variance <= MAX_CONSTANT_VARIANCE:
            continue
        direction = np.zeros(len(covariance))
        direction[j] = 1 / np.sqrt(variance)
        for _ in range(2):
            for earlier in found:
                direction = direction - (earlier @ covariance @ direction) * earlier
        if (left := direction @ covariance @ direction) > MIN_NEW_VARIANCE:
            found.append(direction / np.sqrt(left))
    return found


def _standardize_indicators(found: list[Array], covariance: Array) -> Array:
    """Every level's indicator, standardised, in the basis found: (levels that vary, directions)."""
    deviation = np.sqrt(np.diag(covariance))
    varying = deviation**2 > MAX_CONSTANT_VARIANCE
    return np.asarray(
        (covariance @ np.array(found).T)[varying] / deviation[varying, None] if found else np.zeros((0, 0))
    )


def _select_predictors(
    within: Array, spans: dict[str, Indices], targets: dict[str, Indices], freedom: float
) -> dict[str, Indices]:
    """A variable's nonlinear columns stay only if they help to predict the mean of some other variable.

    Where all is linear, they would cost every regression degrees of freedom for nothing. The F tests, one for each
    other variable, are held to a joint level of `CURVATURE_ALPHA`; curvature too small to be seen here is too small to matter.
    """
    owner = np.repeat(np.arange(len(targets)), [len(columns) for columns in targets.values()])
    means = np.concatenate([np.zeros(0, dtype=np.intp), *targets.values()])
    size = np.trace(within) / max(len(within), 1)
    chosen = {}
    for number, (name, columns) in enumerate(spans.items()):
        others = means[owner != number]
        if len(targets[name]) == len(columns) or not len(others):
            chosen[name] = columns
            continue
        p_values = _curvature_p_values(within, size, columns, others, freedom)
        chosen[name] = columns if p_values.min() * len(others) < CURVATURE_ALPHA else targets[name]
    return chosen


def _curvature_p_values(within: Array, size: float, columns: Indices, others: Indices, freedom: float) -> Array:
    """p-values of the F tests whether, given its first column, the other columns help to predict each of the others."""
    first, bends = columns[0], columns[1:]
    every = np.concatenate([others, bends])
    slopes = within[first, every] / add_jitter(within[first, first], size)
    left = within[others, others] - slopes[: len(others)] * within[first, others]
    beside = within[np.ix_(bends, every)] - np.outer(within[bends, first], slopes)
    cross, inner = beside[:, : len(others)], beside[:, len(others) :]
    explained = (cross * solve_regularized(inner, cross)).sum(axis=0)
    return pillai_test(explained[:, None, None], left[:, None, None], len(bends), freedom - len(columns))[1]


def _transform_scatter(cohort: Cohort | Aggregate, turns: Sequence[BlockTransform]) -> Array:
    """Every client's scatter in the new coordinates, (clients, columns, columns).

    Of a few variables at a time, since all of it may be large, with themselves and those after them, since it is
    symmetric; one after the other, since the features of a variable alone make its columns.
    """
    columns = turns[-1].columns.stop
    found = np.empty((len(cohort.summaries), columns, columns))
    for first in range(0, len(turns), _VARIABLES_PER_BLOCK):
        some, start = turns[first : first + _VARIABLES_PER_BLOCK], turns[first].features.start
        here, beyond = slice(some[0].columns.start, some[-1].columns.stop), slice(some[-1].columns.stop, None)
        part = slice(start, None), slice(start, some[-1].features.stop)
        for out, scatter in zip(found, cohort.scatters(*part), strict=True):
            half = np.concatenate([scatter[:, _offset_slice(start, turn)] @ turn.weights.T for turn in some], axis=1)
            for turn in turns[first:]:
                np.matmul(turn.weights, half[_offset_slice(start, turn)], out=out[turn.columns, here])
            out[here, beyond] = out[beyond, here].T
    return found


def _offset_slice(start: int, turn: BlockTransform) -> slice:
    """Where the features of a variable are, counted from there."""
    return slice(turn.features.start - start, turn.features.stop - start)


def _square_coefficients(found: list[Array], covariance: Array, centre: Array) -> tuple[float, float]:
    """The coefficients of e₁² on e₁ and e₂, where e₁ is the standardised linear feature l and s = l² is the second.

    e₁² = (l − l̄)²/σ² = (s − 2 l̄ l)/σ² + const, and s = cov(s, e₁) e₁ + cov(s, e₂) e₂ + const by orthonormality.
    """
    deviation = np.sqrt(covariance[0, 0])
    if not found or not deviation:  # of values that hardly differ, the linear feature may differ less than the next
        return 0.0, 0.0
    on_basis = [covariance[1] @ direction for direction in found[:2]]
    second = on_basis[1] if len(found) > 1 and found[1][1] else 0.0
    return float((on_basis[0] - 2 * centre[0] * deviation) / deviation**2), float(second / deviation**2)
