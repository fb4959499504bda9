"""GML text of a DAG, for DoWhy's `CausalModel(graph=...)`; networkx, igraph and Gephi read it as well."""

from __future__ import annotations

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import GraphError
from fedcdh.graphs.convert.networkx import from_networkx
from fedcdh.graphs.convert.pgmpy import require_dag
from fedcdh.graphs.partial_graph import PartialGraph


def to_gml(graph: PartialGraph) -> str:
    """Return a DAG as GML text, with the names of the nodes as labels.

    Parameters
    ----------
    graph : PartialGraph
        A DAG.

    Returns
    -------
    str
        The GML text.

    Raises
    ------
    GraphError
        If the graph has lines or a cycle: readers of GML would take a line for two arrows.
    MissingDependencyError
        If networkx is not installed.

    Examples
    --------
    >>> graph = PartialGraph.from_dag("xy", [("x", "y")])
    >>> from_gml(to_gml(graph)) == graph
    True
    """
    with optional_import("networkx", extra="graphs"):
        import networkx  # type: ignore[import-untyped]
    bare = networkx.DiGraph()  # not to_networkx(graph): DoWhy would keep the attribute `mark`
    bare.add_nodes_from(graph.nodes)
    bare.add_edges_from(sorted(require_dag(graph).arrows))
    return "\n".join(networkx.generate_gml(bare)) + "\n"


def from_gml(text: str) -> PartialGraph:
    """Read a graph from directed GML text.

    Parameters
    ----------
    text : str
        The GML text, with a label for every node.

    Returns
    -------
    PartialGraph
        The graph.

    Raises
    ------
    GraphError
        If the text is not such a graph.
    MissingDependencyError
        If networkx is not installed.

    Examples
    --------
    >>> nodes = 'node [ id 0 label "x" ] node [ id 1 label "y" ]'
    >>> print(from_gml(f"graph [ directed 1 {nodes} edge [ source 0 target 1 ] ]"))
    x → y
    """
    with optional_import("networkx", extra="graphs"):
        import networkx
    try:
        return from_networkx(networkx.parse_gml(text))
    except networkx.NetworkXError as problem:
        raise GraphError(
            f"the text is not GML ({problem}); expected a graph with a label for every node. Export it again"
        ) from None
