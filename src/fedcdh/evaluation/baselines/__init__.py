"""Methods to stand beside ours, on the same tables and with all that they send counted; `docs/rivals.md` lists them.

>>> from fedcdh.evaluation.simulation import simulate
>>> study = simulate(seed=1)
>>> found = find_baseline("fedpc")(study.tables, study.names)
>>> found.traffic.bytes_up < find_baseline("sort-by-variance")(study.tables, study.names).traffic.bytes_up
True
"""

from fedcdh.evaluation.baselines.interface import BaselineMethod, BaselineResult, Traffic
from fedcdh.evaluation.baselines.pooled_references import oracle_result
from fedcdh.evaluation.baselines.registry import (
    BASELINES,
    BaselineEntry,
    MethodAssumptions,
    find_baseline,
    to_markdown_table,
)
from fedcdh.evaluation.baselines.var_sort import varsortability

__all__ = [
    "BASELINES",
    "BaselineEntry",
    "BaselineMethod",
    "BaselineResult",
    "MethodAssumptions",
    "Traffic",
    "find_baseline",
    "oracle_result",
    "to_markdown_table",
    "varsortability",
]
