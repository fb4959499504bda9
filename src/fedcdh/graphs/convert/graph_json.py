"""A graph as JSON, described in docs/graph-json.md; also reads the graph of a result.json."""

from __future__ import annotations

import json
from typing import Any

from fedcdh._io import strict_json
from fedcdh.errors import GraphError
from fedcdh.graphs.partial_graph import PartialGraph

FORMAT = "fedcdh-graph-1"


def to_json(graph: PartialGraph) -> str:
    """Nodes in their order, edges sorted: the same graph gives the same text.

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
    """The graph of such a text, or of the text of a result.json (its variables, without the domain)."""
    found = strict_json.parse(text, refuse=_refuse)
    if not isinstance(found, dict):
        raise _refuse("it is not an object")
    if found.get("format") == FORMAT:
        return _graph(found.get("nodes"), found)
    if str(found.get("format")).startswith("fedcdh-result-") and isinstance(found.get("graph"), dict):
        return _graph(found.get("variables"), found["graph"])
    raise _refuse(f"its format is {found.get('format')!r}")


def _refuse(reason: str) -> GraphError:
    return GraphError(f'this is not a graph: {reason[:200]}; expected "format": "{FORMAT}", or a result.json')


def _graph(nodes: Any, edges: dict[str, Any]) -> PartialGraph:
    return PartialGraph(
        _names(nodes, "the nodes"),
        frozenset(_pair(one) for one in _list(edges.get("arrows"), "arrows")),
        frozenset(frozenset(_pair(one)) for one in _list(edges.get("lines"), "lines")),
    )


def _pair(found: Any) -> tuple[str, str]:
    names = _names(found, "an edge")
    if len(names) != 2:
        raise _refuse(f"an edge has {len(names)} ends")
    return names[0], names[1]


def _names(found: Any, where: str) -> tuple[str, ...]:
    if not all(isinstance(one, str) for one in _list(found, where)):
        raise _refuse(f"{where} should be a list of names")
    return tuple(found)


def _list(found: Any, where: str) -> list[Any]:
    if not isinstance(found, list):
        raise _refuse(f"{where} should be a list")
    return found
