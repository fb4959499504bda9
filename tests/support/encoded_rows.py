"""Rows as a plan encodes them: clipped, and rounded to the grid."""

from __future__ import annotations

import numpy as np

from fedcdh.data.table import to_table
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.variables import Categorical


def encoded(cohort: Cohort, table: object, client: str) -> dict[str, np.ndarray]:
    """The rows of a site, by variable: one row of values in the units of the study, or one row per level."""
    rows = Encoder(cohort.plan, client)(to_table(table)) / GRID
    found = {}
    for variable in cohort.plan.variables:
        span = cohort.plan.layout.spans[variable.name]
        if isinstance(variable, Categorical):
            found[variable.name] = rows[span]
        else:
            unit = cohort.plan.layout.unit * variable.scale
            found[variable.name] = rows[span.start : span.start + 1] * unit + variable.location
    return found
