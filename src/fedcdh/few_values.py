"""People with each value of the numbers that have few different ones, counted while the rows come by.

A number that is 0 or 1 tells as much about the people who have it as a label would: the sums of its powers give away
how many have each value, and the mean of all else among them. So as many people have to have each of its values, and
each pair of one with a label or with another such value, as have to have a label.

A number with many different values may still be the same for most people: 0, say, for all who have no costs. Then sums
over those with a label are sums over the few of them who have another value, and these have to be none, or as many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fedcdh.plan import Continuous, StudyPlan
from fedcdh.tables import Column, Numbers, Table

_GLANCE = 512  # rows that are enough to see that a column has many different values
_SPIKE = 0.2  # share of these rows from which a value is one that many have
_Coded = tuple[list[str], npt.NDArray[np.intp]]


class FewValues:
    """Called with complete rows, batch after batch; memory does not grow with the rows.

    >>> from fedcdh.tables import as_table
    >>> few = FewValues(StudyPlan((Continuous("dose"), Continuous("age")), ("north",)), most=3)
    >>> few(as_table({"dose": [0, 10, 10, 0], "age": [51, 62, 48, 70]}))
    >>> few.cells
    {"value 0 of 'dose'": 2, "value 10 of 'dose'": 2}
    """

    def __init__(self, plan: StudyPlan, most: int) -> None:
        self._most = most
        self._numbers = [v.name for v in plan.variables if isinstance(v, Continuous)] if most > 0 else []
        self._labels = [v.name for v in plan.variables if not isinstance(v, Continuous)]
        self._single: dict[str, Counter[str]] = {name: Counter() for name in self._numbers}
        self._pairs: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
        self._spikes: dict[str, npt.NDArray[np.float64]] = {}
        self._others: dict[tuple[str, str], Counter[str]] = {}

    def __call__(self, rows: Table) -> None:
        """Counts these rows."""
        if not (self._single or self._spikes) or not rows.rows:
            return
        coded = {name: found for name in self._single if (found := self._few(rows.columns[name])) is not None}
        for name in list(self._single):
            if name in coded:
                values, codes = coded[name]
                self._single[name].update(dict(zip(values, np.bincount(codes).tolist(), strict=True)))
            if name not in coded or len(self._single[name]) > self._most:
                self._forget(name, rows.columns[name])
        few = {name: coded[name] for name in self._single}
        labels = {name: _coded_labels(rows.columns[name]) for name in self._labels} if few or self._spikes else {}
        self._count_others(rows, {**few, **labels})
        for one, other in [*combinations(few, 2), *((number, label) for number in few for label in labels)]:
            self._count_pairs(one, other, few[one], few.get(other) or labels[other])

    @property
    def cells(self) -> Mapping[str, int]:
        """How many people have each value, and each pair of a value and a label or another such value."""
        alone = {
            f"value {value} of {name!r}": count
            for name, counts in self._single.items()
            for value, count in sorted(counts.items())
        }
        together = {
            f"value {value} of {one!r} with {label} of {other!r}": count
            for (one, other), counts in self._pairs.items()
            for (value, label), count in sorted(counts.items())
        }
        beside = {
            f"a value of {one!r} that few share, with {label} of {other!r}": count
            for (one, other), counts in self._others.items()
            for label, count in sorted(counts.items())
        }
        return {**alone, **together, **beside}

    def _few(self, column: Column) -> _Coded | None:
        if not isinstance(column, Numbers) or len(np.unique(column.values[:_GLANCE])) > self._most:
            return None
        values, codes = np.unique(column.values + 0.0, return_inverse=True)
        return None if len(values) > self._most else ([_shown(value) for value in values.tolist()], codes.reshape(-1))

    def _forget(self, name: str, column: Column) -> None:
        """It has many different values; some of them may be spikes."""
        del self._single[name]
        if isinstance(column, Numbers):
            values, counts = np.unique(column.values[:_GLANCE] + 0.0, return_counts=True)
            often = counts >= max(2.0, _SPIKE * counts.sum())
            if often.any():
                self._spikes[name] = values[often]
        self._pairs = {pair: counts for pair, counts in self._pairs.items() if name not in pair}

    def _count_others(self, rows: Table, groups: Mapping[str, _Coded]) -> None:
        """Of the people with each label, those whose number is no spike."""
        for name, spikes in self._spikes.items():
            column = rows.columns[name]
            if isinstance(column, Numbers):
                apart = ~np.isin(column.values, spikes)
                for other, (labels, codes) in groups.items():
                    found = np.bincount(codes[apart], minlength=len(labels)).tolist()
                    self._others.setdefault((name, other), Counter()).update(dict(zip(labels, found, strict=True)))

    def _count_pairs(self, one: str, other: str, first: _Coded, second: _Coded) -> None:
        (values, codes), (labels, others) = first, second
        table = np.bincount(codes * len(labels) + others, minlength=len(values) * len(labels))
        counts = self._pairs.setdefault((one, other), Counter())
        for place in np.flatnonzero(table):
            counts[values[place // len(labels)], labels[place % len(labels)]] += int(table[place])


def _coded_labels(column: Column) -> _Coded:
    texts = column.as_texts()
    return [repr(level) for level in texts.levels], texts.codes.astype(np.intp)


def _shown(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() else repr(value)
