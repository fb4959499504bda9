"""A graph on paper before any ink: boxes and curves with their places, for whoever draws them (`picture`, `plots`).

Causes stand on the left of effects. Places are in pixels, y runs downwards, a letter is 13 pixels high.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fedcdh._runtime.optional_imports import needing
from fedcdh.discovery.result import Discovery
from fedcdh.errors import KnowledgeError, NoExtension
from fedcdh.graphs.equivalence import extend
from fedcdh.graphs.partial_graph import PartialGraph, ends
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.edge_routing import PORT, Point, Route, letters, routes
from fedcdh.reporting.graph_drawing.edge_routing import shortened as fitting
from fedcdh.reporting.graph_drawing.layered_layout import Box, layered

FONT = 13.0
LETTER = 7.4  # the width of an average letter, on the wide side: fonts differ
LETTERS_AT_MOST = 24.0
HEIGHT = 32.0
CUT = 10.0
"""Corners are cut off the boxes of variables whose mechanism differs: a shape, seen without colours."""
HEAD = 9.0


@dataclass(frozen=True)
class Node:
    """A box: its centre, its size and what is written in it."""

    name: str
    label: str
    x: float
    y: float
    width: float
    height: float
    changing: bool

    @property
    def outline(self) -> tuple[Point, ...]:
        """The corners: eight where the mechanism differs, four where it does not."""
        right, bottom = self.width / 2, self.height / 2
        if not self.changing:
            corners = [(-right, -bottom), (right, -bottom), (right, bottom), (-right, bottom)]
        else:
            near, low = right - CUT, bottom - CUT
            corners = [(-near, -bottom), (near, -bottom), (right, -low), (right, low)]
            corners += [(near, bottom), (-near, bottom), (-right, low), (-right, -low)]
        return tuple((round(self.x + x, 1), round(self.y + y, 1)) for x, y in corners)


@dataclass(frozen=True)
class Curve:
    """An edge: where it starts, and Bézier pieces of three points each; for arrows, where the tip of the head is."""

    tail: str
    head: str
    start: Point
    pieces: tuple[tuple[Point, Point, Point], ...]
    tip: tuple[Point, Point, Point] | None  # a triangle; None for lines


@dataclass(frozen=True)
class Sketch:
    """All boxes and curves, and the size of the paper, whose upper left corner is the origin."""

    nodes: tuple[Node, ...]
    curves: tuple[Curve, ...]
    width: float
    height: float


def sketch(drawn: Discovery | PartialGraph, changing: Collection[str] | None = None) -> Sketch:
    """Where everything goes. Of a result, the graph over the variables, with the changing ones marked."""
    with needing("igraph", extra="plot"):
        import igraph  # type: ignore[import-untyped]  # noqa: F401  (what `layered` needs, asked for by our extra)
    graph, marked = graph_of(drawn, changing)
    directed = _directed(drawn, graph)
    pairs = [directed[frozenset(pair)] for pair in (*sorted(graph.arrows), *sorted(map(ends, graph.lines)))]
    boxes = {name: _box(name, pairs) for name in graph.nodes}
    layout = layered(boxes, pairs)
    ways = routes(pairs, layout, boxes)
    curves = [_curve(pair, way, pair in graph.arrows) for pair, way in zip(pairs, ways, strict=True)]
    nodes = [
        Node(name, shortened(name), *layout.centres[name], box.width, box.height, name in marked)
        for name, box in boxes.items()
    ]
    return Sketch(tuple(nodes), tuple(curves), layout.width, layout.height)


def graph_of(drawn: Discovery | PartialGraph, changing: Collection[str] | None) -> tuple[PartialGraph, frozenset[str]]:
    """The graph to draw, and the variables to mark in it."""
    if isinstance(drawn, PartialGraph):
        named = frozenset(changing or ())
        known = drawn.children(DOMAIN) if DOMAIN in drawn.nodes and changing is None else named
        return drawn, frozenset(known)
    return drawn.graph, drawn.changing if changing is None else frozenset(changing)


def shortened(name: str) -> str:
    """A name as it fits into a box."""
    return fitting("℧" if name == DOMAIN else " ".join(name.split()), LETTERS_AT_MOST)


def _box(name: str, pairs: Sequence[tuple[str, str]]) -> Box:
    """As wide as the name, and as high as the busier of its two sides."""
    busiest = max(sum(pair[side] == name for pair in pairs) for side in (0, 1))
    return Box(max(letters(shortened(name)) * LETTER + 26, 56.0), max(HEIGHT, (busiest - 1) * PORT + 2 * CUT))


def _directed(drawn: Discovery | PartialGraph, graph: PartialGraph) -> Mapping[frozenset[str], tuple[str, str]]:
    """A direction for every edge, to lay it out by: for a line, that of the DAG next to the graph."""
    try:
        arrows = (drawn.to_dag() if isinstance(drawn, Discovery) else extend(graph)).arrows
    except (KnowledgeError, NoExtension):  # what is known, or arrows in a circle, leave no DAG: any direction will do
        arrows = frozenset(map(ends, graph.lines))
    return {frozenset(arrow): arrow for arrow in (*arrows, *graph.arrows)}


def _curve(pair: tuple[str, str], way: Route, arrow: bool) -> Curve:
    """From the side of one box to the side of the other, level at both ends and at the layers passed."""
    touch = way.points[-1]
    base = touch[0] - way.facing * HEAD
    stop = (base + way.facing, touch[1]) if arrow else touch
    tip = (touch, (base, touch[1] - 4.5), (base, touch[1] + 4.5)) if arrow else None
    pieces = []
    for (x, y), (to_x, to_y) in pairwise([*way.points[:-1], stop]):
        middle = (x + to_x) / 2
        pieces.append(((middle, y), (middle, to_y), (to_x, to_y)))
    return Curve(*pair, way.points[0], tuple(pieces), tip)
