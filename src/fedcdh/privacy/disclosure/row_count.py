"""The number of rows, counted before a wide summary is computed.

The moments of p columns take 8 p² bytes, and as much again while rows are added: 6 GB for 19,901 columns. A plan may
name that number of columns, but few sites have the rows that such a summary needs. So rows are counted first, which
takes no memory.
"""

from __future__ import annotations

from typing import Any

from fedcdh.data.prepared_source import source_kinds
from fedcdh.data.sources import TableSource, check_rereadable
from fedcdh.data.threaded_source import partition
from fedcdh.summaries.plan import StudyPlan

MAX_COLUMNS_UNCOUNTED = 2048
"""Up to this many columns, the moments take at most 32 MB, and rows are counted while they are added."""


def count_rows_of_wide_plan(table: Any, plan: StudyPlan, label: str, *, workers: int = 1) -> int | None:
    """Return the number of rows, those with missing values included; None for a plan with few columns.

    Parameters
    ----------
    table : table or source of rows
        The rows.
    plan : StudyPlan
        The plan of the summary.
    label : str
        Name of the owner of the rows, for errors.
    workers : int, default 1
        Number of threads.

    Returns
    -------
    int or None
        Number of rows.

    Raises
    ------
    DataError
        If the rows can be read only once.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan(tuple(Continuous(f"v{j}") for j in range(400)), ("north",))
    >>> count_rows_of_wide_plan({f"v{j}": [1.0, 2.0] for j in range(400)}, plan, "client 'north'")
    2
    """
    if plan.layout.n_columns <= MAX_COLUMNS_UNCOUNTED:
        return None
    check_rereadable(table, label, f"a summary of {plan.layout.n_columns} columns")

    def count(source: TableSource) -> int:
        return sum(rows.rows for rows in source.batches(source_kinds(plan.kinds, plan.recipes)))

    return partition(table, label, workers=workers, names=plan.names, only=plan.names).map_reduce(count, int.__add__)
