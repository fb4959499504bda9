"""Profiles: the few numbers per variable from which clients that have not met agree on a plan.

Sums are exactly rounded (`math.fsum`), so a profile does not depend on the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from fedcdh.errors import DataError, PlanError
from fedcdh.tables import Column, Texts, as_table

LEVELS_AT_MOST = 100
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # no minimum, no maximum: those are single people's values
DISTORTED = 10.0
"""The standard deviation is not believed beyond this many times what the quartiles suggest."""

Kind = Literal["continuous", "categorical"]


@dataclass(frozen=True)
class ColumnProfile:
    """Count, mean and sum of squared deviations with a few quantiles, or the levels with their counts."""

    kind: Kind
    count: int
    missing: int
    mean: float = 0.0
    squares: float = 0.0  # Σ (x − mean)²: the raw sum of squares would drown small spreads around large means
    quantiles: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def location(self) -> float:
        """The mean, or the median where single values distort it."""
        return self.centre if self._distorted else self.mean

    @property
    def scale(self) -> float:
        """The standard deviation, as far as the quartiles make it believable; 1 for a constant."""
        return DISTORTED * self._by_quartiles if self._distorted else self._deviation or 1.0

    @property
    def centre(self) -> float:
        """The median."""
        return self.quantiles[len(QUANTILES) // 2] if self.quantiles else self.mean

    @property
    def spread(self) -> float:
        """The standard deviation of a normal variable with these quartiles; the scale where they are one value."""
        return self._by_quartiles if self.quantiles and self._by_quartiles > 0 else self.scale

    @property
    def _deviation(self) -> float:
        return math.sqrt(self.squares / self.count) if self.count else 0.0

    @property
    def _by_quartiles(self) -> float:
        return (self.quantiles[3] - self.quantiles[1]) / 1.349

    @property
    def _distorted(self) -> bool:
        """One cell of 1e9 among a thousand ordinary ones must not squeeze all others into one point."""
        return 0 < DISTORTED * self._by_quartiles < self._deviation


@dataclass(frozen=True)
class Profile:
    """What one client tells about its columns before there is a plan."""

    client: str
    rows: int
    columns: Mapping[str, ColumnProfile]


def profile(
    table: Any, client: str, *, variables: Sequence[str] | None = None, kinds: Mapping[str, Kind] | None = None
) -> Profile:
    """The profile of one client's table; numbers are continuous and labels categorical unless `kinds` says otherwise.

    >>> profile({"age": [30, 40], "sex": ["f", "m"]}, "north").columns["age"].mean
    35.0
    """
    owner = f"client {client!r}"
    read = as_table(table, only=variables, owner=owner)
    read = read.select(variables, owner) if variables is not None else read
    for name, kind in (kinds or {}).items():
        if kind not in get_args(Kind):
            raise DataError(f"kinds= says {name!r} is {kind!r}; choose one of {', '.join(get_args(Kind))}")
        if name not in read.columns:
            raise DataError(
                f"kinds= names {name!r}, but client {client!r} has no such column; it has {list(read.names)}"
            )
    columns = {name: _profile_column(name, read.columns[name], client, (kinds or {}).get(name)) for name in read.names}
    return Profile(client, read.rows, columns)


def _profile_column(name: str, column: Column, client: str, kind: Kind | None) -> ColumnProfile:
    missing = int(column.missing.sum())
    if kind == "categorical" or (kind is None and isinstance(column, Texts)):
        texts = column.as_texts()
        _check_levels(name, f"client {client!r}", texts.levels)
        counts = tuple(int(count) for count in np.bincount(texts.codes[texts.codes >= 0], minlength=len(texts.levels)))
        return ColumnProfile("categorical", len(column) - missing, missing, levels=texts.levels, counts=counts)
    if isinstance(column, Texts):
        raise DataError(
            f"column {name!r} at client {client!r} should be continuous but holds text such as {column.levels[:3]}; "
            'turn it into numbers, or declare it with kinds={...: "categorical"}'
        )
    values = column.values[~column.missing]
    check_finite(values, name, client)
    if not len(values):
        return ColumnProfile("continuous", 0, missing)
    mean = math.fsum(values.tolist()) / len(values)
    squares = math.fsum(((values - mean) ** 2).tolist())
    places = np.array(QUANTILES) * (len(values) - 1)
    quantiles = tuple(np.interp(places, np.arange(len(values)), np.sort(values)).tolist())
    return ColumnProfile("continuous", len(values), missing, mean, squares, quantiles)


def _check_levels(name: str, owner: str, levels: Sequence[str]) -> None:
    if len(levels) > LEVELS_AT_MOST:
        raise DataError(
            f"column {name!r} has {len(levels)} different labels at {owner} (at most {LEVELS_AT_MOST} make sense as "
            "levels); group them, or leave it out with variables=[...]"
        )


def check_finite(values: np.ndarray[Any, Any], name: str, client: str) -> None:
    """Refuses infinite values, and values whose squares would be."""
    if not np.all(np.abs(values) < 1e150):
        raise DataError(
            f"column {name!r} at client {client!r} has {int((~(np.abs(values) < 1e150)).sum())} infinite or absurdly "
            "large values; replace them (leave the cell empty if the value is unknown)"
        )


def merge(profiles: Iterable[Profile]) -> dict[str, ColumnProfile]:
    """Pooled count, mean, squares and levels per variable, in the first client's order of columns.

    Σ(x−m)² = Σ_k [Σ(x−m_k)² + n_k (m_k−m)²], with exactly rounded sums: the order of the clients does not matter.
    """
    profiles = sorted(profiles, key=lambda one: one.client)
    if not profiles:
        raise PlanError("a plan needs the profile of at least one client")
    names = profiles[0].columns
    for one in profiles:
        if lacking := [name for name in names if name not in one.columns]:
            raise PlanError(
                f"client {one.client!r} has no column {lacking[0]!r}, which client {profiles[0].client!r} has; "
                "add or rename it there, or leave it out of the study with variables=[...]"
            )
        if extra := [name for name in one.columns if name not in names]:
            raise PlanError(
                f"client {profiles[0].client!r} has no column {extra[0]!r}, which client {one.client!r} has; "
                "add or rename it there, or leave it out of the study with variables=[...]"
            )
    return {name: _merge_column(name, profiles) for name in names}


def _merge_column(name: str, profiles: Sequence[Profile]) -> ColumnProfile:
    columns = [one.columns[name] for one in profiles]
    by_kind = {one.columns[name].kind: one.client for one in profiles if one.columns[name].count}
    if len(by_kind) > 1:
        raise PlanError(
            f"variable {name!r} is continuous at client {by_kind['continuous']!r} and categorical at client "
            f'{by_kind["categorical"]!r}; agree on one, for example with kinds={{{name!r}: "categorical"}}'
        )
    count, missing = sum(column.count for column in columns), sum(column.missing for column in columns)
    if not count:
        raise PlanError(f"variable {name!r} has no value at any client; leave it out with variables=[...]")
    if "categorical" in by_kind:
        levels = tuple(sorted({level for column in columns for level in column.levels}))
        _check_levels(name, "all clients together", levels)
        totals = dict.fromkeys(levels, 0)
        for column in columns:
            for level, number in zip(column.levels, column.counts, strict=True):
                totals[level] += number
        return ColumnProfile("categorical", count, missing, levels=levels, counts=tuple(totals.values()))
    mean = math.fsum(column.count * column.mean for column in columns) / count
    squares = math.fsum(column.squares + column.count * (column.mean - mean) ** 2 for column in columns)
    return ColumnProfile("continuous", count, missing, mean, squares, _pooled_quantiles(columns))


def _pooled_quantiles(columns: Sequence[ColumnProfile]) -> tuple[float, ...]:
    """Quantiles of the mixture of the clients' distribution functions, each taken as linear between its quantiles.

    Where quantiles of a client are one value, its function jumps, and so does the mixture: both sides of each value
    count. `np.interp` gives the upper side of a jump, and from the other end (levels are symmetric) the lower one.
    """
    present = [column for column in columns if column.count]
    values = np.unique([value for column in present for value in column.quantiles])

    def shares(sign: int) -> np.ndarray[Any, Any]:
        within = [
            column.count * np.interp(sign * values, sorted(sign * q for q in column.quantiles), QUANTILES, 0.0, 1.0)
            for column in present
        ]
        return np.asarray(np.sum(within, axis=0) / sum(column.count for column in present))

    both_sides = np.maximum.accumulate(np.stack([1 - shares(-1), shares(1)], axis=-1).ravel())
    return tuple(np.interp(QUANTILES, both_sides, np.repeat(values, 2)).tolist())
