"""A graph on paper before any ink: boxes and curves with their places, for whoever draws them (`picture`, `plots`).

Causes stand on the left of effects. Places are in pixels, y runs downwards, a letter is 13 pixels high.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.discovery.result import Discovery
from fedcdh.errors import KnowledgeError, NoConsistentExtensionError
from fedcdh.graphs.equivalence import extend_to_dag
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.edge_routing import PORT_SPACING, Point, Route, route_edges, text_width
from fedcdh.reporting.graph_drawing.edge_routing import shorten as fitting
from fedcdh.reporting.graph_drawing.layered_layout import BoxSize, compute_layout

FONT_SIZE = 13.0
CHARACTER_WIDTH = 7.4  # the width of an average letter, on the wide side: fonts differ
MAX_LABEL_CHARACTERS = 24.0
BOX_HEIGHT = 32.0
CORNER_CUT = 10.0
"""Corners are cut off the boxes of variables whose mechanism differs: a shape, seen without colours."""
ARROWHEAD_LENGTH = 9.0


@dataclass(frozen=True)
class NodeBox:
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
            near, low = right - CORNER_CUT, bottom - CORNER_CUT
            corners = [(-near, -bottom), (near, -bottom), (right, -low), (right, low)]
            corners += [(near, bottom), (-near, bottom), (-right, low), (-right, -low)]
        return tuple((round(self.x + x, 1), round(self.y + y, 1)) for x, y in corners)


@dataclass(frozen=True)
class EdgeCurve:
    """An edge: where it starts, and Bézier pieces of three points each; for arrows, where the tip of the head is."""

    tail: str
    head: str
    start: Point
    pieces: tuple[tuple[Point, Point, Point], ...]
    tip: tuple[Point, Point, Point] | None  # a triangle; None for lines


@dataclass(frozen=True)
class Scene:
    """All boxes and curves, and the size of the paper, whose upper left corner is the origin."""

    nodes: tuple[NodeBox, ...]
    curves: tuple[EdgeCurve, ...]
    width: float
    height: float


def build_scene(drawn: Discovery | PartialGraph, changing: Collection[str] | None = None) -> Scene:
    """Where everything goes. Of a result, the graph over the variables, with the changing ones marked."""
    with optional_import("igraph", extra="report"):
        import igraph  # type: ignore[import-untyped]  # noqa: F401  (what `layered` needs, asked for by our extra)
    graph, marked = resolve_graph(drawn, changing)
    directed = _edge_directions(drawn, graph)
    pairs = [directed[frozenset(pair)] for pair in (*sorted(graph.arrows), *sorted(map(sort_pair, graph.lines)))]
    boxes = {name: _size_box(name, pairs) for name in graph.nodes}
    layout = compute_layout(boxes, pairs)
    ways = route_edges(pairs, layout, boxes)
    curves = [_trace_curve(pair, way, pair in graph.arrows) for pair, way in zip(pairs, ways, strict=True)]
    nodes = [
        NodeBox(name, node_label(name), *layout.centres[name], box.width, box.height, name in marked)
        for name, box in boxes.items()
    ]
    return Scene(tuple(nodes), tuple(curves), layout.width, layout.height)


def resolve_graph(
    drawn: Discovery | PartialGraph, changing: Collection[str] | None
) -> tuple[PartialGraph, frozenset[str]]:
    """The graph to draw, and the variables to mark in it."""
    if isinstance(drawn, PartialGraph):
        named = frozenset(changing or ())
        known = drawn.children(DOMAIN) if DOMAIN in drawn.nodes and changing is None else named
        return drawn, frozenset(known)
    return drawn.graph, drawn.changing if changing is None else frozenset(changing)


def node_label(name: str) -> str:
    """A name as it fits into a box."""
    return fitting("℧" if name == DOMAIN else " ".join(name.split()), MAX_LABEL_CHARACTERS)


def _size_box(name: str, pairs: Sequence[tuple[str, str]]) -> BoxSize:
    """As wide as the name, and as high as the busier of its two sides."""
    busiest = max(sum(pair[side] == name for pair in pairs) for side in (0, 1))
    return BoxSize(
        max(text_width(node_label(name)) * CHARACTER_WIDTH + 26, 56.0),
        max(BOX_HEIGHT, (busiest - 1) * PORT_SPACING + 2 * CORNER_CUT),
    )


def _edge_directions(drawn: Discovery | PartialGraph, graph: PartialGraph) -> Mapping[frozenset[str], tuple[str, str]]:
    """A direction for every edge, to lay it out by: for a line, that of the DAG next to the graph."""
    try:
        arrows = (drawn.to_dag() if isinstance(drawn, Discovery) else extend_to_dag(graph)).arrows
    except (
        KnowledgeError,
        NoConsistentExtensionError,
    ):  # what is known, or arrows in a circle, leave no DAG: any direction will do
        arrows = frozenset(map(sort_pair, graph.lines))
    return {frozenset(arrow): arrow for arrow in (*arrows, *graph.arrows)}


def _trace_curve(pair: tuple[str, str], way: Route, arrow: bool) -> EdgeCurve:
    """From the side of one box to the side of the other, level at both ends and at the layers passed."""
    touch = way.points[-1]
    base = touch[0] - way.facing * ARROWHEAD_LENGTH
    stop = (base + way.facing, touch[1]) if arrow else touch
    tip = (touch, (base, touch[1] - 4.5), (base, touch[1] + 4.5)) if arrow else None
    pieces = []
    for (x, y), (to_x, to_y) in pairwise([*way.points[:-1], stop]):
        middle = (x + to_x) / 2
        pieces.append(((middle, y), (middle, to_y), (to_x, to_y)))
    return EdgeCurve(*pair, way.points[0], tuple(pieces), tip)
