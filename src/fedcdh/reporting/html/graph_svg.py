"""The graph as SVG: boxes with names, curves with arrowheads; everything is there before a script runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.edge_routing import Route, route_edges, shorten, text_width
from fedcdh.reporting.graph_drawing.layered_layout import BoxSize, LayeredLayout, NamePair, compute_layout
from fedcdh.reporting.phrases import clean_text, describe_edge, format_evidence, to_plain_name

CHARACTER_WIDTH = 8.0  # pixels of an average letter at 13 px, on the wide side: fonts differ
MAX_LABEL_CHARACTERS = 22.0
PLAIN_HEIGHT, CHANGING_HEIGHT = 32.0, 46.0  # heights of boxes; those of changing mechanisms have a second line
DIFFERS_NOTE = "differs by site"
MARGIN = 24.0
CORNER_CUT = 9.0  # corners cut off the boxes of changing mechanisms
ARROWHEAD_LENGTH = 9.0
MIN_PICTURE_WIDTH = 820.0  # of a picture: small graphs are not blown up to the width of the page
FULL_WIDTH_FROM = 1100.0  # from this width on, a picture gets all of the page
MAX_NEG_LOG10_P = 320.0  # −log10 of the smallest p-value there is


@dataclass(frozen=True)
class GraphDrawing:
    """The picture, and what a script needs to know about it: positions of boxes, ends of edges."""

    svg: str
    vast: bool
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]


def draw_graph(document: Mapping[str, Any]) -> GraphDrawing:
    """The graph over the variables of a result."""
    changing = set(document["changing"])
    boxes = {name: _box(name, name in changing) for name in document["variables"]}
    shown = [edge for edge in document["edges"] if edge["mark"] and DOMAIN not in (edge["source"], edge["target"])]
    way = {frozenset(arrow): (arrow[0], arrow[1]) for arrow in document["dag"] or () if DOMAIN not in arrow}
    drawn = [way.get(frozenset(pair), pair) for pair in ((edge["source"], edge["target"]) for edge in shown)]
    layout = compute_layout(boxes, drawn)
    ways = route_edges(drawn, layout, boxes)
    nodes = [_node(i, name, boxes[name], layout, name in changing) for i, name in enumerate(boxes)]
    known = [value for edge in shown if (value := edge_strength(edge)) is not None]
    edges = [
        _edge(position, edge, drawn[position], ways[position], max(known, default=0.0))
        for position, edge in enumerate(shown)
    ]
    svg = "\n".join(_svg(layout, edges, nodes, len(changing)))
    keep = ("id", "source", "target", "strength", "leave", "arrive")
    places = ("id", "name", "x", "y", "width", "height")
    return GraphDrawing(
        svg,
        layout.width > FULL_WIDTH_FROM,
        [{key: node[key] for key in places} for node in nodes],
        [{key: edge[key] for key in keep} for edge in edges],
    )


def edge_strength(edge: Mapping[str, Any]) -> float | None:
    """How much speaks for an edge: |log Bayes factor|, or −log10 p; None where nothing was measured."""
    if edge.get("log_bayes_presence") is not None:
        return abs(float(edge["log_bayes_presence"]))
    if edge.get("p_value") is None:
        return None
    p_value = float(edge["p_value"])
    return min(-math.log10(p_value), MAX_NEG_LOG10_P) if p_value > 0 else MAX_NEG_LOG10_P


def fit_label(name: str, at_most: float = MAX_LABEL_CHARACTERS) -> str:
    """A name as it fits into a box, or whatever else has room for so many letters."""
    return shorten(clean_text(name), at_most)


def _box(name: str, changes: bool) -> BoxSize:
    width = max(text_width(fit_label(name)) * CHARACTER_WIDTH + 24, 56.0)
    return BoxSize(max(width, 112.0), CHANGING_HEIGHT) if changes else BoxSize(width, PLAIN_HEIGHT)


def _node(number: int, name: str, box: BoxSize, layout: LayeredLayout, changes: bool) -> dict[str, Any]:
    x, y = layout.centres[name]
    return {
        "id": f"n{number}",
        "name": to_plain_name(name),
        "x": _round(x),
        "y": _round(y),
        "width": _round(box.width),
        "height": box.height,
        "label": fit_label(name),
        "changes": changes,
    }


def _edge(number: int, edge: Mapping[str, Any], drawn: NamePair, way: Route, strongest: float) -> dict[str, Any]:
    if drawn != (edge["source"], edge["target"]):
        way = way.reversed()
    points = way.points
    value, directed = edge_strength(edge), edge["mark"] == "→"
    thickness = 1.2 + 1.8 * (math.sqrt(value / strongest) if value and strongest else 0.0)
    return {
        "id": f"e{number}",
        "source": edge["source"],
        "target": edge["target"],
        "strength": None if value is None else _round(value),
        "leave": _round(way.ports[0]),
        "arrive": _round(way.ports[1]),
        "directed": directed,
        "path": _curve(points, ARROWHEAD_LENGTH - 1 if directed else 0.0),
        "head": (_round(points[-1][0]), _round(points[-1][1]), 0 if way.facing > 0 else 180),
        "thickness": _round(thickness),
        "spoken": f"{describe_edge(edge)} {format_evidence(edge)}".strip(),
    }


def _curve(points: Sequence[tuple[float, float]], shorter: float) -> str:
    """A smooth line through the points that leaves and arrives level; the last piece is shorter by an arrowhead."""
    (x, y), last = points[0], len(points) - 1
    pieces = [f"M{_round(x):g} {_round(y):g}"]
    for position, (right, across) in enumerate(points[1:], 1):
        if position == last:
            right -= math.copysign(shorter, right - x)
        if across == y:
            pieces.append(f"L{_round(right):g} {_round(across):g}")
        else:
            middle = _round((x + right) / 2)
            pieces.append(
                f"C{middle:g} {_round(y):g} {middle:g} {_round(across):g} {_round(right):g} {_round(across):g}"
            )
        x, y = right, across
    return "".join(pieces)


def _svg(
    layout: LayeredLayout, edges: Sequence[Mapping[str, Any]], nodes: Sequence[Mapping[str, Any]], changing: int
) -> Iterator[str]:
    width, height = max(layout.width + 2 * MARGIN, MIN_PICTURE_WIDTH), layout.height + 2 * MARGIN
    left = (layout.width - width) / 2
    directed = sum(edge["directed"] for edge in edges)
    told = (
        f"{len(nodes)} variables, {directed} arrows from cause to effect, {len(edges) - directed} links of open "
        f"direction, {changing} mechanisms that differ between sites. The tables below say the same in words."
    )
    yield (
        f'<svg id="graph" xmlns="http://www.w3.org/2000/svg" viewBox="{left:g} {-MARGIN:g} {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="group" aria-labelledby="graph-title graph-told">'
    )
    yield f'<title id="graph-title">Causal graph</title><desc id="graph-told">{escape(told)}</desc>'
    yield '<g id="edges" role="group" aria-label="Links between variables">'
    yield from map(_edge_svg, edges)
    yield '</g>\n<g id="nodes" role="group" aria-label="Variables">'
    yield from map(_node_svg, nodes)
    yield "</g>\n</svg>"


def _edge_svg(edge: Mapping[str, Any]) -> str:
    kind = "arrow" if edge["directed"] else "line"
    x, y, turn = edge["head"]
    head = f'<path class="head" d="M0 0L-{ARROWHEAD_LENGTH:g} -4.5V4.5Z" transform="translate({x:g} {y:g}) rotate({turn})"/>'
    return (
        f'<g class="edge {kind}" id="{edge["id"]}" role="button" aria-label="{escape(edge["spoken"])}">'
        f'<title>{escape(edge["spoken"])}</title><path class="hit" d="{edge["path"]}"/>'
        f'<path class="curve" d="{edge["path"]}" stroke-width="{edge["thickness"]:g}"/>'
        f"{head if edge['directed'] else ''}</g>"
    )


def _node_svg(node: Mapping[str, Any]) -> str:
    right, bottom = node["width"] / 2, node["height"] / 2
    says = node["name"] + (", its mechanism differs between sites" if node["changes"] else "")
    if node["changes"]:
        shape = (
            f'<path class="box" d="M{-right + CORNER_CUT:g} {-bottom:g}H{right - CORNER_CUT:g}L{right:g} {-bottom + CORNER_CUT:g}'
            f"V{bottom - CORNER_CUT:g}L{right - CORNER_CUT:g} {bottom:g}H{-right + CORNER_CUT:g}L{-right:g} {bottom - CORNER_CUT:g}"
            f'V{-bottom + CORNER_CUT:g}Z"/>'
        )
        words = (
            f'<text class="name" y="-3">{escape(node["label"])}</text><text class="note" y="14">{DIFFERS_NOTE}</text>'
        )
    else:
        shape = (
            f'<rect class="box" x="{-right:g}" y="{-bottom:g}" width="{node["width"]:g}" height="{node["height"]:g}" '
            'rx="6"/>'
        )
        words = f'<text class="name" y="4.5">{escape(node["label"])}</text>'
    return (
        f'<g class="node{" changing" if node["changes"] else ""}" id="{node["id"]}" role="button" '
        f'aria-label="{escape(says)}" transform="translate({node["x"]:g} {node["y"]:g})">'
        f"<title>{escape(says)}</title>{shape}{words}</g>"
    )


def _round(value: float) -> float:
    return round(value, 1)
