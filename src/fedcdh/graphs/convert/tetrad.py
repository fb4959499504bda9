"""Graph texts of Tetrad: `Graph Nodes:`, the names with semicolons, `Graph Edges:`, then `1. a --> b` and so on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fedcdh.errors import GraphError
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair

_EDGE = re.compile(r"\d+\.\s+(\S+)\s+(\S+)\s+(\S+)(.*)")
_EDGE_ANNOTATIONS = re.compile(r"(\s+(dd|nl|pd|pl|\[.*))*\s*")  # definite and possible directness, bootstrap shares
_SECTION = re.compile(r"\s*(?:Graph|Ambiguous|Underline|Dotted)\b.*:", re.IGNORECASE)


def to_tetrad(graph: PartialGraph) -> str:
    """Return a graph as text for Tetrad.

    Parameters
    ----------
    graph : PartialGraph
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
    >>> print(to_tetrad(PartialGraph(("x", "y"), frozenset({("x", "y")}))), end="")
    Graph Nodes:
    x;y
    <BLANKLINE>
    Graph Edges:
    1. x --> y
    """
    if odd := [name for name in graph.nodes if not re.fullmatch(r"[^\s,;]+", name)]:
        raise GraphError(
            f"found the names {', '.join(map(repr, odd))}; Tetrad cannot read names with spaces, commas or semicolons. "
            "Rename these variables"
        )
    edges = [f"{tail} --> {head}" for tail, head in sorted(graph.arrows)]
    edges += [f"{a} --- {b}" for a, b in sorted(map(sort_pair, graph.lines))]
    numbered = [f"{number}. {edge}" for number, edge in enumerate(edges, 1)]
    return "\n".join(["Graph Nodes:", ";".join(graph.nodes), "", "Graph Edges:", *numbered, ""])


def from_tetrad(text: str) -> PartialGraph:
    """Read a graph from a text of Tetrad.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    PartialGraph
        The graph.

    Raises
    ------
    GraphError
        If the text is not such a graph, or an edge has a circle or two arrowheads, which stand for hidden causes.

    Examples
    --------
    >>> graph = PartialGraph.from_dag("xy", [("x", "y")])
    >>> from_tetrad(to_tetrad(graph)) == graph
    True
    """
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
        raise GraphError('there are no names under "Graph Nodes:"; expected a graph text of Tetrad. Export it again')
    return PartialGraph(nodes, frozenset(arrows), frozenset(lines))


def _read_rows(text: str) -> Iterator[tuple[str, str]]:
    """Yield every row that is not empty, with the section that it belongs to."""
    section = ""
    for row in map(str.strip, text.splitlines()):
        if _SECTION.fullmatch(row):
            section = row.lower()
        elif row and not section:
            raise GraphError(
                f'the first line is {row[:80]!r}; expected "Graph Nodes:" there, as in a graph text of Tetrad. Export '
                "it again"
            )
        elif row:
            yield section, row


def _parse_edge(row: str) -> tuple[str, str, str]:
    found = _EDGE.fullmatch(row)
    if not found or not _EDGE_ANNOTATIONS.fullmatch(found[4]):
        raise GraphError(f'found {row[:80]!r}; expected an edge such as "1. a --> b". Correct the line')
    if found[2] not in ("-->", "<--", "---"):
        raise GraphError(
            f"{row[:80]!r}: the edge {found[2]} stands for hidden causes; expected -->, <-- or ---. Export a graph "
            "without hidden causes"
        )
    return found[1], found[2], found[3]
