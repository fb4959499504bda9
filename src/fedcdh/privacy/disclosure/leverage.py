"""Whether single people stand out in a summary, and how far.

The columns φ of one variable (with the constant) have the moments M = Σ φφᵀ. For a row with columns φ₁, the weights
w_k = φ_kᵀ M⁻¹ φ₁ over all rows can be applied to any other variable g by whoever has the summary, as Σ w_k g_k. The
row's own weight is its leverage h = φ₁ᵀ M⁻¹ φ₁, and Σ w_k² = h: so Σ w_k g_k / h is g₁ up to √((1 − h)/h) standard
deviations of g. From h = 0.99 on that is a tenth: all that is known about this person can be read off. Who knows the
plan finds φ₁ by trying the values of one variable.

Leverage is largest where others are far: at the smallest and the largest value, and where a plan looks closely, next to
its centre. These values are noted while the rows go by.

Who stands out a little by each of several variables may stand out much by all of them: leverage in all columns together
is what bounds every attack of this kind. It takes the moments of all rows, and each row once more. But moments only
grow while rows go by, and leverage only falls: rows that do not stand out among those so far never will, and the few
others are kept until the end (`HighLeverageRows`).

In a bootstrap copy a row may count several times, and its neighbours not at all: whoever hid among others in the
summary may stand out there. The row's leverage is then that of all the times it counts, w φ₁ᵀ M⁻¹ φ₁.

Summary and copies together tell about a row by the columns φ and w_b φ: its odds h/(1 − h) are 1 + Σ (w_b − 1)² times
those of the summary alone, as long as many other rows, whose weights are drawn apart from its own, lie in its
direction. At the site the weights are known, and so is that, for every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.data.table import NumericColumn, Table
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.plan import Continuous, StudyPlan
from fedcdh.summaries.summary import Integers, Summary

_EIGENVALUE_TOLERANCE = 1e-12  # of the largest eigenvalue of the scaled moments: below, it is rounding
_UNSEEN_EIGENVALUE = 1e-13  # what a direction counts that no row so far had: whoever has it is lonely
_RARE_EIGENVALUE = 1e-11  # below, sums of products may be rounding
_SAFETY_MARGIN = 0.98  # of the limit: measured on the way, in other units


class ExtremeValues:
    """The least and the largest value of every number, and those next to the plan's centre on either side.

    Called with numbers, variables × rows, block after block; `a + b` is that of all the rows.
    """

    def __init__(self, plan: StudyPlan) -> None:
        self._variables = [variable for variable in plan.variables if isinstance(variable, Continuous)]
        self._centres = [variable.centre_and_spread[0] for variable in self._variables]
        # the least, the least above the centre, and with the sign turned the largest below it, and the largest
        self._least = np.full((len(self._variables), 4), np.inf)

    def __call__(self, numbers: Array) -> None:
        """Looks at some rows."""
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
        """By variable, each value once, in order."""
        ends = self._least * [1.0, 1.0, -1.0, -1.0]
        return {
            variable.name: np.unique(known[np.isfinite(known)])
            for variable, known in zip(self._variables, ends, strict=True)
            if np.isfinite(known).any()
        }


class HighLeverageRows:
    """Keeps the rows that may stand out by all their values together, while rows go by; `limit` is a leverage.

    Leverages of all rows add up to the number of columns: few are above the limit, and no more are kept for long. Those
    of a block add up to tr(M⁻¹P), where P are the products of its features, which the summary takes anyway: if that is
    not above the limit, no single one is, and the rows need not be looked at. Directions that next to nobody has cannot
    be told from rounding in P; they are measured row by row.
    """

    def __init__(self, columns: int, limit: float) -> None:
        self._limit, self._measured = _SAFETY_MARGIN * limit, 0
        self._kept = np.zeros((columns, 0), dtype=np.int32)  # features are whole steps of the grid
        self._measure: _LeverageMeasure | None = None

    def __call__(self, features: Array, products: Array, moments: Integers) -> None:
        """Looks at rows among those so far, whose moments these are: with more of them, leverage only falls."""
        rows = int(moments[0, 0]) // GRID**2
        if rows < len(moments):  # as many directions as rows: all of them are lonely
            self._keep(features)
            return
        if self._measure is None or rows >= 2 * self._measured or self._too_many(4):
            self._measured, self._measure = rows, _LeverageMeasure.of(moments)
            self._kept = self._kept[:, self._measure.each(self._kept) > self._limit]
        if self._measure.together(features, products) > self._limit:
            self._keep(features[:, self._measure.each(features) > self._limit])

    def merge_with(self, other: HighLeverageRows, moments: Integers) -> HighLeverageRows:
        """Those that may stand out among the rows of both, whose moments these are."""
        both = HighLeverageRows(len(moments), self._limit / _SAFETY_MARGIN)
        both._kept = np.concatenate([self._kept, other._kept], axis=1)
        if both._too_many(2):
            both._kept = both._kept[:, _LeverageMeasure.of(moments).each(both._kept) > both._limit]
        return both

    def _keep(self, features: Array) -> None:
        self._kept = np.concatenate([self._kept, features.astype(np.int32)], axis=1)

    def _too_many(self, times: int) -> bool:
        """Whether so many times more are kept than can be above the limit."""
        columns, kept = self._kept.shape
        return kept > times * columns / self._limit

    def largest(self, summary: Summary) -> float:
        """The largest leverage of a row in all columns of the summary, where it may be above the limit; else 0."""
        measure = _inverse_root(summary.moments.astype(np.float64), _EIGENVALUE_TOLERANCE)
        largest = float(((measure @ self._kept) ** 2).sum(axis=0).max(initial=0.0))
        return largest if largest > self._limit else 0.0


@dataclass(frozen=True)
class _LeverageMeasure:
    """Leverage among the rows of some moments, by a root of M⁻¹."""

    root: Array
    rare: Array  # of the root, the directions that next to nobody has
    inverse: Array  # in all others

    @classmethod
    def of(cls, moments: Integers) -> _LeverageMeasure:
        """A direction that no row has counts for a trace: whoever has it is lonely."""
        eigenvalues, directions = _scaled_eigenvectors(moments.astype(np.float64))
        root = directions / np.sqrt(np.maximum(eigenvalues, _UNSEEN_EIGENVALUE))[:, None]
        rare, common = np.split(root, [np.searchsorted(eigenvalues, _RARE_EIGENVALUE)])
        return cls(root, rare, common.T @ common)

    def each(self, features: npt.NDArray[np.float64 | np.int32]) -> Array:
        """The leverage of every row."""
        return np.asarray(((self.root @ features) ** 2).sum(axis=0))

    def together(self, features: Array, products: Array) -> float:
        """What no single row is above: a sum over all of them in most directions, the largest in the others."""
        rare = ((self.rare @ features) ** 2).sum(axis=0).max(initial=0.0)
        return float(np.vdot(self.inverse, products) + rare)


@dataclass(frozen=True)
class ReplicateLeverage:
    """The outermost values in every bootstrap copy, and how often the rows that have them count there, the most.

    `together` is the largest leverage of a row in the summary and all of its copies.
    """

    plan: StudyPlan
    summary: Summary
    outermost: dict[int, dict[str, Array]] = field(default_factory=dict)
    times: dict[int, dict[str, Array]] = field(default_factory=dict)
    together: dict[str, float] = field(default_factory=dict)

    def __call__(self, rows: Table, times: Array) -> None:
        """Looks at the next complete rows, and at how often each counts in each copy."""
        for number, counted in enumerate(times, start=1):
            self._note(number, rows, counted)
        grown = 1 + ((times - 1) ** 2).sum(axis=0)
        for name, alone in self._leverages(rows):
            known = alone * grown / (1 - alone + alone * grown)
            self.together[name] = float(known.max(initial=self.together.get(name, 0.0)))

    @cached_property
    def _measures(self) -> dict[str, tuple[slice, Array]]:
        spans = self.plan.spans()
        return {
            variable.name: (spans[variable.name], _inverse_root_of_variable(self.summary, spans[variable.name]))
            for variable in self.plan.variables
            if isinstance(variable, Continuous)
        }

    def _leverages(self, rows: Table) -> Iterator[tuple[str, Array]]:
        """Of these rows in the summary, by each of their numbers."""
        features = Encoder(self.plan, self.summary.clients[0])(rows)
        for name, (span, measure) in self._measures.items():
            yield name, np.minimum(((measure @ features[np.r_[0, span]]) ** 2).sum(axis=0), 1.0)

    def _note(self, number: int, rows: Table, times: Array) -> None:
        values, counts = self.outermost.setdefault(number, {}), self.times.setdefault(number, {})
        there = times > 0
        for variable in self.plan.variables:
            column, nothing = rows.columns[variable.name], np.zeros(0)
            if isinstance(variable, Continuous) and isinstance(column, NumericColumn):
                known = np.concatenate([values.get(variable.name, nothing), column.values[there]])
                often = np.concatenate([counts.get(variable.name, nothing), times[there]])
                if len(known):
                    ends = values[variable.name] = _find_extremes(variable, known)
                    counts[variable.name] = np.array([often[known == end].max() for end in ends])


def _find_extremes(variable: Continuous, known: Array) -> Array:
    """The least and the largest value on either side of the centre."""
    sides = [
        side
        for side in (known[known <= variable.centre_and_spread[0]], known[known >= variable.centre_and_spread[0]])
        if len(side)
    ]
    return np.unique([end for side in sides for end in (side.min(), side.max())])


def compute_leverages(
    summary: Summary,
    plan: StudyPlan,
    outermost: Mapping[str, Array],
    times: Mapping[str, Array] = MappingProxyType({}),
) -> dict[str, float]:
    """The largest leverage among the outermost values of every continuous variable; `times` a row counts, else once."""
    spans = plan.spans()
    return {
        name: float(
            (_leverage_of_values(summary, plan, variable, spans[name], outermost[name]) * times.get(name, 1.0)).max()
        )
        for name, variable in zip(plan.names, plan.variables, strict=True)
        if isinstance(variable, Continuous) and name in outermost
    }


def _leverage_of_values(summary: Summary, plan: StudyPlan, variable: Continuous, span: slice, values: Array) -> Array:
    """Of a row that counts once, with each of these values."""
    alone = replace(plan, variables=(variable,))
    features = Encoder(alone, summary.clients[0])(Table({variable.name: NumericColumn(values)}))
    return np.asarray(((_inverse_root_of_variable(summary, span) @ features) ** 2).sum(axis=0))


def _inverse_root_of_variable(summary: Summary, span: slice) -> Array:
    """A root W of M⁻¹ for the columns of one variable: the leverage of φ is |W φ|²."""
    columns = np.r_[0, span]
    return _inverse_root(summary.moments[np.ix_(columns, columns)].astype(np.float64), _EIGENVALUE_TOLERANCE)


def _inverse_root(moments: Array, least: float) -> Array:
    """W with WᵀW = M⁻¹; directions below the least share of the largest eigenvalue are left out."""
    eigenvalues, directions = _scaled_eigenvectors(moments)
    told = eigenvalues > least
    return np.asarray(directions[told] / np.sqrt(eigenvalues[told, None]))


def _scaled_eigenvectors(moments: Array) -> tuple[Array, Array]:
    """Eigenvalues of the scaled moments in ascending order, over the largest one, and their vectors: those of unit
    size in these coordinates, divided by the scales, and by the root of the largest eigenvalue."""
    scales = np.sqrt(np.maximum(moments.diagonal(), 1.0))
    eigenvalues, vectors = np.linalg.eigh(moments / np.multiply.outer(scales, scales))
    return eigenvalues / eigenvalues[-1], vectors.T / np.sqrt(eigenvalues[-1]) / scales
