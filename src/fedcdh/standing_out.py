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
others are kept until the end (`LonelyRows`).

In a bootstrap copy a row may count several times, and its neighbours not at all: whoever hid among others in the
summary may stand out there. The row's leverage is then that of all the times it counts, w φ₁ᵀ M⁻¹ φ₁.

Summary and copies together tell about a row by the columns φ and w_b φ: its odds h/(1 − h) are 1 + Σ (w_b − 1)² times
those of the summary alone, as long as many other rows, whose weights are drawn apart from its own, lie in its
direction. At the site the weights are known, and so is that, for every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fedcdh.encoding import Encoder
from fedcdh.plan import Continuous, StudyPlan
from fedcdh.sources import Kind, TableSource
from fedcdh.summary import Summary
from fedcdh.tables import Numbers, Table

Array = npt.NDArray[np.float64]
_NOTHING = 1e-12  # of the largest eigenvalue of the scaled moments: below, it is rounding
_TRACE = 1e-13  # what a direction counts that no row so far had: whoever has it is lonely
_SAFE = 0.98  # of the limit: measured on the way, in other units
_BLOCK = 2048  # rows at a time


@dataclass(frozen=True)
class Watched:
    """A source that remembers the outermost values of its complete rows, and those next to the plan's centres.

    Who else wants to see the complete rows as they come by is called with them (`also`).
    """

    source: TableSource
    plan: StudyPlan
    also: tuple[Callable[[Table], None], ...] = ()
    outermost: dict[str, Array] = field(default_factory=dict)

    def kinds(self) -> Mapping[str, Kind]:
        """Those of the source."""
        return self.source.kinds()

    def batches(self, kinds: Mapping[str, Kind]) -> Iterator[Table]:
        """Those of the source, looked at on the way."""
        for table in self.source.batches(kinds):
            complete = np.ones(table.rows, dtype=np.bool_)
            for column in table.columns.values():
                complete &= ~column.missing
            for variable in self.plan.variables:
                column = table.columns[variable.name]
                if isinstance(variable, Continuous) and isinstance(column, Numbers):
                    self._note(variable, column.values[complete])
            if self.also:
                used = table if complete.all() else table.where(complete)
                for watch in self.also:
                    watch(used)
            yield table

    def _note(self, variable: Continuous, values: Array) -> None:
        known = np.concatenate([self.outermost.get(variable.name, np.zeros(0)), values])
        if len(known):
            self.outermost[variable.name] = _outermost(variable, known)


class LonelyRows:
    """Called with complete rows, batch after batch: keeps those that may stand out by all their values together."""

    def __init__(self, plan: StudyPlan, limit: float) -> None:
        self._encode, self._limit = Encoder(plan, plan.clients[0]), _SAFE * limit
        self._moments = np.zeros((plan.columns, plan.columns))
        self._rows = self._measured = 0
        self._measure = self._moments
        self._kept = np.zeros((plan.columns, 0))

    def __call__(self, rows: Table) -> None:
        """Looks at these rows among those so far. What is measured by fewer of them only looks lonelier."""
        for start in range(0, rows.rows, _BLOCK):
            features = self._encode(rows.rows_from(start, _BLOCK))
            self._moments += features @ features.T
            self._rows += features.shape[1]
            if self._rows >= 2 * self._measured:
                self._measure, self._measured = _root(self._moments, _TRACE, told_only=False), self._rows
                self._kept = self._lonely(self._kept)
            self._kept = np.concatenate([self._kept, self._lonely(features)], axis=1)

    def largest(self, summary: Summary) -> float:
        """The largest leverage of a row in all columns of the summary, where it may be above the limit; else 0."""
        measure = _root(summary.moments.astype(np.float64), _NOTHING)
        return float(((measure @ self._kept) ** 2).sum(axis=0).max(initial=0.0))

    def _lonely(self, features: Array) -> Array:
        known = ((self._measure @ features) ** 2).sum(axis=0)
        return np.asarray(features[:, known > self._limit])


@dataclass(frozen=True)
class WatchedCopies:
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
            variable.name: (spans[variable.name], _measure(self.summary, spans[variable.name]))
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
            if isinstance(variable, Continuous) and isinstance(column, Numbers):
                known = np.concatenate([values.get(variable.name, nothing), column.values[there]])
                often = np.concatenate([counts.get(variable.name, nothing), times[there]])
                if len(known):
                    ends = values[variable.name] = _outermost(variable, known)
                    counts[variable.name] = np.array([often[known == end].max() for end in ends])


def _outermost(variable: Continuous, known: Array) -> Array:
    """The least and the largest value on either side of the centre."""
    sides = [side for side in (known[known <= variable.bulk[0]], known[known >= variable.bulk[0]]) if len(side)]
    return np.unique([end for side in sides for end in (side.min(), side.max())])


def leverages(
    summary: Summary,
    plan: StudyPlan,
    outermost: Mapping[str, Array],
    times: Mapping[str, Array] = MappingProxyType({}),
) -> dict[str, float]:
    """The largest leverage among the outermost values of every continuous variable; `times` a row counts, else once."""
    spans = plan.spans()
    return {
        name: float((_leverage(summary, plan, variable, spans[name], outermost[name]) * times.get(name, 1.0)).max())
        for name, variable in zip(plan.names, plan.variables, strict=True)
        if isinstance(variable, Continuous) and name in outermost
    }


def _leverage(summary: Summary, plan: StudyPlan, variable: Continuous, span: slice, values: Array) -> Array:
    """Of a row that counts once, with each of these values."""
    alone = replace(plan, variables=(variable,))
    features = Encoder(alone, summary.clients[0])(Table({variable.name: Numbers(values)}))
    return np.asarray(((_measure(summary, span) @ features) ** 2).sum(axis=0))


def _measure(summary: Summary, span: slice) -> Array:
    """A root W of M⁻¹ for the columns of one variable: the leverage of φ is |W φ|²."""
    columns = np.r_[0, span]
    return _root(summary.moments[np.ix_(columns, columns)].astype(np.float64), _NOTHING)


def _root(moments: Array, least: float, *, told_only: bool = True) -> Array:
    """W with WᵀW = M⁻¹; directions below the least share of the largest eigenvalue are left out, or count as that."""
    scales = np.sqrt(np.maximum(moments.diagonal(), 1.0))
    eigenvalues, vectors = np.linalg.eigh(moments / np.multiply.outer(scales, scales))
    told = eigenvalues > least * eigenvalues[-1] if told_only else slice(None)
    sizes = np.maximum(eigenvalues[told, None], least * eigenvalues[-1])
    return np.asarray(vectors[:, told].T / np.sqrt(sizes) / scales)
