"""What drawings of a layout share: how names fit into boxes, and where edges leave one box and meet the other."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedcdh.reporting.graph_drawing.layered_layout import BoxSize, LayeredLayout, NamePair

PORT_SPACING = 9.0  # between two edges on one side of a box, where there is room

Point = tuple[float, float]


@dataclass(frozen=True)
class Route:
    """The points an edge passes, from the side of one box to the side of the other."""

    points: tuple[Point, ...]
    ports: tuple[float, float]  # how far below the middle of the boxes' sides it leaves and arrives
    facing: int  # 1 to the right; −1 against the layers, which occurs only where arrows run in a circle

    def reversed(self) -> Route:
        """The same, walked the other way."""
        return Route(self.points[::-1], self.ports[::-1], -self.facing)


def text_width(text: str) -> float:
    """The width of a text in average letters; East Asian ones are about twice as wide, accents add nothing."""
    wide = {"W": 1.8, "F": 1.8}
    return sum(0.0 if unicodedata.combining(c) else wide.get(unicodedata.east_asian_width(c), 1.0) for c in text)


def shorten(name: str, at_most: float) -> str:
    """A name as it fits where so many letters have room.

    >>> shorten("systolic_pressure", 10)
    'systolic_…'
    """
    if text_width(name) <= at_most:
        return name
    kept = 0
    while text_width(name[: kept + 1]) <= at_most - 1:
        kept += 1
    return name[:kept] + "…"


def route_edges(edges: Sequence[NamePair], layout: LayeredLayout, boxes: Mapping[str, BoxSize]) -> list[Route]:
    """One for each edge; those that share a side of a box meet it side by side, in the order they come from."""
    ports: list[dict[str, float]] = [{} for _ in edges]
    for name, box in boxes.items():
        for side in (0, 1):
            here = [index for index, edge in enumerate(edges) if edge[side] == name]
            here.sort(key=lambda index: (_next_point_height(edges[index], name, layout), index))
            room = min(PORT_SPACING, (box.height - 14) / max(len(here) - 1, 1))
            for place, index in enumerate(here):
                ports[index][name] = (place - (len(here) - 1) / 2) * room
    return [
        _route_edge(edge, (there[edge[0]], there[edge[1]]), layout, boxes)
        for edge, there in zip(edges, ports, strict=True)
    ]


def _next_point_height(edge: NamePair, name: str, layout: LayeredLayout) -> float:
    """How high the point lies that an edge visits next, seen from one of its ends."""
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
