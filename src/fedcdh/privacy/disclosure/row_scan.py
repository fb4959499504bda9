"""The row scan: one pass over the rows for the summary and for everything disclosure control has to know about them.

Rows are read, encoded and multiplied once for all of it. Scans of different rows can be added, so rows may be scanned
by several threads, or where they lie on a cluster, with the same result.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.prepared_source import prepare_rows, source_kinds
from fedcdh.data.sources import TableSource
from fedcdh.data.table import Table
from fedcdh.data.threaded_source import partition
from fedcdh.privacy.disclosure.leverage import ExtremeValues, HighLeverageRows
from fedcdh.privacy.disclosure.rare_cells import RareLevel
from fedcdh.privacy.disclosure.recoded_rows import recode_rows
from fedcdh.privacy.disclosure.small_cells import CellCounter
from fedcdh.privacy.ledger.row_sketches import RowSketcher, mark_gaps
from fedcdh.summaries.accumulator import MomentAccumulator, check_summary_arguments
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.imputation.imputed_source import ImputedTable, change_rows, impute_rows, original_rows
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary


@dataclass(frozen=True)
class ScanOptions:
    """Options of a row scan: what to look for besides the sums. The rest costs no time.

    Parameters
    ----------
    max_discrete_values : int, default 0
        Continuous variables with at most this many different values are counted like categorical ones.
    max_leverage : float, optional
        Leverage in all columns above which a row is looked for. Default: none is.
    max_group_people : int, default 1
        Rows are kept for groups of up to this many people, see `measure_groups`.
    secret : bytes, optional
        Secret of the site's ledger, for sketches of the rows. Default: no sketches. It is not shown in logs.
    merged : tuple of RareLevel, default ()
        Rare levels that are replaced in the rows before anything is computed.

    Examples
    --------
    >>> ScanOptions(max_leverage=0.99, secret=b"of the site")
    ScanOptions(max_discrete_values=0, max_leverage=0.99, max_group_people=1, merged=())
    """

    max_discrete_values: int = 0
    max_leverage: float | None = None
    secret: bytes | None = field(default=None, repr=False)
    max_group_people: int = 1
    merged: tuple[RareLevel, ...] = ()


class RowScan:
    """The result of a scan of some rows; `a + b` is the result for the rows of both.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the summary.
    client : str
        Name of the client.
    options : ScanOptions
        What to look for.

    Attributes
    ----------
    sums : MomentAccumulator
        Sums of the summary.
    extremes : ExtremeValues
        Extreme values of every continuous variable.
    cells : CellCounter
        People with each value of discrete variables.
    high_leverage : HighLeverageRows or None
        Rows that may have a high leverage.
    sketcher : RowSketcher or None
        Sketches of the complete rows.

    See Also
    --------
    scan_rows : Scans all rows of a table.

    Examples
    --------
    >>> from fedcdh.data.table import to_table
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> scan = RowScan(plan, "north", ScanOptions())
    >>> scan.add(to_table({"age": [50, 61]}), Encoder(plan, "north"))
    >>> scan.summary(max_missing_share=0.5).rows
    2
    """

    def __init__(self, plan: StudyPlan, client: str, options: ScanOptions) -> None:
        self._plan, self._client, self._merged = plan, client, options.merged
        self.sums, self.extremes = MomentAccumulator(plan), ExtremeValues(plan)
        self.cells = CellCounter(plan, options.max_discrete_values)
        limit = options.max_leverage
        columns, people = plan.layout.n_columns, options.max_group_people
        self.high_leverage = None if limit is None else HighLeverageRows(columns, limit, people)
        self.sketcher = None if options.secret is None else RowSketcher(options.secret)

    def add(self, rows: Table, encode: Encoder) -> None:
        """Scan further rows.

        Parameters
        ----------
        rows : Table
            Rows of the site, before the recipes of the plan. They may have missing values.
        encode : Encoder
            Encoder of the plan.
        """
        imputed, recipes = isinstance(rows, ImputedTable), self._plan.recipes
        prepared = rows if imputed else prepare_rows(rows, recipes, self._client)
        complete = self.sums.add(change_rows(prepared, partial(recode_rows, merged=self._merged)), encode, self)
        self.cells(complete)
        if self.sketcher is None:
            return
        if imputed:  # of what the site knows: people are compared, not what was drawn for them
            self.sketcher(mark_gaps(original_rows(complete)))
        else:  # of the site's own values: another recipe of a column is about the same people
            self.sketcher(complete if not recipes else _select_complete(rows))

    def observe_values(self, values: Array) -> None:
        """Receive the continuous values of a block of complete rows.

        Parameters
        ----------
        values : array
            Variables × rows.
        """
        self.extremes(values)

    def observe_features(self, features: Array, products: Array) -> None:
        """Receive the features of a block of complete rows, and the products of these.

        Parameters
        ----------
        features : array
            Columns × rows.
        products : array
            Columns × columns.
        """
        if self.high_leverage is not None:
            self.high_leverage(features, products, self.sums.moments)

    def __add__(self, other: RowScan) -> RowScan:
        both = copy(self)
        both.sums, both.extremes = self.sums + other.sums, self.extremes + other.extremes
        both.cells = self.cells + other.cells
        if self.high_leverage is not None and other.high_leverage is not None:
            both.high_leverage = self.high_leverage.merge_with(other.high_leverage, both.sums.moments)
        if self.sketcher is not None and other.sketcher is not None:
            both.sketcher = self.sketcher + other.sketcher
        return both

    def summary(self, max_missing_share: float) -> Summary:
        """Return the summary of the rows.

        Parameters
        ----------
        max_missing_share : float
            Largest share of rows that may be left out for missing values.

        Returns
        -------
        Summary
            The summary.

        Raises
        ------
        DataError
            If too many rows were left out.
        """
        return self.sums.summary(self._plan, self._client, max_missing_share)


def scan_rows(table: Any, plan: StudyPlan, client: str, options: ScanOptions, *, workers: int = 1) -> RowScan:
    """Scan all rows of a table, of files, or of a partitioned source.

    Parameters
    ----------
    table : table or source of rows
        The rows.
    plan : StudyPlan
        The plan of the summary.
    client : str
        Name of the client.
    options : ScanOptions
        What to look for besides the sums.
    workers : int, default 1
        Number of threads.

    Returns
    -------
    RowScan
        The result for all rows.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> scan_rows({"age": [50, 61, None]}, plan, "north", ScanOptions()).extremes.values
    {'age': array([50., 61.])}
    """
    check_summary_arguments(plan, client, 1.0)
    table = impute_rows(table, plan, client)
    parts = partition(table, f"client {client!r}", workers=workers, names=plan.names, only=plan.names)
    return parts.map_reduce(partial(_scan_source, plan=plan, client=client, options=options), RowScan.__add__)


def _scan_source(source: TableSource, *, plan: StudyPlan, client: str, options: ScanOptions) -> RowScan:
    scan, encode = RowScan(plan, client, options), Encoder(plan, client)
    for rows in source.batches(source_kinds(plan.kinds, plan.recipes)):
        scan.add(rows, encode)
    return scan


def _select_complete(rows: Table) -> Table:
    missing = np.logical_or.reduce([column.missing for column in rows.columns.values()])
    return rows.select_rows(~missing) if missing.any() else rows
