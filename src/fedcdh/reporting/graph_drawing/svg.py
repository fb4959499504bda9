"""A graph as SVG text: what a notebook shows; needs no drawing library and no style sheet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from html import escape

from fedcdh.discovery.result import Discovery
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.reporting.graph_drawing.edge_routing import Point
from fedcdh.reporting.graph_drawing.scene import FONT_SIZE, EdgeCurve, NodeBox, Scene, build_scene

INK_COLOUR, OPEN_EDGE_COLOUR, PAPER_COLOUR = "#1f2933", "#0b6e99", "#ffffff"
PLAIN_BOX_COLOURS, CHANGING_BOX_COLOURS = ("#f5f7fa", "#52606d"), ("#fde8c8", "#b45309")
"""Inside and border of boxes. Shapes and arrowheads say the same as colours, which need not be seen."""
MARGIN = 16.0


def render_svg(drawn: Discovery | PartialGraph, *, changing: Collection[str] | None = None) -> str:
    """The graph of a result, or a graph, as one SVG element; the same graph gives the same text."""
    made = build_scene(drawn, changing)
    return "\n".join(_svg_elements(made)) + "\n"


def _svg_elements(made: Scene) -> Iterator[str]:
    width, height = made.width + 2 * MARGIN, made.height + 2 * MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-MARGIN:g} {-MARGIN:g} {width:.1f} {height:.1f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(_describe_scene(made))}" '
        f'font-family="system-ui, sans-serif" font-size="{FONT_SIZE:g}" style="max-width: 100%; height: auto">'
    )
    yield f'<rect x="{-MARGIN:g}" y="{-MARGIN:g}" width="{width:.1f}" height="{height:.1f}" fill="{PAPER_COLOUR}"/>'
    yield from map(_edge_svg, made.curves)
    yield from map(_node_svg, made.nodes)
    yield "</svg>"


def _describe_scene(made: Scene) -> str:
    arrows = [f"{curve.tail} causes {curve.head}" for curve in made.curves if curve.tip]
    lines = [f"{curve.tail} and {curve.head} are linked, direction open" for curve in made.curves if not curve.tip]
    changing = [f"the mechanism of {node.name} differs between clients" for node in made.nodes if node.changing]
    return "Causal graph: " + ("; ".join([*arrows, *lines, *changing]) or "no edges")


def _edge_svg(curve: EdgeCurve) -> str:
    path = f"M{_format_points([curve.start])}" + "".join(f"C{_format_points(piece)}" for piece in curve.pieces)
    told = f"{curve.tail} → {curve.head}" if curve.tip else f"{curve.tail} — {curve.head}"
    head = f'<path d="M{_format_points(curve.tip)}Z" fill="{INK_COLOUR}"/>' if curve.tip else ""
    colour = INK_COLOUR if curve.tip else OPEN_EDGE_COLOUR
    return (
        f'<g><title>{escape(told)}</title><path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>{head}</g>'
    )


def _node_svg(node: NodeBox) -> str:
    inside, border = CHANGING_BOX_COLOURS if node.changing else PLAIN_BOX_COLOURS
    told = f"{node.name}: its mechanism differs between clients" if node.changing else node.name
    return (
        f'<g><title>{escape(told)}</title><path d="M{_format_points(node.outline)}Z" fill="{inside}" stroke="{border}" '
        f'stroke-width="{2.4 if node.changing else 1.2}" stroke-linejoin="round"/>'
        f'<text x="{node.x:.1f}" y="{node.y + FONT_SIZE * 0.35:.1f}" text-anchor="middle" fill="{INK_COLOUR}">'
        f"{escape(node.label)}</text></g>"
    )


def _format_points(points: Iterable[Point]) -> str:
    return " ".join(f"{x:.1f} {y:.1f}" for x, y in points)
