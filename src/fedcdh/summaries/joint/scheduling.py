"""Which requests go out: no set is asked about twice, and nothing beyond what the plan lets a site answer.

A search that starts over, after a stop or without a site that is gone, comes to sets that were asked about before and
perhaps to others. Answers are about one set at one client, so those that were given stay good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fedcdh.summaries.joint.request import JointRequest, JointSummary, Names
from fedcdh.summaries.joint.round_budget import Ledger
from fedcdh.summaries.plan import StudyPlan


def requests_for(
    wanted: JointRequest, before: Sequence[JointRequest], plan: StudyPlan, rows: int
) -> tuple[JointRequest, ...]:
    """The requests whose answers hold the wanted sets: earlier ones, and a new one for what is in none of them.

    `before` are all requests so far, numbered from 1; `rows` is how many the largest client has. Where these requests
    have used up the budget, sets stay out.

    >>> from fedcdh.summaries.plan import Continuous
    >>> plan = StudyPlan(tuple(map(Continuous, "abc")), ("north",), most_rounds=2, most_bytes=10**6)
    >>> first = JointRequest(plan.fingerprint, 1, (("a", "b"),))
    >>> again = JointRequest(plan.fingerprint, 1, (("a", "b"), ("a", "c")))
    >>> [(request.number, request.sets) for request in requests_for(again, [first], plan, rows=500)]
    [(1, (('a', 'b'),)), (2, (('a', 'c'),))]
    """
    asked = Ledger.of(before, plan, rows)
    earlier = tuple(request for request in before if not set(request.sets).isdisjoint(wanted.sets))
    new = asked.affordable(set(wanted.sets) - asked.sets, plan, rows)
    return (*earlier, JointRequest(plan.fingerprint, len(before) + 1, new)) if new else earlier


def answers_to(
    wanted: JointRequest, received: Iterable[Mapping[str, Sequence[JointSummary]]]
) -> dict[str, tuple[JointSummary, ...]]:
    """Of all that clients answered to several requests, what is about the wanted sets."""
    found: dict[str, dict[Names, JointSummary]] = {}
    for answers in received:
        for client, parts in answers.items():
            found.setdefault(client, {}).update({part.names: part for part in parts})
    return {client: tuple(parts[names] for names in wanted.sets if names in parts) for client, parts in found.items()}
