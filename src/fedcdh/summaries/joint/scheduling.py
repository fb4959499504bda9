"""Which requests go out: no set is asked about twice, and nothing beyond what the plan lets a site answer.

A search that starts over, after a stop or without a site that is gone, comes to sets that were asked about before and
perhaps to others. Answers are about one set at one client, so those that were given stay good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fedcdh.summaries.joint.request import JointRequest, JointSummary, VariableSet
from fedcdh.summaries.joint.round_budget import RoundBudget
from fedcdh.summaries.plan import StudyPlan


def plan_requests(
    wanted: JointRequest, earlier_requests: Sequence[JointRequest], plan: StudyPlan, rows: int
) -> tuple[JointRequest, ...]:
    """The requests whose answers hold the wanted sets: earlier ones, and a new one for what is in none of them.

    `earlier_requests` are all requests so far, numbered from 1; `rows` is how many the largest client has. Where these requests
    have used up the budget, sets stay out.

    >>> from fedcdh.summaries.plan import Continuous
    >>> plan = StudyPlan(tuple(map(Continuous, "abc")), ("north",), max_rounds=2, max_bytes=10**6)
    >>> first = JointRequest(plan.fingerprint, 1, (("a", "b"),))
    >>> again = JointRequest(plan.fingerprint, 1, (("a", "b"), ("a", "c")))
    >>> [(request.number, request.sets) for request in plan_requests(again, [first], plan, rows=500)]
    [(1, (('a', 'b'),)), (2, (('a', 'c'),))]
    """
    asked = RoundBudget.of(earlier_requests, plan, rows)
    earlier = tuple(request for request in earlier_requests if not set(request.sets).isdisjoint(wanted.sets))
    new = asked.select_affordable(set(wanted.sets) - asked.sets, plan, rows)
    return (*earlier, JointRequest(plan.fingerprint, len(earlier_requests) + 1, new)) if new else earlier


def select_answers(
    wanted: JointRequest, received: Iterable[Mapping[str, Sequence[JointSummary]]]
) -> dict[str, tuple[JointSummary, ...]]:
    """Of all that clients answered to several requests, what is about the wanted sets."""
    found: dict[str, dict[VariableSet, JointSummary]] = {}
    for answers in received:
        for client, parts in answers.items():
            found.setdefault(client, {}).update({part.names: part for part in parts})
    return {client: tuple(parts[names] for names in wanted.sets if names in parts) for client, parts in found.items()}
