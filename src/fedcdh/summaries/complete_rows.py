"""The complete rows of a table, block by block, for a further pass over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fedcdh.data.sources import to_source
from fedcdh.data.table import Table
from fedcdh.summaries.imputation.imputed_source import impute_rows, prepare_study_rows
from fedcdh.summaries.plan import StudyPlan

BLOCK_ROWS = 2048
"""Rows at a time: as in a summary, sums of a block are exact in float64."""


def complete_blocks(table: Any, plan: StudyPlan, client: str) -> Iterator[Table]:
    """Yield the rows without missing values, or those whose missing values the plan has imputed, in blocks.

    Parameters
    ----------
    table : table or source of rows
        The rows.
    plan : StudyPlan
        Plan of the study, for its variables.
    client : str
        Name of the client, for errors.

    Yields
    ------
    Table
        Up to 2048 rows; blocks without a complete row are left out.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("age"),), ("north",))
    >>> [block.rows for block in complete_blocks({"age": [50.0, float("nan"), 61.0]}, plan, "north")]
    [2]
    """
    source = to_source(impute_rows(table, plan, client), f"client {client!r}", names=plan.names, only=plan.names)
    for batch in prepare_study_rows(source, plan, client).batches(plan.kinds):
        for start in range(0, batch.rows, BLOCK_ROWS):
            block = batch.slice_rows(start, BLOCK_ROWS)
            complete = ~np.logical_or.reduce([column.missing for column in block.columns.values()])
            used = block if complete.all() else block.select_rows(complete)
            if used.rows:
                yield used
