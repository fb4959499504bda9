"""Orientation: exact with a perfect test; acyclic, obedient and order-blind with any test."""

import pytest
from oracle import skeleton_of

from fedcdh.errors import GraphError, InvalidAnswerError, KnowledgeError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN, ModuleDependence
from fedcdh.search.colliders import TripleDecision, separating_set_rule
from fedcdh.search.orientation import Conflict, Orientation, orient_colliders, orient_skeleton

# Single steps


def decision(a, middle, b, strength, collider=True):
    return TripleDecision((a, b), middle, collider, strength, None, None)


def test_reasons_tell_the_steps():
    lines = [(DOMAIN, "a"), ("a", "b"), ("b", "c"), ("c", "d"), ("e", "d")]
    separators = [(DOMAIN, "b", "a", 0.9), ("a", "c", "b", 0.9), ("b", "d", "c", 0.9), ("c", "e", "", 0.9)]
    found = orient_skeleton(
        skeleton_of([DOMAIN, *"abcde"], lines, separators), separating_set_rule, Knowledge([("b", "c")])
    )
    assert found.reasons == {
        (DOMAIN, "a"): "domain",
        ("b", "c"): "knowledge",
        ("c", "d"): "collider",
        ("e", "d"): "collider",
        ("a", "b"): "meek-1",
    }
    decided = [(triple.middle, triple.collider) for triple in found.triples]
    assert decided == [("a", False), ("c", False), ("d", True)]  # b is settled by knowledge


def test_one_changing_module_directs_its_edges_both_ways():
    lines = [(DOMAIN, "x"), ("x", "y")]
    effect = skeleton_of([DOMAIN, "x", "y"], lines, [(DOMAIN, "y", "x", 0.9)])
    assert orient_skeleton(effect, separating_set_rule).graph.arrows == {(DOMAIN, "x"), ("x", "y")}
    cause = skeleton_of([DOMAIN, "x", "y"], lines, [(DOMAIN, "y", "", 0.9)])
    assert orient_skeleton(cause, separating_set_rule).graph.arrows == {(DOMAIN, "x"), ("y", "x")}


def test_the_surer_collider_wins_and_the_other_is_dropped_whole():
    graph = PartialGraph(tuple("abcd"), lines=frozenset(map(frozenset, ("ab", "bc", "cd"))))
    sure, less = decision("a", "b", "c", 0.8), decision("b", "c", "d", 0.3)
    for decisions in ((sure, less), (less, sure)):
        found = orient_colliders(Orientation(graph), decisions, NO_KNOWLEDGE)
        assert found.graph.arrows == {("a", "b"), ("c", "b")}
        assert found.graph.has_line("c", "d")
        assert found.conflicts == (Conflict((("b", "c"), ("d", "c")), "collider", "opposite arrow"),)
        assert str(found.conflicts[0]) == "b → c and d → c (collider) refused: opposite arrow"


def test_equally_sure_colliders_that_contradict_each_other_are_both_dropped():
    graph = PartialGraph(tuple("abcd"), lines=frozenset(map(frozenset, ("ab", "bc", "cd"))))
    decisions = (decision("a", "b", "c", 0.5), decision("b", "c", "d", 0.5))
    found = orient_colliders(Orientation(graph), decisions, NO_KNOWLEDGE)
    assert found.graph == graph
    assert [conflict.obstacle for conflict in found.conflicts] == ["equal claims"] * 2


def test_a_collider_never_closes_a_cycle_or_breaks_knowledge():
    ring = PartialGraph(tuple("abcd"), frozenset({("a", "b"), ("b", "c")}), frozenset(map(frozenset, ("ac", "ad"))))
    found = orient_colliders(Orientation(ring), (decision("c", "a", "d", 1.0),), NO_KNOWLEDGE)
    assert (found.graph, found.conflicts[0].obstacle) == (ring, "directed cycle")
    found = orient_colliders(Orientation(ring), (decision("c", "a", "d", 1.0),), Knowledge(forbidden=[("d", "a")]))
    assert (found.graph, found.conflicts[0].obstacle) == (ring, "knowledge")


def test_forbidden_directions_that_run_in_a_circle_leave_lines():
    knowledge = Knowledge(forbidden=[("a", "b"), ("b", "c"), ("c", "a")])
    found = orient_skeleton(skeleton_of("abc", ["ab", "bc", "ca"]), separating_set_rule, knowledge)
    assert found.graph.lines == set(map(frozenset, ("ab", "bc", "ca")))
    assert {conflict.reason for conflict in found.conflicts} == {"knowledge"}


# Independent change


TRIANGLE = [(DOMAIN, "a"), (DOMAIN, "b"), (DOMAIN, "c"), ("a", "b"), ("b", "c"), ("a", "c")]


def measured(values, calls=None):
    def measure(pairs):
        if calls is not None:
            calls.append(pairs)
        return [ModuleDependence(a, b, *values[a + b]) for a, b in pairs]

    return measure


def test_independent_change_takes_the_widest_margin_first_and_meek_follows():
    calls = []
    values = {"ab": (0.1, 0.9), "bc": (0.2, 0.8), "ac": (0.5, 0.4)}
    found = orient_skeleton(
        skeleton_of([DOMAIN, *"abc"], TRIANGLE), separating_set_rule, independent_change=measured(values, calls)
    )
    assert calls == [[("a", "b"), ("a", "c"), ("b", "c")]]
    assert found.reasons["a", "b"] == found.reasons["b", "c"] == "independent-change"
    assert found.reasons["a", "c"] == "meek-2"  # its own measure would have said c → a
    assert found.dependences[frozenset("ac")] == ModuleDependence("a", "c", 0.5, 0.4)


def test_independent_change_obeys_knowledge_and_leaves_ties():
    skeleton = skeleton_of([DOMAIN, "a", "b"], [*TRIANGLE[:2], ("a", "b")])
    tie = orient_skeleton(skeleton, separating_set_rule, independent_change=measured({"ab": (0.3, 0.3)}))
    assert tie.graph.has_line("a", "b")
    known = Knowledge(forbidden=[("a", "b")])
    obedient = orient_skeleton(skeleton, separating_set_rule, known, measured({"ab": (0.1, 0.9)}))
    assert obedient.reasons["b", "a"] == "knowledge"
    assert obedient.dependences == {}


def test_equally_clear_changes_that_run_in_a_circle_leave_lines():
    values = {"ab": (0.1, 0.6), "bc": (0.1, 0.6), "ac": (0.6, 0.1)}
    found = orient_skeleton(
        skeleton_of([DOMAIN, *"abc"], TRIANGLE), separating_set_rule, independent_change=measured(values)
    )
    assert len(found.graph.lines) == 3
    assert [conflict.obstacle for conflict in found.conflicts] == ["equal claims"] * 3


def test_only_pairs_that_both_change_are_measured():
    calls = []
    skeleton = skeleton_of([DOMAIN, *"abc"], [(DOMAIN, "a"), ("b", "c")])
    orient_skeleton(skeleton, separating_set_rule, independent_change=measured({}, calls))
    alone = skeleton_of("ab", ["ab"])
    assert orient_skeleton(alone, separating_set_rule, independent_change=measured({}, calls)).graph == alone.graph
    assert calls == []


# Refusals


def test_unusable_measures_are_refused():
    skeleton = skeleton_of([DOMAIN, "a", "b"], [*TRIANGLE[:2], ("a", "b")])
    with pytest.raises(InvalidAnswerError, match="dependence of a and b is nan one way"):
        orient_skeleton(skeleton, separating_set_rule, independent_change=measured({"ab": (float("nan"), 0.1)}))
    with pytest.raises(InvalidAnswerError, match="returned 0 values for 1 pairs"):
        orient_skeleton(skeleton, separating_set_rule, independent_change=lambda pairs: [])


def test_a_skeleton_found_with_other_knowledge_is_refused():
    skeleton = skeleton_of("abc", ["ab", "bc"])
    with pytest.raises(KnowledgeError, match="differs in a — b"):
        orient_skeleton(skeleton, separating_set_rule, Knowledge(forbidden=[("a", "b"), ("b", "a")]))
    with pytest.raises(KnowledgeError, match="differs in a — c"):
        orient_skeleton(skeleton, separating_set_rule, Knowledge(required=[("a", "c")]))
    with pytest.raises(GraphError, match="no answer for a and c"):
        orient_skeleton(skeleton, separating_set_rule)
