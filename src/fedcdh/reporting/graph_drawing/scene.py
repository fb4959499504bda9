"""The drawing of a causal graph as boxes and curves with positions, before any back end renders it.

Three back ends draw the same scene: the report (`fedcdh.reporting.html.graph_svg`), notebooks
(`fedcdh.reporting.graph_drawing.svg`) and matplotlib (`fedcdh.reporting.plots`). Causes stand to the left of their
effects. Positions are in pixels, y runs downwards, and text is 13 pixels high.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise

from fedcdh.discovery.ancestral_discovery import AncestralDiscovery
from fedcdh.discovery.findings import Findings
from fedcdh.errors import KnowledgeError, NoConsistentExtensionError, SettingsError
from fedcdh.graphs.ancestral_graph import AncestralGraph
from fedcdh.graphs.equivalence import extend_to_dag
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.edge_routing import (
    PORT_SPACING,
    Point,
    Route,
    route_edges,
    shorten,
    text_width,
)
from fedcdh.reporting.graph_drawing.edge_style import EdgeStyle, style_edge
from fedcdh.reporting.graph_drawing.layered_layout import BoxSize, NamePair, compute_layout, place_isolated
from fedcdh.reporting.graph_drawing.sign_places import place_signs
from fedcdh.reporting.phrases import clean_text

FONT_SIZE = 13.0
CHARACTER_WIDTH = 8.0
"""Width of an average character, estimated on the wide side because fonts differ."""
MAX_LABEL_CHARACTERS = 22.0
BOX_HEIGHT = 32.0
CHANGING_BOX_HEIGHT = 46.0
"""Height of the box of a variable whose mechanism differs between sites: it has a second line of text."""
BOX_PADDING = 24.0
MIN_BOX_WIDTH = 56.0
MIN_CHANGING_BOX_WIDTH = 112.0
CORNER_CUT = 9.0
"""Size of the corners cut off the boxes of changing mechanisms: a shape can be seen without colours."""
ARROWHEAD_LENGTH = 9.0
ARROWHEAD_HALF_WIDTH = 4.5
NARROW_LABEL_CHARACTERS, NARROW_LAYER_SIZE, NARROW_WIDTH = 14.0, 3, 300.0
"""Characters of a label, boxes side by side, and width of nodes without edges, in a scene for a narrow page."""
CHANGING_NOTE = "differs by site"
"""Second line of text in the box of a changing mechanism."""
NAME_BASELINE, CHANGING_NAME_BASELINE, NOTE_BASELINE = 4.5, -3.0, 14.0
"""Baselines of the texts in a box, in pixels below its centre."""
NOTE_FONT_SIZE = 11.0


@dataclass(frozen=True)
class NodeBox:
    """A variable as a box: its centre, its size and its label.

    Parameters
    ----------
    name : str
        Name of the variable.
    label : str
        The name, shortened so that it fits into the box.
    x, y : float
        Centre of the box.
    width, height : float
        Size of the box.
    changing : bool
        The mechanism of the variable differs between sites.

    Examples
    --------
    >>> NodeBox("age", "age", 30.0, 20.0, 60.0, 40.0, changing=False).outline
    ((0.0, 0.0), (60.0, 0.0), (60.0, 40.0), (0.0, 40.0))
    """

    name: str
    label: str
    x: float
    y: float
    width: float
    height: float
    changing: bool

    @property
    def outline(self) -> tuple[Point, ...]:
        """Return the corners: eight for a changing mechanism, four otherwise."""
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
    """An edge as a chain of cubic Bézier curves.

    Parameters
    ----------
    tail, head : str
        Names of the variables at both ends.
    directed : bool
        An arrow from `tail` to `head`; otherwise a line whose direction is open.
    start, stop : tuple of float
        Points on the borders of the two boxes.
    pieces : tuple
        Two control points and the end point of each Bézier curve. The last one ends behind the arrowhead.
    facing : int
        1 if the edge arrives from the left, −1 if it arrives from the right.
    ports : tuple of float
        Distances of the two ends below the middle of their boxes.
    style : EdgeStyle
        Probability, strength and sign of the edge, which decide how it is drawn.
    sign_at : tuple of float, optional
        Where the sign stands; None if there is none.
    downwards : bool
        The edge leaves and reaches its boxes from above and below, not from the sides.

    Examples
    --------
    >>> (curve,) = build_scene(["a", "b"], [("a", "b")], []).curves
    >>> curve.arrowhead
    ((120.0, 16.0), (111.0, 11.5), (111.0, 20.5))
    """

    tail: str
    head: str
    directed: bool
    start: Point
    stop: Point
    pieces: tuple[tuple[Point, Point, Point], ...]
    facing: int = 1
    ports: tuple[float, float] = (0.0, 0.0)
    style: EdgeStyle = field(default_factory=EdgeStyle)
    sign_at: Point | None = None
    downwards: bool = False

    @property
    def arrowhead(self) -> tuple[Point, Point, Point] | None:
        """Return the corners of the arrowhead, tip first; None for a line."""
        if not self.directed:
            return None
        x, y = self.stop
        if self.downwards:
            base = y - self.facing * ARROWHEAD_LENGTH
            return (x, y), (x - ARROWHEAD_HALF_WIDTH, base), (x + ARROWHEAD_HALF_WIDTH, base)
        base = x - self.facing * ARROWHEAD_LENGTH
        return (x, y), (base, y - ARROWHEAD_HALF_WIDTH), (base, y + ARROWHEAD_HALF_WIDTH)

    def transpose(self) -> EdgeCurve:
        """Return the curve with x and y exchanged."""
        pieces = tuple((_swap(a), _swap(b), _swap(c)) for a, b, c in self.pieces)
        return replace(
            self, start=_swap(self.start), stop=_swap(self.stop), pieces=pieces, downwards=not self.downwards
        )


@dataclass(frozen=True)
class Scene:
    """All boxes and curves of a graph, in a rectangle whose upper left corner is the origin.

    Parameters
    ----------
    nodes : tuple of NodeBox
        One box for each variable.
    curves : tuple of EdgeCurve
        One curve for each edge, in the order in which the edges were given.
    width, height : float
        Size of the rectangle.

    Examples
    --------
    >>> scene = build_scene(["a", "b"], [("a", "b")], [])
    >>> scene.width, scene.height
    (176.0, 32.0)
    """

    nodes: tuple[NodeBox, ...]
    curves: tuple[EdgeCurve, ...]
    width: float
    height: float


def build_scene(
    names: Sequence[str],
    arrows: Collection[NamePair],
    lines: Collection[NamePair],
    *,
    changing: Collection[str] = (),
    dag: Collection[NamePair] = (),
    styles: Mapping[frozenset[str], EdgeStyle] | None = None,
) -> Scene:
    """Lay out a graph and return its boxes and curves.

    Parameters
    ----------
    names : sequence of str
        All variables.
    arrows : collection of pairs of str
        Directed edges, cause first.
    lines : collection of pairs of str
        Edges whose direction is open.
    changing : collection of str
        Variables whose mechanism differs between sites.
    dag : collection of pairs of str
        Arrows of a DAG in the equivalence class. They decide which end of a line stands on the left.
    styles : mapping from pair to EdgeStyle, optional
        Probabilities, strengths and signs of arrows and lines, which decide how they are drawn.

    Returns
    -------
    Scene
        The curves of the arrows come first, then those of the lines, each in the order given.

    Examples
    --------
    >>> scene = build_scene(["age", "pressure"], [("age", "pressure")], [])
    >>> [(node.label, node.x) for node in scene.nodes]
    [('age', 28.0), ('pressure', 164.0)]
    """
    edges = [*arrows, *lines]
    directions = {frozenset(pair): pair for pair in (*edges, *dag, *arrows)}
    # in one order, so that the same graph gives the same picture however its edges are listed
    pairs = sorted(directions[frozenset(pair)] for pair in edges)
    boxes = {name: _size_box(fit_label(name), name in changing, _room_for_ports(name, pairs)) for name in names}
    layout = compute_layout(boxes, pairs)
    routes = dict(zip(pairs, route_edges(pairs, layout, boxes), strict=True))
    nodes = [
        NodeBox(name, fit_label(name), *layout.centres[name], box.width, box.height, name in changing)
        for name, box in boxes.items()
    ]
    curves = _make_curves(edges, len(arrows), directions, routes, styles or {})
    return Scene(tuple(nodes), tuple(_with_signs(curves, nodes)), layout.width, layout.height)


def build_narrow_scene(
    names: Sequence[str],
    arrows: Collection[NamePair],
    lines: Collection[NamePair],
    *,
    changing: Collection[str] = (),
    dag: Collection[NamePair] = (),
    styles: Mapping[frozenset[str], EdgeStyle] | None = None,
) -> Scene:
    """Lay out a graph for a narrow page, such as that of a phone: causes stand above their effects.

    Parameters
    ----------
    names, arrows, lines, changing, dag, styles
        As in `build_scene`.

    Returns
    -------
    Scene
        At most three boxes stand side by side, with short labels; graphs of more variables are higher, not wider.

    Examples
    --------
    >>> scene = build_narrow_scene(["age", "pressure"], [("age", "pressure")], [])
    >>> [node.x for node in scene.nodes], scene.nodes[0].y < scene.nodes[1].y
    ([44.0, 44.0], True)
    """
    edges = [*arrows, *lines]
    directions = {frozenset(pair): pair for pair in (*edges, *dag, *arrows)}
    pairs = sorted(directions[frozenset(pair)] for pair in edges)
    labels = {name: fit_label(name, NARROW_LABEL_CHARACTERS) for name in names}
    boxes = {name: _size_box(labels[name], name in changing, 1) for name in names}
    joined = {name for pair in pairs for name in pair}
    turned = {name: _turn_box(box, name, pairs) for name, box in boxes.items() if name in joined}
    layout = compute_layout(turned, pairs, max_per_layer=NARROW_LAYER_SIZE)
    routes = dict(zip(pairs, route_edges(pairs, layout, turned), strict=True))
    alone = [name for name in names if name not in joined]
    apart, width, height = place_isolated(alone, boxes, layout.height, layout.width, NARROW_WIDTH)
    centres = {**{name: _swap(layout.centres[name]) for name in turned}, **apart}
    sizes = {**boxes, **{name: BoxSize(box.height, boxes[name].height) for name, box in turned.items()}}
    nodes = [
        NodeBox(name, labels[name], *centres[name], sizes[name].width, sizes[name].height, name in changing)
        for name in names
    ]
    curves = _make_curves(edges, len(arrows), directions, routes, styles or {})
    return Scene(tuple(nodes), tuple(_with_signs([curve.transpose() for curve in curves], nodes)), width, height)


def _turn_box(box: BoxSize, name: str, pairs: Sequence[NamePair]) -> BoxSize:
    """Return a box with width and height exchanged, wide enough for the edges above or below it."""
    return BoxSize(box.height, max(box.width, _room_for_ports(name, pairs)))


def _swap(point: Point) -> Point:
    return point[1], point[0]


def scene_of(drawn: Findings | PartialGraph, changing: Collection[str] | None = None) -> Scene:
    """Lay out the graph of a result, or a graph, and return its scene.

    Parameters
    ----------
    drawn : Findings or PartialGraph
        What to draw.
    changing : collection of str, optional
        Variables to mark as changing. By default those of the result, or the children of the domain in the graph.

    Returns
    -------
    Scene
        The boxes and curves.

    Raises
    ------
    MissingDependencyError
        If igraph is not installed.
    SettingsError
        If the graph has circles or ↔, which this picture cannot show.

    Examples
    --------
    >>> from fedcdh import PartialGraph
    >>> scene = scene_of(PartialGraph(("a", "b"), frozenset({("a", "b")})), changing=["b"])
    >>> [(node.name, len(node.outline)) for node in scene.nodes]
    [('a', 4), ('b', 8)]
    """
    _refuse_end_marks(drawn)
    graph, marked = _resolve_graph(drawn, changing)
    lines = sorted(map(sort_pair, graph.lines))
    styles = _edge_styles(drawn) if isinstance(drawn, Findings) else None
    dag = _dag_arrows(drawn, graph)
    return build_scene(graph.nodes, sorted(graph.arrows), lines, changing=marked, dag=dag, styles=styles)


def _refuse_end_marks(drawn: object) -> None:
    """Refuse graphs of hidden causes: a picture with arrows and lines only would say more than they do."""
    if isinstance(drawn, (AncestralGraph, AncestralDiscovery)):
        raise SettingsError(
            f"found a {type(drawn).__name__}, whose edges have circles and ↔; expected a graph of arrows and lines, "
            "because this picture cannot show other marks yet. Print it, or draw fedcdh.graphs.convert.pag_to_dot(...) "
            "with Graphviz"
        )


def _edge_styles(result: Findings) -> dict[frozenset[str], EdgeStyle]:
    return {frozenset((edge.source, edge.target)): style_edge(asdict(edge)) for edge in result.edges() if edge.mark}


def fit_label(name: str, max_characters: float = MAX_LABEL_CHARACTERS) -> str:
    """Return a name on one line, shortened to a number of average characters."""
    return shorten("℧" if name == DOMAIN else " ".join(clean_text(name).split()), max_characters)


def _resolve_graph(
    drawn: Findings | PartialGraph, changing: Collection[str] | None
) -> tuple[PartialGraph, frozenset[str]]:
    """Return the graph to draw and the variables to mark in it."""
    if isinstance(drawn, Findings):
        return drawn.graph, drawn.changing if changing is None else frozenset(changing)
    if changing is None and DOMAIN in drawn.nodes:
        return drawn, frozenset(drawn.children(DOMAIN))
    return drawn, frozenset(changing or ())


def _dag_arrows(drawn: Findings | PartialGraph, graph: PartialGraph) -> Collection[NamePair]:
    """Return the arrows of a DAG near the graph; none if knowledge or a cycle leaves no DAG."""
    try:
        return (drawn.to_dag() if isinstance(drawn, Findings) else extend_to_dag(graph)).arrows
    except (KnowledgeError, NoConsistentExtensionError):
        return ()


def _size_box(label: str, changing: bool, room: float) -> BoxSize:
    """Make a box as wide as its text, and high enough for the room that its edges need."""
    width = max(text_width(label) * CHARACTER_WIDTH + BOX_PADDING, MIN_BOX_WIDTH)
    if changing:
        return BoxSize(max(width, MIN_CHANGING_BOX_WIDTH), max(CHANGING_BOX_HEIGHT, room))
    return BoxSize(width, max(BOX_HEIGHT, room))


def _room_for_ports(name: str, pairs: Sequence[NamePair]) -> float:
    """Return the length that the edges on the busier of two sides of a box need."""
    busiest = max(sum(pair[side] == name for pair in pairs) for side in (0, 1))
    return (busiest - 1) * PORT_SPACING + 2 * CORNER_CUT


def _make_curves(
    edges: Sequence[NamePair],
    n_arrows: int,
    directions: Mapping[frozenset[str], NamePair],
    routes: Mapping[NamePair, Route],
    styles: Mapping[frozenset[str], EdgeStyle],
) -> list[EdgeCurve]:
    """Trace every edge along its route, arrows first, with its style."""
    curves = []
    for position, pair in enumerate(edges):
        along = directions[frozenset(pair)]
        route = routes[along] if along == pair else routes[along].reverse()
        curve = _trace_curve(pair, route, directed=position < n_arrows)
        curves.append(replace(curve, style=styles.get(frozenset(pair), EdgeStyle())))
    return curves


def _with_signs(curves: Sequence[EdgeCurve], nodes: Sequence[NodeBox]) -> Iterator[EdgeCurve]:
    """Yield the curves with places for their signs, apart from each other, from boxes and from other curves."""
    boxes = [(node.x, node.y, node.width / 2, node.height / 2) for node in nodes]
    places = place_signs([(c.start, c.pieces) for c in curves], [bool(c.style.sign) for c in curves], boxes)
    for curve, place in zip(curves, places, strict=True):
        yield replace(curve, sign_at=place)


def _trace_curve(pair: NamePair, route: Route, directed: bool) -> EdgeCurve:
    """Draw an edge along its route, horizontal at both ends and at every layer it passes."""
    start, stop = route.points[0], route.points[-1]
    # the line ends one pixel inside the arrowhead, so that no gap shows between them
    last = (stop[0] - route.facing * (ARROWHEAD_LENGTH - 1), stop[1]) if directed else stop
    pieces = []
    for (x, y), (to_x, to_y) in pairwise([*route.points[:-1], last]):
        middle = (x + to_x) / 2
        pieces.append(((middle, y), (middle, to_y), (to_x, to_y)))
    return EdgeCurve(*pair, directed, start, stop, tuple(pieces), route.facing, route.ports)
