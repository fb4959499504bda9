"""Graphs as JSON, in the format of docs/graph-json.md; also reads the graph of a result.json."""

from __future__ import annotations

import json
from typing import Any

from fedcdh._io import strict_json
from fedcdh.errors import GraphError
from fedcdh.graphs.partial_graph import PartialGraph

FORMAT = "fedcdh-graph-1"


def to_json(graph: PartialGraph) -> str:
    """Return a graph as JSON text, with sorted edges: the same graph gives the same text.

    Parameters
    ----------
    graph : PartialGraph
        The graph.

    Returns
    -------
    str
        The JSON text.

    Examples
    --------
    >>> print(to_json(PartialGraph(("x", "y"), frozenset({("x", "y")}))), end="")
    {
      "format": "fedcdh-graph-1",
      "nodes": ["x", "y"],
      "arrows": [["x", "y"]],
      "lines": []
    }
    """
    parts = {
        "format": FORMAT,
        "nodes": list(graph.nodes),
        "arrows": sorted(graph.arrows),
        "lines": sorted(sorted(line) for line in graph.lines),
    }
    rows = [f'  "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in parts.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def from_json(text: str | bytes) -> PartialGraph:
    """Read a graph from JSON text, or from the text of a result.json (its variables, without the domain).

    Parameters
    ----------
    text : str or bytes
        The JSON text.

    Returns
    -------
    PartialGraph
        The graph.

    Raises
    ------
    GraphError
        If the text is neither.

    Examples
    --------
    >>> graph = PartialGraph.from_dag("xy", [("x", "y")])
    >>> from_json(to_json(graph)) == graph
    True
    """
    found = strict_json.parse_json(text, refuse=_format_error)
    if not isinstance(found, dict):
        raise _format_error("it is not an object")
    if found.get("format") == FORMAT:
        return _read_graph(found.get("nodes"), found)
    if str(found.get("format")).startswith("fedcdh-result-") and isinstance(found.get("graph"), dict):
        return _read_graph(found.get("variables"), found["graph"])
    raise _format_error(f"its format is {found.get('format')!r}")


def _format_error(reason: str) -> GraphError:
    return GraphError(
        f'the text is not a graph: {reason[:200]}; expected "format": "{FORMAT}", or a result.json. Export it again'
    )


def _read_graph(nodes: Any, edges: dict[str, Any]) -> PartialGraph:
    return PartialGraph(
        _read_names(nodes, "the nodes"),
        frozenset(_read_pair(one) for one in _read_list(edges.get("arrows"), "arrows")),
        frozenset(frozenset(_read_pair(one)) for one in _read_list(edges.get("lines"), "lines")),
    )


def _read_pair(found: Any) -> tuple[str, str]:
    names = _read_names(found, "an edge")
    if len(names) != 2:
        raise _format_error(f"an edge has {len(names)} ends")
    return names[0], names[1]


def _read_names(found: Any, where: str) -> tuple[str, ...]:
    if not all(isinstance(one, str) for one in _read_list(found, where)):
        raise _format_error(f"{where} should be a list of names")
    return tuple(found)


def _read_list(found: Any, where: str) -> list[Any]:
    if not isinstance(found, list):
        raise _format_error(f"{where} should be a list")
    return found
