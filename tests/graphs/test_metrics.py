from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.graphs.metrics import Score, compare, compare_changing, compare_graph, cpdag_shd
from fedcdh.protocols import DOMAIN

TRUE = {("a", "b"), ("b", "c"), ("a", "d")}


@dataclass(frozen=True)
class Graph:
    arrows: frozenset[tuple[str, str]] = frozenset()
    lines: frozenset[frozenset[str]] = frozenset()


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any partially directed graph over four variables."""
    marks = {pair: draw(st.sampled_from(["none", "line", "forth", "back"])) for pair in combinations("abcd", 2)}
    arrows = {(a, b) if mark == "forth" else (b, a) for (a, b), mark in marks.items() if mark in ("forth", "back")}
    return Graph(frozenset(arrows), frozenset(frozenset(pair) for pair, mark in marks.items() if mark == "line"))


def test_a_perfect_match():
    result = compare(TRUE, TRUE)
    for score in (result.skeleton, result.direction):
        assert (score.precision, score.recall, score.f1, score.shd) == (1, 1, 1, 0)


def test_missing_extra_and_reversed_count_one_each():
    # b → c reversed, a → d missing, c → d extra
    result = compare({("a", "b"), ("c", "b"), ("c", "d")}, TRUE)
    assert result.skeleton == Score(correct=2, claimed=3, true=3, shd=2)
    assert result.direction == Score(correct=1, claimed=3, true=3, shd=3)
    assert result.direction.f1 == pytest.approx(1 / 3)
    assert result.skeleton.f1 == pytest.approx(2 / 3)


def test_a_line_counts_in_the_skeleton_and_claims_no_direction():
    result = compare({("a", "b")}, TRUE, lines=[("b", "c"), {"c", "d"}])
    assert result.skeleton == Score(correct=2, claimed=3, true=3, shd=2)
    assert result.direction == Score(correct=1, claimed=1, true=3, shd=3)
    assert result.direction.precision == 1
    assert result.direction.recall == pytest.approx(1 / 3)


def test_empty_graphs():
    both = compare([], []).direction
    assert (both.precision, both.recall, both.f1, both.shd) == (1, 1, 1, 0)
    nothing_found = compare([], TRUE).skeleton
    assert (nothing_found.precision, nothing_found.recall, nothing_found.f1, nothing_found.shd) == (0, 0, 0, 3)
    nothing_there = compare(TRUE, []).skeleton
    assert (nothing_there.precision, nothing_there.recall, nothing_there.f1, nothing_there.shd) == (0, 0, 0, 3)


def test_the_domain_is_no_variable():
    assert compare(TRUE | {(DOMAIN, "c")}, TRUE | {(DOMAIN, "a")}) == compare(TRUE, TRUE)
    assert cpdag_shd(Graph(lines=frozenset({frozenset((DOMAIN, "a"))})), Graph()) == 0


def test_changing_variables():
    score = compare_changing({"a", "b", "c"}, {"b", "d"})
    assert (score.precision, score.recall, score.shd) == (pytest.approx(1 / 3), 0.5, 3)
    assert score.f1 == pytest.approx(0.4)


def test_cpdag_distance_by_hand():
    first = Graph(frozenset({("a", "b")}), frozenset({frozenset("bc")}))
    second = Graph(frozenset({("b", "a"), ("b", "c"), ("c", "d")}))
    assert cpdag_shd(first, second) == 3


@pytest.mark.parametrize(
    ("arrows", "lines", "words"),
    [
        ([("a", "a")], [], "two different ends"),
        ([("a", "b"), ("b", "a")], [], "two edges between a and b"),
        ([("a", "b")], [("a", "b")], "two edges between a and b"),
        ([], [("a", "b", "c")], "two different ends"),
    ],
)
def test_what_is_no_graph_is_refused(arrows: list[tuple[str, str]], lines: list[tuple[str, ...]], words: str):
    with pytest.raises(ValueError, match=words):
        compare(arrows, TRUE, lines)


@given(graphs(), graphs(), graphs())
def test_the_distance_is_a_metric(first: Graph, second: Graph, third: Graph):
    assert cpdag_shd(first, second) == cpdag_shd(second, first)
    assert (cpdag_shd(first, second) == 0) == (first == second)
    assert cpdag_shd(first, third) <= cpdag_shd(first, second) + cpdag_shd(second, third)


@given(graphs(), graphs())
def test_directions_are_never_easier_than_the_skeleton(estimated: Graph, true: Graph):
    result = compare_graph(estimated, true.arrows)
    assert result.skeleton.shd <= result.direction.shd
    assert result.direction.correct <= result.skeleton.correct
    assert result.direction.shd == cpdag_shd(estimated, Graph(true.arrows))


@given(graphs(), graphs())
def test_f1_is_the_harmonic_mean_of_precision_and_recall(estimated: Graph, true: Graph):
    for score in (compare_graph(estimated, true.arrows).skeleton, compare_graph(estimated, true.arrows).direction):
        total = score.precision + score.recall
        assert score.f1 == pytest.approx(2 * score.precision * score.recall / total if total else 0.0)
        assert 0 <= score.f1 <= 1


@given(graphs(), graphs())
def test_renaming_changes_no_score(estimated: Graph, true: Graph):
    new = dict(zip("abcd", "wzxy", strict=True))
    arrows = {(new[tail], new[head]) for tail, head in estimated.arrows}
    lines = [{new[end] for end in line} for line in estimated.lines]
    true_arrows = {(new[tail], new[head]) for tail, head in true.arrows}
    assert compare(arrows, true_arrows, lines) == compare_graph(estimated, true.arrows)
