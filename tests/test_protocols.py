"""Queries, answers and families as values."""

import pickle

from fedcdh.protocols import DOMAIN, Answer, Family, Query


def test_a_query_is_a_value_and_reads_like_the_statement():
    query = Query("x", "y", frozenset({"z", "a"}))
    assert query == Query("x", "y", frozenset({"a", "z"}))
    assert len({query, Query("x", "y", frozenset({"a", "z"})), Query("x", "y")}) == 2
    assert str(query) == "x \u2aeb y | a, z"
    assert str(Query("x", DOMAIN)) == f"x \u2aeb {DOMAIN}"
    assert query.pair == Query("y", "x").pair


def test_queries_and_answers_travel_to_workers():
    answer = Answer(Query("x", "y", frozenset("z")), 1.5, 0.2, 100)
    assert pickle.loads(pickle.dumps(answer)) == answer


def test_a_family_has_no_order_of_parents():
    assert Family("y", frozenset({"a", "b"})) == Family("y", frozenset({"b", "a"}))
    assert Family("y") == Family("y", frozenset())
