"""A query is known by its regression and by the coordinates of its variables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from residual_studies import QUERIES, SHAPE, TIES, cohort_of, plan_of, request_for, tables

from fedcdh.errors import SummaryError
from fedcdh.summaries.residuals import (
    Coordinates,
    ResidualSums,
    answer_residuals,
    check_residuals,
    identify_queries,
    restrict_request,
)

DATA = tables((60, 50))
PLAN = plan_of(DATA)
COHORT = cohort_of(DATA, PLAN)


def test_other_coordinates_are_another_query():
    request = request_for(COHORT)
    moved = {name: replace(one, centre=tuple(c + 0.5 for c in one.centre)) for name, one in request.coordinates.items()}
    assert {*identify_queries(request, PLAN)}.isdisjoint(identify_queries(replace(request, coordinates=moved), PLAN))
    assert identify_queries(replace(request, number=7), PLAN) == identify_queries(request, PLAN)
    (one,), (other,) = (
        identify_queries(request_for(COHORT, query), PLAN) for query in (SHAPE, replace(SHAPE, weights=(0.6,)))
    )
    assert (one.question, one.places) == (other.question, other.places)
    assert one.digest != other.digest
    unused = {**request.coordinates, "x": Coordinates((0.0,) * 6, ((1.0,) * 6,))}
    alone = restrict_request(request, [TIES], 1)
    assert identify_queries(replace(alone, coordinates=unused), PLAN) == identify_queries(alone, PLAN)


def test_a_smaller_request_has_the_coordinates_it_needs():
    request = restrict_request(request_for(COHORT), [TIES], 3)
    assert (request.number, request.queries, [*request.coordinates]) == (3, (TIES,), ["y"])
    assert len(identify_queries(request_for(COHORT), PLAN)) == len(QUERIES)


def test_answers_have_to_fit_the_request_and_the_rows_of_the_summary():
    request, summary = request_for(COHORT, SHAPE, TIES), COHORT.summaries[0]
    answers = answer_residuals(DATA["site0"], PLAN, "site0", request, summary)
    check_residuals(answers, request, PLAN, summary, "site0")
    short = ResidualSums(answers[0].query, answers[0].rows, answers[0].sums[:-1])
    for wrong in (answers[:1], answers[::-1], (short, answers[1])):
        with pytest.raises(SummaryError, match="site0 about residuals does not fit request 1"):
            check_residuals(wrong, request, PLAN, summary, "site0")
    with pytest.raises(SummaryError, match="of the 50 rows"):
        check_residuals(answers, request, PLAN, COHORT.summaries[1], "site0")
