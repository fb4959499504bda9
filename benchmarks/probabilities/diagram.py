"""A reliability diagram as SVG: said against found, in three panels per method. It needs no library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import sqrt

from benchmarks.probabilities.reliability import Bin, interval

PANELS = {
    "presence": "presence of an edge",
    "direction": "direction of a true edge",
    "change": "change of a mechanism",
}
SIDE, GAP, TOP, BOTTOM, LEFT = 220.0, 70.0, 64.0, 56.0, 64.0
MAX_RADIUS, MIN_RADIUS = 10.0, 2.0
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
STYLE = """
text { font: 12px sans-serif; fill: #222; }
.title { font-size: 13px; font-weight: bold; }
.frame { fill: none; stroke: #888; }
.diagonal { stroke: #888; stroke-dasharray: 4 4; }
.bar { stroke: #1f66b0; stroke-opacity: 0.6; }
.point { fill: #1f66b0; fill-opacity: 0.75; }
.paper { fill: #fff; }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd; }
  .bar { stroke: #7ab8ff; }
  .point { fill: #7ab8ff; }
  .paper { fill: #181818; }
}
"""


def draw_diagram(rows: Mapping[str, Mapping[str, Sequence[Bin]]]) -> str:
    """Return the SVG text: a row of panels for every method, from bins by kind of statement."""
    width = LEFT + len(PANELS) * (SIDE + GAP)
    height = len(rows) * (TOP + SIDE + BOTTOM)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        'aria-label="Reliability diagram: probabilities said against shares found">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{width:g}" height="{height:g}"/>',
    ]
    for number, (method, kinds) in enumerate(rows.items()):
        top = number * (TOP + SIDE + BOTTOM) + TOP
        parts.append(f'<text class="title" x="{LEFT:g}" y="{top - 36:g}">{escape(method)}</text>')
        for place, (kind, title) in enumerate(PANELS.items()):
            parts += _panel(LEFT + place * (SIDE + GAP), top, title, kinds[kind])
    return "\n".join([*parts, "</svg>", ""])


def _panel(left: float, top: float, title: str, bins: Sequence[Bin]) -> list[str]:
    bottom, count = top + SIDE, sum(one.count for one in bins)
    parts = [
        f'<text x="{left:g}" y="{top - 12:g}">{escape(title)} ({count})</text>',
        f'<rect class="frame" x="{left:g}" y="{top:g}" width="{SIDE:g}" height="{SIDE:g}"/>',
        f'<line class="diagonal" x1="{left:g}" y1="{bottom:g}" x2="{left + SIDE:g}" y2="{top:g}"/>',
        f'<text x="{left + SIDE / 2:g}" y="{bottom + 42:g}" text-anchor="middle">probability said</text>',
        f'<text transform="translate({left - 46:g} {top + SIDE / 2:g}) rotate(-90)" text-anchor="middle">'
        "share found</text>",
    ]
    for tick in TICKS:
        x, y = left + tick * SIDE, bottom - tick * SIDE
        parts.append(f'<text x="{x:g}" y="{bottom + 22:g}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{left - 12:g}" y="{y + 4:g}" text-anchor="end">{tick:g}</text>')
    most = max((one.count for one in bins), default=0)
    for one in bins:
        if one.count:
            parts += _point(left, bottom, one, most)
    return parts


def _point(left: float, bottom: float, one: Bin, most: int) -> list[str]:
    """Draw a bin: the area grows with its count, and the bar is the 95 % interval."""
    x = left + one.said * SIDE
    radius = max(MIN_RADIUS, MAX_RADIUS * sqrt(one.count / most))
    low, high = interval(one)
    label = f"{one.count} statements: said {one.said:.2f}, found {one.found:.2f}"
    return [
        f'<line class="bar" x1="{x:.1f}" y1="{bottom - low * SIDE:.1f}" x2="{x:.1f}" y2="{bottom - high * SIDE:.1f}"/>',
        f'<circle class="point" cx="{x:.1f}" cy="{bottom - one.found * SIDE:.1f}" r="{radius:.1f}">'
        f"<title>{label}</title></circle>",
    ]
