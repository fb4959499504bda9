"""From rows to a summary: a map over parts of the rows, and a sum."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import Any, Protocol

import numpy as np

from fedcdh.data.sources import TableSource
from fedcdh.data.table import Table
from fedcdh.data.threaded_source import spread_of
from fedcdh.errors import DataError, SettingsError
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Array, Summary, check_capacity

_ENCODED, _CELLS, _FEATURES = 1024, 1 << 17, 1 << 20
"""Rows at least, and cells and features at most otherwise, that are encoded at a time: what a cache holds, yet so much
that threads do not get in each other's way between the steps."""
_WATCHED, _EXACT = 1024, 8192
"""Rows that are multiplied at a time while few have been, and at most, since 2¹³ · 2³⁶ < 2⁵³: exact in float64."""


def summarize(table: Any, plan: StudyPlan, client: str, *, max_dropped: float = 0.5, workers: int = 1) -> Summary:
    """The one message of a client: sums of features and of their products over its complete rows.

    A table may also come in batches, or as files opened with `open_tables`: one block of rows is in memory at a time,
    for each of the `workers`, threads that share the rows; however many there are, the bytes are the same. A `Spread`
    is worked on where its parts lie. Rows with a missing value are left out and counted; more than the share
    `max_dropped` of them is an error.

    >>> from fedcdh.summaries.plan import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> message = summarize({"age": [50, 61, None]}, plan, "north")
    >>> message.rows, message.rows_read, dict(message.missing)
    (2, 3, {'age': 1})
    """
    check_asked(plan, client, max_dropped)
    parts = spread_of(table, f"client {client!r}", workers=workers, names=plan.names, only=plan.names)
    return parts.spread(partial(sums_of, plan=plan, client=client), Sums.__add__).summary(plan, client, max_dropped)


def check_asked(plan: StudyPlan, client: str, max_dropped: float) -> None:
    """Refuses, before a row is read, what no summary can be made with."""
    if not 0 <= max_dropped <= 1:
        raise SettingsError(f"max_dropped is {max_dropped}; expected a share of the rows, from 0 to 1")
    if client not in plan.clients:
        raise DataError(f"client {client!r} is not part of the plan, which names {', '.join(plan.clients)}")


def sums_of(source: TableSource, *, plan: StudyPlan, client: str) -> Sums:
    """What one look at the rows of a source gives."""
    sums, encode = Sums(plan), Encoder(plan, client)
    for rows in source.batches(plan.kinds):
        sums.add(rows, encode)
    return sums


class Watch(Protocol):
    """Who else wants to see what is computed of complete rows, block by block."""

    def numbers(self, numbers: Array) -> None:
        """The values of continuous variables: variables × rows."""

    def features(self, features: Array, products: Array) -> None:
        """Features, columns × rows, and the sums of their products; these are in the moments already."""


class Sums:
    """What is added up while rows come by; `a + b` is what both would have come to."""

    def __init__(self, plan: StudyPlan) -> None:
        self.moments = np.zeros((plan.columns, plan.columns), dtype=np.int64)
        self.missing = dict.fromkeys(plan.names, 0)
        self.read = self.used = 0
        self._block = _block_rows(plan)

    def add(self, rows: Table, encode: Encoder, watch: Watch | None = None) -> Table:
        """Counts the rows, adds the products of the features of those that are complete, and gives these back."""
        complete = np.ones(rows.rows, dtype=np.bool_)
        for name, column in rows.columns.items():
            if (missing := column.missing).any():
                self.missing[name] += int(missing.sum())
                complete &= ~missing
        self.read += rows.rows
        used = rows if complete.all() else rows.where(complete)
        for start in range(0, used.rows, self._block):
            block = used.rows_from(start, self._block)
            features = encode(block, numbers := encode.numbers(block))
            if watch is not None:
                watch.numbers(numbers)
            step = _EXACT if watch is None else self._watched()
            for first in range(0, block.rows, step):
                self._multiply(features[:, first : first + step], watch)
        return used

    def _watched(self) -> int:
        """So few rows that they can hardly stand out among those so far, taken together: see `LonelyRows`."""
        columns = len(self.moments)
        return min(_EXACT, max(_WATCHED, columns, self.used // (4 * columns)))

    def _multiply(self, features: Array, watch: Watch | None) -> None:
        self.used += features.shape[1]
        check_capacity(self.used)
        products = features @ features.T
        self.moments += products.astype(np.int64)
        if watch is not None:
            watch.features(features, products)

    def __add__(self, other: Sums) -> Sums:
        total = copy(self)
        total.moments = self.moments + other.moments
        total.missing = {name: count + other.missing[name] for name, count in self.missing.items()}
        total.read, total.used = self.read + other.read, self.used + other.used
        check_capacity(total.used)
        return total

    def summary(self, plan: StudyPlan, client: str, max_dropped: float) -> Summary:
        """The message, unless too many rows were left out."""
        _check_dropped(client, self.read, self.used, self.missing, max_dropped)
        return Summary(plan.fingerprint, (client,), self.moments, self.read, self.missing)


def _block_rows(plan: StudyPlan) -> int:
    return max(_ENCODED, min(_CELLS // len(plan.variables), _FEATURES // plan.columns))


def _check_dropped(client: str, rows: int, used: int, missing: Mapping[str, int], max_dropped: float) -> None:
    if rows and used and (rows - used) / rows <= max_dropped:
        return
    if not rows:
        raise DataError(f"client {client!r} has no rows; leave it out of the plan")
    worst = max(missing, key=lambda name: missing[name])
    raise DataError(
        f"client {client!r} would lose {rows - used} of {rows} rows to missing values, most of them in {worst!r} "
        f"({missing[worst]} missing); leave that variable or this client out, fill the values in, or allow it with "
        "max_dropped=" + ("" if used else " (no complete row is left, so that alone would not help)")
    )
