"""The profile of one column, computed from rows that come in batches.

Sums are exactly rounded and quantiles are exact, so they do not depend on the order of the rows or on how these are cut
into batches. The shares of rows that count are filled in later (`row_dependence`), and do depend on the order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.columns import Column, NumericColumn
from fedcdh.data.labels import looks_like_number, strip_zero_decimals
from fedcdh.data.recipes import Recipe
from fedcdh.data.sources import ColumnKind
from fedcdh.errors import DataError
from fedcdh.summaries._exact_sum import ExactSum
from fedcdh.summaries._order_statistics import RankSelection
from fedcdh.summaries.unusable_columns import describe_labels, describe_numbers

MAX_LEVELS = 100
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # no minimum or maximum: those are values of single people
MAX_DEVIATION_RATIO = 10.0
"""A standard deviation more than this many times the one that the quartiles suggest is attributed to outliers."""


@dataclass(frozen=True)
class ColumnProfile:
    """The profile of one column: moments and quantiles, or levels with their counts.

    Attributes
    ----------
    kind : {"continuous", "categorical"}
        Kind of the column.
    count : int
        Number of rows with a value.
    missing : int
        Number of rows without a value.
    mean : float, default 0.0
        Mean of a continuous column.
    squares : float, default 0.0
        Sum of squared deviations Σ (x − mean)². The raw sum of squares would lose small spreads around large means.
    quantiles : tuple of float, default ()
        Quantiles at 5, 25, 50, 75 and 95 % of a continuous column.
    levels : tuple of str, default ()
        Levels of a categorical column, sorted.
    counts : tuple of int, default ()
        Number of rows with each level.
    product_share : float, default 1.0
        Share of the rows that counts for correlations with other columns, where rows depend on each other.
    mean_share : float, default 1.0
        The same for means.
    recipe : NumberRecipe or LabelRecipe, optional
        What was done with the column before it was described.

    Examples
    --------
    >>> from fedcdh.summaries import profile
    >>> profile({"sex": ["f", "m", "f"]}, "north").columns["sex"].counts
    (2, 1)
    """

    kind: ColumnKind
    count: int
    missing: int
    mean: float = 0.0
    squares: float = 0.0
    quantiles: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    product_share: float = 1.0
    mean_share: float = 1.0
    recipe: Recipe | None = None

    @property
    def shares_below_one(self) -> dict[str, float]:
        """Return the shares of rows that a message has to state; 1 is left out."""
        shares = {"product_share": self.product_share, "mean_share": self.mean_share}
        return {name: share for name, share in shares.items() if share != 1.0}

    @property
    def location(self) -> float:
        """Return the mean, or the median where outliers distort the mean."""
        return self.centre if self._distorted else self.mean

    @property
    def scale(self) -> float:
        """Return the standard deviation, limited by the quartiles; 1 for a constant, or without values."""
        return MAX_DEVIATION_RATIO * self._by_quartiles if self._distorted else self._deviation or 1.0

    @property
    def centre(self) -> float:
        """Return the median; the mean of a profile without quantiles."""
        return self.quantiles[len(QUANTILES) // 2] if self.quantiles else self.mean

    @property
    def spread(self) -> float:
        """Return the standard deviation of a normal variable with these quartiles; the scale if they are equal."""
        return self._by_quartiles if self._by_quartiles > 0 else self.scale

    @property
    def _deviation(self) -> float:
        return math.sqrt(self.squares / self.count) if self.count else 0.0

    @property
    def _by_quartiles(self) -> float:
        return (self.quantiles[3] - self.quantiles[1]) / 1.349 if self.quantiles else 0.0

    @property
    def _distorted(self) -> bool:
        """Return whether outliers dominate the standard deviation.

        One cell of 1e9 among a thousand ordinary ones must not shrink the differences between all others to nothing.
        """
        return 0 < MAX_DEVIATION_RATIO * self._by_quartiles < self._deviation


class CategoricalProfiler:
    """Counts the levels of a column in one pass over the rows."""

    def __init__(self, name: str, client: str) -> None:
        self._name, self._owner = name, f"client {client!r}"
        self._missing = 0
        self._counts: dict[str, int] = {}

    def add(self, column: Column) -> None:
        """Add a batch of rows."""
        texts = column.to_categorical(f"column {self._name!r} at {self._owner}")
        counts = np.bincount(texts.codes[texts.codes >= 0], minlength=len(texts.levels)).tolist()
        for level, count in zip(texts.levels, counts, strict=True):
            if count:
                self._counts[level] = self._counts.get(level, 0) + count
        self._missing += int(texts.missing.sum())
        try:
            check_level_count(self._name, self._owner, self._counts)
        except DataError as problem:
            reason = describe_labels(sum(self._counts.values()), self._counts, too_many=True)
            if reason is None:
                raise
            raise DataError(reason, parameter=problem.parameter) from None

    def describe_problem(self) -> str | None:
        """Return why the column is no variable, as far as it was read; None if it may be one."""
        return describe_labels(sum(self._counts.values()), self._counts)

    def finish(self) -> ColumnProfile:
        """Return the profile after all rows; where all levels are numbers, 3.0 is written as 3."""
        spelt = strip_zero_decimals if all(map(looks_like_number, self._counts)) else str
        merged: dict[str, int] = {}
        for level, count in self._counts.items():
            merged[spelt(level)] = merged.get(spelt(level), 0) + count
        levels = tuple(sorted(merged))
        counts = tuple(merged[level] for level in levels)
        return ColumnProfile("categorical", sum(counts), self._missing, levels=levels, counts=counts)


class ContinuousProfiler:
    """Computes count and mean in a first pass, squares in a second, and quantiles meanwhile or in further passes."""

    def __init__(self, name: str, client: str) -> None:
        self._name, self._client = name, client
        self._count, self._missing = 0, 0
        self._sum, self._squares, self._selection = ExactSum(), ExactSum(), RankSelection()
        self._mean: float | None = None
        self._spread: float | None = None
        self._ranked: dict[int, float] | None = None
        self._low, self._high, self._whole = math.inf, -math.inf, True

    def describe_problem(self) -> str | None:
        """Return why the column is no variable, after all rows; None if it may be one."""
        if self._mean is None or self._spread is None:
            return None
        ends = self._low, self._high
        return describe_numbers(self._count, *ends, self._mean, self._spread, whole=self._whole)

    def add(self, column: Column) -> None:
        """Add a batch of rows."""
        values = self._present(column)
        if self._mean is None:
            check_finite(values, self._name, self._client)
            self._count += len(values)
            if len(values):
                self._low, self._high = min(self._low, float(values.min())), max(self._high, float(values.max()))
                self._whole = self._whole and bool((values == np.floor(values)).all())
            self._missing += len(column) - len(values)
            self._sum.add(values)
        elif self._spread is None:
            self._squares.add((values - self._mean) ** 2)
        if self._ranked is None:
            self._selection.add(values)

    def finish(self) -> ColumnProfile | None:
        """Return the profile, or None if all rows have to be read once more."""
        if not self._count:
            return ColumnProfile("continuous", 0, self._missing)
        places, ranks = _quantile_positions(self._count)
        if self._ranked is None:
            self._ranked = self._selection.narrow(ranks)
        if self._mean is None:
            self._mean = self._sum.value / self._count
            return None
        self._spread = self._squares.value
        if self._ranked is None:
            return None
        quantiles = tuple(_interpolate(self._ranked, place) for place in places)
        return ColumnProfile("continuous", self._count, self._missing, self._mean, self._spread, quantiles)

    def _present(self, column: Column) -> Array:
        if isinstance(column, NumericColumn):
            return column.values[~column.missing]
        if column.levels:
            raise DataError(
                f"column {self._name!r} at client {self._client!r} should be continuous but holds text; turn it into "
                "numbers, or declare it categorical",
                parameter="kinds",
            )
        return np.full(0, np.nan)  # all values are missing


@lru_cache(maxsize=64)
def _quantile_positions(count: int) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return the positions of the quantiles among `count` sorted numbers, and the ranks next to them."""
    places = tuple(share * (count - 1) for share in QUANTILES)
    return places, tuple(sorted({min(int(place) + more, count - 1) for place in places for more in (0, 1)}))


def _interpolate(ranked: Mapping[int, float], place: float) -> float:
    """Return the number at a position between two ranks."""
    low = ranked[int(place)]
    high = ranked.get(int(place) + 1, low)
    return min(low + (high - low) * (place - int(place)), high)  # rounding must not pass the next number


def check_level_count(name: str, owner: str, levels: Collection[str]) -> None:
    """Raise a DataError if a column has more levels than a categorical variable may have."""
    if len(levels) > MAX_LEVELS:
        numbers = sum(map(looks_like_number, levels))
        advice = _numeric_advice(name, numbers, len(levels)) if 2 * numbers > len(levels) else "group the levels"
        raise DataError(
            f"column {name!r} has more than {MAX_LEVELS} levels at {owner}; expected at most {MAX_LEVELS}; {advice}, "
            "or leave the column out",
            parameter="variables",
        )


def _numeric_advice(name: str, numbers: int, levels: int) -> str:
    """Return the advice for a column of numbers that was taken for categorical."""
    return (
        f"{numbers} of the {levels} found so far look like numbers: are decimals written with a comma (decimal=',' or "
        "--decimal ,), or is there a word for missing values (missing=('', 'WORD') or --missing WORD)? If the column "
        f"is declared as continuous (--kind {name}=continuous), the error names the first row that holds no number. "
        "Otherwise group the levels"
    )


def check_finite(values: Array, name: str, client: str) -> None:
    """Raise a DataError if a value is infinite, or its square would be."""
    if not np.all(np.abs(values) < 1e150):
        raise DataError(
            f"column {name!r} at client {client!r} has {int((~(np.abs(values) < 1e150)).sum())} infinite or absurdly "
            "large values; expected numbers below 1e150; replace them (leave the cell empty if the value is unknown)"
        )
