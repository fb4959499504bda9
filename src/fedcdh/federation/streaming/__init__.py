"""Aggregation of summary files one at a time, for many or large files.

Modules
-------
running_sum
    The sum so far, and its journal.
aggregate_files
    The run over files, which survives interruptions.
"""

from fedcdh.federation.streaming.aggregate_files import AggregationReport, StreamingAggregation
from fedcdh.federation.streaming.running_sum import ReceivedSummary, RunningSum

__all__ = ["AggregationReport", "ReceivedSummary", "RunningSum", "StreamingAggregation"]
