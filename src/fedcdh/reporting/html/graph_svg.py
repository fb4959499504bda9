"""The graph of a report as SVG: complete without the script, which adds dragging, zooming and details."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.edge_style import style_edge
from fedcdh.reporting.graph_drawing.scene import (
    ARROWHEAD_HALF_WIDTH,
    ARROWHEAD_LENGTH,
    CHANGING_NAME_BASELINE,
    CHANGING_NOTE,
    CORNER_CUT,
    NAME_BASELINE,
    NOTE_BASELINE,
    EdgeCurve,
    NodeBox,
    Scene,
    build_narrow_scene,
    build_scene,
)
from fedcdh.reporting.graph_drawing.sign_places import SIGN_RADIUS
from fedcdh.reporting.graph_drawing.svg import SIGN_BASELINE
from fedcdh.reporting.phrases import describe_edge, format_certainty, shown_probability, to_plain_name

MARGIN = 24.0
NARROW_MARGIN, MIN_NARROW_WIDTH = 8.0, 340.0
"""Margin and smallest width of the picture for a phone."""
MIN_PICTURE_WIDTH = 820.0
"""Smallest width of the picture, so that small graphs are not enlarged to the width of the page."""
FULL_WIDTH_FROM = 1100.0
"""Width of a graph from which its picture takes the whole width of the page."""
MAX_NEG_LOG10_P = 320.0
"""−log10 of the smallest positive number, used for a p-value of 0."""
_MIN_STROKE, _STROKE_RANGE = 1.2, 1.8
_USUAL_STROKE = 1.8


@dataclass(frozen=True)
class GraphDrawing:
    """The SVG of a graph and the data of its boxes and edges that the script needs.

    Parameters
    ----------
    svg : str
        One SVG element.
    narrow_svg : str
        The same graph from top to bottom, for a phone.
    full_width : bool
        The picture takes the whole width of the page.
    nodes : list of dict
        Identifier, name, position and size of every box.
    edges : list of dict
        Identifier, ends, strength and ports of every edge.
    """

    svg: str
    narrow_svg: str
    full_width: bool
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]


def draw_graph(document: Mapping[str, Any]) -> GraphDrawing:
    """Draw the graph over the variables of a result.

    Parameters
    ----------
    document : mapping
        A checked result document.

    Returns
    -------
    GraphDrawing
        The SVG and the data for the script.
    """
    changing = set(document["changing"])
    shown = [edge for edge in document["edges"] if edge["mark"] and DOMAIN not in (edge["source"], edge["target"])]
    scene, narrow = _scenes_of_document(document, shown, changing)
    curves = {frozenset((curve.tail, curve.head)): curve for curve in scene.curves}
    nodes = [_node_record(number, node) for number, node in enumerate(scene.nodes)]
    strongest = max((value for edge in shown if (value := edge_strength(edge)) is not None), default=0.0)
    edges = [
        _edge_record(number, edge, curves[frozenset((edge["source"], edge["target"]))])
        for number, edge in enumerate(shown)
    ]
    elements = [
        _edge_svg(record, edge, curves[frozenset((edge["source"], edge["target"]))], strongest)
        for record, edge in zip(edges, shown, strict=True)
    ]
    boxes = [_node_svg(record, node) for record, node in zip(nodes, scene.nodes, strict=True)]
    svg = "\n".join(_svg_elements(scene, elements, boxes))
    return GraphDrawing(svg, _narrow_svg(narrow, shown, strongest), scene.width > FULL_WIDTH_FROM, nodes, edges)


def _narrow_svg(scene: Scene, shown: Sequence[Mapping[str, Any]], strongest: float) -> str:
    """Return the picture for a phone. It is a copy for the eye; the other one has the names for screen readers."""
    curves = {frozenset((curve.tail, curve.head)): curve for curve in scene.curves}
    edges = []
    for number, edge in enumerate(shown):
        curve = curves[frozenset((edge["source"], edge["target"]))]
        edges.append(_edge_svg(_edge_record(number, edge, curve), edge, curve, strongest, copy=True))
    nodes = [_node_svg(_node_record(number, node), node, copy=True) for number, node in enumerate(scene.nodes)]
    width, height = max(scene.width + 2 * NARROW_MARGIN, MIN_NARROW_WIDTH), scene.height + 2 * NARROW_MARGIN
    left = (scene.width - width) / 2
    return (
        f'<svg class="graph narrow" xmlns="http://www.w3.org/2000/svg" viewBox="{left:g} {-NARROW_MARGIN:g} {width:g} '
        f'{height:g}" width="{width:g}" height="{height:g}" aria-hidden="true">'
        + "\n".join([*edges, *nodes])
        + "</svg>"
    )


def edge_strength(edge: Mapping[str, Any]) -> float | None:
    """Return the certainty of an edge, or of its absence, as one number.

    Parameters
    ----------
    edge : mapping
        An edge of a result document.

    Returns
    -------
    float or None
        The probability of the arrow or line; without probabilities the absolute log Bayes factor, or −log10 p; None
        if none of them was computed.

    Examples
    --------
    >>> edge_strength({"p_value": 0.001})
    3.0
    """
    if (probability := shown_probability(edge)) is not None:
        return probability
    if edge.get("log_bayes_presence") is not None:
        return abs(float(edge["log_bayes_presence"]))
    if edge.get("p_value") is None:
        return None
    p_value = float(edge["p_value"])
    return min(-math.log10(p_value), MAX_NEG_LOG10_P) if p_value > 0 else MAX_NEG_LOG10_P


def _scenes_of_document(
    document: Mapping[str, Any], edges: Sequence[Mapping[str, Any]], changing: set[str]
) -> tuple[Scene, Scene]:
    """Return the scene for a page and that for a phone."""
    pairs = [(edge["source"], edge["target"]) for edge in edges]
    graph = (
        document["variables"],
        [pair for pair, edge in zip(pairs, edges, strict=True) if edge["mark"] == "→"],
        [pair for pair, edge in zip(pairs, edges, strict=True) if edge["mark"] != "→"],
    )
    dag = [(arrow[0], arrow[1]) for arrow in document["dag"] or ()]
    styles = {frozenset(pair): style_edge(edge) for pair, edge in zip(pairs, edges, strict=True)}
    wide, narrow = (
        build(*graph, changing=changing, dag=dag, styles=styles) for build in (build_scene, build_narrow_scene)
    )
    return wide, narrow


def _node_record(number: int, node: NodeBox) -> dict[str, Any]:
    return {
        "id": f"n{number}",
        "name": to_plain_name(node.name),
        "x": _round(node.x),
        "y": _round(node.y),
        "width": _round(node.width),
        "height": _round(node.height),
    }


def _edge_record(number: int, edge: Mapping[str, Any], curve: EdgeCurve) -> dict[str, Any]:
    value = edge_strength(edge)
    return {
        "id": f"e{number}",
        "source": edge["source"],
        "target": edge["target"],
        "strength": None if value is None else round(value, 4),
        "leave": _round(curve.ports[0]),
        "arrive": _round(curve.ports[1]),
    }


def _svg_elements(scene: Scene, edges: Sequence[str], nodes: Sequence[str]) -> Iterator[str]:
    width, height = max(scene.width + 2 * MARGIN, MIN_PICTURE_WIDTH), scene.height + 2 * MARGIN
    left = (scene.width - width) / 2
    directed = sum(curve.directed for curve in scene.curves)
    changing = sum(node.changing for node in scene.nodes)
    description = (
        f"{len(nodes)} variables, {directed} arrows from cause to effect, {len(edges) - directed} links of open "
        f"direction, {changing} mechanisms that differ between sites. The tables below say the same in words."
    )
    yield (
        f'<svg id="graph" class="graph wide" xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="{left:g} {-MARGIN:g} {width:g} {height:g}" role="group" '
        'aria-labelledby="graph-title graph-description">'
    )
    yield f'<title id="graph-title">Causal graph</title><desc id="graph-description">{escape(description)}</desc>'
    yield '<g id="edges" role="group" aria-label="Links between variables">'
    yield from edges
    yield '</g>\n<g id="nodes" role="group" aria-label="Variables">'
    yield from nodes
    yield "</g>\n</svg>"


def _edge_svg(
    record: Mapping[str, Any], edge: Mapping[str, Any], curve: EdgeCurve, strongest: float, *, copy: bool = False
) -> str:
    stroke, faint = _stroke_width(edge, curve, strongest), ""
    description = escape(f"{describe_edge(edge)} {format_certainty(edge)}".strip())
    path, head = _format_path(curve), ""
    kind = f"edge {'arrow' if curve.directed else 'line'}{' tentative' if curve.style.is_tentative else ''}"
    if (opacity := curve.style.opacity) < 1:
        faint = f' stroke-opacity="{opacity:g}" fill-opacity="{opacity:g}"'
    if curve.directed:
        x, y = curve.stop
        turn = 90 * curve.downwards + (0 if curve.facing > 0 else 180)
        head = (
            f'<path class="head"{faint} '
            f'd="M0 0L-{ARROWHEAD_LENGTH:g} -{ARROWHEAD_HALF_WIDTH:g}V{ARROWHEAD_HALF_WIDTH:g}Z" '
            f'transform="translate({_round(x):g} {_round(y):g}) rotate({turn})"/>'
        )
    return (
        f'<g class="{kind}" {_identify(record, description, copy)}><title>{description}</title>'
        f'<path class="hit" d="{path}"/>'
        f'<path class="curve" d="{path}" stroke-width="{_round(stroke):g}"{faint}/>{head}{_sign_svg(curve)}</g>'
    )


def _identify(record: Mapping[str, Any], description: str, copy: bool) -> str:
    """Return the attributes by which the script finds an element, or a copy of it in the picture for a phone."""
    if copy:
        return f'data-copy-of="{record["id"]}"'
    return f'id="{record["id"]}" role="button" aria-label="{description}"'


def _sign_svg(curve: EdgeCurve) -> str:
    """Return the sign of an edge on a disc; nothing where there is none."""
    if curve.sign_at is None:
        return ""
    x, y = map(_round, curve.sign_at)
    return (
        f'<g class="sign" transform="translate({x:g} {y:g})"><circle r="{SIGN_RADIUS:g}"/>'
        f'<text y="{SIGN_BASELINE:g}">{curve.style.sign}</text></g>'
    )


def _stroke_width(edge: Mapping[str, Any], curve: EdgeCurve, strongest: float) -> float:
    """Return the width of an edge: by the size of its effect, or else by its evidence beside the strongest."""
    if curve.style.strength is not None or curve.style.probability is not None:
        return _USUAL_STROKE * curve.style.relative_width
    value = edge_strength(edge)
    return _MIN_STROKE + _STROKE_RANGE * (math.sqrt(value / strongest) if value and strongest else 0.0)


def _format_path(curve: EdgeCurve) -> str:
    """Write the curve as an SVG path, with straight lines where both ends have the same height, or stand upright."""
    across = 0 if curve.downwards else 1
    last = curve.start[across]
    parts = [f"M{_format_point(curve.start)}"]
    for piece in curve.pieces:
        straight = piece[-1][across] == last
        parts.append(f"L{_format_point(piece[-1])}" if straight else f"C{' '.join(map(_format_point, piece))}")
        last = piece[-1][across]
    return "".join(parts)


def _format_point(point: tuple[float, float]) -> str:
    return f"{_round(point[0]):g} {_round(point[1]):g}"


def _node_svg(record: Mapping[str, Any], node: NodeBox, *, copy: bool = False) -> str:
    right, bottom = record["width"] / 2, record["height"] / 2
    description = record["name"] + (", its mechanism differs between sites" if node.changing else "")
    if node.changing:
        near, low = right - CORNER_CUT, bottom - CORNER_CUT
        shape = (
            f'<path class="box" d="M{-near:g} {-bottom:g}H{near:g}L{right:g} {-low:g}V{low:g}L{near:g} {bottom:g}'
            f'H{-near:g}L{-right:g} {low:g}V{-low:g}Z"/>'
        )
        texts = (
            f'<text class="name" y="{CHANGING_NAME_BASELINE:g}">{escape(node.label)}</text>'
            f'<text class="note" y="{NOTE_BASELINE:g}">{CHANGING_NOTE}</text>'
        )
    else:
        size = f'width="{record["width"]:g}" height="{record["height"]:g}"'
        shape = f'<rect class="box" x="{-right:g}" y="{-bottom:g}" {size} rx="6"/>'
        texts = f'<text class="name" y="{NAME_BASELINE:g}">{escape(node.label)}</text>'
    return (
        f'<g class="node{" changing" if node.changing else ""}" {_identify(record, escape(description), copy)} '
        f'transform="translate({record["x"]:g} {record["y"]:g})"><title>{escape(description)}</title>{shape}{texts}</g>'
    )


def _round(value: float) -> float:
    return round(value, 1)
