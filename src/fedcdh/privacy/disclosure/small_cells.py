"""People with each value of the numbers that have few different ones, counted while the rows come by.

A number that is 0 or 1 tells as much about the people who have it as a label would: the sums of its powers give away
how many have each value, and the mean of all else among them. So as many people have to have each of its values, and
each pair of one with a label or with another such value, as have to have a label.

A number with many different values may still be the same for most people: 0, say, for all who have no costs. Then sums
over those with a label are sums over the few of them who have another value, and these have to be none, or as many.

Rows may be counted in any order and in parts, and the counts added: the outcome depends on the rows alone. As long as a
column has few values, all of them are counted. When it has more, values are counted in buckets by a fixed hash, and a
bucket that many people are in is one of a value that many have. Whoever has another value that falls into the same
bucket is taken for one of them: one person in as many as there are buckets, 2048, fewer in wide tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.data.labels import strip_zero_decimals
from fedcdh.data.table import Column, NumericColumn, Table
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan

Positions = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int64]
SmallCounts = npt.NDArray[np.int32]  # counts of rows, of which no summary has 2³¹

_PREVIEW_ROWS = 512  # rows that are enough to see that a column has many different values
_MIN_SPIKE_SHARE = 0.15  # share of all rows from which a value is one that many have
_MIN_BUCKETS, _MAX_BUCKETS = 256, 2048
_MAX_BUCKET_COUNTS = 1 << 22  # in all buckets together, or somewhat more in very wide tables
_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio: products with it are far apart
_Value = float | str
_Pair = tuple[str, str]


class CellCounter:
    """Called with complete rows, batch after batch; memory does not grow with them. `a + b` is that of all rows.

    >>> from fedcdh.data.table import as_table
    >>> few = CellCounter(StudyPlan((Continuous("dose"), Continuous("age")), ("north",)), most=3)
    >>> few(as_table({"dose": [0, 10, 10, 0], "age": [51, 62, 48, 70]}))
    >>> few.cells
    {"value 0 of 'dose'": 2, "value 10 of 'dose'": 2}
    """

    def __init__(self, plan: StudyPlan, most: int) -> None:
        self._most, self._rows = most, 0
        self._numbers = [v.name for v in plan.variables if isinstance(v, Continuous)] if most > 0 else []
        self._planned = {v.name: frozenset(v.levels) for v in plan.variables if isinstance(v, Categorical)}
        self._labels = list(self._planned)
        self._many: frozenset[str] = frozenset()
        self._values: dict[str, Array] = {name: np.zeros(0) for name in self._numbers}  # of those not in many, sorted
        self._levels: dict[str, list[str]] = {name: [] for name in self._labels}
        self._single: dict[str, Counter[_Value]] = {name: Counter() for name in (*self._numbers, *self._labels)}
        self._pairs: dict[_Pair, Counter[tuple[_Value, _Value]]] = {}  # of columns that are not in many
        self._tables: dict[_Pair, Counts] = {}  # pairs of the values so far, not yet in `_pairs`
        self._buckets = _choose_bucket_count(plan, len(self._numbers), most)
        self._beside: dict[
            _Pair, dict[_Value, SmallCounts]
        ] = {}  # of a number in many and another column, by its values

    def __call__(self, rows: Table) -> None:
        """Counts these rows."""
        if not rows.rows or not self._numbers:
            return
        self._rows += rows.rows
        found = {name: self._number_codes(name, rows.columns[name]) for name in self._open}
        codes = {name: places for name, places in found.items() if places is not None}
        if not codes and not self._labels:
            return
        codes |= {name: self._label_codes(name, rows.columns[name]) for name in self._labels}
        for name, places in codes.items():
            counts = np.bincount(places, minlength=len(self._keys(name))).tolist()
            self._single[name].update(dict(zip(self._keys(name), counts, strict=True)))
        for one, other in combinations(codes, 2):
            if one in self._values:
                sizes = len(self._keys(one)), len(self._keys(other))
                counted = np.bincount(codes[one] * sizes[1] + codes[other], minlength=sizes[0] * sizes[1])
                table = self._tables.setdefault((one, other), np.zeros(sizes, dtype=np.int64))
                table += counted.reshape(sizes)
        for one in self._many:
            buckets = _hash_to_buckets(_to_values(rows.columns[one]), self._buckets)
            for other, places in codes.items():
                self._count_beside(one, other, places, buckets)

    def __add__(self, other: CellCounter) -> CellCounter:
        values = {name: np.union1d(self._values[name], other._values[name]) for name in {*self._open} & {*other._open}}
        few = {name for name, known in values.items() if len(known) <= self._most}
        many = set(self._numbers) - few
        one, two = self._with_many(many), other._with_many(many)
        both = copy(one)
        both._rows = one._rows + two._rows
        both._values = {name: values[name] for name in one._values}
        both._levels = {name: sorted({*one._levels[name], *two._levels[name]}) for name in self._labels}
        both._single = {name: one._single[name] + two._single[name] for name in one._single}
        both._pairs = _add_counts(one._pairs, two._pairs, Counter())
        both._beside = {
            pair: _add_counts(one._beside.get(pair, {}), two._beside.get(pair, {}), np.int32(0))
            for pair in {**one._beside, **two._beside}
        }
        return both

    @property
    def cells(self) -> Mapping[str, int]:
        """How many people have each value, and each pair of a value and a label or another such value."""
        few, pairs = self._open, self._all_pairs()
        alone = {
            f"value {_format_value(value)} of {name!r}": count
            for name in few
            for value, count in sorted(self._single[name].items())
        }
        together = {
            f"value {_format_value(value)} of {one!r} with {_format_value(label)} of {other!r}": count
            for one, other in combinations((*few, *self._labels), 2)
            for (value, label), count in sorted(pairs.get((one, other), Counter()).items())
        }
        beside = {
            f"a value of {one!r} that few share, with {_format_value(label)} of {other!r}": count
            for one in sorted(self._many)
            for other in (*few, *self._labels)
            for label, count in self._without_spikes(one, other)
        }
        return {**alone, **together, **beside}

    @property
    def _open(self) -> list[str]:
        """The numbers that have had few values so far."""
        return [name for name in self._numbers if name not in self._many]

    def _keys(self, name: str) -> list[float] | list[str]:
        return self._values[name].tolist() if name in self._values else self._levels[name]

    def _number_codes(self, name: str, column: Column) -> Positions | None:
        """The places of the rows' values among those that are counted; takes up new ones.

        None for a column that gets too many of them: it is one of many values from then on.
        """
        values, known = _to_values(column), self._values[name]
        codes = _find_positions(values, known)
        if not (new := codes == len(known)).any():
            return codes
        found = np.unique(values[new][:_PREVIEW_ROWS])
        found = found if len(known) + len(found) > self._most else np.unique(values[new])
        self._settle()
        if len(known) + len(found) > self._most:
            self._turn_many(name)
            return None
        self._values[name] = np.union1d(known, found)
        return _find_positions(values, self._values[name])

    def _label_codes(self, name: str, column: Column) -> Positions:
        texts, known, planned = column.to_categorical(), self._levels[name], self._planned[name]
        spelt = [
            level if level in planned else strip_zero_decimals(level) for level in texts.levels
        ]  # 3.0 is the label 3
        if new := [level for level in dict.fromkeys(spelt) if level not in known]:
            self._settle()
            self._levels[name] = known = [*known, *new]
        return np.array([known.index(level) for level in spelt], dtype=np.intp)[texts.codes]

    def _settle(self) -> None:
        """Writes down what was counted by places: these are to change."""
        self._pairs, self._tables = self._all_pairs(), {}

    def _all_pairs(self) -> dict[_Pair, Counter[tuple[_Value, _Value]]]:
        pairs = {pair: Counter(counts) for pair, counts in self._pairs.items()}
        for (one, other), table in self._tables.items():
            values, labels = self._keys(one), self._keys(other)
            found = {(values[i], labels[j]): int(table[i, j]) for i, j in zip(*table.nonzero(), strict=True)}
            pairs.setdefault((one, other), Counter()).update(found)
        return pairs

    def _with_many(self, names: Collection[str]) -> CellCounter:
        """The same counts, of columns of which these have many values."""
        other = copy(self)
        other._settle()
        other._values, other._single = dict(self._values), dict(self._single)
        other._beside = {pair: dict(counts) for pair, counts in self._beside.items()}
        for name in self._open:
            if name in names:
                other._turn_many(name)
        return other

    def _turn_many(self, name: str) -> None:
        """Its values are counted in buckets from now on, and so are those that were counted."""
        for pair in [pair for pair in self._pairs if name in pair]:
            side, counts = pair.index(name), self._pairs.pop(pair)
            beside = self._beside.setdefault((name, pair[1 - side]), {})
            for key, count in counts.items():
                (bucket,) = _hash_to_buckets(np.array([key[side]], dtype=np.float64), self._buckets)
                beside.setdefault(key[1 - side], np.zeros(self._buckets, dtype=np.int32))[bucket] += count
        self._many |= {name}
        self._beside = {pair: counts for pair, counts in self._beside.items() if pair[1] != name}
        del self._values[name], self._single[name]

    def _count_beside(self, one: str, other: str, places: Positions, buckets: Positions) -> None:
        beside = self._beside.setdefault((one, other), {})
        keys: Sequence[_Value] = self._keys(other)
        found = np.bincount(places * self._buckets + buckets, minlength=len(keys) * self._buckets)
        for key, counts in zip(keys, found.reshape(len(keys), self._buckets).astype(np.int32), strict=True):
            beside[key] = beside[key] + counts if key in beside else counts

    def _without_spikes(self, one: str, other: str) -> Iterator[tuple[_Value, int]]:
        """Of the people with each label, those whose number is no spike; nothing if it has none."""
        beside = self._beside.get((one, other), {})
        spikes = sum(beside.values(), np.zeros(self._buckets, dtype=np.int64)) >= max(
            2.0, _MIN_SPIKE_SHARE * self._rows
        )
        for label in sorted(beside) if spikes.any() else ():
            yield label, int(beside[label][~spikes].sum())


def _choose_bucket_count(plan: StudyPlan, numbers: int, most: int) -> int:
    """A power of two, the same for all who have the plan and the policy."""
    levels = sum(len(variable.levels) for variable in plan.variables if isinstance(variable, Categorical))
    beside = numbers * levels + (numbers**2 // 4) * most  # if half of the numbers have few values
    affordable = _MAX_BUCKET_COUNTS // max(1, beside)
    return 1 << (min(max(affordable, _MIN_BUCKETS), _MAX_BUCKETS).bit_length() - 1)


def _to_values(column: Column) -> Array:
    return column.values + 0.0 if isinstance(column, NumericColumn) else np.zeros(0)  # 0.0, and not -0.0


def _hash_to_buckets(values: Array, count: int) -> Positions:
    words = values.view(np.uint64)
    words = (words ^ (words >> np.uint64(32))) * _HASH_MULTIPLIER
    return np.asarray(words >> np.uint64(65 - count.bit_length())).astype(np.intp)


def _find_positions(values: Array, known: Array) -> Positions:
    if not len(known):
        return np.zeros(len(values), dtype=np.intp)
    places = known.searchsorted(values)
    return np.where(known.take(places, mode="clip") == values, places, len(known))


def _add_counts(one: Mapping[Any, Any], other: Mapping[Any, Any], nothing: Any) -> dict[Any, Any]:
    return {key: one.get(key, nothing) + other.get(key, nothing) for key in {**one, **other}}


def _format_value(value: _Value) -> str:
    if isinstance(value, str):
        return repr(value)
    return f"{value:.0f}" if value.is_integer() else repr(value)
