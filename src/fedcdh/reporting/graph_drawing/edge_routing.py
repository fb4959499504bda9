"""Widths of labels, and the points at which edges leave one box and reach another."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedcdh.reporting.graph_drawing.layered_layout import BoxSize, LayeredLayout, NamePair

PORT_SPACING = 9.0
"""Distance between two edges on one side of a box, where there is room."""
_WIDE_CHARACTER = 1.8
_CORNERS = 14.0  # height at the corners of a box that is kept free of edges

Point = tuple[float, float]


@dataclass(frozen=True)
class Route:
    """The points that an edge passes, from the border of one box to the border of the other.

    Parameters
    ----------
    points : tuple of tuple of float
        All points, both ends included.
    ports : tuple of float
        Distances of the two ends below the middle of their boxes.
    facing : int
        1 if the edge runs to the right; −1 if it runs against the layers, as one edge of every cycle does.
    """

    points: tuple[Point, ...]
    ports: tuple[float, float]
    facing: int

    def reverse(self) -> Route:
        """Return the same route from its end to its start."""
        return Route(self.points[::-1], self.ports[::-1], -self.facing)


def text_width(text: str) -> float:
    """Return the width of a text in average characters; East Asian characters are wider, accents add nothing."""
    wide = {"W": _WIDE_CHARACTER, "F": _WIDE_CHARACTER}
    return sum(0.0 if unicodedata.combining(c) else wide.get(unicodedata.east_asian_width(c), 1.0) for c in text)


def shorten(name: str, max_characters: float) -> str:
    """Return a name cut to a width in average characters, with an ellipsis where something is missing.

    >>> shorten("systolic_pressure", 10)
    'systolic_…'
    """
    if text_width(name) <= max_characters:
        return name
    kept = 0
    while text_width(name[: kept + 1]) <= max_characters - 1:
        kept += 1
    return name[:kept] + "…"


def route_edges(edges: Sequence[NamePair], layout: LayeredLayout, boxes: Mapping[str, BoxSize]) -> list[Route]:
    """Return a route for each edge; edges on the same side of a box reach it side by side without crossing."""
    ports: list[dict[str, float]] = [{} for _ in edges]
    for name, box in boxes.items():
        for side in (0, 1):
            here = [index for index, edge in enumerate(edges) if edge[side] == name]
            here.sort(key=lambda index: (_next_point_height(edges[index], name, layout), index))
            spacing = min(PORT_SPACING, (box.height - _CORNERS) / max(len(here) - 1, 1))
            for place, index in enumerate(here):
                ports[index][name] = (place - (len(here) - 1) / 2) * spacing
    return [_route_edge(edge, (at[edge[0]], at[edge[1]]), layout, boxes) for edge, at in zip(edges, ports, strict=True)]


def _next_point_height(edge: NamePair, name: str, layout: LayeredLayout) -> float:
    """Return the height of the point that an edge passes next, seen from one of its ends."""
    points = layout.waypoints[edge] or (layout.centres[edge[1] if edge[0] == name else edge[0]],)
    return min(points, key=lambda point: abs(point[0] - layout.centres[name][0]))[1]


def _route_edge(
    edge: NamePair, ports: tuple[float, float], layout: LayeredLayout, boxes: Mapping[str, BoxSize]
) -> Route:
    (left, above), (right, below) = (layout.centres[name] for name in edge)
    facing = 1 if left <= right else -1
    start = (left + facing * boxes[edge[0]].width / 2, above + ports[0])
    stop = (right - facing * boxes[edge[1]].width / 2, below + ports[1])
    return Route((start, *layout.waypoints[edge][::facing], stop), ports, facing)
