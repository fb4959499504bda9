"""Rules that decide about colliders."""

import pytest
from oracle import (
    noise,
    skeleton_of,
)

from fedcdh.graphs.knowledge import NO_KNOWLEDGE
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import Answer
from fedcdh.search.colliders import make_largest_p_rule, separating_set_rule
from fedcdh.search.orientation import orient_skeleton
from fedcdh.search.skeleton import Skeleton, find_skeleton


def test_largest_p_overrules_an_unlucky_separating_set():
    def test(queries):
        return [Answer(q, 0.0, {"": 0.06, "z": 0.9}.get("".join(sorted(q.given)), 0.0), 10) for q in queries]

    skeleton = find_skeleton("xyz", test, 0.05)
    chain = skeleton_of("xyz", ["xz", "yz"], [("x", "y", "", 0.06)])
    assert skeleton.graph.skeleton == frozenset()  # in this world every pair passes for independent
    assert orient_skeleton(chain, separating_set_rule).graph.arrows == {("x", "z"), ("y", "z")}
    (triple,) = make_largest_p_rule(test)(chain, NO_KNOWLEDGE)
    assert not triple.collider
    assert triple.strength == pytest.approx(0.84)
    assert (triple.without_middle.p_value, triple.with_middle.p_value) == (0.06, 0.9)
    assert orient_skeleton(chain, make_largest_p_rule(test)).graph.lines == chain.graph.lines


def test_equal_p_values_are_no_collider():
    def flat(queries):
        return [Answer(query, 0.0, 0.5, 10) for query in queries]

    (triple,) = make_largest_p_rule(flat)(skeleton_of("xyz", ["xz", "yz"], [("x", "y", "", 0.5)]), NO_KNOWLEDGE)
    assert (triple.collider, triple.strength) == (False, 0.0)


def test_largest_p_asks_one_batch_and_spares_hubs():
    hub = ["h", *(f"v{i:02}" for i in range(30)), "w"]
    lines = [("h", name) for name in hub[1:31]] + [("v00", "w")]
    batches = []

    def counting(queries):
        batches.append(queries)
        return noise(0)(queries)

    skeleton = Skeleton(PartialGraph(tuple(hub), lines=frozenset(map(frozenset, lines))), {}, {}, (1,) * 20)
    make_largest_p_rule(counting)(skeleton, NO_KNOWLEDGE)
    about = [query for query in batches[0] if query.pair == frozenset(("h", "w"))]
    assert len(batches) == 1
    assert len(about) == 1 + 30 + 435
    assert max(len(query.given) for query in about) == 2
    make_largest_p_rule(counting, max_conditioning_size=1)(skeleton, NO_KNOWLEDGE)
    assert max(len(query.given) for query in batches[1]) == 1
