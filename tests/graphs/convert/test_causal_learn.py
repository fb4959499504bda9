"""Graphs of causal-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from oracle import same
from strategies import graphs

from fedcdh.errors import GraphError
from fedcdh.graphs import convert
from fedcdh.graphs.convert import to_adjacency
from fedcdh.graphs.partial_graph import PartialGraph

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")


@given(graphs())
@settings(deadline=None)
def test_causal_learn(graph):
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    made = convert.to_causal_learn(graph)
    assert same(convert.from_causal_learn(made), graph)
    assert (made.graph == to_adjacency(graph, "causal-learn").matrix).all()
    nodes = {node.get_name(): node for node in made.get_nodes()}
    for tail, head in graph.arrows:
        assert made.is_parent_of(nodes[tail], nodes[head])
    for a, b in map(tuple, graph.lines):
        assert made.is_undirected_from_to(nodes[a], nodes[b])


def test_causal_learn_reads_our_ancestors():
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    made = convert.to_causal_learn(PartialGraph.from_dag("abc", [("a", "b"), ("b", "c")]))
    a, _, c = made.get_nodes()
    assert made.is_ancestor_of(a, c)


def test_causal_learn_search_comes_back_with_names():
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    from causallearn.search.ConstraintBased.PC import pc

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 500))
    found = pc(np.column_stack([a, b, a + b]), node_names=["a", "b", "c"], show_progress=False)
    assert convert.from_causal_learn(found).arrows == {("a", "c"), ("b", "c")}


def test_causal_learn_graphs_with_hidden_causes_are_refused():
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    from causallearn.graph.Edges import Edges
    from causallearn.graph.GeneralGraph import GeneralGraph
    from causallearn.graph.GraphNode import GraphNode

    a, b = GraphNode("a"), GraphNode("b")
    for edge in (Edges().bidirected_edge(a, b), Edges().partially_oriented_edge(a, b)):
        graph = GeneralGraph([a, b])
        graph.add_edge(edge)
        with pytest.raises(GraphError, match="between a and b"):
            convert.from_causal_learn(graph)
