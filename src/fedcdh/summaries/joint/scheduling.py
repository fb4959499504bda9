"""The choice of the requests that are sent: no set is requested twice, and nothing beyond the limits of the plan.

A search that starts again, after a stop or without a client that is gone, reaches sets that were requested before and
perhaps others. Answers are about one set at one client, so earlier answers remain valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fedcdh.summaries.joint.request import JointRequest, JointSummary, VariableSet
from fedcdh.summaries.joint.round_budget import RoundBudget
from fedcdh.summaries.plan import StudyPlan


def plan_requests(
    wanted: JointRequest, earlier_requests: Sequence[JointRequest], plan: StudyPlan, rows: int
) -> tuple[JointRequest, ...]:
    """Return the requests whose answers hold the wanted sets: earlier ones, and a new one for the rest.

    Parameters
    ----------
    wanted : JointRequest
        Sets that the search needs.
    earlier_requests : sequence of JointRequest
        All requests so far, numbered from 1.
    plan : StudyPlan
        Plan of the study, with its limits.
    rows : int
        Number of rows of the largest client.

    Returns
    -------
    tuple of JointRequest
        Earlier requests that hold wanted sets, and a new one if there are affordable new sets. Sets beyond the limits
        are left out.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
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
    """Return what clients answered about the wanted sets, out of their answers to several requests.

    Parameters
    ----------
    wanted : JointRequest
        Sets that the search needs.
    received : iterable of mapping from str to sequence of JointSummary
        Answers of each client to each request.

    Returns
    -------
    dict from str to tuple of JointSummary
        Answers of each client, in the order of the wanted sets.

    Examples
    --------
    >>> select_answers(JointRequest("0" * 64, 1, (("a", "b"),)), [{"north": ()}])
    {'north': ()}
    """
    found: dict[str, dict[VariableSet, JointSummary]] = {}
    for answers in received:
        for client, parts in answers.items():
            found.setdefault(client, {}).update({part.names: part for part in parts})
    return {client: tuple(parts[names] for names in wanted.sets if names in parts) for client, parts in found.items()}
