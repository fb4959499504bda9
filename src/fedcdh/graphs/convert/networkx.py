"""Graphs of networkx: a `DiGraph` in which a line is two arcs, one each way; the edge attribute `mark` says which."""

from __future__ import annotations

from typing import Any

from fedcdh.errors import GraphError
from fedcdh.graphs.partial_graph import PartialGraph


def to_networkx(graph: PartialGraph) -> Any:
    """Convert a graph to one of networkx, as `graph.to_networkx()`.

    Parameters
    ----------
    graph : PartialGraph
        The graph.

    Returns
    -------
    networkx.DiGraph
        A line is two arcs; the edge attribute `mark` is "arrow" or "line".

    Raises
    ------
    MissingDependencyError
        If networkx is not installed.

    Examples
    --------
    >>> list(to_networkx(PartialGraph.from_dag("xy", [("x", "y")])).edges)
    [('x', 'y')]
    """
    return graph.to_networkx()


def from_networkx(found: Any) -> PartialGraph:
    """Convert a graph of networkx.

    Parameters
    ----------
    found : networkx.DiGraph or networkx.Graph
        In a `DiGraph`, two arcs between two nodes are a line; in a `Graph`, all edges are lines. The names of the
        nodes are converted with `str`.

    Returns
    -------
    PartialGraph
        The graph.

    Raises
    ------
    GraphError
        If several edges join two nodes in one direction, or an edge is a loop.

    Examples
    --------
    >>> import networkx
    >>> print(from_networkx(networkx.DiGraph([("x", "y")])))
    x → y
    """
    nodes = tuple(map(str, found.nodes))
    arcs = [(str(tail), str(head)) for tail, head in found.edges()]
    if found.is_multigraph() and len(set(arcs)) < len(arcs):
        raise GraphError(
            "several edges join the same two nodes; expected one at most. Turn the multigraph into a networkx.DiGraph "
            "first"
        )
    if not found.is_directed():
        return PartialGraph(nodes, lines=frozenset(map(frozenset, arcs)))
    known = set(arcs)
    both = {(tail, head) for tail, head in known if (head, tail) in known and tail != head}
    return PartialGraph(nodes, frozenset(known - both), frozenset(map(frozenset, both)))
