"""Leverage: how much a single row determines a summary.

The columns φ of one variable (with the constant) have the moments M = Σ φφᵀ. For a row with columns φ₁, the holder of
the summary can apply the weights w_k = φ_kᵀ M⁻¹ φ₁ over all rows to any other variable g, as Σ w_k g_k. The row's own
weight is its leverage h = φ₁ᵀ M⁻¹ φ₁, and Σ w_k² = h. So Σ w_k g_k / h is g₁ up to √((1 − h)/h) standard deviations of
g. From h = 0.99 on that is a tenth: everything known about this person can be read off. Somebody who knows the plan
finds φ₁ by trying the values of one variable.

Leverage is largest where other rows are far away: at the smallest and the largest value, and next to the centre of a
plan with fine resolution. `ExtremeValues` keeps these values while rows are read.

A row with a moderate leverage in each of several variables may have a high one in all of them together; the leverage in
all columns bounds every attack of this kind. It needs the moments of all rows, and each row once more. But moments only
grow while rows are read, and leverage only falls. So a row with a low leverage among the rows so far will never have a
high one, and `HighLeverageRows` keeps the few others until the end.

In a bootstrap replicate a row may count several times, and its neighbours not at all, so that its leverage may be
higher there than in the summary. It is then w φ₁ᵀ M⁻¹ φ₁ for a row that counts w times.

The summary and its replicates together describe a row by the columns φ and w_b φ. Its odds h/(1 − h) are 1 + Σ (w_b −
1)² times those in the summary alone, as long as many other rows, whose weights are drawn independently, lie in its
direction. The client knows the weights, and computes that for every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.data.columns import NumericColumn
from fedcdh.data.table import Table
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Integers, Summary
from fedcdh.summaries.variables import Continuous

_EIGENVALUE_TOLERANCE = 1e-12  # share of the largest eigenvalue of the scaled moments; below it is rounding error
_UNSEEN_EIGENVALUE = 1e-13  # of a direction that no row has had so far: a row in it gets a high leverage
_RARE_EIGENVALUE = 1e-11  # below it, sums of products may be rounding errors
_SAFETY_MARGIN = 0.98  # share of the limit that is used while rows are read, where units differ
_MAX_KEPT_FEATURES = 1 << 23  # of rows above a threshold, at 4 bytes; up to four times as many while rows are read


class ExtremeValues:
    """Keeps the extreme values of every continuous variable, and those next to the plan's centre on either side.

    Call it with values, variables × rows, block after block. The sum `a + b` has seen the rows of both.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the summary.

    Examples
    --------
    >>> extremes = ExtremeValues(StudyPlan((Continuous("age", 60, 15),), ("north",)))
    >>> extremes(np.array([[50.0, 61.0, 72.0]]))
    >>> extremes.values
    {'age': array([50., 61., 72.])}
    """

    def __init__(self, plan: StudyPlan) -> None:
        self._variables = [variable for variable in plan.variables if isinstance(variable, Continuous)]
        self._centres = [variable.centre_and_spread[0] for variable in self._variables]
        # the smallest value, the smallest above the centre, and negated the largest below it, and the largest
        self._least = np.full((len(self._variables), 4), np.inf)

    def __call__(self, numbers: Array) -> None:
        """Add rows."""
        if not numbers.size:
            return
        least, above, below, largest = self._least.T
        np.minimum(least, numbers.min(axis=1), out=least)
        np.minimum(largest, -numbers.max(axis=1), out=largest)
        nearer = (numbers < above[:, None]) & (numbers > -below[:, None])
        for place in np.flatnonzero(nearer.any(axis=1)):  # few, once there are many rows
            near, centre = numbers[place, nearer[place]], self._centres[place]
            above[place] = min(above[place], near[near >= centre].min(initial=np.inf))
            below[place] = min(below[place], -near[near <= centre].max(initial=-np.inf))

    def __add__(self, other: ExtremeValues) -> ExtremeValues:
        both = copy(self)
        both._least = np.minimum(self._least, other._least)
        return both

    @property
    def values(self) -> dict[str, Array]:
        """The extreme values by variable, each once, in ascending order."""
        ends = self._least * [1.0, 1.0, -1.0, -1.0]
        return {
            variable.name: np.unique(known[np.isfinite(known)])
            for variable, known in zip(self._variables, ends, strict=True)
            if np.isfinite(known).any()
        }


class HighLeverageRows:
    """Keeps the rows that may have a high leverage in all columns together, while rows are read.

    The leverages of all rows add up to the number of columns, so few exceed the limit, and few are kept for long. Those
    of a block add up to tr(M⁻¹P), where P are the products of its features, which the summary computes anyway. If that
    sum does not exceed the limit, no single row does. Directions that almost no row has cannot be distinguished from
    rounding errors in P; in these, leverage is measured row by row.

    Parameters
    ----------
    columns : int
        Number of columns of the summary.
    limit : float
        Leverage above which a row is to be found.
    people : int, default 1
        Rows are kept for groups of up to this many people as well: all with a leverage above `limit`/`people`, or in
        very wide summaries above what keeps memory bounded.

    See Also
    --------
    scan_rows : Reads rows and fills this.
    fedcdh.privacy.disclosure.group_leverage.measure_groups : Examines groups of the kept rows.

    Examples
    --------
    >>> HighLeverageRows(columns=5, limit=0.99)._kept.shape
    (5, 0)
    """

    def __init__(self, columns: int, limit: float, people: int = 1) -> None:
        self._row_limit, self._measured = _SAFETY_MARGIN * limit, 0
        affordable = min(limit, columns**2 / _MAX_KEPT_FEATURES)
        self._threshold = max(limit / people, affordable)  # leverage of the rows that are kept
        self._limit = _SAFETY_MARGIN * self._threshold
        self._kept = np.zeros((columns, 0), dtype=np.int32)  # features are integer multiples of the grid
        self._measure: _LeverageMeasure | None = None

    def __call__(self, features: Array, products: Array, moments: Integers) -> None:
        """Add rows, given the moments of all rows so far: with more rows, leverage only falls."""
        rows = int(moments[0, 0]) // GRID**2
        if rows < len(moments):  # fewer rows than directions: the leverage of all is high
            self._keep(features)
            return
        if self._measure is None or rows >= 2 * self._measured or self._has_too_many(4):
            self._measured, self._measure = rows, _LeverageMeasure.of(moments)
            self._kept = self._kept[:, self._measure.each(self._kept) > self._limit]
        if self._measure.bound(features, products) > self._limit:
            self._keep(features[:, self._measure.each(features) > self._limit])

    def merge_with(self, other: HighLeverageRows, moments: Integers) -> HighLeverageRows:
        """Return the rows that may have a high leverage among the rows of both.

        Parameters
        ----------
        other : HighLeverageRows
            Has seen other rows of the same table.
        moments : array of int
            Moments of the rows of both.

        Returns
        -------
        HighLeverageRows
            Has seen the rows of both.
        """
        both = copy(self)
        both._measured, both._measure = 0, None
        both._kept = np.concatenate([self._kept, other._kept], axis=1)
        if both._has_too_many(2):
            both._kept = both._kept[:, _LeverageMeasure.of(moments).each(both._kept) > both._limit]
        return both

    def _keep(self, features: Array) -> None:
        self._kept = np.concatenate([self._kept, features.astype(np.int32)], axis=1)

    def _has_too_many(self, times: int) -> bool:
        """Return whether this many times more rows are kept than can exceed the limit."""
        columns, kept = self._kept.shape
        return kept > times * columns / self._limit

    def largest(self, summary: Summary) -> float:
        """Return the largest leverage of a row in all columns of the summary, if it may exceed the limit; else 0.

        Parameters
        ----------
        summary : Summary
            Summary of all rows that were added.

        Returns
        -------
        float
            A leverage, or 0.
        """
        measure = inverse_root(summary.moments)
        largest = float(((measure @ self._kept) ** 2).sum(axis=0).max(initial=0.0))
        return largest if largest > self._row_limit else 0.0

    def rows(self, summary: Summary) -> Array:
        """Return the features of the rows that may be in a group of high leverage, columns × rows.

        They are in an order of their own, so that the result does not depend on the order of the rows.

        Parameters
        ----------
        summary : Summary
            Summary of all rows that were added.

        Returns
        -------
        array
            Features in steps of the grid.
        """
        kept = self._kept[:, np.lexsort(self._kept)]
        leverage = ((inverse_root(summary.moments) @ kept) ** 2).sum(axis=0)
        return np.asarray(kept[:, leverage > self._threshold], dtype=np.float64)


@dataclass(frozen=True)
class _LeverageMeasure:
    """Leverage among the rows of some moments, by a root of M⁻¹."""

    means: Array  # of the columns, in whole steps
    root: Array
    rare: Array  # the part of the root in directions that almost no row has
    inverse: Array  # M⁻¹ of the centred columns in all other directions

    @classmethod
    def of(cls, moments: Integers) -> _LeverageMeasure:
        """Return the measure for these moments. A direction that no row has gets a tiny eigenvalue."""
        means = _rounded_means(moments)
        eigenvalues, directions = _scaled_eigenvectors(_centre(moments, means))
        root = directions / np.sqrt(np.maximum(eigenvalues, _UNSEEN_EIGENVALUE))[:, None]
        rare, common = np.split(root, [np.searchsorted(eigenvalues, _RARE_EIGENVALUE)])
        return cls(means.astype(np.float64), _uncentre(root, means), _uncentre(rare, means), common.T @ common)

    def each(self, features: npt.NDArray[np.float64 | np.int32]) -> Array:
        """Return the leverage of every row."""
        return np.asarray(((self.root @ features) ** 2).sum(axis=0))

    def bound(self, features: Array, products: Array) -> float:
        """Return a bound on every row's leverage: the sum over rows in most directions, the maximum in the others."""
        rare = ((self.rare @ features) ** 2).sum(axis=0).max(initial=0.0)
        return float(np.vdot(self.inverse, _centre(products, self.means)) + rare)


@dataclass(frozen=True)
class ReplicateLeverage:
    """Keeps the extreme values of every bootstrap replicate, and how often the rows that have them count there.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the summary.
    summary : Summary
        Summary of the rows.
    extremes : dict, optional
        Extreme values by replicate and variable.
    weights : dict, optional
        The largest number of times that a row with each of these values counts, by replicate and variable.
    joint : dict, optional
        Largest leverage of a row in the summary and all replicates together, by variable.
    """

    plan: StudyPlan
    summary: Summary
    extremes: dict[int, dict[str, Array]] = field(default_factory=dict)
    weights: dict[int, dict[str, Array]] = field(default_factory=dict)
    joint: dict[str, float] = field(default_factory=dict)

    def __call__(self, rows: Table, times: Array) -> None:
        """Add complete rows, and how often each counts in each replicate."""
        for number, counted in enumerate(times, start=1):
            self._add_replicate(number, rows, counted)
        growth = 1 + ((times - 1) ** 2).sum(axis=0)
        for name, alone in self._leverages(rows):
            known = alone * growth / (1 - alone + alone * growth)
            self.joint[name] = float(known.max(initial=self.joint.get(name, 0.0)))

    @cached_property
    def _measures(self) -> dict[str, tuple[slice, Array]]:
        spans = self.plan.layout.spans
        return {
            variable.name: (spans[variable.name], _inverse_root_of_variable(self.summary, spans[variable.name]))
            for variable in self.plan.variables
            if isinstance(variable, Continuous)
        }

    def _leverages(self, rows: Table) -> Iterator[tuple[str, Array]]:
        """Yield the leverages of these rows in the summary, for each continuous variable."""
        features = Encoder(self.plan, self.summary.clients[0])(rows)
        for name, (span, measure) in self._measures.items():
            yield name, np.minimum(((measure @ features[np.r_[0, span]]) ** 2).sum(axis=0), 1.0)

    def _add_replicate(self, number: int, rows: Table, times: Array) -> None:
        values, counts = self.extremes.setdefault(number, {}), self.weights.setdefault(number, {})
        present = times > 0
        for variable in self.plan.variables:
            column, empty = rows.columns[variable.name], np.zeros(0)
            if isinstance(variable, Continuous) and isinstance(column, NumericColumn):
                known = np.concatenate([values.get(variable.name, empty), column.values[present]])
                often = np.concatenate([counts.get(variable.name, empty), times[present]])
                if len(known):
                    ends = values[variable.name] = _find_extremes(variable, known)
                    counts[variable.name] = np.array([often[known == end].max() for end in ends])


def _find_extremes(variable: Continuous, known: Array) -> Array:
    """Return the smallest and the largest value on either side of the centre."""
    centre = variable.centre_and_spread[0]
    sides = [side for side in (known[known <= centre], known[known >= centre]) if len(side)]
    return np.unique([end for side in sides for end in (side.min(), side.max())])


def compute_leverages(
    summary: Summary,
    plan: StudyPlan,
    extremes: Mapping[str, Array],
    weights: Mapping[str, Array] = MappingProxyType({}),
) -> dict[str, float]:
    """Return the largest leverage among the extreme values of every continuous variable.

    Parameters
    ----------
    summary : Summary
        A summary or a bootstrap replicate.
    plan : StudyPlan
        The plan that it follows.
    extremes : mapping from str to array
        Extreme values by variable.
    weights : mapping from str to array, optional
        How often a row with each of these values counts. Default: once.

    Returns
    -------
    dict from str to float
        Largest leverage by variable.

    Examples
    --------
    >>> from fedcdh import summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> summary = summarize({"age": [50, 61, 72]}, plan, "north")
    >>> {name: round(h, 3) for name, h in compute_leverages(summary, plan, {"age": np.array([72.0])}).items()}
    {'age': 1.0}
    """
    return {
        name: float((_leverage_of_values(summary, plan, variable, extremes[name]) * weights.get(name, 1.0)).max())
        for name, variable in zip(plan.names, plan.variables, strict=True)
        if isinstance(variable, Continuous) and name in extremes
    }


def _leverage_of_values(summary: Summary, plan: StudyPlan, variable: Continuous, values: Array) -> Array:
    """Return the leverage of a row that counts once, for each of these values."""
    single = replace(plan, variables=(variable,), absent={})
    features = Encoder(single, summary.clients[0])(Table({variable.name: NumericColumn(values)}))
    measure = _inverse_root_of_variable(summary, plan.layout.spans[variable.name])
    return np.asarray(((measure @ features) ** 2).sum(axis=0))


def _inverse_root_of_variable(summary: Summary, span: slice) -> Array:
    """Return a root W of M⁻¹ for the columns of one variable: the leverage of φ is |W φ|²."""
    columns = np.r_[0, span]
    return inverse_root(summary.moments[np.ix_(columns, columns)])


def inverse_root(moments: Integers) -> Array:
    """Return W with WᵀW = M⁻¹, so that the leverage of φ is |W φ|². Directions that no row has are left out.

    The columns are centred first, exactly: sums are exact integers, so that a column which differs from its mean by one
    step of the grid for a few people discloses them, however large the mean is.

    Parameters
    ----------
    moments : array of int
        Moments of the constant and of further columns, with the constant first.

    Returns
    -------
    array
        Directions × columns.
    """
    means = _rounded_means(moments)
    eigenvalues, directions = _scaled_eigenvectors(_centre(moments, means))
    kept = eigenvalues > _EIGENVALUE_TOLERANCE
    return _uncentre(directions[kept] / np.sqrt(eigenvalues[kept, None]), means)


def _rounded_means(moments: Integers) -> Integers:
    """Return the means of the columns in whole steps, and 0 for the constant."""
    means = np.rint(moments[0] / max(int(moments[0, 0]), 1) * GRID).astype(np.int64)
    means[0] = 0
    return np.asarray(means)


_Numbers = TypeVar("_Numbers", Array, Integers)


def _centre(moments: _Numbers, means: _Numbers) -> _Numbers:
    """Return the moments of columns from which whole numbers are subtracted: exact, like the moments.

    Terms may exceed 2⁶³ where the result does not; integers then wrap around, and the result is right all the same.
    """
    sums = moments[0] // GRID
    rows = sums[0] // GRID
    crossed = np.multiply.outer(means, sums)
    return np.asarray(moments - crossed - crossed.T + rows * np.multiply.outer(means, means))


def _uncentre(root: Array, means: Integers) -> Array:
    """Return a root for the columns as they are, given one for centred columns."""
    moved = root.copy()
    moved[:, 0] -= root @ (means / GRID)
    return moved


def _scaled_eigenvectors(moments: Integers) -> tuple[Array, Array]:
    """Return the eigenvalues of the scaled moments, ascending, as shares of the largest, and their vectors.

    The vectors have unit length in scaled coordinates, and are divided by the scales and the root of the largest
    eigenvalue.
    """
    scales = np.sqrt(np.maximum(moments.diagonal(), 1.0))
    eigenvalues, vectors = np.linalg.eigh(moments / np.multiply.outer(scales, scales))
    return eigenvalues / eigenvalues[-1], vectors.T / np.sqrt(eigenvalues[-1]) / scales
