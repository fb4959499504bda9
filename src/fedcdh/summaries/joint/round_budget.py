"""The budget of further rounds: the answers that a client gave, and the limits of its plan.

Requests for joint features and requests about residuals share one budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from fedcdh.errors import DisclosureError
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint.request import (
    MAX_SETS,
    JointRequest,
    VariableSet,
    bytes_per_entry,
    count_entries,
    payload_bytes,
)
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.asked import AskedQuery, count_exact_sums, identify_queries
from fedcdh.summaries.residuals.request import ResidualRequest

FurtherRequest = JointRequest | ResidualRequest
"""A request for joint features, or one about residuals."""
DEFAULT_MAX_ROUNDS = 12
"""Rounds that a plan allows unless it says otherwise: a search about residuals takes 2 to 9."""
SUMMARIES_PER_BUDGET = 4
"""Bytes of all answers that a plan allows unless it says otherwise, in multiples of a summary's entries."""


@dataclass(frozen=True)
class RoundBudget:
    """The requests that a client has answered, and what they asked for. The same may be answered again.

    Attributes
    ----------
    requests : tuple of str, default ()
        Digests of the requests, in the order in which they were answered.
    sets : frozenset of tuple of str, default empty
        Sets of variables in these requests.
    bytes : int, default 0
        Bytes of the answers.
    queries : frozenset of AskedQuery, default empty
        Queries about residuals in these requests.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> variables = Continuous("a"), Continuous("b"), Continuous("c")
    >>> plan = StudyPlan(variables, ("north",), max_rounds=1, max_bytes=10**6)
    >>> budget = RoundBudget().charge(JointRequest(plan.fingerprint, 1, (("a", "b"),)), plan, rows=500)
    >>> budget.rounds, budget.bytes
    (1, 2856)
    >>> budget.charge(JointRequest(plan.fingerprint, 2, (("a", "c"),)), plan, rows=500)
    Traceback (most recent call last):
    ...
    fedcdh.errors.DisclosureError: this would be round 2; the plan allows a client to answer 1; nothing was computed
    """

    requests: tuple[str, ...] = ()
    sets: frozenset[VariableSet] = frozenset()
    bytes: int = 0
    queries: frozenset[AskedQuery] = frozenset()

    @classmethod
    def of(cls, requests: Sequence[FurtherRequest], plan: StudyPlan, rows: int) -> RoundBudget:
        """Return the budget of a client that has answered all of these requests.

        Parameters
        ----------
        requests : sequence of JointRequest or ResidualRequest
            Answered requests.
        plan : StudyPlan
            Plan of the study.
        rows : int
            Number of rows of the client.

        Returns
        -------
        RoundBudget
            Requests, sets, queries and bytes.
        """
        sets = frozenset(names for request in requests for names in sets_of(request))
        queries = frozenset(query for request in requests for query in queries_of(request, plan))
        total = payload_bytes(plan, sets, rows) + query_bytes(queries, rows)
        return cls(tuple(request.digest for request in requests), sets, total, queries)

    @property
    def rounds(self) -> int:
        """Return the number of requests that were answered."""
        return len(self.requests)

    @property
    def questions(self) -> frozenset[str]:
        """Return the digests of the questions about residuals that were answered, whatever their weights."""
        return frozenset(query.question for query in self.queries)

    def count_entries(self, plan: StudyPlan) -> int:
        """Return how many numbers the client has released in answers.

        Parameters
        ----------
        plan : StudyPlan
            Plan of the study.

        Returns
        -------
        int
            Number of entries of all joint summaries, and of sums of residuals; coarse sums count less.
        """
        return sum(count_entries(plan, names) for names in self.sets) + count_exact_sums(self.queries)

    def select_affordable(
        self, sets: Iterable[VariableSet], plan: StudyPlan, rows: int, most_sets: int = MAX_SETS
    ) -> tuple[VariableSet, ...]:
        """Return the new sets that one more request may ask for, small ones before large ones.

        Parameters
        ----------
        sets : iterable of tuple of str
            Sets that were not requested before.
        plan : StudyPlan
            Plan of the study, with its limits.
        rows : int
            Number of rows of the largest client.
        most_sets : int, default 10000
            Largest number of sets in all requests.

        Returns
        -------
        tuple of tuple of str
            Sets that are affordable, sorted.
        """
        total, chosen = self.bytes, list[VariableSet]()
        for names in sorted(sets, key=lambda names: (len(names), names)) if self.rounds < plan.max_rounds else ():
            more = payload_bytes(plan, [names], rows)
            if more and total + more <= plan.max_bytes and len(self.sets) + len(chosen) < most_sets:
                chosen.append(names)
                total += more
        return tuple(sorted(chosen))

    def select_queries(
        self, queries: Iterable[AskedQuery], plan: StudyPlan, rows: int, allows: Callable[[RoundBudget], bool]
    ) -> tuple[AskedQuery, ...]:
        """Return the queries whose questions were asked before, or that one more request may ask, by priority.

        Parameters
        ----------
        queries : iterable of AskedQuery
            Queries, the most wanted first.
        plan : StudyPlan
            Plan of the study, with its limits.
        rows : int
            Number of rows of the largest client.
        allows : callable
            Whether clients may answer as much as a budget says, by limits other than those of the plan.

        Returns
        -------
        tuple of AskedQuery
            Queries that are affordable, in the given order.
        """
        budget, chosen, known = self, list[AskedQuery](), self.questions
        for query in dict.fromkeys(queries):
            if query.question not in known:
                total = budget.bytes + query_bytes([query], rows)
                more = replace(budget, queries=budget.queries | {query}, bytes=total)
                if self.rounds >= plan.max_rounds or total > plan.max_bytes or not allows(more):
                    continue
                budget, known = more, known | {query.question}
            chosen.append(query)
        return tuple(chosen)

    def charge(self, request: FurtherRequest, plan: StudyPlan, rows: int) -> RoundBudget:
        """Return the budget once this request is answered.

        Parameters
        ----------
        request : JointRequest or ResidualRequest
            Request to be answered.
        plan : StudyPlan
            Plan of the study, with its limits.
        rows : int
            Number of rows of the client.

        Returns
        -------
        RoundBudget
            Budget with the request.

        Raises
        ------
        DisclosureError
            If the plan does not allow another round, or as many bytes.
        """
        request.check(plan)
        if request.digest in self.requests:
            return self
        if self.rounds >= plan.max_rounds:
            raise DisclosureError(
                f"this would be round {self.rounds + 1}; the plan allows a client to answer {plan.max_rounds}; "
                "nothing was computed"
            )
        sets, queries = frozenset(sets_of(request)), frozenset(queries_of(request, plan))
        total = self.bytes + payload_bytes(plan, sets - self.sets, rows) + query_bytes(queries - self.queries, rows)
        if total > plan.max_bytes:
            raise DisclosureError(
                f"with this answer the client would have sent {total} bytes in further rounds; the plan allows "
                f"{plan.max_bytes}; nothing was computed"
            )
        answered = (*self.requests, request.digest)
        return RoundBudget(answered, self.sets | sets, total, self.queries | queries)


def sets_of(request: FurtherRequest) -> tuple[VariableSet, ...]:
    """Return the sets of variables that a request asks for; none if it is about residuals."""
    return request.sets if isinstance(request, JointRequest) else ()


def queries_of(request: FurtherRequest, plan: StudyPlan) -> tuple[AskedQuery, ...]:
    """Return the queries about residuals of a request; none if it is about joint features."""
    return identify_queries(request, plan) if isinstance(request, ResidualRequest) else ()


def query_bytes(queries: Iterable[AskedQuery], rows: int) -> int:
    """Return the bytes of a client's answer to queries about residuals, without headers."""
    return bytes_per_entry(rows, GRID) * sum(query.entries for query in queries)


def default_max_bytes(plan: StudyPlan) -> int:
    """Return the bytes of all answers of a client that a plan allows unless it says otherwise.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    int
        Four times the bytes of a summary's entries, eight bytes each.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> default_max_bytes(StudyPlan((Continuous("age"),), ("north",)))
    896
    """
    columns = plan.layout.n_columns
    return SUMMARIES_PER_BUDGET * 8 * (columns * (columns + 1) // 2)
