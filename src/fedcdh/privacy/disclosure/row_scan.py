"""One look at rows: the sums of a summary, and all that a site has to know about the rows before it lets these leave.

Rows are read, encoded and multiplied once, for all of it. What was found in some rows can be added to what was found in
others, so rows may be looked at by several threads, or where they lie on a cluster, and the verdict is the same.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import TableSource
from fedcdh.data.table import Table
from fedcdh.data.threaded_source import partition
from fedcdh.privacy.disclosure.leverage import ExtremeValues, HighLeverageRows
from fedcdh.privacy.disclosure.small_cells import CellCounter
from fedcdh.privacy.ledger import RowSketcher
from fedcdh.summaries.accumulator import MomentAccumulator, check_summary_arguments
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary


@dataclass(frozen=True)
class ScanOptions:
    """What is to be found besides the sums. For what is not wanted, rows are not looked at."""

    few_values: int = 0  # most values of a number that are counted like labels
    max_leverage: float | None = None  # the leverage of a row in all columns from which it is looked for
    secret: bytes | None = field(default=None, repr=False)  # of the site, for sketches of the rows; not for logs


class RowScan:
    """What was found in some rows; `a + b` is what would be found in all of them."""

    def __init__(self, plan: StudyPlan, client: str, wanted: ScanOptions) -> None:
        self._plan, self._client = plan, client
        self.sums, self.outermost = MomentAccumulator(plan), ExtremeValues(plan)
        self.few = CellCounter(plan, wanted.few_values)
        self.lonely = None if wanted.max_leverage is None else HighLeverageRows(plan.columns, wanted.max_leverage)
        self.seen = None if wanted.secret is None else RowSketcher(wanted.secret)

    def add(self, rows: Table, encode: Encoder) -> None:
        """Looks at further rows."""
        complete = self.sums.add(rows, encode, self)
        self.few(complete)
        if self.seen is not None:
            self.seen(complete)

    def numbers(self, numbers: Array) -> None:
        """Sees the numbers of a block of complete rows."""
        self.outermost(numbers)

    def features(self, features: Array, products: Array) -> None:
        """Sees their features, and the products of these."""
        if self.lonely is not None:
            self.lonely(features, products, self.sums.moments)

    def __add__(self, other: RowScan) -> RowScan:
        both = copy(self)
        both.sums, both.outermost = self.sums + other.sums, self.outermost + other.outermost
        both.few = self.few + other.few
        if self.lonely is not None and other.lonely is not None:
            both.lonely = self.lonely.merge_with(other.lonely, both.sums.moments)
        if self.seen is not None and other.seen is not None:
            both.seen = self.seen + other.seen
        return both

    def summary(self, max_missing_share: float) -> Summary:
        """The message, unless too many rows were left out."""
        return self.sums.summary(self._plan, self._client, max_missing_share)


def scan_rows(table: Any, plan: StudyPlan, client: str, wanted: ScanOptions, *, workers: int = 1) -> RowScan:
    """What is found in all rows of a table, of files, or of a `Spread`.

    >>> from fedcdh.summaries.plan import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> scan_rows({"age": [50, 61, None]}, plan, "north", ScanOptions()).outermost.values
    {'age': array([50., 61.])}
    """
    check_summary_arguments(plan, client, 1.0)
    parts = partition(table, f"client {client!r}", workers=workers, names=plan.names, only=plan.names)
    return parts.map_reduce(partial(_scan_source, plan=plan, client=client, wanted=wanted), RowScan.__add__)


def _scan_source(source: TableSource, *, plan: StudyPlan, client: str, wanted: ScanOptions) -> RowScan:
    found, encode = RowScan(plan, client, wanted), Encoder(plan, client)
    for rows in source.batches(plan.kinds):
        found.add(rows, encode)
    return found
