"""Conditioning sets: the queries of a pair, their number, and tests that remember their answers."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import RecordedTest, noise

from fedcdh.errors import InvalidAnswerError
from fedcdh.protocols import Answer, Query
from fedcdh.search.conditioning_sets import CachedTest, count_queries, generate_queries, select_most_independent
from fedcdh.search.skeleton import find_skeleton


@given(st.frozensets(st.sampled_from("cdefgh")), st.frozensets(st.sampled_from("cdefgh")), st.integers(0, 4))
@pytest.mark.parametrize("few", [0, 10_000])
def test_queries_are_counted_without_being_listed(few, of_a, of_b, size):
    pair, parents = frozenset("ab"), {"a": of_a | {"b"}, "b": of_b | {"a"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedcdh.search.conditioning_sets._MAX_SORTED_SETS", few)
        listed = list(generate_queries(pair, parents, size, frozenset({"h"})))
    assert len(listed) == count_queries(pair, parents, size, frozenset({"h"}))
    sets = {frozenset(chosen) for members in (of_a, of_b) for chosen in combinations(members - {"h"}, size)}
    assert [query.given for query in listed] == sorted((one | {"h"} for one in sets), key=lambda s: sorted(s - {"h"}))


@pytest.mark.parametrize("most", [0, 3, 1000])
def test_answers_are_the_same_however_many_are_remembered(most):
    test = RecordedTest(noise(4))
    remembering = CachedTest(test, most)
    queries = [Query("a", letter) for letter in "bcdefgb"]
    for _ in range(2):
        assert remembering(queries) == noise(4)(queries)
    assert [len(batch) for batch in test.batches] == ([6, 6 - most] if most < 6 else [6])


def test_most_independent_prefers_few_conditions_then_names():
    def answer(given, p_value):
        return Answer(Query("x", "y", frozenset(given)), 0.0, p_value, 1)

    answers = [answer("ab", 0.5), answer("b", 0.5), answer("a", 0.5), answer("", 0.4)]
    assert select_most_independent(answers).query.given == frozenset("a")


@pytest.mark.parametrize("p_value", [float("nan"), -0.1, 1.1])
def test_a_p_value_that_is_none_is_an_error(p_value):
    def broken(queries):
        return [Answer(query, 0.0, p_value, 1) for query in queries]

    with pytest.raises(InvalidAnswerError, match="p-value of a ⫫ b is"):
        find_skeleton("ab", broken, 0.05)


def test_missing_answers_are_an_error():
    with pytest.raises(InvalidAnswerError, match="returned 2 answers to 3 queries"):
        find_skeleton("abc", lambda queries: noise(0)(queries[1:]), 0.05)
