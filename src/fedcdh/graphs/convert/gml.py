"""GML text of a DAG: what DoWhy's `CausalModel(graph=...)` takes; networkx, igraph and Gephi read it as well."""

from __future__ import annotations

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import GraphError
from fedcdh.graphs.convert.networkx import from_networkx
from fedcdh.graphs.convert.pgmpy import require_dag
from fedcdh.graphs.partial_graph import PartialGraph


def to_gml(graph: PartialGraph) -> str:
    """The DAG as GML, nodes by their labels; lines are refused, since readers would take them for two-way causes."""
    with optional_import("networkx", extra="graphs"):
        import networkx  # type: ignore[import-untyped]
    bare = networkx.DiGraph()  # not to_networkx(graph): DoWhy would carry the attribute `mark` along
    bare.add_nodes_from(graph.nodes)
    bare.add_edges_from(sorted(require_dag(graph).arrows))
    return "\n".join(networkx.generate_gml(bare)) + "\n"


def from_gml(text: str) -> PartialGraph:
    """The graph of a directed GML text."""
    with optional_import("networkx", extra="graphs"):
        import networkx
    try:
        return from_networkx(networkx.parse_gml(text))
    except networkx.NetworkXError as problem:
        raise GraphError(f"this is not GML with a label for every node ({problem})") from None
