"""Parent sets, and scores that are remembered on a grid."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scored_graphs import (
    noise,
)

from fedcdh.errors import InvalidAnswerError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE
from fedcdh.search.order_search import best_dag
from fedcdh.search.parent_sets import ParentSpace, ScoreCache


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_none_is_an_error(value):
    with pytest.raises(InvalidAnswerError, match=f"score of a given no parents is {value}"):
        best_dag("ab", lambda families: [value for _ in families])


def test_missing_scores_are_an_error():
    with pytest.raises(InvalidAnswerError, match="returned 3 values for 4 families"):
        best_dag("ab", lambda families: noise(0)(families[1:]))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=40), st.floats(0, 1e13), st.randoms(use_true_random=False))
def test_sums_of_scores_are_exact_however_large(values, size, rng):
    names = tuple(f"v{j:02}" for j in range(len(values)))
    space = ParentSpace.of(names, NO_KNOWLEDGE, None, None)
    scores = ScoreCache(space, lambda families: [size * values[names.index(family.node)] for family in families])
    scores.compute((node, 0) for node in space.variables)
    known = [scores.of(node)[0] for node in space.variables]
    assert known == pytest.approx([size * value for value in values], abs=max(1e-9, 40 * size * 1e-12))
    mixed = rng.sample(known, len(known))
    assert sum(mixed) == sum(known)
    assert sum(mixed) - known[0] == sum(known[1:])
