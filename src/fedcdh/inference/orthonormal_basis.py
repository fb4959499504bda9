"""Coordinates for all regressions: each variable's features, made orthonormal over all rows of the study.

A regression does not depend on the basis that spans a variable's functions, so we take one in which linear algebra is
stable: the pooled covariance of each variable's block is the identity. Features that add nothing drop out here: all
nonlinear features of a binary variable, one level of each categorical one, all features of a constant. The number of
remaining columns is the number of degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.errors import SettingsError
from fedcdh.inference.batched_regression import Matrices, add_jitter, pillai_test, solve_regularized
from fedcdh.inference.counted_rows import counted_shares
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares
from fedcdh.summaries.summary import MAX_CONSTANT_VARIANCE
from fedcdh.summaries.variables import Categorical

Chosen = npt.NDArray[np.bool_]

MIN_NEW_VARIANCE = 1e-6
"""A feature is kept if the features before it leave at least this share of its variance unexplained. Rounding to the
grid leaves less, 5e-7 in the square of a normal variable."""
CURVATURE_ALPHA = 0.05
"""Significance level at which a variable counts as having nonlinear effects. `benchmarks.bench_feature_settings`
compares others."""
_VARIABLES_PER_BLOCK = 64
_MAX_CACHED_SUMS = 2  # sums over clients that are cached: they are used often, and may be large


class BlockTransform(NamedTuple):
    """The places of one variable's features in the plan and of its columns here, and the weights between them."""

    features: slice
    columns: slice
    weights: Array  # (columns, features)


@dataclass(frozen=True, eq=False)
class Basis:
    """Second moments per client in orthonormal coordinates.

    Attributes
    ----------
    spans : dict from str to array
        The columns of each variable.
    targets : dict from str to array
        The columns whose mean is tested: the linear one, or all columns of a categorical variable.
    predictors : dict from str to array
        The columns that regressions use: all, or the linear one if the others add nothing.
    squares : dict from str to (float, float)
        Coefficients b and c in e₁² = const + b e₁ + c e₂ of a continuous variable's first two columns.
    rows : array
        The number of rows of each client.
    scatter : array
        (clients, columns, columns): the sum over the client's rows about the *client's* mean; or one for all clients.
    means : array
        (clients, columns): the client's means; the pooled means are zero.
    levels : dict from str to array
        The standardised indicators of a categorical variable in terms of its columns.
    level_squares : dict from str to array
        Coefficients of the squares of a categorical variable's columns on these columns, up to a constant.
    transforms : dict from str to BlockTransform
        The transformation of each variable's features, less their pooled means, to these coordinates.

    Examples
    --------
    >>> import fedcdh
    >>> study = fedcdh.simulate(seed=1)
    >>> basis = Basis.of(fedcdh.discover(study.columns("site"), domain="site").cohort)
    >>> bool(abs(basis.total.diagonal() / basis.total_rows - 1).max() < 1e-6)
    True
    """

    spans: dict[str, Indices]
    targets: dict[str, Indices]
    predictors: dict[str, Indices]
    squares: dict[str, tuple[float, float]]
    rows: Array
    scatter: Array
    means: Array
    levels: dict[str, Array]
    level_squares: dict[str, Array]
    transforms: dict[str, BlockTransform]

    @classmethod
    def of(cls, cohort: Cohort | Aggregate) -> Basis:
        """Make the basis of a study.

        Parameters
        ----------
        cohort : Cohort or Aggregate
            The summaries of the clients, or their sum.

        Returns
        -------
        Basis
            The moments in orthonormal coordinates.

        Raises
        ------
        SettingsError
            If the summaries have noise.
        """
        if cohort.total.noise:
            raise SettingsError(
                "these summaries have noise, which regressions would take for dependence; expected exact sums; use "
                "NoisyMomentsTest, or discover_from, which chooses it by itself"
            )
        places = cohort.plan.layout.spans
        blocks, spans, targets, squares, levels, level_squares, columns = {}, {}, {}, {}, {}, {}, 0
        for variable in cohort.plan.variables:
            name, categorical = variable.name, isinstance(variable, Categorical)
            centre, scatter = cohort.total.means_and_scatter(places[name])
            covariance = scatter / cohort.total.rows
            found = _orthonormalize(covariance)
            place = slice(columns, columns := columns + len(found))
            blocks[name] = BlockTransform(places[name], place, np.array(found).reshape(len(found), len(centre)))
            spans[name] = np.arange(place.start, place.stop)
            targets[name] = spans[name] if categorical else spans[name][:1]
            squares[name] = (0.0, 0.0) if categorical else _square_coefficients(found, covariance, centre)
            if categorical:
                levels[name] = _standardize_indicators(found, covariance)
                level_squares[name] = _square_levels(blocks[name].weights, covariance, centre)
        scatter = _transform_scatter(cohort, list(blocks.values()))
        sizes = np.array(cohort.client_rows, dtype=np.float64)
        apart = cohort.means - cohort.total.means
        means = np.concatenate([apart[:, block.features] @ block.weights.T for block in blocks.values()], axis=1)
        basis = cls(spans, targets, {}, squares, sizes, scatter, means, levels, level_squares, blocks)
        freedom = counted_shares(cohort).product * basis.total_rows - len(sizes)
        basis.predictors.update(_select_predictors(basis.within, spans, targets, freedom))
        return basis

    def scaled(self, shares: RowShares) -> Basis:
        """Return the moments as if there were a share of the rows.

        The means of clients vary more than those of as many independent rows. They are drawn together, so that they
        differ as much from each other as chance would let those of the remaining rows.

        Parameters
        ----------
        shares : RowShares
            The shares that count for products, and for means.

        Returns
        -------
        Basis
            The same columns and coordinates, with other rows, scatter and means.
        """
        if shares == ALL_ROWS:
            return self
        rows, scatter = shares.product * self.rows, shares.product * self.scatter
        return replace(self, rows=rows, scatter=scatter, means=shares.mean_factor * self.means)

    def can_regress(self, conditions: int) -> Chosen:
        """Return which clients have enough rows for a regression of their own.

        Parameters
        ----------
        conditions : int
            The number of columns on which to regress.

        Returns
        -------
        array of bool
            Whether a client has two rows for each column, and a few more.
        """
        return np.asarray(self.rows - 1 >= 2 * conditions + 5)

    @property
    def total_rows(self) -> float:
        """Return the number of rows of all clients."""
        return float(self.rows.sum())

    @property
    def has_client_scatter(self) -> bool:
        """Return whether the scatter of every client is known, not only that of all clients together."""
        return len(self.scatter) == len(self.rows)

    @cached_property
    def client_variances(self) -> Array:
        """Return the variance of each variable at each client, (variables, clients), in terms of its pooled variance.

        The means of a continuous variable and of its square at a client determine it, so that it is known where the
        scatter of single clients is not. Categorical variables and constants have 1.
        """
        found = np.ones((len(self.spans), len(self.rows)))
        for out, (name, columns) in zip(found, self.spans.items(), strict=True):
            if len(columns) > 1 and len(self.targets[name]) == 1:
                of_value, of_square = self.squares[name]
                means = self.means[:, columns[:2]].T
                out[:] = 1 + of_value * means[0] + of_square * means[1] - means[0] ** 2
        return np.maximum(found, MIN_NEW_VARIANCE)

    def scatter_of(self, clients: Chosen) -> Matrices:
        """Return the scatter of each of these clients, without copying.

        Parameters
        ----------
        clients : array of bool
            The chosen clients.

        Returns
        -------
        array or list of arrays
            One scatter matrix per client.
        """
        if clients.all():
            return self.scatter
        return [scatter for scatter, chosen in zip(self.scatter, clients, strict=True) if chosen]

    def pool_scatter(self, clients: Chosen) -> Array:
        """Return the scatter of these clients together, each about its own mean.

        Parameters
        ----------
        clients : array of bool
            The chosen clients.

        Returns
        -------
        array
            One scatter matrix.
        """
        if clients.all():
            return self.within
        key = clients.tobytes()
        found = self._sums.get(key)
        if found is None:
            found = np.asarray(sum(self.scatter_of(clients), start=np.zeros(self.scatter.shape[1:])))
            for old in list(self._sums)[: 1 - _MAX_CACHED_SUMS]:  # several threads may do this at the same time
                self._sums.pop(old, None)
            self._sums[key] = found
        return found

    @cached_property
    def _sums(self) -> dict[bytes, Array]:
        """Return the cache of `pool_scatter`."""
        return {}

    @cached_property
    def transform(self) -> Array:
        """Return the matrix from features, less their pooled means, to these coordinates: (columns, plan columns)."""
        blocks = list(self.transforms.values())
        found = np.zeros((blocks[-1].columns.stop, blocks[-1].features.stop))
        for block in blocks:
            found[block.columns, block.features] = block.weights
        return found

    @cached_property
    def moments(self) -> Array:
        """Return Σ of products of [1, coordinates], per client if clients are known apart, else for all together."""
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
        """Return the scatter of all rows about the pooled mean: within clients plus between their means."""
        found = (self.means.T * self.rows) @ self.means
        found += self.within  # in place: it may be large
        return np.asarray(found)

    @cached_property
    def within(self) -> Array:
        """Return the scatter of all rows, each about its client's mean."""
        return np.asarray(self.scatter.sum(axis=0))


def _orthonormalize(covariance: Array) -> list[Array]:
    """Apply Gram-Schmidt in the given order, in the geometry of the covariance; twice, for full accuracy."""
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
    """Return every level's indicator, standardised, in the basis found: (varying levels, directions)."""
    deviation = np.sqrt(np.diag(covariance))
    varying = deviation**2 > MAX_CONSTANT_VARIANCE
    return np.asarray(
        (covariance @ np.array(found).T)[varying] / deviation[varying, None] if found else np.zeros((0, 0))
    )


def _square_levels(weights: Array, covariance: Array, shares: Array) -> Array:
    """Return the coefficients of the columns' squares on the columns: a square is a function of the level too."""
    values = weights - weights @ shares[:, None]
    return np.asarray(values**2 @ (covariance @ weights.T))


def _select_predictors(
    within: Array, spans: dict[str, Indices], targets: dict[str, Indices], freedom: float
) -> dict[str, Indices]:
    """Keep a variable's nonlinear columns only if they help to predict the mean of some other variable.

    Where all effects are linear, these columns would cost every regression degrees of freedom. The F tests, one for
    each other variable, have the joint level `CURVATURE_ALPHA`; curvature too small for them is too small to matter.
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
    """Return p-values of F tests of whether, beyond the first column, others help to predict each other variable."""
    first, nonlinear = columns[0], columns[1:]
    responses = np.concatenate([others, nonlinear])
    slopes = within[first, responses] / add_jitter(within[first, first], size)
    left = within[others, others] - slopes[: len(others)] * within[first, others]
    residual = within[np.ix_(nonlinear, responses)] - np.outer(within[nonlinear, first], slopes)
    cross, inner = residual[:, : len(others)], residual[:, len(others) :]
    explained = (cross * solve_regularized(inner, cross)).sum(axis=0)
    return pillai_test(explained[:, None, None], left[:, None, None], len(nonlinear), freedom - len(columns))[1]


def _transform_scatter(cohort: Cohort | Aggregate, blocks: Sequence[BlockTransform]) -> Array:
    """Return every client's scatter in the new coordinates, (clients, columns, columns).

    A few variables are transformed at a time, since the whole may be large; with themselves and the later ones only,
    since it is symmetric.
    """
    columns = blocks[-1].columns.stop
    found = np.empty((len(cohort.summaries), columns, columns))
    for first in range(0, len(blocks), _VARIABLES_PER_BLOCK):
        some, start = blocks[first : first + _VARIABLES_PER_BLOCK], blocks[first].features.start
        here, beyond = slice(some[0].columns.start, some[-1].columns.stop), slice(some[-1].columns.stop, None)
        part = slice(start, None), slice(start, some[-1].features.stop)
        for out, scatter in zip(found, cohort.scatters(*part), strict=True):
            half = np.concatenate([scatter[:, _offset_slice(start, block)] @ block.weights.T for block in some], axis=1)
            for block in blocks[first:]:
                np.matmul(block.weights, half[_offset_slice(start, block)], out=out[block.columns, here])
            out[here, beyond] = out[beyond, here].T
    return found


def _offset_slice(start: int, block: BlockTransform) -> slice:
    """Return the place of a variable's features, counted from `start`."""
    return slice(block.features.start - start, block.features.stop - start)


def _square_coefficients(found: list[Array], covariance: Array, centre: Array) -> tuple[float, float]:
    """Return the coefficients of e₁² on e₁ and e₂, where e₁ is the standardised linear feature l and s = l² the second.

    e₁² = (l − l̄)²/σ² = (s − 2 l̄ l)/σ² + const, and s = cov(s, e₁) e₁ + cov(s, e₂) e₂ + const by orthonormality.
    """
    deviation = np.sqrt(covariance[0, 0])
    if not found or not deviation:  # for nearly equal values, the linear feature may vary less than its square
        return 0.0, 0.0
    on_basis = [covariance[1] @ direction for direction in found[:2]]
    second = on_basis[1] if len(found) > 1 and found[1][1] else 0.0
    return float((on_basis[0] - 2 * centre[0] * deviation) / deviation**2), float(second / deviation**2)
