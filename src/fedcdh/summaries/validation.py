"""Checks of a summary when it arrives at the server: that some rows can have given these sums.

Every check is a law that all sums of features on the grid obey (`_moment_identities`, `_moment_space`), so no summary
of `summarize` is ever refused. A summary that passes may still be false: rows that were permuted, doubled or invented
have valid sums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np

from fedcdh._io.look_alikes import describe_look_alike
from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.errors import DuplicateClientError, RowCountError, SummaryError, UnknownClientError
from fedcdh.summaries._moment_identities import REMAKE_ADVICE, check_moments, describe_clients
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.client_changes import adopt_summary, describe_plan_mismatch
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.row_counts import are_counts_possible
from fedcdh.summaries.summary import Summary, check_noise
from fedcdh.summaries.variables import Continuous

MIN_DISTINCTIVE_ROWS, MIN_DISTINCTIVE_RANK = 50, 8
"""With this many rows and independent differences between them, two clients have the same sums by chance with a
probability below 1e-6, even if only nine different rows exist, each as frequent; far below with continuous values."""
_RANK_COLUMNS = 256  # columns of which the rank is computed


def admit_summaries(
    summaries: Iterable[Summary], plan: StudyPlan, *, replicate: int = 0, without: Collection[str] = ()
) -> Cohort:
    """Validate the summaries of all clients: one per client, and none of them another client's.

    Parameters
    ----------
    summaries : iterable of Summary
        One summary per client.
    plan : StudyPlan
        Plan of the study.
    replicate : int, default 0
        Number of the bootstrap replicate that is expected; 0 for the rows themselves. All others are refused.
    without : collection of str, default ()
        Clients of the plan that may be absent.

    Returns
    -------
    Cohort
        One summary per client.

    Raises
    ------
    SummaryError
        If a summary is missing, cannot be true, or does not belong to the others. Its subclasses say which.
    DuplicateClientError
        If a client has two summaries, or two clients have the same one.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north", "south"))
    >>> summaries = [summarize({"age": [50, 61]}, plan, "north"), summarize({"age": [70]}, plan, "south")]
    >>> admit_summaries(summaries, plan).client_rows
    (2, 1)
    """
    arrivals, admitted = _SummaryAdmission(plan, replicate), list[Summary]()
    with single_blas_thread():
        for given in summaries:
            summary = adopt_summary(given, plan)
            arrivals.admit(summary)
            admitted.append(summary)
    return add_up(admitted, plan, without=without)


class _SummaryAdmission:
    """Validates summaries one after the other, and keeps only their clients and fingerprints."""

    def __init__(self, plan: StudyPlan, replicate: int = 0) -> None:
        self.plan, self.replicate = plan, replicate
        self._seen: set[str] = set()
        self._makers: dict[bytes, str] = {}

    def admit(self, summary: Summary) -> None:
        """Raise an error if a summary cannot be true, is a second one of its client, or another client's."""
        if summary.replicate != self.replicate:
            raise SummaryError(
                f"found {describe_replicate(summary.replicate)} of {describe_clients(summary)}, expected "
                f"{describe_replicate(self.replicate)}; one cannot replace the other; ask the client for the right one"
            )
        validate_summary(summary, self.plan)
        if again := self._seen.intersection(summary.clients):
            raise DuplicateClientError(
                f"a second {describe_replicate(self.replicate).removeprefix('the ')} of client {min(again)!r} came; "
                "ask the client which of them is valid (it has to add up parts of its rows itself)"
            )
        mark = fingerprint_of(summary)
        maker = self._makers.get(mark, describe_clients(summary))
        if maker != describe_clients(summary) and is_distinctive(summary, self.plan):
            raise DuplicateClientError(
                f"the summaries of {maker} and {describe_clients(summary)} have the same sums of {summary.rows} rows "
                "to the last digit, so one is a copy of the other; ask both clients whose rows these are"
            )
        self._seen.update(summary.clients)
        self._makers.setdefault(mark, describe_clients(summary))


def validate_summary(summary: Summary, plan: StudyPlan) -> None:
    """Raise an error if no rows can have given a summary; a sum over several clients is checked in the same way.

    Parameters
    ----------
    summary : Summary
        Summary of one or more clients.
    plan : StudyPlan
        Its plan.

    Raises
    ------
    PlanMismatchError
        If the summary follows another plan.
    SummaryError
        If its counts or its moments cannot be true. Its subclasses say which law is violated.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> validate_summary(summarize({"age": [50, 61]}, plan, "north"), plan)
    """
    _check_plan(summary, plan)
    check_noise(summary, plan)
    _check_counts(summary, plan)
    check_moments(summary, plan)


def _check_plan(summary: Summary, plan: StudyPlan) -> None:
    if summary.plan != plan.fingerprint:
        raise describe_plan_mismatch(f"the summary of {describe_clients(summary)}", summary.plan, plan, REMAKE_ADVICE)
    if summary.moments.shape != (plan.layout.n_columns, plan.layout.n_columns):
        raise SummaryError(
            f"the summary of {describe_clients(summary)} has {len(summary.moments)} columns; expected the "
            f"{plan.layout.n_columns} of the plan; {REMAKE_ADVICE}"
        )
    if not summary.clients or (strangers := sorted(set(summary.clients) - plan.client_set)):
        raise UnknownClientError(
            f"a summary came from {abbreviate_list(strangers) if summary.clients else 'nobody'}"
            f"{describe_look_alike(strangers[0], plan.clients) if summary.clients else ''}, but the plan names only "
            f"{abbreviate_list(plan.clients)}; correct the name, or make a plan with this client for all"
        )


def _check_counts(summary: Summary, plan: StudyPlan) -> None:
    """Check that the counts of rows and of missing values do not contradict each other, nor the plan."""
    if set(summary.missing) != set(plan.names):
        raise RowCountError(
            f"the summary of {describe_clients(summary)} counts missing values of "
            f"{', '.join(map(str, summary.missing))}, but the plan's variables are {', '.join(plan.names)}; "
            f"{REMAKE_ADVICE}"
        )
    missing = list(summary.missing.values())
    if not are_counts_possible(plan, summary.rows, summary.rows_read, missing):
        raise RowCountError(
            f"the summary of {describe_clients(summary)} uses {summary.rows} of {summary.rows_read} rows, with "
            f"{sum(missing)} values missing and {max(missing)} in one variable: these cannot all be true, or no row "
            f"is left; {REMAKE_ADVICE}"
        )
    most = plan.max_rows_per_client * len(summary.clients)
    if 0 < most < summary.rows and not summary.replicate:  # replicates are compared with their summary
        raise SummaryError(
            f"the summary of {describe_clients(summary)} counts {summary.rows} rows; the plan allows a client at most "
            f"{plan.max_rows_per_client}, so that none outweighs all others; use that many rows, chosen at random, or "
            "ask the coordinator for a plan with a higher limit",
            parameter="max_rows_per_client",
        )


def fingerprint_of(summary: Summary) -> bytes:
    """Return a digest by which equal sums are recognised without keeping them."""
    return hashlib.sha256(np.ascontiguousarray(summary.moments).data).digest()


def is_distinctive(summary: Summary, plan: StudyPlan) -> bool:
    """Return whether the rows differ in enough ways that others do not have the same sums by chance."""
    if summary.rows < MIN_DISTINCTIVE_ROWS or not any(isinstance(variable, Continuous) for variable in plan.variables):
        return False
    _, scatter = replace(summary, moments=summary.moments[:_RANK_COLUMNS, :_RANK_COLUMNS]).means_and_scatter()
    noise = len(scatter) * summary.rows / GRID**2  # the scatter that rounding alone gives to dependent columns
    return int((np.linalg.eigvalsh(scatter) > noise).sum()) >= MIN_DISTINCTIVE_RANK


def describe_replicate(number: int) -> str:
    """Describe in words what the number of a replicate stands for; 0 is the summary of the rows themselves."""
    return f"bootstrap replicate {number}" if number else "the summary"
