"""Probabilities of a study, and the graph that is drawn from them."""

from __future__ import annotations

import random
from itertools import combinations, permutations

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import obeys, random_dag, true_knowledge
from weighted_dags import NAMES, random_weights

from fedcdh.discovery.graph_probabilities import (
    BestGraphs,
    compute_posterior,
    describe_posterior,
    describe_small_edges,
    direct_lines,
    draw_likely_graph,
)
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.inference.posterior.family_table import FamilyTable
from fedcdh.inference.posterior.graph_posterior import GraphPosterior
from fedcdh.protocols import DOMAIN
from fedcdh.search.edge_support import EdgeSupport
from fedcdh.search.order_search import best_dag
from fedcdh.search.orientation import Orientation

NODES = (*NAMES[:4], DOMAIN)
limits = st.floats(0.5, 0.99)


def posterior_with(arrows, nodes=NODES, **other):
    """Return a posterior with these probabilities, whatever DAGs they come from."""
    table = FamilyTable.of([*random_weights(nodes, 0)], [*random_weights(nodes, 0).values()])
    made = {"exact": True, "largest_difference": 0.0} | other
    return GraphPosterior(tuple(nodes), arrows, ((1.0, table),), PartialGraph(nodes), **made)


def random_posterior(seed, sharpness=0.5):
    """Return probabilities of arrows at random; those of both directions sum to at most 1."""
    rng = np.random.default_rng(seed)
    arrows = {}
    for one, other in combinations(NODES, 2):
        edge, forward = rng.beta(sharpness, sharpness, 2).tolist()
        if other == DOMAIN:
            arrows[DOMAIN, one] = edge
        else:
            arrows[one, other], arrows[other, one] = edge * forward, edge * (1 - forward)
    return posterior_with(arrows)


def drawn(posterior, knowledge=NO_KNOWLEDGE, edges=0.5, arrows=0.8, before=None):
    orientation = Orientation(PartialGraph(posterior.nodes)) if before is None else before
    return draw_likely_graph(posterior, orientation, knowledge, edges, arrows)


# Drawing


@settings(max_examples=150)
@given(st.integers(0, 9999), limits, limits)
def test_what_is_likely_enough_is_drawn_and_nothing_else(seed, edges, arrows):
    posterior = random_posterior(seed)
    graph = drawn(posterior, edges=edges, arrows=arrows).graph
    assert graph.is_acyclic()
    for pair in combinations(NODES, 2):
        assert graph.is_adjacent(*pair) == (posterior.probability_of_edge(*pair) >= edges)
    for arrow, probability in posterior.arrows.items():
        least = edges if arrow[0] == DOMAIN else max(edges, arrows)
        if arrow in graph.arrows:
            assert probability >= (edges if arrow[0] == DOMAIN else arrows)
        elif probability >= least:  # only a cycle of likelier arrows is a reason against it
            likelier = {one for one in graph.arrows if posterior.arrows[one] >= probability}
            assert not PartialGraph(NODES, arrows=frozenset({*likelier, arrow})).is_acyclic()
    assert drawn(posterior, edges=edges, arrows=arrows).reasons.keys() == graph.arrows


@settings(max_examples=100)
@given(st.integers(0, 9999), st.randoms(use_true_random=False))
def test_knowledge_is_obeyed_by_what_is_drawn(seed, rng):
    dag = random_dag(rng, 4, 3)
    names = dict(zip(dag.nodes, NAMES, strict=False))
    knowledge = true_knowledge(
        rng, PartialGraph.from_dag(NODES, [(names[tail], names[head]) for tail, head in dag.arrows])
    )
    posterior = random_posterior(seed)
    allowed = {arrow: 0.0 if knowledge.forbids(*arrow) else value for arrow, value in posterior.arrows.items()}
    required = dict.fromkeys(knowledge.required, 1.0)
    graph = drawn(posterior_with(allowed | required), knowledge).graph
    assert obeys(PartialGraph(NODES, arrows=graph.arrows), knowledge)
    assert graph.is_acyclic()
    directed = direct_lines(graph, PartialGraph(NODES), knowledge)
    assert not any(knowledge.forbids(*arrow) for arrow in directed.arrows)


def test_a_cycle_of_likely_arrows_loses_its_least_likely_one():
    posterior = posterior_with({("a", "b"): 0.9, ("b", "c"): 0.85, ("c", "a"): 0.81}, NAMES[:3])
    graph = drawn(posterior).graph
    assert graph.arrows == {("a", "b"), ("b", "c")}
    assert graph.lines == {frozenset("ac")}


def test_an_arrow_has_the_reason_of_the_search_or_that_of_its_probability():
    posterior = posterior_with({("a", "b"): 0.9, ("b", "c"): 0.9, (DOMAIN, "a"): 0.6}, (*NAMES[:3], DOMAIN))
    before = Orientation(PartialGraph(posterior.nodes), {("a", "b"): "collider", ("c", "b"): "noise"})
    assert drawn(posterior, before=before).reasons == {
        ("a", "b"): "collider",
        ("b", "c"): "evidence",
        (DOMAIN, "a"): "domain",
    }


# One DAG of a graph with lines


def test_lines_follow_the_guide_and_then_the_likelier_direction():
    lines = frozenset(map(frozenset, ("ab", "bc", "cd")))
    graph, guide = PartialGraph("abcd", lines=lines), PartialGraph.from_dag("abcd", [("b", "a")])
    likely = {("a", "b"): 0.9, ("c", "b"): 0.6, ("b", "c"): 0.4, ("c", "d"): 0.7, ("d", "c"): 0.3}
    assert direct_lines(graph, guide, NO_KNOWLEDGE, likely).arrows == {("b", "a"), ("c", "b"), ("c", "d")}
    assert direct_lines(graph, guide, Knowledge(forbidden=[("b", "a")]), likely).arrows >= {("a", "b")}


@settings(max_examples=80)
@given(st.randoms(use_true_random=False))
def test_every_graph_without_cycles_becomes_a_dag(rng):
    dag, guide = random_dag(rng, 6, 4), random_dag(rng, 6, 3)
    open_ones = frozenset(arrow for arrow in dag.arrows if rng.random() < 0.6)
    graph = PartialGraph(dag.nodes, dag.arrows - open_ones, frozenset(map(frozenset, open_ones)))
    found = direct_lines(graph, guide, NO_KNOWLEDGE, {arrow: rng.random() for arrow in permutations(dag.nodes, 2)})
    assert found.is_dag()
    assert found.skeleton == graph.skeleton
    assert graph.arrows <= found.arrows
    if not graph.arrows:
        assert guide.arrows & found.arrows == {arrow for arrow in guide.arrows if frozenset(arrow) in graph.lines}


def test_names_do_not_direct_lines_that_have_probabilities():
    rng = random.Random(1)
    lines = [*combinations("abcd", 2)]
    likely = {arrow: rng.random() for pair in lines for arrow in (pair, pair[::-1])}
    expected = direct_lines(
        PartialGraph("abcd", lines=frozenset(map(frozenset, lines))), PartialGraph("abcd"), NO_KNOWLEDGE, likely
    )
    for names in permutations("abcd"):
        to = dict(zip("abcd", names, strict=True))
        renamed = {(to[tail], to[head]): value for (tail, head), value in likely.items()}
        graph = PartialGraph("abcd", lines=frozenset(frozenset(map(to.get, line)) for line in lines))
        found = direct_lines(graph, PartialGraph("abcd"), NO_KNOWLEDGE, renamed)
        assert found.arrows == {(to[tail], to[head]) for tail, head in expected.arrows}


# The posterior of a study


def scores_of(tables):
    cohort = studies.cohort_of(tables)
    return FamilyScore.of(cohort, Basis.of(cohort))


def graphs_of(score, nodes, knowledge=NO_KNOWLEDGE, supports=None):
    best = best_dag(nodes, score, knowledge).dag
    every = {frozenset(pair): EdgeSupport(1.0, None) for pair in combinations(nodes, 2)}
    return BestGraphs(best, (), best, every if supports is None else supports)


def test_a_chain_has_likely_edges_and_all_else_is_unlikely():
    nodes = ("v1", "v2", "v3", "v4", DOMAIN)
    score = scores_of(studies.numbers(0, (200, 150, 150)))
    found = compute_posterior(graphs_of(score, nodes), score, None, NO_KNOWLEDGE)
    assert found.exact
    for one, other in (("v1", "v2"), ("v2", "v3"), ("v3", "v4")):
        assert found.probability_of_edge(one, other) > 0.9
    assert found.probability_of_edge("v1", "v4") < 0.3


def test_knowledge_makes_probabilities_of_zero_and_one():
    nodes = ("v1", "v2", "v3", "v4", DOMAIN)
    knowledge = Knowledge(required=[("v4", "v1")], forbidden=[("v2", "v3"), ("v3", "v2"), (DOMAIN, "v2")])
    score = scores_of(studies.numbers(0, (80, 70, 60)))
    found = compute_posterior(graphs_of(score, nodes, knowledge), score, None, knowledge, max_parents=2)
    assert found.arrows["v4", "v1"] == pytest.approx(1.0)
    assert found.arrows["v1", "v4"] == 0.0
    assert found.probability_of_edge("v2", "v3") == found.arrows[DOMAIN, "v2"] == 0.0
    parents = [len(one - {DOMAIN}) for _, table in found.parts for sets in table.parent_sets.values() for one in sets]
    assert max(parents) == 2


def test_many_variables_lose_edges_that_are_ruled_out_without_losing_their_families():
    """Of eleven causes three are ruled out: all sets near that of the best graph have one of them."""
    rng = np.random.default_rng(0)
    names = [f"v{number:02}" for number in range(12)]
    table = dict(zip(names, rng.standard_normal((12, 2000)), strict=True))
    table["v11"] = sum(table[name] for name in names[:11]) + table["v11"]
    score = scores_of({"one": table})
    arrows = [(name, "v11") for name in names[:11]]
    best = PartialGraph.from_dag(names, arrows)
    supports = {frozenset(pair): EdgeSupport(9.0, None) for pair in combinations(names, 2)}
    for lost in (arrows[:1], arrows[:3], arrows[:7]):
        knowledge = NO_KNOWLEDGE.forbid_pairs(lost)
        found = compute_posterior(BestGraphs(best, (), best, supports), score, None, knowledge)
        assert not found.exact
        assert all(found.probability_of_edge(*arrow) == 0.0 for arrow in lost)
        assert all(found.probability_of_edge(*arrow) > 0.5 for arrow in arrows if arrow not in lost)
        assert all(dag.is_dag() for dag in found.sample(2))


# Notes


def test_samples_are_noted_and_exact_sums_are_not():
    assert describe_posterior(posterior_with({})) == ()
    (note,) = describe_posterior(posterior_with({}, exact=False, largest_difference=0.123))
    assert "samples of graphs" in note
    assert note.endswith("at most 0.12")


def test_edges_that_explain_too_little_are_noted_with_their_strength():
    assert describe_small_edges({}, 0.005) == ()
    (note,) = describe_small_edges({("y", "x"): 0.0012, ("a", "b"): 0.004}, 0.005)
    assert "less than 0.50%" in note
    assert "a — b (0.40%), x — y (0.12%)" in note
    assert "min_effect" in note


def test_best_graphs_lose_edges_in_either_direction_and_keep_their_guide():
    chain, back = (PartialGraph.from_dag("xyz", arrows) for arrows in ([("x", "y"), ("y", "z")], [("y", "x")]))
    left = BestGraphs(chain, (back,), chain, {}).without_edges([("y", "x")])
    assert left.best == PartialGraph.from_dag("xyz", [("y", "z")])
    assert left.others == (PartialGraph("xyz"),)
    assert left.guide == chain
