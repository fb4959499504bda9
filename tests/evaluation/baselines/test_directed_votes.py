"""Votes about directions: majorities, ties and circles."""

from __future__ import annotations

import numpy as np

from fedcdh.evaluation.baselines.directed_votes import graph_to_marks, merge_votes, votes_of_marks
from fedcdh.graphs.partial_graph import PartialGraph

NAMES = ("a", "b", "c", "d")


def cast(*graphs: PartialGraph) -> PartialGraph:
    return merge_votes(np.sum([votes_of_marks(graph_to_marks(graph, NAMES)) for graph in graphs], axis=0), NAMES)


def dag(*arrows: str) -> PartialGraph:
    return PartialGraph.from_dag(NAMES, [tuple(arrow) for arrow in arrows])


def test_one_voter_has_its_graph():
    graph = PartialGraph(NAMES, frozenset({("a", "b")}), frozenset({frozenset("bc")}))
    assert cast(graph) == graph


def test_the_majority_decides_and_a_tie_is_a_line():
    assert cast(dag("ab"), dag("ab"), dag("ba")).arrows == {("a", "b")}
    assert cast(dag("ab"), dag("ba")).lines == {frozenset("ab")}
    line = PartialGraph(NAMES, lines=frozenset({frozenset("ab")}))
    assert cast(line, line, dag("ba")).arrows == {("b", "a")}
    assert cast(dag(), dag("cd")).arrows == {("c", "d")}


def test_an_arrow_that_closes_a_circle_is_a_line():
    found = cast(*[dag("ab", "bc")] * 3, *[dag("ca")] * 2)
    assert found.arrows == {("a", "b"), ("b", "c")}
    assert found.lines == {frozenset("ac")}
    equal = cast(dag("ab"), dag("bc"), dag("ca"), dag("cd"))
    assert equal.arrows == {("c", "d")}
    assert len(equal.lines) == 3


def test_votes_are_symmetric_in_names_and_rounding_decides_nothing():
    for seed in range(20):
        draw = np.random.default_rng(seed)
        votes = draw.integers(0, 4, (4, 4)) / 3 * (1 - np.eye(4))
        order = draw.permutation(4)
        moved = merge_votes(votes[np.ix_(order, order)] + 1e-13, [NAMES[i] for i in order])
        found = merge_votes(votes, NAMES)
        assert moved == found, f"seed {seed}"
        assert found.is_acyclic()
        assert found.skeleton == {frozenset((NAMES[i], NAMES[j])) for i, j in np.argwhere(votes + votes.T > 0).tolist()}
