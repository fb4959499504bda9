"""Graphs of causal-learn: `GeneralGraph`, whose matrix holds -1 for a tail and 1 for an arrowhead."""

from __future__ import annotations

from typing import Any

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.graphs.convert.adjacency_matrix import Adjacency
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair


def to_causal_learn(graph: PartialGraph) -> Any:
    """Convert a graph to one of causal-learn.

    Parameters
    ----------
    graph : PartialGraph
        The graph.

    Returns
    -------
    causallearn.graph.GeneralGraph.GeneralGraph
        A graph with the same nodes in the same order.

    Raises
    ------
    MissingDependencyError
        If causal-learn is not installed.

    Examples
    --------
    >>> graph = PartialGraph.from_dag("xy", [("x", "y")])
    >>> from_causal_learn(to_causal_learn(graph)) == graph
    True
    """
    with optional_import("causal-learn", extra="graphs"):
        from causallearn.graph.Edges import Edges
        from causallearn.graph.GeneralGraph import GeneralGraph
        from causallearn.graph.GraphNode import GraphNode
    nodes = {name: GraphNode(name) for name in graph.nodes}
    made = GeneralGraph(list(nodes.values()))
    for tail, head in sorted(graph.arrows):
        made.add_edge(Edges().directed_edge(nodes[tail], nodes[head]))
    for a, b in sorted(map(sort_pair, graph.lines)):
        made.add_edge(Edges().undirected_edge(nodes[a], nodes[b]))
    return made


def from_causal_learn(found: Any) -> PartialGraph:
    """Convert a graph of causal-learn.

    Parameters
    ----------
    found : GeneralGraph or CausalGraph
        The graph, or the result of `pc` or `cdnod`.

    Returns
    -------
    PartialGraph
        The same graph.

    Raises
    ------
    GraphError
        If an edge has a circle or two arrowheads, which stand for hidden causes.

    Examples
    --------
    >>> graph = PartialGraph(("x", "y"), lines=frozenset({frozenset("xy")}))
    >>> print(from_causal_learn(to_causal_learn(graph)))
    x — y
    """
    found = getattr(found, "G", found)
    names = tuple(node.get_name() for node in found.get_nodes())
    return Adjacency(names, found.graph, "causal-learn").to_graph()
