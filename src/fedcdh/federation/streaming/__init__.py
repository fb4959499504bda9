"""Aggregation of summary files one at a time, for many or large files.

Modules
-------
running_sum, sum_journal, client_groups
    The sum so far, the format of its journal, and the groups of clients in it.
aggregate_files
    The run over files, which survives interruptions.
"""

from fedcdh.federation.streaming.aggregate_files import AggregationReport, StreamingAggregation
from fedcdh.federation.streaming.running_sum import ReceivedSummary, RunningSum

__all__ = ["AggregationReport", "ReceivedSummary", "RunningSum", "StreamingAggregation"]
