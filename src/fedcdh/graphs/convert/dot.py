"""DOT, the language of Graphviz: lines without arrowheads, variables with a changing mechanism in bold boxes."""

from __future__ import annotations

import io
import re
from collections.abc import Collection
from contextlib import redirect_stdout
from typing import Any

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.errors import GraphError
from fedcdh.graphs.partial_graph import PartialGraph


def to_dot(graph: PartialGraph, changing: Collection[str] = ()) -> str:
    """Return a graph as DOT text.

    Parameters
    ----------
    graph : PartialGraph
        The graph.
    changing : collection of str, optional
        Variables to draw in bold boxes, such as `result.changing`.

    Returns
    -------
    str
        The DOT text.

    Examples
    --------
    >>> print(to_dot(PartialGraph(("x", "y"), frozenset({("x", "y")})), changing={"y"}))
    digraph study {
      node [shape=ellipse];
      "x";
      "y" [shape=box, style=bold];
      "x" -> "y";
    }
    <BLANKLINE>
    """
    rows = ["digraph study {", "  node [shape=ellipse];"]
    rows += [f"  {quote_dot(name)}{' [shape=box, style=bold]' * (name in changing)};" for name in graph.nodes]
    rows += [f"  {quote_dot(tail)} -> {quote_dot(head)};" for tail, head in sorted(graph.arrows)]
    rows += [f"  {quote_dot(a)} -> {quote_dot(b)} [dir=none];" for a, b in sorted(sorted(line) for line in graph.lines)]
    return "\n".join([*rows, "}", ""])


def from_dot(text: str) -> PartialGraph:
    """Read a graph from DOT text: `->` is an arrow, `->` with `dir=none` and `--` are lines.

    Parameters
    ----------
    text : str
        The DOT text of one graph without subgraphs.

    Returns
    -------
    PartialGraph
        The graph.

    Raises
    ------
    GraphError
        If the text is not such a graph.
    MissingDependencyError
        If pydot is not installed.

    Examples
    --------
    >>> print(from_dot("digraph { x -> y; }"))
    x → y
    """
    with optional_import("pydot", extra="graphs"):
        import pydot
    with redirect_stdout(io.StringIO()) as said:  # pydot prints what it does not understand
        read = pydot.graph_from_dot_data(text)
    if not read:
        raise GraphError(
            f"the text is not DOT ({' '.join(said.getvalue().split())[:200]}); expected the text of one graph. Export "
            "it again"
        )
    if len(read) != 1 or read[0].get_subgraphs():
        raise GraphError(
            "the DOT text has several graphs or subgraphs; expected one graph without subgraphs. Export it without "
            "clusters"
        )
    drawn = read[0]
    edges = [(_read_end(edge.get_source()), _read_end(edge.get_destination()), edge) for edge in drawn.get_edges()]
    lines = {frozenset((a, b)) for a, b, edge in edges if _is_line(edge, drawn)}
    arrows = {_to_arrow(a, b, edge) for a, b, edge in edges if not _is_line(edge, drawn)}
    listed = [unquote_dot(node.get_name()) for node in drawn.get_nodes() if node.get_name() not in _DEFAULT_STATEMENTS]
    nodes = dict.fromkeys([*listed, *(name for a, b, _ in edges for name in (a, b))])
    return PartialGraph(tuple(nodes), frozenset(arrows), frozenset(lines))


_DEFAULT_STATEMENTS = {"node", "edge", "graph"}  # settings, which pydot lists as nodes
_DIRECTIONS = ("forward", "back", "none")


def _is_line(edge: Any, drawn: Any) -> bool:
    return drawn.get_type() == "graph" or _read_direction(edge) == "none"


def _to_arrow(a: str, b: str, edge: Any) -> tuple[str, str]:
    return (b, a) if _read_direction(edge) == "back" else (a, b)


def _read_direction(edge: Any) -> str:
    direction = unquote_dot(edge.get("dir") or "forward")
    if direction not in _DIRECTIONS:
        raise GraphError(f"an edge has dir={direction}; expected one of {', '.join(_DIRECTIONS)}. Correct the DOT text")
    return direction


def _read_end(name: Any) -> str:
    if not isinstance(name, str):
        raise GraphError("an edge joins a subgraph; expected one edge per pair of nodes. Export the graph that way")
    return unquote_dot(name)


def unquote_dot(name: str) -> str:
    """Return a name without the quotes and escapes of DOT."""
    if not (len(name) >= 2 and name[0] == name[-1] == '"'):
        return name
    return re.sub(r"\\(.)", lambda escaped: "\n" if escaped[1] == "n" else escaped[1], name[1:-1], flags=re.DOTALL)


def quote_dot(name: str) -> str:
    """Return a name in quotes for Graphviz; a single backslash before the closing quote would escape it."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
