"""What a site has told in further rounds, and whether it may tell more: the plan states it, the site holds to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fedcdh.errors import PolicyRefusal
from fedcdh.summaries.joint.request import SETS_AT_MOST, JointRequest, Names, numbers_for, payload_bytes
from fedcdh.summaries.plan import StudyPlan


@dataclass(frozen=True)
class Ledger:
    """The requests answered so far, and the sets in them. Whatever was told once may be told again.

    >>> from fedcdh.summaries.plan import Continuous
    >>> variables = Continuous("a"), Continuous("b"), Continuous("c")
    >>> plan = StudyPlan(variables, ("north",), most_rounds=1, most_bytes=10**6)
    >>> ledger = Ledger().after(JointRequest(plan.fingerprint, 1, (("a", "b"),)), plan, rows=500)
    >>> ledger.rounds, ledger.bytes
    (1, 2856)
    >>> ledger.after(JointRequest(plan.fingerprint, 2, (("a", "c"),)), plan, rows=500)
    Traceback (most recent call last):
    ...
    fedcdh.errors.PolicyRefusal: this would be round 2, and the plan lets a site answer 1; nothing was computed
    """

    requests: tuple[str, ...] = ()  # digests, in the order they were answered
    sets: frozenset[Names] = frozenset()
    bytes: int = 0

    @classmethod
    def of(cls, requests: Sequence[JointRequest], plan: StudyPlan, rows: int) -> Ledger:
        """That of a site with so many rows that has answered all of these."""
        sets = frozenset(names for request in requests for names in request.sets)
        return cls(tuple(request.digest for request in requests), sets, payload_bytes(plan, sets, rows))

    @property
    def rounds(self) -> int:
        return len(self.requests)

    def numbers(self, plan: StudyPlan) -> int:
        """How many numbers the site has told in answers."""
        return sum(numbers_for(plan, names) for names in self.sets)

    def affordable(
        self, sets: Iterable[Names], plan: StudyPlan, rows: int, most_sets: int = SETS_AT_MOST
    ) -> tuple[Names, ...]:
        """Of sets that are new, those that one more request may ask about, small ones before large ones."""
        told, chosen = self.bytes, list[Names]()
        for names in sorted(sets, key=lambda names: (len(names), names)) if self.rounds < plan.most_rounds else ():
            more = payload_bytes(plan, [names], rows)
            if more and told + more <= plan.most_bytes and len(self.sets) + len(chosen) < most_sets:
                chosen.append(names)
                told += more
        return tuple(sorted(chosen))

    def after(self, request: JointRequest, plan: StudyPlan, rows: int) -> Ledger:
        """The ledger once this request is answered; PolicyRefusal where it would be too much."""
        request.check(plan)
        if request.digest in self.requests:
            return self
        if self.rounds >= plan.most_rounds:
            raise PolicyRefusal(
                f"this would be round {self.rounds + 1}, and the plan lets a site answer {plan.most_rounds}; nothing "
                "was computed"
            )
        told = self.bytes + payload_bytes(plan, set(request.sets) - self.sets, rows)
        if told > plan.most_bytes:
            raise PolicyRefusal(
                f"with this answer the site would have sent {told} bytes in further rounds, and the plan lets it send "
                f"{plan.most_bytes}; nothing was computed"
            )
        return replace(self, requests=(*self.requests, request.digest), sets=self.sets | set(request.sets), bytes=told)
