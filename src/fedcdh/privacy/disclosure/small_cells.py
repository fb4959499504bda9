"""Small cells: people with each value of the continuous variables that have few different values.

A variable that is 0 or 1 discloses as much about the people with each value as a categorical one: the sums of its
powers give the number of people with each value, and the mean of every other variable among them. So each of its
values, and each pair of such a value with a level or with another such value, needs the minimum cell count.

A variable with many different values may still have the same value for most people: 0, say, for all without costs. Then
sums within a level are sums over the few people who have another value, and these have to be none, or enough.

Values are counted as they are encoded: clipped, and rounded to the grid of the plan. A variable that rounds to few
values has few values, whatever the table holds.

Rows may be counted in any order and in parts, and the counts added: the result depends on the rows alone. As long as a
column has few values, all of them are counted. When it has more, values are counted in buckets by a fixed hash, and a
bucket with many people holds a value that many people have. Another value that falls into the same bucket is taken for
that value: one value in as many as there are buckets, 2048, or fewer in wide tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.data.columns import Column, NumericColumn
from fedcdh.data.labels import strip_zero_decimals
from fedcdh.data.table import Table
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

Positions = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int64]
SmallCounts = npt.NDArray[np.int32]  # counts of rows; no summary has 2³¹ of them

_PREVIEW_ROWS = 512  # rows that usually show that a column has many different values
_MIN_SPIKE_SHARE = 0.15  # smallest share of all rows for a value that many people have
_MIN_BUCKETS, _MAX_BUCKETS = 256, 2048
_MAX_BUCKET_COUNTS = 1 << 22  # largest number of counters, or slightly more in very wide tables
_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio spreads nearby values
_MAX_PLAIN_NUMBER = 1e15  # above, whole numbers are written with an exponent
_Value = float | str
_Pair = tuple[str, str]


class CellCounter:
    """Counts people by the values of discrete variables and by pairs of these with other values and levels.

    Call it with complete rows, batch after batch; memory does not grow with them. The sum `a + b` has counted the rows
    of both.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the summary.
    max_values : int
        Continuous variables with at most this many different values are discrete; 0 for none.

    Examples
    --------
    >>> from fedcdh.data.table import to_table
    >>> counter = CellCounter(StudyPlan((Continuous("dose"), Continuous("age", 60, 15)), ("north",)), 3)
    >>> counter(to_table({"dose": [0, 10, 10, 0], "age": [51, 62, 48, 70]}))
    >>> counter.cells
    {"value 0 of 'dose'": 2, "value 10 of 'dose'": 2}
    """

    def __init__(self, plan: StudyPlan, max_values: int) -> None:
        self._max_values, self._rows = max_values, 0
        continuous = [v.name for v in plan.variables if isinstance(v, Continuous)]
        self._steps = {v.name: _Steps(v, plan.clip) for v in plan.variables if isinstance(v, Continuous)}
        self._continuous_names = continuous if max_values > 0 else []
        self._plan_levels = {v.name: frozenset(v.levels) for v in plan.variables if isinstance(v, Categorical)}
        self._categorical_names = list(self._plan_levels)
        self._non_discrete: frozenset[str] = frozenset()
        # values of discrete variables, sorted
        self._values: dict[str, Array] = {name: np.zeros(0) for name in self._continuous_names}
        self._levels: dict[str, list[str]] = {name: [] for name in self._categorical_names}
        self._counts: dict[str, Counter[_Value]] = {
            name: Counter() for name in (*self._continuous_names, *self._categorical_names)
        }
        # pairs of discrete or categorical variables: by values, and by codes where not yet moved there
        self._pair_counts: dict[_Pair, Counter[tuple[_Value, _Value]]] = {}
        self._code_tables: dict[_Pair, Counts] = {}
        self._n_buckets = _choose_bucket_count(plan, len(self._continuous_names), max_values)
        # counts by bucket of a non-discrete variable, for each value of another variable
        self._bucket_tables: dict[_Pair, dict[_Value, SmallCounts]] = {}

    def __call__(self, rows: Table) -> None:
        """Count rows."""
        if not rows.rows or not self._continuous_names:
            return
        self._rows += rows.rows
        found = {name: self._encode_values(name, rows.columns[name]) for name in self._discrete_names}
        codes = {name: places for name, places in found.items() if places is not None}
        if not codes and not self._categorical_names:
            return
        codes |= {name: self._encode_levels(name, rows.columns[name]) for name in self._categorical_names}
        for name, places in codes.items():
            counts = np.bincount(places, minlength=len(self._keys(name))).tolist()
            self._counts[name].update(dict(zip(self._keys(name), counts, strict=True)))
        for one, other in combinations(codes, 2):
            if one in self._values:
                sizes = len(self._keys(one)), len(self._keys(other))
                counted = np.bincount(codes[one] * sizes[1] + codes[other], minlength=sizes[0] * sizes[1])
                table = self._code_tables.setdefault((one, other), np.zeros(sizes, dtype=np.int64))
                table += counted.reshape(sizes)
        for one in self._non_discrete:
            buckets = _hash_to_buckets(self._steps[one].of(rows.columns[one]), self._n_buckets)
            for other, places in codes.items():
                self._count_buckets(one, other, places, buckets)

    def __add__(self, other: CellCounter) -> CellCounter:
        values = {
            name: np.union1d(self._values[name], other._values[name])
            for name in {*self._discrete_names} & {*other._discrete_names}
        }
        few = {name for name, known in values.items() if len(known) <= self._max_values}
        many = set(self._continuous_names) - few
        one, two = self._with_non_discrete(many), other._with_non_discrete(many)
        both = copy(one)
        both._rows = one._rows + two._rows
        both._values = {name: values[name] for name in one._values}
        both._levels = {name: sorted({*one._levels[name], *two._levels[name]}) for name in self._categorical_names}
        both._counts = {name: one._counts[name] + two._counts[name] for name in one._counts}
        both._pair_counts = _add_counts(one._pair_counts, two._pair_counts, Counter())
        both._bucket_tables = {
            pair: _add_counts(one._bucket_tables.get(pair, {}), two._bucket_tables.get(pair, {}), np.int32(0))
            for pair in {**one._bucket_tables, **two._bucket_tables}
        }
        return both

    @property
    def cells(self) -> Mapping[str, int]:
        """People with each value of discrete variables, and with each pair of it and another value or level."""
        few, pairs = self._discrete_names, self._merge_pair_counts()
        alone = {
            f"value {self._format(name, value)} of {name!r}": count
            for name in few
            for value, count in sorted(self._counts[name].items())
        }
        together = {
            f"value {self._format(one, value)} of {one!r} with {self._format(other, label)} of {other!r}": count
            for one, other in combinations((*few, *self._categorical_names), 2)
            for (value, label), count in sorted(pairs.get((one, other), Counter()).items())
        }
        beside = {
            f"a value of {one!r} that few people share, with {self._format(other, label)} of {other!r}": count
            for one in sorted(self._non_discrete)
            for other in (*few, *self._categorical_names)
            for label, count in self._count_without_spikes(one, other)
        }
        return {**alone, **together, **beside}

    def _format(self, name: str, value: _Value) -> str:
        return repr(value) if isinstance(value, str) else self._steps[name].describe(value)

    @property
    def counts_by_value(self) -> dict[str, dict[str, int]]:
        """People with each value of the discrete variables."""
        return {
            name: {self._format(name, value): count for value, count in sorted(self._counts[name].items())}
            for name in self._discrete_names
        }

    @property
    def _discrete_names(self) -> list[str]:
        """Names of the continuous variables that have had few values so far."""
        return [name for name in self._continuous_names if name not in self._non_discrete]

    def _keys(self, name: str) -> list[float] | list[str]:
        return self._values[name].tolist() if name in self._values else self._levels[name]

    def _encode_values(self, name: str, column: Column) -> Positions | None:
        """Return the positions of the rows' values among the counted values, adding new ones.

        Return None for a column that gets too many of them: from then on it is not discrete.
        """
        values, known = self._steps[name].of(column), self._values[name]
        codes = _find_positions(values, known)
        if not (new := codes == len(known)).any():
            return codes
        found = np.unique(values[new][:_PREVIEW_ROWS])
        found = found if len(known) + len(found) > self._max_values else np.unique(values[new])
        self._flush_tables()
        if len(known) + len(found) > self._max_values:
            self._mark_non_discrete(name)
            return None
        self._values[name] = np.union1d(known, found)
        return _find_positions(values, self._values[name])

    def _encode_levels(self, name: str, column: Column) -> Positions:
        texts, known, planned = column.to_categorical(), self._levels[name], self._plan_levels[name]
        spelt = [
            level if level in planned else strip_zero_decimals(level) for level in texts.levels
        ]  # 3.0 is the level 3
        if new := [level for level in dict.fromkeys(spelt) if level not in known]:
            self._flush_tables()
            self._levels[name] = known = [*known, *new]
        return np.array([known.index(level) for level in spelt], dtype=np.intp)[texts.codes]

    def _flush_tables(self) -> None:
        """Move the counts by code to counts by value, before codes change."""
        self._pair_counts, self._code_tables = self._merge_pair_counts(), {}

    def _merge_pair_counts(self) -> dict[_Pair, Counter[tuple[_Value, _Value]]]:
        pairs = {pair: Counter(counts) for pair, counts in self._pair_counts.items()}
        for (one, other), table in self._code_tables.items():
            values, labels = self._keys(one), self._keys(other)
            found = {(values[i], labels[j]): int(table[i, j]) for i, j in zip(*table.nonzero(), strict=True)}
            pairs.setdefault((one, other), Counter()).update(found)
        return pairs

    def _with_non_discrete(self, names: Collection[str]) -> CellCounter:
        """Return the same counts with these variables marked as not discrete."""
        other = copy(self)
        other._flush_tables()
        other._values, other._counts = dict(self._values), dict(self._counts)
        other._bucket_tables = {pair: dict(counts) for pair, counts in self._bucket_tables.items()}
        for name in self._discrete_names:
            if name in names:
                other._mark_non_discrete(name)
        return other

    def _mark_non_discrete(self, name: str) -> None:
        """Count the values of a variable in buckets from now on, including those counted so far."""
        for pair in [pair for pair in self._pair_counts if name in pair]:
            side, counts = pair.index(name), self._pair_counts.pop(pair)
            beside = self._bucket_tables.setdefault((name, pair[1 - side]), {})
            for key, count in counts.items():
                (bucket,) = _hash_to_buckets(np.array([key[side]], dtype=np.float64), self._n_buckets)
                beside.setdefault(key[1 - side], np.zeros(self._n_buckets, dtype=np.int32))[bucket] += count
        self._non_discrete |= {name}
        self._bucket_tables = {pair: counts for pair, counts in self._bucket_tables.items() if pair[1] != name}
        del self._values[name], self._counts[name]

    def _count_buckets(self, one: str, other: str, places: Positions, buckets: Positions) -> None:
        beside = self._bucket_tables.setdefault((one, other), {})
        keys: Sequence[_Value] = self._keys(other)
        found = np.bincount(places * self._n_buckets + buckets, minlength=len(keys) * self._n_buckets)
        for key, counts in zip(keys, found.reshape(len(keys), self._n_buckets).astype(np.int32), strict=True):
            beside[key] = beside[key] + counts if key in beside else counts

    def _count_without_spikes(self, one: str, other: str) -> Iterator[tuple[_Value, int]]:
        """Yield, for each level, the people whose value is not a common one; nothing if there is no common value."""
        beside = self._bucket_tables.get((one, other), {})
        spikes = sum(beside.values(), np.zeros(self._n_buckets, dtype=np.int64)) >= max(
            2.0, _MIN_SPIKE_SHARE * self._rows
        )
        for label in sorted(beside) if spikes.any() else ():
            yield label, int(beside[label][~spikes].sum())


@dataclass(frozen=True)
class _Steps:
    """The values of a continuous variable in whole steps of the grid."""

    variable: Continuous
    clip: float

    def of(self, column: Column) -> Array:
        """Return the steps of the rows' values, as the encoder rounds them."""
        if not isinstance(column, NumericColumn):
            return np.zeros(0)
        scaled = np.clip((column.values - self.variable.location) / self.variable.scale, -self.clip, self.clip)
        return np.rint(scaled / self.clip * GRID) + 0.0  # turns -0.0 into 0.0

    def describe(self, step: float) -> str:
        """Return the shortest decimal number that rounds to this step."""
        width = self.variable.scale * self.clip / GRID
        value = self.variable.location + step * width
        near = next(
            (short for digits in range(1, 17) if abs((short := float(f"{value:.{digits}g}")) - value) <= width / 2),
            value,
        )
        text = f"{near:.0f}" if near.is_integer() and abs(near) < _MAX_PLAIN_NUMBER else repr(near)
        return text if abs(step) < GRID else f"{text} or {'more' if step > 0 else 'less'}"


def _choose_bucket_count(plan: StudyPlan, n_continuous: int, max_values: int) -> int:
    """Return a power of two that depends on the plan and the policy only."""
    levels = sum(len(variable.levels) for variable in plan.variables if isinstance(variable, Categorical))
    pairs = n_continuous * levels + (n_continuous**2 // 4) * max_values  # if half of the variables are discrete
    affordable = _MAX_BUCKET_COUNTS // max(1, pairs)
    return 1 << (min(max(affordable, _MIN_BUCKETS), _MAX_BUCKETS).bit_length() - 1)


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
