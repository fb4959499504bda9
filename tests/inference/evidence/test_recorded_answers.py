"""Answers that were given once: used again for other clients, and for nothing that was not asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from residual_studies import interacting_causes, linear_pair, score_of, split_rows

from fedcdh.errors import SettingsError
from fedcdh.inference.evidence.recorded_answers import RecordedAnswers
from fedcdh.inference.evidence.residual_record import add_clients
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries.joint import JointRequest
from fedcdh.summaries.residuals import ResidualRequest

FAMILIES = [Family("x"), Family("y", frozenset("x")), Family("x", frozenset({DOMAIN}))]
TABLES = split_rows(linear_pair("exponential", 0, rows=300), 3)


def study():
    score = score_of(TABLES)
    values = score(FAMILIES)
    return score, values


SCORE, VALUES = study()
RECORD = SCORE.record


def moved(request: ResidualRequest) -> ResidualRequest:
    """Return a request for the same regressions with slightly other numbers, as a study without a client has."""
    queries = [
        replace(query, weights=tuple(1.01 * weight for weight in query.weights), deviation=0.99 * query.deviation)
        for query in request.queries
    ]
    return replace(request, queries=tuple(sorted(queries, key=lambda query: query.key)))


def test_the_whole_study_has_the_same_scores_from_its_record():
    again = replace(score_of(TABLES), source=RecordedAnswers(RECORD, tuple(TABLES)))
    assert again(FAMILIES) == pytest.approx(VALUES)


def test_a_study_with_products_has_the_same_scores_from_its_record():
    tables, families = interacting_causes((300, 250)), [Family("y", frozenset("ab")), Family("a", frozenset("by"))]
    first = score_of(tables)
    values = first(families)
    assert any(query.product for query in first.record.answers)
    again = replace(score_of(tables), source=RecordedAnswers(first.record, tuple(tables)))
    assert again(families) == pytest.approx(values)


def test_each_client_says_what_it_said_before():
    source = RecordedAnswers(RECORD, ("site0", "site2"))
    for request in SCORE.source.requests:
        asked = moved(request)
        assert source.select_affordable(asked.queries, asked.coordinates) == asked.queries
        found = source.ask_residuals(asked)
        assert found.keys() == {"site0", "site2"}
        for client, answers in found.items():
            assert tuple(one.query for one in answers) == asked.queries
            for one in answers:
                (before,) = (
                    said[client] for query, said in RECORD.answers.items() if query.question == one.query.question
                )
                assert (one.rows, one.mean_square) == (before.rows, before.mean_square)
                assert one.sums.tolist() == before.sums.tolist()


def test_what_was_not_asked_is_not_answered():
    (request, *_) = SCORE.source.requests
    query = next(query for query in request.queries if query.about == "shape" and query.parents)
    other = replace(query, differs=True)
    source = RecordedAnswers(RECORD, ("site0",))
    assert source.select_affordable([other, query], request.coordinates) == (query,)
    assert source.ask_residuals(replace(request, queries=(other,))) == {"site0": ()}


def test_a_client_that_takes_part_twice_counts_twice():
    (request, *_) = SCORE.source.requests
    source = RecordedAnswers(RECORD, ("site0", "site0", "site1"))
    found = source.ask_residuals(request)
    assert len(found) == 3
    for number in range(len(request.queries)):
        one, two, three = (answers[number] for answers in found.values())
        assert one == two
        assert add_clients({"a": one, "b": two, "c": three}).rows == 300


def test_a_repetition_is_never_taken_for_another_client():
    answers = {query: {"site": said["site0"], "site 1": said["site1"]} for query, said in RECORD.answers.items()}
    source = RecordedAnswers(replace(RECORD, answers=answers), ("site", "site", "site 1"))
    (request, *_) = SCORE.source.requests
    assert len(source.ask_residuals(request)) == 3


def test_joint_features_are_not_recorded():
    with pytest.raises(SettingsError, match="which no record holds"):
        RecordedAnswers(RECORD, ("site0",)).ask(JointRequest("0" * 64, 1, (("x", "y"),)))
