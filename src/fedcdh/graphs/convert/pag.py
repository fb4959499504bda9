"""Ancestral graphs in the formats of other programs, and back: JSON, DOT, Tetrad, causal-learn and pcalg.

The texts write an edge as Tetrad does: `-` is a tail, `>` an arrowhead and `o` a circle, as in `x o-> y`.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh._io import strict_json
from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import GraphError
from fedcdh.graphs.ancestral_graph import AncestralGraph, Mark
from fedcdh.graphs.convert.dot import quote_dot, unquote_dot

FORMAT = "fedcdh-pag-1"
_AT_LEFT: Mapping[Mark, str] = {"tail": "-", "arrow": "<", "circle": "o"}
_AT_RIGHT: Mapping[Mark, str] = {"tail": "-", "arrow": ">", "circle": "o"}
_SYMBOL = re.compile(r"([-<o])-([->o])")
_DOT_SHAPES: Mapping[Mark, str] = {"tail": "none", "arrow": "normal", "circle": "odot"}
_PCALG: Mapping[Mark, int] = {"circle": 1, "arrow": 2, "tail": 3}
_NUMBERED = re.compile(r"\d+\.\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+(?:dd|nl|pd|pl|\[.*))*\s*")


def _to_symbol(at_left: Mark, at_right: Mark) -> str:
    return f"{_AT_LEFT[at_left]}-{_AT_RIGHT[at_right]}"


def _put_edge(marks: dict[tuple[str, str], Mark], a: str, b: str, symbol: str) -> None:
    """Add the two marks of an edge that is written as in Tetrad."""
    found = _SYMBOL.fullmatch(symbol)
    if not found:
        raise GraphError(
            f"the edge of {a!r} and {b!r} is {symbol!r}; expected two marks such as o-> or <->. Correct it"
        )
    if (a, b) in marks:
        raise GraphError(f"found two edges between {a!r} and {b!r}; at most one may join two nodes. Remove one")
    marks[b, a] = next(mark for mark, sign in _AT_LEFT.items() if sign == found[1])
    marks[a, b] = next(mark for mark, sign in _AT_RIGHT.items() if sign == found[2])


def pag_to_json(graph: AncestralGraph) -> str:
    """Return an ancestral graph as JSON text, with sorted edges.

    Parameters
    ----------
    graph : AncestralGraph
        The graph.

    Returns
    -------
    str
        The JSON text.

    Examples
    --------
    >>> print(pag_to_json(AncestralGraph(("x", "y"), {("x", "y"): "arrow", ("y", "x"): "circle"})), end="")
    {
      "format": "fedcdh-pag-1",
      "nodes": ["x", "y"],
      "edges": [["x", "o->", "y"]]
    }
    """
    parts = {
        "format": FORMAT,
        "nodes": list(graph.nodes),
        "edges": [[a, _to_symbol(at_a, at_b), b] for a, b, at_a, at_b in graph.edges],
    }
    rows = [f'  "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in parts.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def pag_from_json(text: str | bytes) -> AncestralGraph:
    """Read an ancestral graph from JSON text.

    Parameters
    ----------
    text : str or bytes
        The JSON text.

    Returns
    -------
    AncestralGraph
        The graph.

    Raises
    ------
    GraphError
        If the text is not such a graph.

    Examples
    --------
    >>> graph = AncestralGraph.from_pairs("xy", [frozenset("xy")])
    >>> pag_from_json(pag_to_json(graph)) == graph
    True
    """
    found = strict_json.parse_json(text, refuse=_format_error)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _format_error(f"its format is {found.get('format') if isinstance(found, dict) else None!r}")
    nodes, edges = found.get("nodes"), found.get("edges")
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        raise _format_error("nodes should be a list of names")
    marks: dict[tuple[str, str], Mark] = {}
    for edge in edges if isinstance(edges, list) else [edges]:
        if not isinstance(edge, list) or len(edge) != 3 or not all(isinstance(part, str) for part in edge):
            raise _format_error("edges should be a list of lists such as [cause, '-->', effect]")
        _put_edge(marks, edge[0], edge[2], edge[1])
    return AncestralGraph(tuple(nodes), marks)


def _format_error(reason: str) -> GraphError:
    return GraphError(
        f'the text is not an ancestral graph: {reason[:200]}; expected "format": "{FORMAT}". Export it again'
    )


def pag_to_tetrad(graph: AncestralGraph) -> str:
    """Return an ancestral graph as text for Tetrad.

    Parameters
    ----------
    graph : AncestralGraph
        The graph.

    Returns
    -------
    str
        The text.

    Raises
    ------
    GraphError
        If a name has spaces, commas or semicolons, which Tetrad cannot read.

    Examples
    --------
    >>> print(pag_to_tetrad(AncestralGraph.from_pairs("xy", [frozenset("xy")])), end="")
    Graph Nodes:
    x;y
    <BLANKLINE>
    Graph Edges:
    1. x o-o y
    """
    if odd := [name for name in graph.nodes if not re.fullmatch(r"[^\s,;]+", name)]:
        raise GraphError(
            f"found the names {', '.join(map(repr, odd))}; Tetrad cannot read names with spaces, commas or semicolons. "
            "Rename these variables"
        )
    edges = [
        f"{number}. {a} {_to_symbol(at_a, at_b)} {b}" for number, (a, b, at_a, at_b) in enumerate(graph.edges, start=1)
    ]
    return "\n".join(["Graph Nodes:", ";".join(graph.nodes), "", "Graph Edges:", *edges, ""])


def pag_from_tetrad(text: str) -> AncestralGraph:
    """Read an ancestral graph from a text of Tetrad.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    AncestralGraph
        The graph.

    Raises
    ------
    GraphError
        If the text is not such a graph.

    Examples
    --------
    >>> print(pag_from_tetrad("Graph Nodes:\\nx;y\\n\\nGraph Edges:\\n1. x o-> y\\n"))
    x ○→ y
    """
    nodes: list[str] = []
    marks: dict[tuple[str, str], Mark] = {}
    section = ""
    for row in filter(None, map(str.strip, text.splitlines())):
        if row.endswith(":"):
            section = row.lower()
        elif section == "graph nodes:":
            nodes += [name.strip() for name in re.split("[;,]", row) if name.strip()]
        elif section == "graph edges:":
            found = _NUMBERED.fullmatch(row)
            if not found:
                raise GraphError(f'found {row[:80]!r}; expected an edge such as "1. a o-> b". Correct the line')
            _put_edge(marks, found[1], found[3], found[2])
    if not nodes:
        raise GraphError('there are no names under "Graph Nodes:"; expected a graph text of Tetrad. Export it again')
    return AncestralGraph(tuple(nodes), marks)


def pag_to_dot(graph: AncestralGraph) -> str:
    """Return an ancestral graph as DOT text: circles are `odot`.

    Parameters
    ----------
    graph : AncestralGraph
        The graph.

    Returns
    -------
    str
        The DOT text.

    Examples
    --------
    >>> print(pag_to_dot(AncestralGraph.from_pairs("xy", [frozenset("xy")])))
    digraph study {
      node [shape=ellipse];
      "x";
      "y";
      "x" -> "y" [dir=both, arrowtail=odot, arrowhead=odot];
    }
    <BLANKLINE>
    """
    rows = ["digraph study {", "  node [shape=ellipse];", *(f"  {quote_dot(name)};" for name in graph.nodes)]
    rows += [
        f"  {quote_dot(a)} -> {quote_dot(b)} [dir=both, arrowtail={_DOT_SHAPES[at_a]}, arrowhead={_DOT_SHAPES[at_b]}];"
        for a, b, at_a, at_b in graph.edges
    ]
    return "\n".join([*rows, "}", ""])


def pag_from_dot(text: str) -> AncestralGraph:
    """Read an ancestral graph from DOT text that `pag_to_dot` wrote.

    Parameters
    ----------
    text : str
        The DOT text.

    Returns
    -------
    AncestralGraph
        The graph.

    Raises
    ------
    GraphError
        If the text is not such a graph.
    MissingDependencyError
        If pydot is not installed.

    Examples
    --------
    >>> graph = AncestralGraph.from_pairs("xy", [frozenset("xy")])
    >>> pag_from_dot(pag_to_dot(graph)) == graph
    True
    """
    with optional_import("pydot", extra="graphs"):
        import pydot
    with redirect_stdout(io.StringIO()):  # pydot prints what it does not understand
        read = pydot.graph_from_dot_data(text)
    if not read or len(read) != 1:
        raise GraphError("the text is not DOT with one graph; expected a graph of arrows and circles. Export it again")
    marks: dict[tuple[str, str], Mark] = {}
    shapes: dict[str, Mark] = {shape: mark for mark, shape in _DOT_SHAPES.items()}
    for edge in read[0].get_edges():
        ends = edge.get("arrowtail"), edge.get("arrowhead")
        if not {*ends} <= shapes.keys():
            raise GraphError(
                f"an edge has the ends {ends[0]} and {ends[1]}; expected arrowtail and arrowhead among "
                f"{', '.join(shapes)}. Export it again"
            )
        a, b = unquote_dot(edge.get_source()), unquote_dot(edge.get_destination())
        _put_edge(marks, a, b, _to_symbol(shapes[ends[0]], shapes[ends[1]]))
    nodes = [
        unquote_dot(node.get_name()) for node in read[0].get_nodes() if node.get_name() not in ("node", "edge", "graph")
    ]
    return AncestralGraph(tuple(nodes), marks)


def pag_to_pcalg(graph: AncestralGraph) -> npt.NDArray[np.int64]:
    """Return the matrix of pcalg's `amat.pag`: entry (i, j) is the mark at j, 1 circle, 2 arrowhead, 3 tail.

    Parameters
    ----------
    graph : AncestralGraph
        The graph.

    Returns
    -------
    array of int
        The matrix, in the order of the nodes.

    Examples
    --------
    >>> pag_to_pcalg(AncestralGraph(("x", "y"), {("x", "y"): "arrow", ("y", "x"): "tail"})).tolist()
    [[0, 2], [3, 0]]
    """
    place = {name: position for position, name in enumerate(graph.nodes)}
    matrix = np.zeros((len(place), len(place)), dtype=np.int64)
    for (a, b), mark in graph.end_marks.items():
        matrix[place[a], place[b]] = _PCALG[mark]
    return matrix


def pag_from_pcalg(names: tuple[str, ...], matrix: npt.ArrayLike) -> AncestralGraph:
    """Read an ancestral graph from a matrix of pcalg's `amat.pag`.

    Parameters
    ----------
    names : tuple of str
        The names of rows and columns.
    matrix : array
        Entry (i, j) is the mark at j.

    Returns
    -------
    AncestralGraph
        The graph.

    Raises
    ------
    GraphError
        If the matrix does not fit the names, or has other entries.

    Examples
    --------
    >>> print(pag_from_pcalg(("x", "y"), [[0, 2], [1, 0]]))
    x ○→ y
    """
    found = np.asarray(matrix)
    if found.shape != (len(names), len(names)) or not np.isin(found, (0, 1, 2, 3)).all():
        raise GraphError(
            f"found a matrix of shape {found.shape} for {len(names)} names; expected a row and a column per name with "
            "entries 0 (none), 1 (circle), 2 (arrowhead) and 3 (tail). Correct it"
        )
    marks: dict[int, Mark] = {number: mark for mark, number in _PCALG.items()}
    ends = {(names[i], names[j]): marks[int(found[i, j])] for i, j in np.argwhere(found).tolist()}
    return AncestralGraph(tuple(names), ends)


def pag_to_causal_learn(graph: AncestralGraph) -> Any:
    """Convert an ancestral graph to one of causal-learn.

    Parameters
    ----------
    graph : AncestralGraph
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
    >>> graph = AncestralGraph.from_pairs("xy", [frozenset("xy")])
    >>> pag_from_causal_learn(pag_to_causal_learn(graph)) == graph
    True
    """
    with optional_import("causal-learn", extra="graphs"):
        from causallearn.graph.Edge import Edge
        from causallearn.graph.Endpoint import Endpoint
        from causallearn.graph.GeneralGraph import GeneralGraph
        from causallearn.graph.GraphNode import GraphNode
    ends = {"tail": Endpoint.TAIL, "arrow": Endpoint.ARROW, "circle": Endpoint.CIRCLE}
    nodes = {name: GraphNode(name) for name in graph.nodes}
    made = GeneralGraph(list(nodes.values()))
    for a, b, at_a, at_b in graph.edges:
        made.add_edge(Edge(nodes[a], nodes[b], ends[at_a], ends[at_b]))
    return made


def pag_from_causal_learn(found: Any) -> AncestralGraph:
    """Convert a graph of causal-learn, such as the first value that `fci` returns.

    Parameters
    ----------
    found : GeneralGraph
        The graph.

    Returns
    -------
    AncestralGraph
        The same graph.

    Examples
    --------
    >>> graph = AncestralGraph(("x", "y"), {("x", "y"): "arrow", ("y", "x"): "arrow"})
    >>> print(pag_from_causal_learn(pag_to_causal_learn(graph)))
    x ↔ y
    """
    marks: dict[str, Mark] = {"TAIL": "tail", "ARROW": "arrow", "CIRCLE": "circle"}
    ends: dict[tuple[str, str], Mark] = {}
    for edge in found.get_graph_edges():
        a, b = edge.get_node1().get_name(), edge.get_node2().get_name()
        ends |= {(b, a): marks[edge.get_endpoint1().name], (a, b): marks[edge.get_endpoint2().name]}
    return AncestralGraph(tuple(node.get_name() for node in found.get_nodes()), ends)
