"""The choice of the requests that are sent: nothing is requested twice, and nothing beyond the limits of the plan.

A search that starts again, after a stop or without a client that is gone, reaches sets or regressions that were
requested before and perhaps others. Answers are about one set or regression at one client, so earlier ones remain
valid. Weights of a regression that depend on who takes part do not make it another question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from fedcdh.summaries.joint.request import JointRequest, JointSummary, VariableSet
from fedcdh.summaries.joint.round_budget import FurtherRequest, RoundBudget
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.asked import identify_queries, restrict_request
from fedcdh.summaries.residuals.request import Coordinates, ResidualQuery, ResidualRequest, ResidualSums

Allows = Callable[[RoundBudget], bool]
"""A rule that returns whether the policies of all clients that are asked allow a budget."""


def allow_all(budget: RoundBudget) -> bool:
    """Return True: only the plan limits what is answered.

    Parameters
    ----------
    budget : RoundBudget
        Everything that would be answered.

    Returns
    -------
    bool
        True.

    Examples
    --------
    >>> allow_all(RoundBudget())
    True
    """
    return True


def plan_requests(
    wanted: JointRequest, earlier_requests: Sequence[FurtherRequest], plan: StudyPlan, rows: int
) -> tuple[JointRequest, ...]:
    """Return the requests whose answers hold the wanted sets: earlier ones, and a new one for the rest.

    Parameters
    ----------
    wanted : JointRequest
        Sets that the search needs.
    earlier_requests : sequence of JointRequest or ResidualRequest
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
    joint = [request for request in earlier_requests if isinstance(request, JointRequest)]
    earlier = tuple(request for request in joint if not set(request.sets).isdisjoint(wanted.sets))
    new = asked.select_affordable(set(wanted.sets) - asked.sets, plan, rows)
    return (*earlier, JointRequest(plan.fingerprint, len(earlier_requests) + 1, new)) if new else earlier


def plan_residual_requests(
    wanted: ResidualRequest,
    earlier_requests: Sequence[FurtherRequest],
    plan: StudyPlan,
    rows: int,
    allows: Allows = allow_all,
) -> tuple[ResidualRequest, ...]:
    """Return the requests whose answers hold the wanted questions: earlier ones, and a new one for the rest.

    A question is asked once. Where its weights have changed since, because a client is no longer there, the earlier
    answers stand for it: their densities differ by little.

    Parameters
    ----------
    wanted : ResidualRequest
        Queries that the search needs.
    earlier_requests : sequence of JointRequest or ResidualRequest
        All requests so far, numbered from 1.
    plan : StudyPlan
        Plan of the study, with its limits.
    rows : int
        Number of rows of the largest client.
    allows : callable, optional
        Limits beside those of the plan. Default: none.

    Returns
    -------
    tuple of ResidualRequest
        Earlier requests that hold wanted questions, and a new one if there are affordable new queries. Queries beyond
        the limits are left out.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("y"),), ("north",), max_rounds=2, max_bytes=10**6)
    >>> y = {"y": Coordinates((0.0,) * 6, ((plan.clip,) + (0.0,) * 5,))}
    >>> shape, ties = (ResidualQuery("y", (), about, (), (), 1.0) for about in ("shape", "ties"))
    >>> first = ResidualRequest(plan.fingerprint, 1, y, (shape,))
    >>> again = ResidualRequest(plan.fingerprint, 1, y, (shape, ties))
    >>> requests = plan_residual_requests(again, [first], plan, rows=500)
    >>> [(request.number, [query.about for query in request.queries]) for request in requests]
    [(1, ['shape']), (2, ['ties'])]
    """
    asked = RoundBudget.of(earlier_requests, plan, rows)
    names = dict(zip(identify_queries(wanted, plan), wanted.queries, strict=True))
    questions = {query.question for query in wanted.queries}
    residual = [request for request in earlier_requests if isinstance(request, ResidualRequest)]
    earlier = tuple(one for one in residual if not questions.isdisjoint(query.question for query in one.queries))
    chosen = {one.question: names[one] for one in reversed(asked.select_queries(names, plan, rows, allows))}
    new = [query for question, query in chosen.items() if question not in asked.questions]
    return (*earlier, restrict_request(wanted, new, len(earlier_requests) + 1)) if new else earlier


def select_affordable_queries(
    queries: Sequence[ResidualQuery],
    coordinates: Mapping[str, Coordinates],
    earlier_requests: Sequence[FurtherRequest],
    plan: StudyPlan,
    rows: int,
    allows: Allows = allow_all,
    *,
    coarse: bool = False,
) -> tuple[ResidualQuery, ...]:
    """Return the queries that clients have answered, or may answer in one more request, in the order of priority.

    Parameters
    ----------
    queries : sequence of ResidualQuery
        Queries, the most wanted first.
    coordinates : mapping from str to Coordinates
        Coordinates of their variables.
    earlier_requests : sequence of JointRequest or ResidualRequest
        All requests so far.
    plan : StudyPlan
        Plan of the study, with its limits.
    rows : int
        Number of rows of the largest client.
    allows : callable, optional
        Limits beside those of the plan. Default: none.
    coarse : bool, default False
        Whether the clients are asked for coarse sums.

    Returns
    -------
    tuple of ResidualQuery
        The affordable queries, in the given order.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> plan = StudyPlan((Continuous("y"),), ("north",), max_rounds=2, max_bytes=60)
    >>> y = {"y": Coordinates((0.0,) * 6, ((plan.clip,) + (0.0,) * 5,))}
    >>> ties, shape = (ResidualQuery("y", (), about, (), (), 1.0) for about in ("ties", "shape"))
    >>> [query.about for query in select_affordable_queries([ties, shape], y, [], plan, rows=500)]
    ['ties', 'shape']
    >>> [query.about for query in select_affordable_queries([shape, ties], y, [], plan, rows=10**5)]
    ['ties']
    """
    if not queries:
        return ()
    ordered = tuple(sorted(set(queries), key=lambda query: query.key))
    request = restrict_request(ResidualRequest(plan.fingerprint, 1, coordinates, ordered, coarse), ordered, 1)
    names = dict(zip(request.queries, identify_queries(request, plan), strict=True))
    asked = RoundBudget.of(earlier_requests, plan, rows)
    chosen = set(asked.select_queries([names[query] for query in queries], plan, rows, allows))
    return tuple(query for query in dict.fromkeys(queries) if names[query] in chosen)


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


def select_residuals(
    wanted: ResidualRequest,
    received: Iterable[Mapping[str, Sequence[ResidualSums]]],
) -> dict[str, tuple[ResidualSums, ...]]:
    """Return what clients answered to the wanted questions, out of their answers to several requests.

    Parameters
    ----------
    wanted : ResidualRequest
        Queries that the search needs.
    received : iterable of mapping from str to sequence of ResidualSums
        Answers of each client to each request.

    Returns
    -------
    dict from str to tuple of ResidualSums
        Answers of each client, in the order of the wanted queries.

    Examples
    --------
    >>> y = {"y": Coordinates((0.0,), ((1.0,),))}
    >>> request = ResidualRequest("0" * 64, 1, y, (ResidualQuery("y", (), "ties", (), (), 1.0),))
    >>> select_residuals(request, [{"north": ()}])
    {'north': ()}
    """
    found: dict[str, dict[tuple[object, ...], ResidualSums]] = {}
    for answers in received:
        for client, parts in answers.items():
            found.setdefault(client, {}).update({part.query.question: part for part in parts})
    return {
        client: tuple(
            replace(parts[query.question], query=query) for query in wanted.queries if query.question in parts
        )
        for client, parts in found.items()
    }
