"""Plots of causal graphs for notebooks and papers, with matplotlib and without a Graphviz program.

>>> import fedcdh
>>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
>>> from fedcdh.reporting import plots
>>> path = plots.save(result, "graph.svg")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.discovery.findings import Findings
from fedcdh.errors import SettingsError
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.reporting.graph_drawing.edge_style import EdgeStyle
from fedcdh.reporting.graph_drawing.scene import (
    ARROWHEAD_LENGTH,
    CHANGING_NAME_BASELINE,
    CHANGING_NOTE,
    CHARACTER_WIDTH,
    CORNER_CUT,
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
from fedcdh.reporting.graph_drawing.svg import (
    CHANGING_BORDER_WIDTH,
    CHANGING_BOX_COLOURS,
    EDGE_WIDTH,
    INK_COLOUR,
    OPEN_EDGE_COLOUR,
    PAPER_COLOUR,
    PLAIN_BORDER_WIDTH,
    PLAIN_BOX_COLOURS,
    SIGN_BASELINE,
    dash_pattern,
)

FONT_POINTS = 9.0
"""Size of the text in a new figure: what journals ask for, and small enough for 30 variables across a page."""
MARGIN = 12.0
LEGEND_HEIGHT, LEGEND_KEY_WIDTH = 40.0, 36.0
FORMATS = ("svg", "pdf", "png")
_LEGEND_TEXTS = {
    "arrow": "cause → effect",
    "line": "direction open",
    "tentative": "weak or uncertain",
    "sign": "more cause, more (+) or less (−) effect",
    "box": "mechanism differs between sites",
}


def plot(
    drawn: Findings | PartialGraph,
    ax: Any = None,
    *,
    changing: Collection[str] | None = None,
    legend: bool = True,
) -> Any:
    """Draw the graph of a result, or a graph, with matplotlib.

    Causes stand to the left of their effects. Lines without arrowheads have an open direction. Boxes with cut corners
    belong to variables whose mechanism differs between sites. Edges of a result are thicker where the effect is larger
    and darker where they are likelier; weak and uncertain ones are dotted. A sign says whether more of the cause goes
    with more (+) or less (−) of the effect.

    Parameters
    ----------
    drawn : Findings or PartialGraph
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; the graph is scaled to their present size. By default, a new figure as large as the graph
        needs.
    changing : collection of str, optional
        Variables to mark as changing. By default those of the result, or the children of the domain in the graph.
    legend : bool, default True
        Explain below the graph the symbols that occur in it.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the graph.

    Raises
    ------
    MissingDependencyError
        If matplotlib or igraph is not installed.

    Examples
    --------
    >>> from fedcdh import PartialGraph
    >>> axes = plot(PartialGraph(("a", "b"), frozenset({("a", "b")})))
    >>> [text.get_text() for text in axes.texts]
    ['a', 'b', 'cause → effect']
    """
    with optional_import("matplotlib", extra="plot"):
        from matplotlib import pyplot
    scene = scene_of(drawn, changing)
    entries = _legend_entries(scene) if legend else []
    below = LEGEND_HEIGHT if entries else 0.0
    width = max(scene.width, sum(_entry_width(text) for _, text in entries)) + 2 * MARGIN
    height = scene.height + 2 * MARGIN + below
    if ax is None:
        inches = FONT_POINTS / FONT_SIZE / 72
        figure = pyplot.figure(figsize=(width * inches, height * inches))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(-MARGIN, width - MARGIN)
    ax.set_ylim(height - MARGIN, -MARGIN)  # y runs downwards in a scene
    scale = _points_per_pixel(ax)
    for curve in scene.curves:
        _draw_curve(ax, curve, scale)
    for curve in scene.curves:
        _draw_sign(ax, curve, scale)
    for node in scene.nodes:
        _draw_node(ax, node, scale)
    _draw_legend(ax, entries, height - MARGIN - 0.4 * below, scale)
    return ax


def save(
    drawn: Findings | PartialGraph,
    path: Path | str,
    *,
    changing: Collection[str] | None = None,
    legend: bool = True,
    dpi: float = 200,
) -> Path:
    """Write a plot as SVG, PDF or PNG.

    Parameters
    ----------
    drawn : Findings or PartialGraph
        What to draw.
    path : Path or str
        Where to write it. The ending decides the format.
    changing : collection of str, optional
        Variables to mark as changing. By default those of the result, or the children of the domain in the graph.
    legend : bool, default True
        Explain below the graph the symbols that occur in it.
    dpi : float, default 200
        Resolution of a PNG file.

    Returns
    -------
    Path
        The path of the file. The file holds no date, so the same graph gives the same bytes.

    Raises
    ------
    SettingsError
        If the path ends in something else.
    MissingDependencyError
        If matplotlib or igraph is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from fedcdh import PartialGraph
    >>> save(PartialGraph(("a", "b")), Path(tempfile.mkdtemp()) / "graph.svg").name
    'graph.svg'
    """
    path = Path(path)
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise SettingsError(
            f"The file {path.name} ends in {path.suffix!r}. Expected one of .{', .'.join(FORMATS)}. Rename the file.",
            parameter="path",
        )
    with optional_import("matplotlib", extra="plot"):
        from matplotlib import pyplot, rc_context
    no_date = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}, "png": {}}[kind]
    # svg.hashsalt: without it, matplotlib draws the identifiers in the file at random
    with rc_context({"svg.hashsalt": "fedcdh", "svg.fonttype": "none", "pdf.fonttype": 42}):
        axes = plot(drawn, changing=changing, legend=legend)
        try:
            axes.figure.savefig(path, dpi=dpi, metadata=no_date)
        finally:
            pyplot.close(axes.figure)
    return path


def _points_per_pixel(ax: Any) -> float:
    """Return how many points of the page one pixel of the scene takes in the axes at their present size."""
    ax.apply_aspect()
    (left, _), (right, _) = ax.transData.transform([(0.0, 0.0), (1.0, 0.0)])
    return float((right - left) * 72 / ax.figure.dpi)


def _draw_curve(ax: Any, curve: EdgeCurve, scale: float) -> None:
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path as BezierPath

    points = [curve.start, *(point for piece in curve.pieces for point in piece)]
    codes = [BezierPath.MOVETO, *[BezierPath.CURVE4] * (len(points) - 1)]
    width, alpha = EDGE_WIDTH * curve.style.relative_width, curve.style.opacity
    pattern = dash_pattern(curve)
    # matplotlib measures dashes in widths of the line
    dashes = (0.0, tuple(length / width for length in pattern)) if pattern else "-"
    style = {"edgecolor": INK_COLOUR if curve.directed else OPEN_EDGE_COLOUR, "linestyle": dashes, "alpha": alpha}
    ax.add_patch(PathPatch(BezierPath(points, codes), fill=False, linewidth=width * scale, zorder=1, **style))
    if curve.arrowhead:
        ax.add_patch(Polygon(curve.arrowhead, facecolor=INK_COLOUR, edgecolor="none", alpha=alpha, zorder=2))


def _draw_sign(ax: Any, curve: EdgeCurve, scale: float) -> None:
    from matplotlib.patches import Circle

    if curve.sign_at is None:
        return
    colour = INK_COLOUR if curve.directed else OPEN_EDGE_COLOUR
    disc = {"facecolor": PAPER_COLOUR, "edgecolor": colour, "linewidth": PLAIN_BORDER_WIDTH * scale, "zorder": 3}
    ax.add_patch(Circle(curve.sign_at, SIGN_RADIUS, **disc))
    x, y = curve.sign_at
    _draw_text(ax, (x, y + SIGN_BASELINE), curve.style.sign, FONT_SIZE * scale, colour=colour)


def _draw_node(ax: Any, node: NodeBox, scale: float) -> None:
    _draw_box(ax, node, scale)
    baseline = CHANGING_NAME_BASELINE if node.changing else NAME_BASELINE
    _draw_text(ax, (node.x, node.y + baseline), node.label, FONT_SIZE * scale)
    if node.changing:
        colour = CHANGING_BOX_COLOURS[1]
        _draw_text(ax, (node.x, node.y + NOTE_BASELINE), CHANGING_NOTE, NOTE_FONT_SIZE * scale, colour=colour)


def _draw_box(ax: Any, node: NodeBox, scale: float) -> None:
    from matplotlib.patches import Polygon

    fill, border = CHANGING_BOX_COLOURS if node.changing else PLAIN_BOX_COLOURS
    weight = (CHANGING_BORDER_WIDTH if node.changing else PLAIN_BORDER_WIDTH) * scale
    ax.add_patch(Polygon(node.outline, facecolor=fill, edgecolor=border, linewidth=weight, zorder=3))


def _legend_entries(scene: Scene) -> list[tuple[str, str]]:
    """Return the symbols that occur in the scene, with their meaning."""
    occurs = {
        "arrow": any(curve.directed for curve in scene.curves),
        "line": any(not curve.directed for curve in scene.curves),
        "tentative": any(curve.style.is_tentative for curve in scene.curves),
        "sign": any(curve.sign_at is not None for curve in scene.curves),
        "box": any(node.changing for node in scene.nodes),
    }
    return [(symbol, text) for symbol, text in _LEGEND_TEXTS.items() if occurs[symbol]]


def _entry_width(text: str) -> float:
    return LEGEND_KEY_WIDTH + len(text) * CHARACTER_WIDTH + 28


def _draw_legend(ax: Any, entries: Sequence[tuple[str, str]], y: float, scale: float) -> None:
    """Draw the entries side by side from the left."""
    x = 0.0
    for symbol, text in entries:
        right = x + LEGEND_KEY_WIDTH
        if symbol == "box":
            middle = x + LEGEND_KEY_WIDTH / 2
            _draw_box(ax, NodeBox("", "", middle, y, LEGEND_KEY_WIDTH, 2.4 * CORNER_CUT, changing=True), scale)
        else:
            key = _legend_key(symbol, x, right, y)
            _draw_curve(ax, key, scale)
            _draw_sign(ax, key, scale)
        _draw_text(ax, (right + 8, y + NAME_BASELINE), text, FONT_SIZE * scale, side="left")
        x += _entry_width(text)


def _legend_key(symbol: str, left: float, right: float, y: float) -> EdgeCurve:
    """Return a straight edge that looks as the symbol says."""
    arrow = symbol != "line"
    end = (right - (ARROWHEAD_LENGTH - 1 if arrow else 0), y)
    style = EdgeStyle(strength=0.0) if symbol == "tentative" else EdgeStyle(sign="+" if symbol == "sign" else "")
    sign_at = ((left + right) / 2 - ARROWHEAD_LENGTH / 2, y) if symbol == "sign" else None
    return EdgeCurve("", "", arrow, (left, y), (right, y), (((left, y), end, end),), style=style, sign_at=sign_at)


def _draw_text(
    ax: Any, place: tuple[float, float], text: str, size: float, *, side: str = "center", colour: str = INK_COLOUR
) -> None:
    # parse_math=False: a dollar sign in a name is a dollar sign
    ax.text(*place, text, ha=side, va="baseline", fontsize=size, color=colour, zorder=4, parse_math=False)
