"""From rows to a summary: a map over parts of the rows, and a sum."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import Any, Protocol

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import TableSource
from fedcdh.data.table import Table
from fedcdh.data.threaded_source import partition
from fedcdh.errors import DataError, SettingsError
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary, check_row_capacity

_MIN_BLOCK_ROWS, _MAX_BLOCK_CELLS, _MAX_BLOCK_FEATURES = 1024, 1 << 17, 1 << 20
"""Rows at least, and cells and features at most otherwise, that are encoded at a time: what a cache holds, yet so much
that threads do not get in each other's way between the steps."""
_MIN_OBSERVED_ROWS, _MAX_EXACT_ROWS = 1024, 8192
"""Rows that are multiplied at a time while few have been, and at most, since 2¹³ · 2³⁶ < 2⁵³: exact in float64."""


def summarize(table: Any, plan: StudyPlan, client: str, *, max_missing_share: float = 0.5, workers: int = 1) -> Summary:
    """The one message of a client: sums of features and of their products over its complete rows.

    A table may also come in batches, or as files opened with `open_tables`: one block of rows is in memory at a time,
    for each of the `workers`, threads that share the rows; however many there are, the bytes are the same. A `Spread`
    is worked on where its parts lie. Rows with a missing value are left out and counted; more than the share
    `max_missing_share` of them is an error.

    >>> from fedcdh.summaries.plan import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> message = summarize({"age": [50, 61, None]}, plan, "north")
    >>> message.rows, message.rows_read, dict(message.missing)
    (2, 3, {'age': 1})
    """
    check_summary_arguments(plan, client, max_missing_share)
    parts = partition(table, f"client {client!r}", workers=workers, names=plan.names, only=plan.names)
    return parts.map_reduce(partial(accumulate, plan=plan, client=client), MomentAccumulator.__add__).summary(
        plan, client, max_missing_share
    )


def check_summary_arguments(plan: StudyPlan, client: str, max_missing_share: float) -> None:
    """Refuses, before a row is read, what no summary can be made with."""
    if not 0 <= max_missing_share <= 1:
        raise SettingsError(
            f"max_missing_share is {max_missing_share}; expected a share of the rows, from 0 to 1",
            parameter="max_missing_share",
        )
    if client not in plan.clients:
        raise DataError(f"client {client!r} is not part of the plan, which names {', '.join(plan.clients)}")


def accumulate(source: TableSource, *, plan: StudyPlan, client: str) -> MomentAccumulator:
    """What one look at the rows of a source gives."""
    sums, encode = MomentAccumulator(plan), Encoder(plan, client)
    for rows in source.batches(plan.kinds):
        sums.add(rows, encode)
    return sums


class BlockObserver(Protocol):
    """Who else wants to see what is computed of complete rows, block by block."""

    def observe_values(self, values: Array) -> None:
        """The values of continuous variables: variables × rows."""

    def observe_features(self, features: Array, products: Array) -> None:
        """Features, columns × rows, and the sums of their products; these are in the moments already."""


class MomentAccumulator:
    """What is added up while rows come by; `a + b` is what both would have come to."""

    def __init__(self, plan: StudyPlan) -> None:
        self.moments = np.zeros((plan.layout.n_columns, plan.layout.n_columns), dtype=np.int64)
        self.missing = dict.fromkeys(plan.names, 0)
        self.read = self.used = 0
        self._block = _block_rows(plan)

    def add(self, rows: Table, encode: Encoder, observer: BlockObserver | None = None) -> Table:
        """Counts the rows, adds the products of the features of those that are complete, and gives these back."""
        complete = np.ones(rows.rows, dtype=np.bool_)
        for name, column in rows.columns.items():
            if (missing := column.missing).any():
                self.missing[name] += int(missing.sum())
                complete &= ~missing
        self.read += rows.rows
        used = rows if complete.all() else rows.select_rows(complete)
        for start in range(0, used.rows, self._block):
            block = used.slice_rows(start, self._block)
            features = encode(block, numbers := encode.values(block))
            if observer is not None:
                observer.observe_values(numbers)
            step = _MAX_EXACT_ROWS if observer is None else self._watched()
            for first in range(0, block.rows, step):
                self._multiply(features[:, first : first + step], observer)
        return used

    def _watched(self) -> int:
        """So few rows that they can hardly stand out among those so far, taken together: see `LonelyRows`."""
        columns = len(self.moments)
        return min(_MAX_EXACT_ROWS, max(_MIN_OBSERVED_ROWS, columns, self.used // (4 * columns)))

    def _multiply(self, features: Array, observer: BlockObserver | None) -> None:
        self.used += features.shape[1]
        check_row_capacity(self.used)
        products = features @ features.T
        self.moments += products.astype(np.int64)
        if observer is not None:
            observer.observe_features(features, products)

    def __add__(self, other: MomentAccumulator) -> MomentAccumulator:
        total = copy(self)
        total.moments = self.moments + other.moments
        total.missing = {name: count + other.missing[name] for name, count in self.missing.items()}
        total.read, total.used = self.read + other.read, self.used + other.used
        check_row_capacity(total.used)
        return total

    def summary(self, plan: StudyPlan, client: str, max_missing_share: float) -> Summary:
        """The message, unless too many rows were left out."""
        _check_missing_share(client, self.read, self.used, self.missing, max_missing_share)
        return Summary(plan.fingerprint, (client,), self.moments, self.read, self.missing)


def _block_rows(plan: StudyPlan) -> int:
    return max(
        _MIN_BLOCK_ROWS, min(_MAX_BLOCK_CELLS // len(plan.variables), _MAX_BLOCK_FEATURES // plan.layout.n_columns)
    )


def _check_missing_share(
    client: str, rows: int, used: int, missing: Mapping[str, int], max_missing_share: float
) -> None:
    if rows and used and (rows - used) / rows <= max_missing_share:
        return
    if not rows:
        raise DataError(f"client {client!r} has no rows; leave it out of the plan")
    worst = max(missing, key=lambda name: missing[name])
    advice = "fill the values in, or allow a larger share" if used else "or fill the values in: no complete row is left"
    raise DataError(
        f"client {client!r} would lose {rows - used} of {rows} rows to missing values, most of them in {worst!r} "
        f"({missing[worst]} missing); leave that variable or this client out, {advice}",
        parameter="max_missing_share" if used else None,
    )
