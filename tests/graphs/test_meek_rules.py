"""Meek's rules: each of them, and their closure."""

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import partial_graphs

from fedcdh.graphs import meek_rules
from fedcdh.graphs.partial_graph import PartialGraph


@given(partial_graphs(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_meek_closure_is_idempotent_acyclic_and_blind_to_order(graph, rng):
    closed, reasons = meek_rules.apply_meek_rules(graph)
    assert closed.is_acyclic()
    assert closed.arrows == graph.arrows | reasons.keys()
    assert meek_rules.apply_meek_rules(closed) == (closed, {})
    reordered = PartialGraph(tuple(rng.sample(graph.nodes, len(graph.nodes))), graph.arrows, graph.lines)
    assert meek_rules.apply_meek_rules(reordered) == (closed, reasons)


def test_meek_leaves_a_line_that_is_demanded_both_ways():
    graph = PartialGraph(("a", "b", "c", "d"), frozenset({("a", "b"), ("d", "c")}), frozenset({frozenset("bc")}))
    assert meek_rules.find_implied_arrows(graph) == {("b", "c"): "meek-1", ("c", "b"): "meek-1"}
    assert meek_rules.apply_meek_rules(graph) == (graph, {})


def test_each_of_meeks_rules():
    cases = {
        "meek-1": (["ca"], ["ab"]),
        "meek-2": (["ac", "cb"], ["ab"]),
        "meek-3": (["cb", "db"], ["ab", "ac", "ad"]),
        "meek-4": (["dc", "cb"], ["ab", "ad", "ac"]),
    }
    for rule, (arrows, lines) in cases.items():
        graph = PartialGraph(tuple("abcd"), frozenset(map(tuple, arrows)), frozenset(map(frozenset, lines)))
        assert meek_rules.find_implied_arrows(graph).get(("a", "b")) == rule
