"""What evidence says about arrows: the class of the best DAG, and beyond it only what curvature tells."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

import pytest
from oracle import obeys, random_dag, true_knowledge

from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN, Family
from fedcdh.search import edge_support
from fedcdh.search.edge_support import (
    edge_supports,
    make_dag_collider_rule,
    measure_directions,
    orient_like,
    to_skeleton,
)
from fedcdh.search.orientation import DirectionEvidence, Orientation, orient_by_evidence, orient_skeleton


def hashed(seed: int) -> Callable[[Sequence[Family]], list[float]]:
    """A score that says anything, though always the same of the same family."""

    def score(families: Sequence[Family], /) -> list[float]:
        texts = [f"{seed} {family.node} {sorted(family.parents)}" for family in families]
        return [int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) / 2**44 for text in texts]

    return score


def total(score, dag: PartialGraph) -> float:
    return sum(score([Family(node, dag.parents(node)) for node in dag.nodes if node != DOMAIN]))


def turned(dag: PartialGraph, tail: str, head: str) -> PartialGraph:
    return PartialGraph(dag.nodes, dag.arrows - {(tail, head)} | {(head, tail)})


def with_arrow(dag: PartialGraph, tail: str, head: str) -> PartialGraph:
    return PartialGraph(dag.nodes, dag.arrows | {(tail, head)})


def drawn(seed: int, most: int = 7) -> tuple[random.Random, PartialGraph]:
    rng = random.Random(seed)
    return rng, random_dag(rng, rng.randint(2, most), rng.uniform(0.5, 3.5), rng.choice([0, 0.3, 0.6]))


# The class


def covered(dag: PartialGraph) -> list[tuple[str, str]]:
    return [
        (tail, head)
        for tail, head in sorted(dag.arrows)
        if tail != DOMAIN and dag.parents(head) == dag.parents(tail) | {tail}
    ]


def reported(dag: PartialGraph, knowledge: Knowledge) -> Orientation:
    return orient_skeleton(to_skeleton(dag), make_dag_collider_rule(dag), knowledge)


def test_a_dag_is_reported_as_its_class():
    for seed in range(150):
        rng, dag = drawn(seed, 10)
        for knowledge in (NO_KNOWLEDGE, true_knowledge(rng, dag)):
            found = reported(dag, knowledge)
            assert found.graph == to_cpdag(dag, knowledge), f"seed {seed}"
            assert found.conflicts == (), f"seed {seed}"


def test_turning_a_covered_edge_never_changes_what_is_reported():
    told, known = 0, 0
    for seed in range(150):
        rng, dag = drawn(seed)
        knowledge = true_knowledge(rng, dag)
        for arrow in covered(dag):
            other = turned(dag, *arrow)
            assert other.is_dag()
            assert reported(other, NO_KNOWLEDGE).graph == reported(dag, NO_KNOWLEDGE).graph
            told += 1
            if obeys(other, knowledge):
                assert reported(other, knowledge).graph == reported(dag, knowledge).graph
                known += knowledge != NO_KNOWLEDGE
    assert told > 100
    assert known > 50


# Directions within the class


def members(graph: PartialGraph, knowledge: Knowledge) -> Iterator[PartialGraph]:
    """Every DAG of the class, by trying all directions of the lines."""
    lines = [sort_pair(line) for line in graph.lines]
    for turns in product((False, True), repeat=len(lines)):
        arrows = {(b, a) if turn else (a, b) for (a, b), turn in zip(lines, turns, strict=True)}
        dag = PartialGraph(graph.nodes, graph.arrows | arrows)
        if dag.is_acyclic() and dag.colliders == graph.colliders and obeys(dag, knowledge):
            yield dag


def test_direction_evidence_is_that_of_the_best_members():
    lines = 0
    for seed in range(120):
        rng, dag = drawn(seed, 6)
        for knowledge in (NO_KNOWLEDGE, true_knowledge(rng, dag)):
            graph = to_cpdag(dag, knowledge)
            curved, straight = hashed(seed), hashed(seed + 1000)
            totals = [(one, total(curved, one) - total(straight, one)) for one in members(graph, knowledge)]
            found = measure_directions(graph, curved, straight, knowledge)
            assert {frozenset(arrow) for arrow in found} == graph.lines
            for (tail, head), strength in found.items():
                forward = max(value for one, value in totals if (tail, head) in one.arrows)
                backward = max(value for one, value in totals if (head, tail) in one.arrows)
                assert strength == pytest.approx(forward - backward, abs=1e-9)
                assert strength >= 0
            lines += len(graph.lines)
    assert lines > 200


def test_what_curves_as_straight_tells_no_direction():
    lines = 0
    for seed in range(60):
        _, dag = drawn(seed)
        graph, score = to_cpdag(dag), hashed(seed)
        found = measure_directions(graph, score, score)
        assert len(found) == len(graph.lines)
        assert set(found.values()) <= {0.0}
        pointed = orient_by_evidence(Orientation(graph), DirectionEvidence(found, 3.0, "evidence"), NO_KNOWLEDGE)
        assert pointed.graph == graph
        assert not pointed.reasons
        lines += len(graph.lines)
    assert lines > 50


def test_strong_evidence_points_and_weak_evidence_does_not():
    graph = PartialGraph(("a", "b", "c", "d"), lines=frozenset({frozenset("ab"), frozenset("cd")}))
    factors = {("a", "b"): 3.1, ("d", "c"): 2.9}
    found = orient_by_evidence(Orientation(graph), DirectionEvidence(factors, 3.0, "evidence"), NO_KNOWLEDGE)
    assert found.graph.arrows == {("a", "b")}
    assert found.reasons == {("a", "b"): "evidence"}
    refused = orient_by_evidence(
        Orientation(graph), DirectionEvidence(factors, 2.0, "evidence"), Knowledge(forbidden=[("a", "b")])
    )
    assert refused.graph.arrows == {("d", "c")}
    assert [conflict.arrows for conflict in refused.conflicts] == [(("a", "b"),)]


def test_the_strongest_evidence_comes_first():
    """a — b — c: with a → b the rules want b → c, whatever the weaker evidence for c → b."""
    graph = PartialGraph(("a", "b", "c"), lines=frozenset({frozenset("ab"), frozenset("bc")}))
    for strength, expected in ((9.0, {("a", "b"), ("b", "c")}), (4.0, {("c", "b"), ("b", "a")})):
        factors = {("a", "b"): strength, ("c", "b"): 6.0}
        found = orient_by_evidence(Orientation(graph), DirectionEvidence(factors, 3.0, "evidence"), NO_KNOWLEDGE)
        assert found.graph.arrows == expected


def test_a_part_with_too_many_members_keeps_its_lines(monkeypatch):
    nodes = ("a", "b", "c", "d", "x", "y")
    lines = frozenset(frozenset(pair) for pair in [*combinations("abcd", 2), ("x", "y")])
    graph = PartialGraph(nodes, lines=lines)
    curved, straight = hashed(1), hashed(2)
    found = measure_directions(graph, curved, straight)
    assert {frozenset(arrow) for arrow in found} == lines
    monkeypatch.setattr(edge_support, "MAX_CLASS_MEMBERS", 24)  # 4! orders of a clique
    assert measure_directions(graph, curved, straight) == found
    monkeypatch.setattr(edge_support, "MAX_CLASS_MEMBERS", 23)
    assert {frozenset(arrow) for arrow in measure_directions(graph, curved, straight)} == {frozenset("xy")}


# One member of the class


def test_following_a_dag_gives_it_back():
    for seed in range(120):
        rng, dag = drawn(seed)
        for knowledge in (NO_KNOWLEDGE, true_knowledge(rng, dag)):
            assert orient_like(to_cpdag(dag, knowledge), dag, knowledge) == dag


def test_following_another_dag_stays_in_the_class():
    moved = 0
    for seed in range(120):
        rng, dag = drawn(seed)
        graph = to_cpdag(dag)
        order = rng.sample(dag.nodes, len(dag.nodes))
        other = PartialGraph.from_dag(
            dag.nodes,
            [tuple(sorted(pair, key=lambda node: (node != DOMAIN, order.index(node)))) for pair in dag.skeleton],
        )
        found = orient_like(graph, other)
        assert found.is_dag()
        assert found.arrows >= graph.arrows
        assert found.skeleton == graph.skeleton
        assert found.colliders == graph.colliders
        moved += found != dag
    assert moved > 20


# How sure


def test_supports_are_differences_of_total_scores():
    kinds = {"joined": 0, "fixed": 0, "apart": 0, "domain": 0}
    for seed in range(60):
        _, dag = drawn(seed, 6)
        score = hashed(seed)
        pairs = {frozenset(pair) for pair in combinations(dag.nodes, 2)}
        found = edge_supports(dag, score, pairs)
        assert found.keys() == pairs
        here = total(score, dag)
        for pair, support in found.items():
            arrow = next((one for one in (sort_pair(pair), sort_pair(pair)[::-1]) if one in dag.arrows), None)
            kinds["domain"] += DOMAIN in pair
            if arrow is None:
                added = [with_arrow(dag, *one) for one in (sort_pair(pair), sort_pair(pair)[::-1]) if one[1] != DOMAIN]
                best = max(total(score, one) for one in added if one.is_acyclic())
                assert support.presence == pytest.approx(here - best, abs=1e-9)
                assert support.direction is None
                kinds["apart"] += 1
                continue
            assert support.presence == pytest.approx(here - total(score, dag.remove_edges(pair)), abs=1e-9)
            other = turned(dag, *arrow)
            if DOMAIN in pair or not other.is_acyclic():
                assert support.direction is None
                kinds["fixed"] += 1
            else:
                assert support.direction == pytest.approx(here - total(score, other), abs=1e-9)
                kinds["joined"] += 1
    assert min(kinds.values()) > 30, kinds


def test_a_reversal_that_closes_a_cycle_has_no_direction():
    dag = PartialGraph.from_dag(("a", "b", "c"), [("a", "b"), ("b", "c"), ("a", "c")])
    found = edge_supports(dag, hashed(3), [frozenset(pair) for pair in combinations("abc", 2)])
    assert found[frozenset("ac")].direction is None
    assert found[frozenset("ab")].direction is not None
    assert found[frozenset("bc")].direction is not None


def test_supports_ask_in_one_batch_and_each_family_once():
    asked = []

    def score(families: Sequence[Family], /) -> list[float]:
        asked.append(list(families))
        return hashed(0)(families)

    _, dag = drawn(5)
    edge_supports(dag, score, [frozenset(pair) for pair in combinations(dag.nodes, 2)])
    assert len(asked) == 1
    assert len(set(asked[0])) == len(asked[0])
    assert all(family.node != DOMAIN for family in asked[0])
