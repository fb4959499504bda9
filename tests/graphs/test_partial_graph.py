"""Laws of PartialGraph, of the extensions to a DAG, and of the perfect test."""

import networkx
import pytest
from hypothesis import given, settings
from strategies import partial_graphs

from fedcdh.errors import GraphError, UndirectedEdgeError
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN

# The graph itself


@pytest.mark.parametrize(
    ("nodes", "arrows", "lines", "message"),
    [
        (("a", "a"), [], [], "more than once"),
        (("a",), [("a", "a")], [], "two different nodes"),
        (("a",), [], [("a",)], "two different nodes"),
        (("a", "b", "c"), [], [("a", "b", "c")], "two different nodes"),
        (("a",), [("a", "b")], [], "not in the graph: b"),
        (("a",), [], [("a", "b")], "not in the graph: b"),
        (("a", "b"), [("a", "b"), ("b", "a")], [], "at most one edge"),
        (("a", "b"), [("a", "b")], [("a", "b")], "at most one edge"),
    ],
)
def test_refuses_what_is_no_graph(nodes, arrows, lines, message):
    with pytest.raises(GraphError, match=message):
        PartialGraph(nodes, frozenset(arrows), frozenset(map(frozenset, lines)))


def test_reads_edges():
    graph = PartialGraph(("a", "b", "c", "d"), frozenset({("a", "b"), ("b", "c")}), frozenset({frozenset("cd")}))
    assert graph.parents("b") == {"a"}
    assert graph.children("b") == {"c"}
    assert graph.neighbours("c") == {"b", "d"}
    assert graph.is_adjacent("c", "b")
    assert not graph.is_adjacent("a", "c")
    assert graph.has_line("d", "c")
    assert not graph.has_line("a", "b")
    assert graph.has_path("a", "c")
    assert not graph.has_path("c", "a")
    assert not graph.has_path("a", "d")
    assert graph.skeleton == set(map(frozenset, ("ab", "bc", "cd")))
    assert graph.unshielded_triples == {(frozenset("ac"), "b"), (frozenset("bd"), "c")}
    assert graph.is_acyclic()
    assert not graph.is_dag()


def test_operations_return_new_graphs():
    graph = PartialGraph.complete(("a", "b", "c"))
    directed = graph.orient("a", "b")
    assert directed.arrows == {("a", "b")}
    assert len(graph.lines) == 3
    assert directed.remove_edges(frozenset("ab"), frozenset("bc")).skeleton == {frozenset("ac")}
    assert directed.drop("c") == PartialGraph(("a", "b"), frozenset({("a", "b")}))
    assert directed.orient("c", "b") == graph.orient_all([("a", "b"), ("c", "b")])
    assert graph.orient_all([]) == graph
    with pytest.raises(UndirectedEdgeError, match="b — a"):
        directed.orient("b", "a")
    with pytest.raises(GraphError, match="'z' is not a node"):
        directed.drop("z")


def test_equality_ignores_the_order_of_nodes():
    one, other = PartialGraph.complete(("a", "b")), PartialGraph.complete(("b", "a"))
    assert one == other
    assert hash(one) == hash(other)
    assert one != PartialGraph(("a", "b"))
    assert PartialGraph(("a",)) != PartialGraph(("a", "b"))
    assert one != "a — b"


def test_shows_one_edge_per_line():
    graph = PartialGraph(
        ("z", "b", "a", DOMAIN, "c"), frozenset({("b", "a"), (DOMAIN, "b")}), frozenset({frozenset((DOMAIN, "c"))})
    )
    assert str(graph) == "℧ → b\nb → a\n℧ — c\nz"


def test_from_dag_refuses_cycles():
    with pytest.raises(GraphError, match="directed cycle"):
        PartialGraph.from_dag("abc", [("a", "b"), ("b", "c"), ("c", "a")])


@given(partial_graphs())
@settings(max_examples=50, deadline=None)
def test_to_networkx_keeps_everything(graph):
    converted = graph.to_networkx()
    arrows = {(a, b) for a, b, mark in converted.edges(data="mark") if mark == "arrow"}
    lines = {frozenset((a, b)) for a, b, mark in converted.edges(data="mark") if mark == "line"}
    assert (set(converted), arrows, lines) == (set(graph.nodes), graph.arrows, graph.lines)
    assert networkx.is_directed_acyclic_graph(networkx.DiGraph(sorted(arrows))) == graph.is_acyclic()


# The perfect test
