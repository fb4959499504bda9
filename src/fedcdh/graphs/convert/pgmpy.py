"""Graphs of pgmpy: `PDAG` for arrows and lines, `DAG` for arrows only."""

from __future__ import annotations

from typing import Any

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import GraphError
from fedcdh.graphs.convert.networkx import from_networkx
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair


def to_pgmpy(graph: PartialGraph) -> Any:
    """Convert a graph to a `PDAG` of pgmpy.

    Parameters
    ----------
    graph : PartialGraph
        The graph.

    Returns
    -------
    pgmpy.base.PDAG
        A graph with all nodes, also those without edges.

    Raises
    ------
    MissingDependencyError
        If pgmpy is not installed.

    Examples
    --------
    >>> graph = PartialGraph(("x", "y"), lines=frozenset({frozenset("xy")}))
    >>> from_pgmpy(to_pgmpy(graph)) == graph
    True
    """
    with optional_import("pgmpy", extra="graphs"):
        from pgmpy.base import PDAG
    made = PDAG(directed_ebunch=sorted(graph.arrows), undirected_ebunch=sorted(map(sort_pair, graph.lines)))
    made.add_nodes_from(graph.nodes)
    return made


def to_pgmpy_dag(graph: PartialGraph) -> Any:
    """Convert a DAG to one of pgmpy.

    Parameters
    ----------
    graph : PartialGraph
        A DAG.

    Returns
    -------
    pgmpy.base.DAG
        The same graph.

    Raises
    ------
    GraphError
        If the graph has lines or a cycle.
    MissingDependencyError
        If pgmpy is not installed.

    Examples
    --------
    >>> list(to_pgmpy_dag(PartialGraph.from_dag("xy", [("x", "y")])).edges)
    [('x', 'y')]
    """
    with optional_import("pgmpy", extra="graphs"):
        from pgmpy.base import DAG
    made = DAG()
    made.add_nodes_from(graph.nodes)
    made.add_edges_from(sorted(require_dag(graph).arrows))
    return made


def from_pgmpy(found: Any) -> PartialGraph:
    """Convert a graph of pgmpy.

    Parameters
    ----------
    found : pgmpy.base.PDAG, pgmpy.base.DAG or a Bayesian network
        The graph.

    Returns
    -------
    PartialGraph
        The same graph.

    Examples
    --------
    >>> from pgmpy.base import DAG
    >>> print(from_pgmpy(DAG([("x", "y")])))
    x → y
    """
    if not hasattr(found, "undirected_edges"):
        return from_networkx(found)
    return PartialGraph(
        tuple(map(str, found.nodes)),
        frozenset((str(tail), str(head)) for tail, head in found.directed_edges),
        frozenset(frozenset((str(a), str(b))) for a, b in found.undirected_edges),
    )


def require_dag(graph: PartialGraph) -> PartialGraph:
    """Return the graph if it is a DAG; refuse any other."""
    if not graph.is_dag():
        shown = ", ".join(f"{a} — {b}" for a, b in sorted(map(sort_pair, graph.lines))[:3]) or "a directed cycle"
        raise GraphError(
            f"the graph has {shown}; expected a DAG. Take result.to_dag(), or direct these edges yourself with "
            "graph.orient(tail, head)"
        )
    return graph
