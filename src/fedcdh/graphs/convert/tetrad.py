"""Tetrad's graph text: `Graph Nodes:`, then the names with semicolons, `Graph Edges:`, then `1. a --> b` and so on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fedcdh.errors import GraphError
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair

_EDGE = re.compile(r"\d+\.\s+(\S+)\s+(\S+)\s+(\S+)(.*)")
_EDGE_ANNOTATIONS = re.compile(r"(\s+(dd|nl|pd|pl|\[.*))*\s*")  # definite and possible directness, bootstrap shares
_SECTION = re.compile(r"\s*(?:Graph|Ambiguous|Underline|Dotted)\b.*:", re.IGNORECASE)


def to_tetrad(graph: PartialGraph) -> str:
    """The graph as Tetrad writes it; names with spaces, commas or semicolons, which it cannot read, are refused.

    >>> print(to_tetrad(PartialGraph(("x", "y"), frozenset({("x", "y")}))), end="")
    Graph Nodes:
    x;y
    <BLANKLINE>
    Graph Edges:
    1. x --> y
    """
    if odd := [name for name in graph.nodes if not re.fullmatch(r"[^\s,;]+", name)]:
        raise GraphError(
            f"Tetrad cannot read names with spaces, commas or semicolons: {', '.join(map(repr, odd))}; rename these "
            "variables"
        )
    edges = [f"{tail} --> {head}" for tail, head in sorted(graph.arrows)]
    edges += [f"{a} --- {b}" for a, b in sorted(map(sort_pair, graph.lines))]
    numbered = [f"{number}. {edge}" for number, edge in enumerate(edges, 1)]
    return "\n".join(["Graph Nodes:", ";".join(graph.nodes), "", "Graph Edges:", *numbered, ""])


def from_tetrad(text: str) -> PartialGraph:
    """The graph of such a text; circles and bidirected edges, which speak of hidden causes, are refused."""
    nodes: tuple[str, ...] = ()
    arrows: set[tuple[str, str]] = set()
    lines: set[frozenset[str]] = set()
    for section, row in _read_rows(text):
        if section == "graph nodes:":
            nodes += tuple(name.strip() for name in re.split("[;,]", row) if name.strip())
        elif section == "graph edges:":
            a, mark, b = _parse_edge(row)
            if mark == "---":
                lines.add(frozenset((a, b)))
            else:
                arrows.add((a, b) if mark == "-->" else (b, a))
    if not nodes:
        raise GraphError('this is no graph of Tetrad: there are no names under "Graph Nodes:"')
    return PartialGraph(nodes, frozenset(arrows), frozenset(lines))


def _read_rows(text: str) -> Iterator[tuple[str, str]]:
    """Every row that is not empty, with the heading it stands under."""
    section = ""
    for row in map(str.strip, text.splitlines()):
        if _SECTION.fullmatch(row):
            section = row.lower()
        elif row and not section:
            raise GraphError(f'expected "Graph Nodes:" on the first line, found {row[:80]!r}')
        elif row:
            yield section, row


def _parse_edge(row: str) -> tuple[str, str, str]:
    found = _EDGE.fullmatch(row)
    if not found or not _EDGE_ANNOTATIONS.fullmatch(found[4]):
        raise GraphError(f'expected an edge such as "1. a --> b", found {row[:80]!r}')
    if found[2] not in ("-->", "<--", "---"):
        raise GraphError(f"{row[:80]!r}: the edge {found[2]} speaks of hidden causes; expected -->, <-- or ---")
    return found[1], found[2], found[3]
