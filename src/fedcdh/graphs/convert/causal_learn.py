"""causal-learn: `GeneralGraph`, whose matrix holds -1 for a tail and 1 for an arrowhead."""

from __future__ import annotations

from typing import Any

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.graphs.convert.adjacency_matrix import Adjacency
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair


def to_causal_learn(graph: PartialGraph) -> Any:
    """A `causallearn.graph.GeneralGraph.GeneralGraph` with the same nodes in the same order."""
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
    """The graph of a `GeneralGraph`, or of a `CausalGraph` (what `pc` and `cdnod` return).

    Circles and bidirected edges, which speak of hidden causes, are refused.
    """
    found = getattr(found, "G", found)
    names = tuple(node.get_name() for node in found.get_nodes())
    return Adjacency(names, found.graph, "causal-learn").to_graph()
