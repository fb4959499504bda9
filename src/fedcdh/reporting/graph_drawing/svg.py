"""A graph as SVG text for notebooks, without a drawing library and without a style sheet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from html import escape

from fedcdh.discovery.findings import Findings
from fedcdh.discovery.result_text import format_probability
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.reporting.graph_drawing.edge_routing import Point
from fedcdh.reporting.graph_drawing.scene import (
    CHANGING_NAME_BASELINE,
    CHANGING_NOTE,
    FONT_SIZE,
    NAME_BASELINE,
    NOTE_BASELINE,
    NOTE_FONT_SIZE,
    EdgeCurve,
    NodeBox,
    Scene,
    scene_of,
)
from fedcdh.reporting.graph_drawing.sign_places import SIGN_RADIUS

INK_COLOUR, OPEN_EDGE_COLOUR, PAPER_COLOUR = "#1f2933", "#0b6e99", "#ffffff"
PLAIN_BOX_COLOURS, CHANGING_BOX_COLOURS = ("#f5f7fa", "#52606d"), ("#fde8c8", "#b45309")
"""Fill and border of the boxes. Shapes and arrowheads carry the same information as the colours."""
OPEN_EDGE_DASHES, TENTATIVE_DASHES = (7.0, 5.0), (2.0, 3.0)
"""Dashes of edges whose direction is open, and dots of weak and uncertain edges."""
SIGN_BASELINE = 4.5
EDGE_WIDTH, PLAIN_BORDER_WIDTH, CHANGING_BORDER_WIDTH = 1.5, 1.2, 2.4
MARGIN = 16.0


def dash_pattern(curve: EdgeCurve) -> tuple[float, float] | None:
    """Return the dashes of an edge in pixels; None for an arrow that is neither weak nor uncertain."""
    if curve.style.is_tentative:
        return TENTATIVE_DASHES
    return None if curve.directed else OPEN_EDGE_DASHES


def render_svg(drawn: Findings | PartialGraph, *, changing: Collection[str] | None = None) -> str:
    """Return the graph of a result, or a graph, as one SVG element.

    Parameters
    ----------
    drawn : Findings or PartialGraph
        What to draw.
    changing : collection of str, optional
        Variables to mark as changing. By default those of the result, or the children of the domain in the graph.

    Returns
    -------
    str
        The SVG. The same graph gives the same text.

    Raises
    ------
    MissingDependencyError
        If igraph is not installed.

    Examples
    --------
    >>> from fedcdh import PartialGraph
    >>> render_svg(PartialGraph(("a", "b"), frozenset({("a", "b")}))).count("<path")
    4
    """
    return "\n".join(_svg_elements(scene_of(drawn, changing))) + "\n"


def _svg_elements(scene: Scene) -> Iterator[str]:
    width, height = scene.width + 2 * MARGIN, scene.height + 2 * MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-MARGIN:g} {-MARGIN:g} {width:.1f} {height:.1f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(_describe_scene(scene))}" '
        f'font-family="system-ui, sans-serif" font-size="{FONT_SIZE:g}" style="max-width: 100%; height: auto">'
    )
    yield f'<rect x="{-MARGIN:g}" y="{-MARGIN:g}" width="{width:.1f}" height="{height:.1f}" fill="{PAPER_COLOUR}"/>'
    yield from map(_edge_svg, scene.curves)
    yield from filter(None, map(_sign_svg, scene.curves))
    yield from map(_node_svg, scene.nodes)
    yield "</svg>"


def _describe_scene(scene: Scene) -> str:
    arrows = [f"{curve.tail} causes {curve.head}" for curve in scene.curves if curve.directed]
    lines = [
        f"{curve.tail} and {curve.head} are linked, direction open" for curve in scene.curves if not curve.directed
    ]
    changing = [f"the mechanism of {node.name} differs between sites" for node in scene.nodes if node.changing]
    return "Causal graph: " + ("; ".join([*arrows, *lines, *changing]) or "no edges")


def _edge_svg(curve: EdgeCurve) -> str:
    path = f"M{_format_points([curve.start])}" + "".join(f"C{_format_points(piece)}" for piece in curve.pieces)
    title = f"{curve.tail} → {curve.head}" if curve.directed else f"{curve.tail} — {curve.head}"
    style = curve.style
    faint = "" if style.opacity == 1 else f' opacity="{style.opacity:g}"'
    known = [f"effect {style.sign}"] if style.sign else []
    known += [] if style.probability is None else [format_probability(style.probability)]
    title += f" ({', '.join(known)})" if known else ""
    head = f'<path d="M{_format_points(curve.arrowhead)}Z" fill="{INK_COLOUR}"/>' if curve.arrowhead else ""
    colour = INK_COLOUR if curve.directed else OPEN_EDGE_COLOUR
    pattern = dash_pattern(curve)
    dashes = f' stroke-dasharray="{" ".join(f"{length:g}" for length in pattern)}"' if pattern else ""
    return (
        f'<g{faint}><title>{escape(title)}</title><path d="{path}" fill="none" stroke="{colour}" '
        f'stroke-width="{EDGE_WIDTH * style.relative_width:.2g}"{dashes}/>{head}</g>'
    )


def _sign_svg(curve: EdgeCurve) -> str:
    """Return the sign of an edge on a small disc; nothing where there is none."""
    if curve.sign_at is None:
        return ""
    x, y = curve.sign_at
    colour = INK_COLOUR if curve.directed else OPEN_EDGE_COLOUR
    return (
        f'<g><circle cx="{x:.1f}" cy="{y:.1f}" r="{SIGN_RADIUS:g}" fill="{PAPER_COLOUR}" stroke="{colour}"/>'
        f'<text x="{x:.1f}" y="{y + SIGN_BASELINE:.1f}" text-anchor="middle" fill="{colour}">'
        f"{curve.style.sign}</text></g>"
    )


def _node_svg(node: NodeBox) -> str:
    fill, border = CHANGING_BOX_COLOURS if node.changing else PLAIN_BOX_COLOURS
    title = f"{node.name}: its mechanism differs between sites" if node.changing else node.name
    weight = CHANGING_BORDER_WIDTH if node.changing else PLAIN_BORDER_WIDTH
    baseline = CHANGING_NAME_BASELINE if node.changing else NAME_BASELINE
    note = (
        f'<text x="{node.x:.1f}" y="{node.y + NOTE_BASELINE:.1f}" text-anchor="middle" font-size="{NOTE_FONT_SIZE:g}" '
        f'fill="{border}">{CHANGING_NOTE}</text>'
        if node.changing
        else ""
    )
    return (
        f'<g><title>{escape(title)}</title><path d="M{_format_points(node.outline)}Z" fill="{fill}" stroke="{border}" '
        f'stroke-width="{weight:g}" stroke-linejoin="round"/>'
        f'<text x="{node.x:.1f}" y="{node.y + baseline:.1f}" text-anchor="middle" fill="{INK_COLOUR}">'
        f"{escape(node.label)}</text>{note}</g>"
    )


def _format_points(points: Iterable[Point]) -> str:
    return " ".join(f"{x:.1f} {y:.1f}" for x, y in points)
