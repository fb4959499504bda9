"""An answer about residuals as one vector of integers modulo 2⁶⁴, so that masked vectors add up to that of the sum.

The vector holds the number of rows, then the sums of every query in the order of the request. The number of rows bounds
the sums: each is at most rows · grid.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedcdh.errors import SummaryError
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.request import ResidualRequest, ResidualSums
from fedcdh.summaries.summary import MAX_ROWS

Words = npt.NDArray[np.uint64]


def answer_length(request: ResidualRequest, plan: StudyPlan) -> int:
    """Return the number of integers in which a client answers a request.

    Parameters
    ----------
    request : ResidualRequest
        The request.
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    int
        One for the rows, and one for every sum.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> from fedcdh.summaries.residuals import Coordinates, ResidualQuery
    >>> plan = StudyPlan((Continuous("y"),), ("north",))
    >>> query = ResidualQuery("y", (), "ties", (), (), 1.0)
    >>> answer_length(ResidualRequest(plan.fingerprint, 1, {"y": Coordinates((0.0,), ((1.0,),))}, (query,)), plan)
    2
    """
    return 1 + sum(query.count_entries(plan) for query in request.queries)


def encode_answers(answers: Sequence[ResidualSums]) -> Words:
    """Return the vector of a client's answers to all queries of a request.

    Parameters
    ----------
    answers : sequence of ResidualSums
        One answer per query, in their order.

    Returns
    -------
    array of uint64
        The vector.

    Examples
    --------
    >>> from fedcdh.summaries.residuals import ResidualQuery
    >>> query = ResidualQuery("y", (), "ties", (), (), 1.0)
    >>> encode_answers([ResidualSums(query, 2, np.array([-1]))]).view(np.int64).tolist()
    [2, -1]
    """
    rows = np.array([answers[0].rows], dtype=np.int64)
    return np.concatenate([rows, *(one.sums for one in answers)]).view(np.uint64)


def decode_answers(words: Words, request: ResidualRequest, plan: StudyPlan) -> tuple[ResidualSums, ...]:
    """Return the sums in a vector, each within the bounds of its rows.

    A client that sends false numbers cannot be named, because nobody knows the vectors of single clients.

    Parameters
    ----------
    words : array of uint64
        Sum of the clients' vectors.
    request : ResidualRequest
        The request.
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    tuple of ResidualSums
        The sum of the clients' answers to each query, in their order.

    Raises
    ------
    SummaryError
        If no rows can have given these numbers.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> from fedcdh.summaries.residuals import Coordinates, ResidualQuery
    >>> plan = StudyPlan((Continuous("y"),), ("north",))
    >>> query = ResidualQuery("y", (), "ties", (), (), 1.0)
    >>> request = ResidualRequest(plan.fingerprint, 1, {"y": Coordinates((0.0,), ((1.0,),))}, (query,))
    >>> answer = ResidualSums(query, 2, np.array([-1]))
    >>> decode_answers(encode_answers([answer]), request, plan) == (answer,)
    True
    """
    length = answer_length(request, plan)
    if len(words) != length:
        raise SummaryError(
            f"the sum of answers has {len(words)} numbers; expected {length}; check that all clients answered request "
            f"{request.number}"
        )
    rows = int(words[0])
    if not 1 <= rows <= MAX_ROWS:
        raise SummaryError(
            f"the sum of answers is of {rows} rows; expected 1 to {MAX_ROWS}; look for a client that sends something "
            "else than its answer"
        )
    ends = np.cumsum([query.count_entries(plan) for query in request.queries])
    parts = np.split(words[1:].view(np.int64), ends[:-1])
    return tuple(ResidualSums(query, rows, part) for query, part in zip(request.queries, parts, strict=True))
