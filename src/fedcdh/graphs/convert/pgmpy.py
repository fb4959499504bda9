"""pgmpy: `PDAG` for arrows and lines, `DAG` for arrows only."""

from __future__ import annotations

from typing import Any

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import GraphError
from fedcdh.graphs.convert.networkx import from_networkx
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair


def to_pgmpy(graph: PartialGraph) -> Any:
    """A `pgmpy.base.PDAG`, with all nodes, those without edges among them."""
    with optional_import("pgmpy", extra="graphs"):
        from pgmpy.base import PDAG
    made = PDAG(directed_ebunch=sorted(graph.arrows), undirected_ebunch=sorted(map(sort_pair, graph.lines)))
    made.add_nodes_from(graph.nodes)
    return made


def to_pgmpy_dag(graph: PartialGraph) -> Any:
    """A `pgmpy.base.DAG`; a graph with lines or cycles is refused."""
    with optional_import("pgmpy", extra="graphs"):
        from pgmpy.base import DAG
    made = DAG()
    made.add_nodes_from(graph.nodes)
    made.add_edges_from(sorted(require_dag(graph).arrows))
    return made


def from_pgmpy(found: Any) -> PartialGraph:
    """The graph of a `PDAG`, a `DAG` or a Bayesian network."""
    if not hasattr(found, "undirected_edges"):
        return from_networkx(found)
    return PartialGraph(
        tuple(map(str, found.nodes)),
        frozenset((str(tail), str(head)) for tail, head in found.directed_edges),
        frozenset(frozenset((str(a), str(b))) for a, b in found.undirected_edges),
    )


def require_dag(graph: PartialGraph) -> PartialGraph:
    """The graph itself, if it is a DAG; GraphError with the way to one."""
    if not graph.is_dag():
        shown = ", ".join(f"{a} — {b}" for a, b in sorted(map(sort_pair, graph.lines))[:3]) or "a directed cycle"
        raise GraphError(
            f"this needs a DAG, and the graph has {shown}; take result.to_dag(), or direct these edges yourself "
            "with graph.orient(tail, head)"
        )
    return graph
