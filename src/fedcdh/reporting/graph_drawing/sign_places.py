"""Places for the signs of edges: on the curve, apart from boxes, from other curves and from each other."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from fedcdh.reporting.graph_drawing.edge_routing import Point

SIGN_RADIUS = 7.0
"""Radius of the disc behind a sign, in pixels."""
_SHARES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
"""Shares of a piece of a curve at which a sign may stand, the best first."""
_SAMPLES = tuple(at / 10 for at in range(1, 10))
_MAX_PIECES = 3
"""Number of pieces of a curve, the longest, on which its sign may stand."""
_ENOUGH = 3 * SIGN_RADIUS
"""A place this far from everything else is as good as any."""

Piece = tuple[Point, Point, Point]
Curve = tuple[Point, Sequence[Piece]]
Box = tuple[float, float, float, float]


def place_signs(curves: Sequence[Curve], signed: Sequence[bool], boxes: Sequence[Box]) -> list[Point | None]:
    """Return where the sign of each curve stands.

    Parameters
    ----------
    curves : sequence
        Start and Bézier pieces of every curve.
    signed : sequence of bool
        Whether a curve has a sign.
    boxes : sequence of tuple of float
        Centre, half width and half height of every box.

    Returns
    -------
    list of tuple of float or None
        Points on the curves; None for curves without a sign.

    Examples
    --------
    >>> line = ((0.0, 0.0), [((50.0, 0.0), (50.0, 0.0), (100.0, 0.0))])
    >>> place_signs([line], [True], [])
    [(50.0, 0.0)]
    """
    if not any(signed):
        return [None] * len(curves)
    near = _Neighbours()
    for number, curve in enumerate(curves):
        for point in _points_of(curve, _SAMPLES, len(curve[1])):
            near.add(point, number)
    found: list[Point | None] = []
    for number, (curve, wanted) in enumerate(zip(curves, signed, strict=True)):
        candidates = list(_points_of(curve, _SHARES, _MAX_PIECES)) if wanted else []
        rooms = [min(near.distance(point, number), _distance_to_boxes(point, boxes)) for point in candidates]
        if not rooms:
            found.append(None)
            continue
        x, y = candidates[max(range(len(rooms)), key=lambda at: (round(rooms[at], 1), -at))]
        near.add((x, y), -1)  # nobody's: the next signs keep away from it
        found.append((round(x, 1), round(y, 1)))
    return found


class _Neighbours:
    """Points of curves in squares of the plane, so that only those nearby are compared."""

    def __init__(self) -> None:
        self._squares: defaultdict[tuple[int, int], list[tuple[float, float, int]]] = defaultdict(list)

    def add(self, point: Point, curve: int) -> None:
        self._squares[self._square(point)].append((*point, curve))

    def distance(self, point: Point, curve: int) -> float:
        """Return the distance to the nearest point of another curve, at most `_ENOUGH`."""
        (column, row), nearest = self._square(point), _ENOUGH
        for square in ((column + dx, row + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)):
            for x, y, other in self._squares.get(square, ()):
                if other != curve:
                    nearest = min(nearest, math.hypot(x - point[0], y - point[1]))
        return nearest

    @staticmethod
    def _square(point: Point) -> tuple[int, int]:
        return math.floor(point[0] / _ENOUGH), math.floor(point[1] / _ENOUGH)


def _distance_to_boxes(point: Point, boxes: Sequence[Box]) -> float:
    """Return the distance to the nearest box, at most `_ENOUGH`."""
    nearest = _ENOUGH
    for x, y, right, bottom in boxes:
        aside, above = abs(point[0] - x) - right, abs(point[1] - y) - bottom
        if aside < nearest and above < nearest:
            nearest = min(nearest, math.hypot(max(aside, 0.0), max(above, 0.0)))
    return nearest


def _points_of(curve: Curve, shares: Sequence[float], most: int) -> Iterator[Point]:
    """Yield points on the longest pieces of a chain of cubic Bézier curves, longer pieces first."""
    start, pieces = curve
    ends = [start, *(piece[-1] for piece in pieces)]
    order = sorted(range(len(pieces)), key=lambda at: -math.dist(ends[at], ends[at + 1]))
    for at in order[:most]:
        points = (ends[at], *pieces[at])
        for t in shares:
            weights = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
            x, y = (sum(by * point[axis] for by, point in zip(weights, points, strict=True)) for axis in (0, 1))
            yield x, y
