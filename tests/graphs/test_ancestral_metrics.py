"""Scores of ancestral graphs count claims about adjacencies, ends of edges and causes."""

from fedcdh.graphs.ancestral_graph import AncestralGraph
from fedcdh.graphs.ancestral_metrics import compare_ancestral
from fedcdh.protocols import DOMAIN


def chain(*marks):
    """x – y – z with the marks at x, y (from x), y (from z) and z."""
    at_x, at_y, and_y, at_z = marks
    return AncestralGraph("xyz", {("y", "x"): at_x, ("x", "y"): at_y, ("z", "y"): and_y, ("y", "z"): at_z})


def test_every_kind_of_claim_is_counted():
    true = chain("tail", "arrow", "tail", "arrow")
    found = compare_ancestral(chain("tail", "arrow", "arrow", "circle"), true)
    assert (found.adjacency.correct, found.adjacency.shd) == (2, 0)
    assert (found.arrowheads.correct, found.arrowheads.claimed, found.arrowheads.true) == (1, 2, 2)
    assert (found.tails.correct, found.tails.claimed, found.tails.true) == (1, 1, 2)
    assert (found.ancestors.correct, found.ancestors.claimed, found.ancestors.true) == (1, 1, 3)


def test_the_domain_is_left_out():
    graph = chain("tail", "arrow", "tail", "arrow")
    more = AncestralGraph(("x", "y", "z", DOMAIN), {**graph.end_marks, (DOMAIN, "x"): "arrow", ("x", DOMAIN): "tail"})
    assert compare_ancestral(more, graph) == compare_ancestral(graph, graph)
