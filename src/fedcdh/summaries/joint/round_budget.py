"""The budget of adaptive rounds: the answers that a client gave, and the limits of its plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fedcdh.errors import DisclosureError
from fedcdh.summaries.joint.request import MAX_SETS, JointRequest, VariableSet, count_entries, payload_bytes
from fedcdh.summaries.plan import StudyPlan


@dataclass(frozen=True)
class RoundBudget:
    """The requests that a client has answered, and the sets in them. The same set may be answered again.

    Attributes
    ----------
    requests : tuple of str, default ()
        Digests of the requests, in the order in which they were answered.
    sets : frozenset of tuple of str, default empty
        Sets of variables in these requests.
    bytes : int, default 0
        Bytes of the answers.

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

    @classmethod
    def of(cls, requests: Sequence[JointRequest], plan: StudyPlan, rows: int) -> RoundBudget:
        """Return the budget of a client that has answered all of these requests.

        Parameters
        ----------
        requests : sequence of JointRequest
            Answered requests.
        plan : StudyPlan
            Plan of the study.
        rows : int
            Number of rows of the client.

        Returns
        -------
        RoundBudget
            Requests, sets and bytes.
        """
        sets = frozenset(names for request in requests for names in request.sets)
        return cls(tuple(request.digest for request in requests), sets, payload_bytes(plan, sets, rows))

    @property
    def rounds(self) -> int:
        """Return the number of requests that were answered."""
        return len(self.requests)

    def count_entries(self, plan: StudyPlan) -> int:
        """Return how many numbers the client has released in answers.

        Parameters
        ----------
        plan : StudyPlan
            Plan of the study.

        Returns
        -------
        int
            Number of entries of all joint summaries.
        """
        return sum(count_entries(plan, names) for names in self.sets)

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

    def charge(self, request: JointRequest, plan: StudyPlan, rows: int) -> RoundBudget:
        """Return the budget once this request is answered.

        Parameters
        ----------
        request : JointRequest
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
        total = self.bytes + payload_bytes(plan, set(request.sets) - self.sets, rows)
        if total > plan.max_bytes:
            raise DisclosureError(
                f"with this answer the client would have sent {total} bytes in adaptive rounds; the plan allows "
                f"{plan.max_bytes}; nothing was computed"
            )
        return replace(self, requests=(*self.requests, request.digest), sets=self.sets | set(request.sets), bytes=total)
