"""networkx: a `DiGraph` in which a line is two arcs, one each way; the edge attribute `mark` tells them apart."""

from __future__ import annotations

from typing import Any

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import GraphError
from fedcdh.graphs.partial_graph import PartialGraph


def to_networkx(graph: PartialGraph) -> Any:
    """What `graph.to_networkx()` gives, with advice where the library is not installed."""
    with optional_import("networkx", extra="graphs"):
        return graph.to_networkx()


def from_networkx(found: Any) -> PartialGraph:
    """The graph of a `DiGraph` (two arcs between two nodes are a line) or of a `Graph` (all edges are lines).

    Nodes go by `str`. Several edges between two nodes in one direction, and loops, are refused.
    """
    nodes = tuple(map(str, found.nodes))
    arcs = [(str(tail), str(head)) for tail, head in found.edges()]
    if found.is_multigraph() and len(set(arcs)) < len(arcs):
        raise GraphError("several edges join the same two nodes; turn the multigraph into a networkx.DiGraph first")
    if not found.is_directed():
        return PartialGraph(nodes, lines=frozenset(map(frozenset, arcs)))
    known = set(arcs)
    both = {(tail, head) for tail, head in known if (head, tail) in known and tail != head}
    return PartialGraph(nodes, frozenset(known - both), frozenset(map(frozenset, both)))
