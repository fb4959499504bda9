"""What a site has told in further rounds, and whether it may tell more: the plan states it, the site holds to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fedcdh.errors import DisclosureError
from fedcdh.summaries.joint.request import MAX_SETS, JointRequest, VariableSet, count_entries, payload_bytes
from fedcdh.summaries.plan import StudyPlan


@dataclass(frozen=True)
class RoundBudget:
    """The requests answered so far, and the sets in them. Whatever was told once may be told again.

    >>> from fedcdh.summaries.plan import Continuous
    >>> variables = Continuous("a"), Continuous("b"), Continuous("c")
    >>> plan = StudyPlan(variables, ("north",), max_rounds=1, max_bytes=10**6)
    >>> ledger = RoundBudget().charge(JointRequest(plan.fingerprint, 1, (("a", "b"),)), plan, rows=500)
    >>> ledger.rounds, ledger.bytes
    (1, 2856)
    >>> ledger.charge(JointRequest(plan.fingerprint, 2, (("a", "c"),)), plan, rows=500)
    Traceback (most recent call last):
    ...
    fedcdh.errors.DisclosureError: this would be round 2, and the plan lets a site answer 1; nothing was computed
    """

    requests: tuple[str, ...] = ()  # digests, in the order they were answered
    sets: frozenset[VariableSet] = frozenset()
    bytes: int = 0

    @classmethod
    def of(cls, requests: Sequence[JointRequest], plan: StudyPlan, rows: int) -> RoundBudget:
        """That of a site with so many rows that has answered all of these."""
        sets = frozenset(names for request in requests for names in request.sets)
        return cls(tuple(request.digest for request in requests), sets, payload_bytes(plan, sets, rows))

    @property
    def rounds(self) -> int:
        return len(self.requests)

    def count_entries(self, plan: StudyPlan) -> int:
        """How many numbers the site has told in answers."""
        return sum(count_entries(plan, names) for names in self.sets)

    def select_affordable(
        self, sets: Iterable[VariableSet], plan: StudyPlan, rows: int, most_sets: int = MAX_SETS
    ) -> tuple[VariableSet, ...]:
        """Of sets that are new, those that one more request may ask about, small ones before large ones."""
        told, chosen = self.bytes, list[VariableSet]()
        for names in sorted(sets, key=lambda names: (len(names), names)) if self.rounds < plan.max_rounds else ():
            more = payload_bytes(plan, [names], rows)
            if more and told + more <= plan.max_bytes and len(self.sets) + len(chosen) < most_sets:
                chosen.append(names)
                told += more
        return tuple(sorted(chosen))

    def charge(self, request: JointRequest, plan: StudyPlan, rows: int) -> RoundBudget:
        """The ledger once this request is answered; DisclosureError where it would be too much."""
        request.check(plan)
        if request.digest in self.requests:
            return self
        if self.rounds >= plan.max_rounds:
            raise DisclosureError(
                f"this would be round {self.rounds + 1}, and the plan lets a site answer {plan.max_rounds}; nothing "
                "was computed"
            )
        told = self.bytes + payload_bytes(plan, set(request.sets) - self.sets, rows)
        if told > plan.max_bytes:
            raise DisclosureError(
                f"with this answer the site would have sent {told} bytes in further rounds, and the plan lets it send "
                f"{plan.max_bytes}; nothing was computed"
            )
        return replace(self, requests=(*self.requests, request.digest), sets=self.sets | set(request.sets), bytes=told)
