"""Arrows that a graph can take, and the reasons against others."""

from fedcdh.graphs.admissible_arrows import find_obstacles
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import PartialGraph

LINES = frozenset(map(frozenset, ["ab", "bc", "ca"]))
TRIANGLE = PartialGraph(tuple("abc"), lines=LINES)
PATH = PartialGraph(tuple("abc"), frozenset({("a", "b"), ("b", "c")}), frozenset({frozenset("ac")}))


def test_arrows_that_nothing_speaks_against_are_taken():
    assert find_obstacles(TRIANGLE, [(("a", "b"),), (("a", "c"), ("b", "c"))], NO_KNOWLEDGE) == {}


def test_each_obstacle_is_named():
    forbidden = Knowledge(forbidden=[("a", "c")])
    assert find_obstacles(PATH, [(("a", "c"),)], forbidden) == {(("a", "c"),): "knowledge"}
    assert find_obstacles(PATH, [(("b", "a"),)], NO_KNOWLEDGE) == {(("b", "a"),): "opposite arrow"}
    assert find_obstacles(PATH, [(("c", "a"),)], NO_KNOWLEDGE) == {(("c", "a"),): "directed cycle"}


def test_a_bundle_is_refused_whole():
    bundle = (("a", "b"), ("c", "b"))
    assert find_obstacles(TRIANGLE, [bundle], Knowledge(forbidden=[("c", "b")])) == {bundle: "knowledge"}


def test_equal_claims_that_contradict_each_other_are_all_refused_and_others_taken():
    around = [(("a", "b"),), (("b", "c"),), (("c", "a"),)]
    assert find_obstacles(TRIANGLE, around, NO_KNOWLEDGE) == dict.fromkeys(around, "equal claims")
    apart = PartialGraph(tuple("abcde"), lines=LINES | {frozenset("de")})
    assert find_obstacles(apart, [*around, (("d", "e"),)], NO_KNOWLEDGE) == dict.fromkeys(around, "equal claims")


def test_a_refused_bundle_stands_in_nobodys_way():
    knowledge = Knowledge(forbidden=[("c", "a")])
    bundles = [(("a", "b"),), (("b", "c"),), (("c", "a"),)]
    assert find_obstacles(TRIANGLE, bundles, knowledge) == {(("c", "a"),): "knowledge"}
