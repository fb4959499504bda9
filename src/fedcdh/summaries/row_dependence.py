"""How many rows count where rows depend on each other, such as those of a time series.

The mean of n rows with autocorrelations ρ(k) varies as that of n/(1 + 2 Σ ρ(k)) independent rows. A correlation of two
columns varies as that of n/(1 + 2 Σ ρ_x(k) ρ_y(k)) rows (Bartlett). A site estimates both shares for every column, from
its rows in their order. Where autocorrelation is not clear, the shares are exactly 1, so that the order of independent
rows changes nothing.

Values are clipped, since two outliers side by side would look like autocorrelation. For labels, ρ(k) is how much more
often than by chance two rows have the same label. A sum over lags ends at the first lag whose ρ may be chance; for
means, a tail follows that decays as the lags before did. What a regression on all other columns leaves of a column may
have larger autocorrelations than the column. At every lag, the larger one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.data.columns import CategoricalColumn, Column, NumericColumn
from fedcdh.data.sources import ColumnKind, TableSource
from fedcdh.summaries.column_profiles import ColumnProfile

Chosen = npt.NDArray[np.bool_]

MIN_ROWS = 30
"""Rows from which autocorrelation is estimated."""
MAX_ROWS, MAX_CELLS = 1 << 16, 1 << 22
"""The first rows suffice for an estimate: at most as many rows, and as many cells in memory."""
MAX_LAGS = 200
"""Largest distance of two rows, and at most a quarter of the rows."""
CLEAR_ERRORS = 4.0
"""Standard errors from which autocorrelation of neighbouring rows is clear: once in thirty thousand by chance."""
CHANCE_ERRORS = 2.0
"""Standard errors below which the autocorrelation at a lag may be chance."""
MAX_DECAY = 0.98
"""Largest ratio of the autocorrelations of lags that are left out to those of the lags before."""
MAX_SPREADS = 3.0
"""Spreads at which values are clipped."""
MAX_COUNTER_STEPS = 0.05
"""A table is sorted by a column if less than this share of the column's changes go the other way; or if the column
changes that much less often than by chance, and takes each value in two runs at most, on average."""
MIN_ROWS_PER_COLUMN = 5
"""Rows per column from which a column is regressed on all others."""
MAX_PRODUCTS = 1 << 30
"""Products of two columns that these regressions compute at most, over all rows."""
RIDGE, MIN_LEFT_SHARE = 1e-4, 1e-3
"""Prior of the regressions, and the share of a column's variance that they have to leave."""
MIN_COUNTED_ROWS = 10.0
"""Dependent rows never count as fewer rows than this."""


class RowShares(NamedTuple):
    """The share of a column's rows that counts.

    Attributes
    ----------
    product : float, default 1.0
        For correlations with other columns.
    mean : float, default 1.0
        For means.

    Examples
    --------
    >>> RowShares().mean
    1.0
    """

    product: float = 1.0
    mean: float = 1.0

    @property
    def mean_factor(self) -> float:
        """Return by what means are multiplied, so that those of the product's rows vary like those of the mean's."""
        return sqrt(self.mean / self.product)


ALL_ROWS = RowShares()
"""The shares of independent rows."""


def row_shares(
    source: TableSource, columns: Mapping[str, ColumnProfile], *, in_time_order: bool = False
) -> dict[str, RowShares]:
    """Return the share of rows that counts, for every column of a client's table.

    Parameters
    ----------
    source : TableSource
        Rows of the client, in their order. At most the first 65,536 of them are read.
    columns : mapping from str to ColumnProfile
        Profiles of the columns.
    in_time_order : bool, default False
        Whether the order is known to be that of time. Otherwise a table that is sorted by one of its own columns says
        nothing about time, and all shares are 1.

    Returns
    -------
    dict from str to RowShares
        Numbers above 0 and at most 1, with two significant digits.

    Examples
    --------
    >>> from fedcdh.data import to_source
    >>> from fedcdh.summaries import profile
    >>> rng = np.random.default_rng(0)
    >>> table = {"noise": rng.normal(size=400), "walk": rng.normal(size=400).cumsum(), "other": rng.normal(size=400)}
    >>> shares = row_shares(to_source(table, "client 'north'"), profile(table, "north").columns)
    >>> shares["noise"], shares["walk"].mean < 0.1
    (RowShares(product=1.0, mean=1.0), True)
    """
    found = dict.fromkeys(columns, ALL_ROWS)
    kinds: dict[str, ColumnKind] = {name: one.kind for name, one in columns.items() if one.count >= MIN_ROWS}
    if not kinds:
        return found
    rows = _first_rows(source, kinds)
    if not in_time_order and any(_is_sorted(values, kinds[name]) for name, values in rows.items()):
        return found
    coded = {name: _encode(values, columns[name]) for name, values in rows.items()}
    own = {name: _autocorrelations(values, kinds[name]) for name, values in coded.items()}
    left = {name: _autocorrelations(values, "continuous") for name, values in _residuals(coded, kinds).items()}
    none = np.zeros(0)
    dependent = {name: lags for name in kinds if len(lags := _largest([own[name], left.get(name, none)]))}
    for name, lags in dependent.items():
        others = [other for key, other in dependent.items() if key != name]
        fewest = MIN_COUNTED_ROWS / np.isfinite(rows[name]).sum()
        found[name] = RowShares(_share(_products(lags, others), fewest), _share(_sum_with_tail(lags), fewest))
    return found


def _first_rows(source: TableSource, kinds: Mapping[str, ColumnKind]) -> dict[str, Array]:
    """Return numbers, or codes of labels, of the first rows; NaN where a value is missing."""
    wanted = min(MAX_ROWS, MAX_CELLS // len(kinds))
    parts: dict[str, list[Array]] = {name: [] for name in kinds}
    codes: dict[str, dict[str, int]] = {name: {} for name in kinds}
    read = 0
    for batch in source.batches(kinds):
        part = batch.slice_rows(0, wanted - read)
        for name, kind in kinds.items():
            parts[name].append(_to_numbers(name, part.columns[name], kind, codes[name]))
        read += part.rows
        if read >= wanted:
            break
    return {name: np.concatenate(some) for name, some in parts.items()}


def _to_numbers(name: str, column: Column, kind: ColumnKind, codes: dict[str, int]) -> Array:
    if kind == "continuous":
        return column.values if isinstance(column, NumericColumn) else np.full(len(column), np.nan)
    labels: CategoricalColumn = column.to_categorical(f"column {name!r}")
    places = [codes.setdefault(level, len(codes)) for level in labels.levels]
    return np.array([*places, np.nan])[labels.codes]  # -1, a missing value, is the last place


def _is_sorted(values: Array, kind: ColumnKind) -> bool:
    """Return whether rows are sorted by these values, upwards or downwards, or grouped by them in few runs."""
    values = values[np.isfinite(values)]
    steps = np.diff(values)
    changes = np.count_nonzero(steps)
    counts = np.unique(values, return_counts=True)[1]
    by_chance = len(values) - (counts.astype(float) ** 2).sum() / max(len(values), 1)
    if 0 < changes < min(2 * len(counts), MAX_COUNTER_STEPS * by_chance):
        return True
    counter = min(np.count_nonzero(steps > 0), np.count_nonzero(steps < 0))
    return bool(kind == "continuous" and changes and counter < MAX_COUNTER_STEPS * changes)


def _encode(values: Array, column: ColumnProfile) -> Array:
    """Return values about their centre in spreads, clipped; codes of labels as they are."""
    if column.kind == "categorical":
        return values
    clipped = np.clip((values - column.centre) / column.spread, -MAX_SPREADS, MAX_SPREADS)
    return np.asarray(clipped - np.nanmean(clipped))


def _autocorrelations(values: Array, kind: ColumnKind) -> Array:
    """Return the autocorrelations at lags 1, 2, ... up to the first that may be chance; none if the first is not clear.

    Rows without a value are left out of pairs.
    """
    present = np.isfinite(values)
    count, one_each = int(present.sum()), _same_label if kind == "categorical" else _product
    found: list[float] = []
    for lag in range(1, 1 + min(MAX_LAGS, len(values) // 4)):
        value, pairs = one_each(values, present, lag)
        errors = value * np.sqrt(pairs)
        if count < MIN_ROWS or not errors > (CHANCE_ERRORS if found else CLEAR_ERRORS):
            break
        if not found and errors <= CLEAR_ERRORS * (1 + _heaviness(values[present], kind)):
            break
        found.append(min(value, 1.0))
    return np.array(found)


def _product(values: Array, present: Chosen, lag: int) -> tuple[float, int]:
    """Return the autocorrelation of numbers about 0 at a lag, and the number of pairs."""
    filled = np.where(present, values, 0.0)
    pairs, variance = _count_pairs(present, lag), (filled @ filled) / max(1, present.sum())
    if not pairs or not variance > 0:
        return 0.0, 0
    return float(filled[:-lag] @ filled[lag:] / pairs / variance), pairs


def _same_label(values: Array, present: Chosen, lag: int) -> tuple[float, int]:
    """Return how much more often than by chance rows at this lag have one label, and the number of pairs."""
    pairs = _count_pairs(present, lag)
    by_chance = float((_label_shares(values[present]) ** 2).sum())
    if not pairs or by_chance >= 1:
        return 0.0, 0
    same = np.count_nonzero(values[:-lag] == values[lag:]) / pairs  # a missing value equals nothing
    return float((same - by_chance) / (1 - by_chance)), pairs


def _count_pairs(present: Chosen, lag: int) -> int:
    return int(np.count_nonzero(present[:-lag] & present[lag:]))


def _label_shares(values: Array) -> Array:
    return np.asarray(np.unique(values, return_counts=True)[1] / max(len(values), 1))


def _heaviness(values: Array, kind: ColumnKind) -> float:
    """Return by how much rare values raise the number of standard errors that chance reaches.

    A sum of products of neighbours has the kurtosis κ²/n. For labels, 1/λ takes its place, where λ is the expected
    number of neighbours with the same label, the most frequent one left out.
    """
    if kind == "categorical":
        shares = np.sort(_label_shares(values))[:-1]
        return float(1 / max(len(values) * (shares**2).sum(), 1e-9))
    squares = values**2
    variance = squares.mean()
    return float(((squares @ squares) / len(values) / variance**2) ** 2 / len(values)) if variance > 0 else 0.0


def _residuals(coded: Mapping[str, Array], kinds: Mapping[str, ColumnKind]) -> dict[str, Array]:
    """Return what a regression on all other columns leaves of each column of numbers.

    Noise that depends on the rows before is hidden in a column where independent causes vary more than the noise. Too
    few rows for a regression give nothing. A missing value counts as the mean where it explains another column.
    """
    numbers = [name for name, kind in kinds.items() if kind == "continuous" and np.nanstd(coded[name]) > 0]
    levels = [(coded[name], code) for name in kinds if kinds[name] != "continuous" for code in _varying(coded[name])]
    width = len(numbers) + len(levels)
    count = min(len(next(iter(coded.values()))), MAX_PRODUCTS // max(1, width) ** 2)
    if not numbers or width < 2 or count < MIN_ROWS_PER_COLUMN * width:
        return {}
    parts = [coded[name][:count] for name in numbers] + [1.0 * (values[:count] == code) for values, code in levels]
    table = np.nan_to_num(np.stack(parts, axis=1))
    table -= table.mean(axis=0)
    spread = np.sqrt((table**2).mean(axis=0))
    table /= np.where(spread > 0, spread, 1.0)
    precision = np.linalg.inv(table.T @ table / count + RIDGE * np.eye(width))
    left = table @ (precision[:, : len(numbers)] / precision.diagonal()[: len(numbers)])
    return {
        name: np.where(np.isfinite(coded[name][:count]), one, np.nan)
        for name, one in zip(numbers, left.T, strict=True)
        if one.var() > MIN_LEFT_SHARE
    }


def _varying(values: Array) -> list[float]:
    """Return the codes of all labels but the first."""
    return [float(code) for code in np.unique(values[np.isfinite(values)])[1:]]


def _largest(several: list[Array]) -> Array:
    """Return the largest autocorrelation at every lag."""
    found = np.zeros(max(map(len, several), default=0))
    for lags in several:
        found[: len(lags)] = np.maximum(found[: len(lags)], lags)
    return found


def _products(own: Array, others: list[Array]) -> float:
    """Return the sum over lags of the column's autocorrelation times the largest of another column."""
    largest = _largest(others)
    shared = min(len(own), len(largest))
    return float(own[:shared] @ largest[:shared])


def _sum_with_tail(lags: Array) -> float:
    """Return the sum of autocorrelations over all lags; those that were left out decay as fast as the others did.

    Without them, means of 100 rows with ρ(k) = 0.8ᵏ would count as if they were 18 rows, instead of 11.
    """
    decay = min(float(lags[-1]) ** (1 / len(lags)), MAX_DECAY)
    return float(lags.sum() + lags[-1] * decay / (1 - decay))


def _share(total: float, fewest: float) -> float:
    """Return 1/(1 + 2 × the sum over lags), rounded to two significant digits."""
    return float(f"{min(1.0, max(1 / (1 + 2 * total), fewest)):.2g}")
