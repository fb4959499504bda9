"""Methods to stand beside ours, on the same tables and with all that they send counted; `docs/rivals.md` lists them.

>>> from fedcdh.evaluation.simulation import simulate
>>> study = simulate(seed=1)
>>> found = method("fedpc")(study.tables, study.names)
>>> found.traffic.bytes_up < method("sort-by-variance")(study.tables, study.names).traffic.bytes_up
True
"""

from fedcdh.evaluation.baselines.interface import Found, Method, Traffic
from fedcdh.evaluation.baselines.pooled_references import oracle
from fedcdh.evaluation.baselines.registry import METHODS, Claims, Entry, as_markdown, method
from fedcdh.evaluation.baselines.var_sort import varsortability

__all__ = [
    "METHODS",
    "Claims",
    "Entry",
    "Found",
    "Method",
    "Traffic",
    "as_markdown",
    "method",
    "oracle",
    "varsortability",
]
