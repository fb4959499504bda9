"""Queries that were asked: what identifies each one, and a request for some of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeVar, cast

from fedcdh.errors import DataError, SummaryError
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.request import ResidualQuery, ResidualRequest, ResidualSums
from fedcdh.summaries.summary import Summary

COARSE_SUMS_PER_EXACT = 20
"""Coarse sums that count as one exact sum where all numbers about all columns are counted."""


RequestT = TypeVar("RequestT")


class AskedQuery(NamedTuple):
    """A query as budgets and ledgers keep it.

    Attributes
    ----------
    digest : str
        Digest of the query and of the coordinates of its variables. The same digest stands for the same numbers.
    variables : tuple of str
        The node, then the parents.
    entries : int
        Number of sums that answer it.
    question : str
        Digest of what is asked, whatever the weights and the coordinates.
    places : tuple of str
        Digest of the coordinates of each variable.
    coarse : bool, default False
        Whether the answer has coarse sums.

    Examples
    --------
    >>> AskedQuery("0" * 64, ("y", "x"), 14, "1" * 64, ("2" * 64, "3" * 64)).entries
    14
    """

    digest: str
    variables: tuple[str, ...]
    entries: int
    question: str
    places: tuple[str, ...]
    coarse: bool = False


def identify_queries(request: ResidualRequest, plan: StudyPlan) -> tuple[AskedQuery, ...]:
    """Return what identifies each query of a request.

    Parameters
    ----------
    request : ResidualRequest
        The request.
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    tuple of AskedQuery
        One for every query, in their order.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> from fedcdh.summaries.residuals import Coordinates
    >>> plan = StudyPlan((Continuous("y"),), ("north",))
    >>> query = ResidualQuery("y", (), "shape", weights=(), widths=(), deviation=1.0)
    >>> request = ResidualRequest(plan.fingerprint, 1, {"y": Coordinates((0.0,), ((1.0,),))}, (query,))
    >>> [(one.variables, one.entries) for one in identify_queries(request, plan)]
    [(('y',), 14)]
    """
    return tuple(_identify(query, request, plan) for query in request.queries)


def _identify(query: ResidualQuery, request: ResidualRequest, plan: StudyPlan) -> AskedQuery:
    variables = (query.node, *query.parents)
    coordinates = [request.coordinates[name] for name in variables]
    places = tuple(_digest([one.centre, one.matrix, one.score]) for one in coordinates)
    digest = _digest([query.key, places, "coarse"] if request.coarse else [query.key, places])
    return AskedQuery(digest, variables, query.count_entries(plan), _digest(query.question), places, request.coarse)


def count_exact_sums(queries: Iterable[AskedQuery]) -> int:
    """Return how many exact sums count as much as the answers to these queries: a coarse one is a twentieth.

    Parameters
    ----------
    queries : iterable of AskedQuery
        Queries that were answered.

    Returns
    -------
    int
        Number of sums, rounded up.

    Examples
    --------
    >>> exact = AskedQuery("0" * 64, ("y",), 14, "1" * 64, ("2" * 64,))
    >>> count_exact_sums([exact]), count_exact_sums([exact._replace(coarse=True)])
    (14, 1)
    """
    found = {False: 0, True: 0}
    for query in queries:
        found[query.coarse] += query.entries
    return found[False] + -(-found[True] // COARSE_SUMS_PER_EXACT)


def _digest(document: object) -> str:
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def restrict_request(request: ResidualRequest, queries: Collection[ResidualQuery], number: int) -> ResidualRequest:
    """Return a request for some of the queries, with the coordinates that these need.

    Parameters
    ----------
    request : ResidualRequest
        A request.
    queries : collection of ResidualQuery
        Queries of it, at least one.
    number : int
        Number of the new request.

    Returns
    -------
    ResidualRequest
        The smaller request.

    Examples
    --------
    >>> from fedcdh.summaries.residuals import Coordinates
    >>> one, two = (ResidualQuery(node, (), "ties", (), (), 1.0) for node in "xy")
    >>> coordinates = dict.fromkeys("xy", Coordinates((0.0,), ((1.0,),)))
    >>> smaller = restrict_request(ResidualRequest("0" * 64, 1, coordinates, (one, two)), [two], 2)
    >>> smaller.number, [*smaller.coordinates]
    (2, ['y'])
    """
    kept = set(queries)
    chosen = tuple(query for query in request.queries if query in kept)
    names = {name for query in chosen for name in (query.node, *query.parents)}
    coordinates = {name: one for name, one in request.coordinates.items() if name in names}
    return ResidualRequest(request.plan, number, coordinates, chosen, request.coarse)


def select_answerable(request: RequestT, plan: StudyPlan) -> RequestT:
    """Return the part of a request that a client can answer: the queries about variables that it has.

    Parameters
    ----------
    request : JointRequest or ResidualRequest
        A request of the whole study.
    plan : StudyPlan
        The part of the plan that the client follows.

    Returns
    -------
    JointRequest or ResidualRequest
        The request itself where the client lacks nothing.

    Raises
    ------
    DataError
        If the client can answer none of the queries.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> from fedcdh.summaries.residuals import Coordinates
    >>> plan = StudyPlan((Continuous("x"), Continuous("y")), ("north", "south"), absent={"north": ["y"]})
    >>> one, two = (ResidualQuery(node, (), "ties", (), (), 1.0) for node in "xy")
    >>> coordinates = dict.fromkeys("xy", Coordinates((0.0,), ((1.0,),)))
    >>> request = ResidualRequest(plan.fingerprint, 1, coordinates, (one, two))
    >>> [query.node for query in select_answerable(request, plan.for_client("north")).queries]
    ['x']
    """
    if not isinstance(request, ResidualRequest) or not plan.part_of:
        return request
    chosen = _answerable_queries(request, plan)
    if not chosen:
        raise DataError(
            f"request {request.number} asks about no variables that are all at this client, which lacks some of the "
            "study; it has nothing to answer; send no answer to this request"
        )
    return cast("RequestT", restrict_request(request, chosen, request.number))


def can_answer(request: object, plan: StudyPlan) -> bool:
    """Return whether a client can answer some query of a request.

    Parameters
    ----------
    request : JointRequest or ResidualRequest
        A request of the whole study.
    plan : StudyPlan
        The part of the plan that the client follows.

    Returns
    -------
    bool
        False if it has not all variables of any query.
    """
    if not isinstance(request, ResidualRequest) or not plan.part_of:
        return True
    return bool(_answerable_queries(request, plan))


def _answerable_queries(request: ResidualRequest, plan: StudyPlan) -> list[ResidualQuery]:
    held = frozenset(plan.names)
    return [query for query in request.queries if held.issuperset((query.node, *query.parents))]


def check_residuals(
    answers: Sequence[ResidualSums], request: ResidualRequest, plan: StudyPlan, summary: Summary, client: str
) -> None:
    """Raise an error if answers do not fit the request, or are not of the rows of the client's summary.

    Parameters
    ----------
    answers : sequence of ResidualSums
        Answers of a client.
    request : ResidualRequest
        The request.
    plan : StudyPlan
        Plan of the study.
    summary : Summary
        Summary of the client, or the sum of the summaries of all who answered.
    client : str
        Name of the client.

    Raises
    ------
    SummaryError
        If an answer is missing, has another number of sums, or is of other rows.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, summarize
    >>> from fedcdh.summaries.residuals import Coordinates
    >>> plan = StudyPlan((Continuous("y"),), ("north",))
    >>> query = ResidualQuery("y", (), "ties", (), (), 1.0)
    >>> request = ResidualRequest(plan.fingerprint, 1, {"y": Coordinates((0.0,), ((1.0,),))}, (query,))
    >>> summary = summarize({"y": [1.0, 2.0]}, plan, "north")
    >>> check_residuals([], request, plan, summary, "north")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedcdh.errors.SummaryError: the answer of north about residuals does not fit request 1; ...
    """
    found = [(one.query, one.rows, len(one.sums)) for one in answers]
    if found != [(query, summary.rows, query.count_entries(plan)) for query in request.queries]:
        raise SummaryError(
            f"the answer of {client} about residuals does not fit request {request.number}; expected one answer for "
            f"every query, of the {summary.rows} rows of its summary; ask the site for it again"
        )
