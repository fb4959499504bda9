"""Plots for notebooks and papers, with matplotlib and without a Graphviz program.

axes = fedcdh.reporting.plots.plot(result)
fedcdh.reporting.plots.save(result, "graph.pdf")      # or .svg, .png; the same graph gives the same SVG and PNG
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.discovery.result import Discovery
from fedcdh.errors import SettingsError
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.reporting.graph_drawing.scene import (
    ARROWHEAD_LENGTH,
    CHARACTER_WIDTH,
    CORNER_CUT,
    FONT_SIZE,
    EdgeCurve,
    NodeBox,
    Scene,
    build_scene,
)
from fedcdh.reporting.graph_drawing.svg import CHANGING_BOX_COLOURS, INK_COLOUR, OPEN_EDGE_COLOUR, PLAIN_BOX_COLOURS

FONT_POINTS = 9.0
"""Of the letters, where the figure is made here: what journals ask for, and 30 variables on a page across."""
MARGIN = 12.0
LEGEND_HEIGHT, LEGEND_KEY_WIDTH = 40.0, 36.0  # the height of the legend, below the graph, and the width of a sign in it
FORMATS = ("svg", "pdf", "png")


def plot(
    drawn: Discovery | PartialGraph,
    ax: Any = None,
    *,
    changing: Collection[str] | None = None,
    legend: bool = True,
) -> Any:
    """Draws the graph of a result, or a graph, and returns the `matplotlib.axes.Axes` it is in.

    Causes stand on the left of effects; lines without heads have an open direction; variables whose mechanism differs
    between clients have cut corners. Without `ax`, a figure as large as the graph needs is made; with it, the graph is
    made to fit the size that the axes have now.
    """
    with optional_import("matplotlib", extra="plot"):
        from matplotlib import pyplot
    made = build_scene(drawn, changing)
    entries = _legend_entries(made) if legend else []
    below = LEGEND_HEIGHT if entries else 0.0
    width = max(made.width, sum(_entry_width(text) for _, text in entries)) + 2 * MARGIN
    height = made.height + 2 * MARGIN + below
    if ax is None:
        inches = FONT_POINTS / FONT_SIZE / 72
        figure = pyplot.figure(figsize=(width * inches, height * inches))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(-MARGIN, width - MARGIN)
    ax.set_ylim(height - MARGIN, -MARGIN)  # downwards
    scale = _points_per_pixel(ax)
    for curve in made.curves:
        _draw_curve(ax, curve, scale)
    for node in made.nodes:
        _draw_node(ax, node, scale)
    _draw_legend(ax, entries, height - MARGIN - 0.4 * below, scale)
    return ax


def save(
    drawn: Discovery | PartialGraph,
    path: Path | str,
    *,
    changing: Collection[str] | None = None,
    legend: bool = True,
    dpi: float = 200,
) -> Path:
    """Writes a plot as SVG, PDF or PNG, by the ending of the path; without a date, so that files can be compared."""
    path = Path(path)
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise SettingsError(f"{path.name} ends in {path.suffix!r}; expected one of .{', .'.join(FORMATS)}")
    with optional_import("matplotlib", extra="plot"):
        from matplotlib import pyplot, rc_context
    no_date = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}, "png": {}}[kind]
    # svg.hashsalt: ids in the file are otherwise drawn at random
    with rc_context({"svg.hashsalt": "fedcdh", "svg.fonttype": "none", "pdf.fonttype": 42}):
        axes = plot(drawn, changing=changing, legend=legend)
        try:
            axes.figure.savefig(path, dpi=dpi, metadata=no_date)
        finally:
            pyplot.close(axes.figure)
    return path


def _points_per_pixel(ax: Any) -> float:
    """How many points of the page a pixel of the sketch is, in the axes as they are now."""
    ax.apply_aspect()
    (left, _), (right, _) = ax.transData.transform([(0.0, 0.0), (1.0, 0.0)])
    return float((right - left) * 72 / ax.figure.dpi)


def _draw_curve(ax: Any, curve: EdgeCurve, scale: float) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path as Way

    points = [curve.start, *(point for piece in curve.pieces for point in piece)]
    codes = [Way.MOVETO, *[Way.CURVE4] * (len(points) - 1)]
    colour = INK_COLOUR if curve.tip else OPEN_EDGE_COLOUR
    ax.add_patch(PathPatch(Way(points, codes), fill=False, edgecolor=colour, linewidth=1.5 * scale, zorder=1))
    if curve.tip:
        ax.add_patch(Polygon(curve.tip, facecolor=INK_COLOUR, edgecolor="none", zorder=2))


def _draw_node(ax: Any, node: NodeBox, scale: float) -> None:
    from matplotlib.patches import Polygon

    inside, border = CHANGING_BOX_COLOURS if node.changing else PLAIN_BOX_COLOURS
    weight = (2.4 if node.changing else 1.2) * scale
    ax.add_patch(Polygon(node.outline, facecolor=inside, edgecolor=border, linewidth=weight, zorder=3))
    _draw_text(ax, node.x, node.y, node.label, scale, "center")


def _legend_entries(made: Scene) -> list[tuple[str, str]]:
    """The signs that occur, and what they mean."""
    found = {
        "arrow": any(curve.tip for curve in made.curves),
        "line": any(not curve.tip for curve in made.curves),
        "box": any(node.changing for node in made.nodes),
    }
    meaning = {"arrow": "causes", "line": "direction open", "box": "differs between clients"}
    return [(sign, meaning[sign]) for sign, occurs in found.items() if occurs]


def _entry_width(text: str) -> float:
    return LEGEND_KEY_WIDTH + len(text) * CHARACTER_WIDTH + 28


def _draw_legend(ax: Any, entries: Sequence[tuple[str, str]], y: float, scale: float) -> None:
    """Side by side, from the left."""
    x = 0.0
    for sign, text in entries:
        if sign == "box":
            _draw_node(
                ax, NodeBox("", "", x + LEGEND_KEY_WIDTH / 2, y, LEGEND_KEY_WIDTH, 2.4 * CORNER_CUT, True), scale
            )
        else:
            tip = (
                (
                    (x + LEGEND_KEY_WIDTH, y),
                    (x + LEGEND_KEY_WIDTH - ARROWHEAD_LENGTH, y - 4.5),
                    (x + LEGEND_KEY_WIDTH - ARROWHEAD_LENGTH, y + 4.5),
                )
                if sign == "arrow"
                else None
            )
            stop = (x + LEGEND_KEY_WIDTH - (ARROWHEAD_LENGTH - 1 if tip else 0), y)
            _draw_curve(ax, EdgeCurve("", "", (x, y), (((x, y), stop, stop),), tip), scale)
        _draw_text(ax, x + LEGEND_KEY_WIDTH + 8, y, text, scale, "left")
        x += _entry_width(text)


def _draw_text(ax: Any, x: float, y: float, text: str, scale: float, side: str) -> None:
    # parse_math=False: a dollar sign in a name is a dollar sign
    ax.text(
        x,
        y,
        text,
        ha=side,
        va="center_baseline",
        fontsize=FONT_SIZE * scale,
        color=INK_COLOUR,
        zorder=4,
        parse_math=False,
    )
