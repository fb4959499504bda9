"""Places for the signs of edges: on the curve, apart from boxes, from other curves and from each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedcdh.reporting.graph_drawing.edge_routing import Point

SIGN_RADIUS = 7.0
"""Radius of the disc behind a sign, in pixels."""
_SHARES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
"""Shares of a piece of a curve at which a sign may stand, the best first."""
_SAMPLES = np.linspace(0.1, 0.9, 9)
_ENOUGH = 3 * SIGN_RADIUS  # a place this far from everything else is as good as any

Piece = tuple[Point, Point, Point]
Box = tuple[float, float, float, float]


def place_signs(
    curves: Sequence[tuple[Point, Sequence[Piece]]], signed: Sequence[bool], boxes: Sequence[Box]
) -> list[Point | None]:
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
    sampled = [_points_of(start, pieces, _SAMPLES) for start, pieces in curves]
    rooms = np.array(boxes, dtype=float).reshape(-1, 4)
    placed = np.empty((0, 2))
    found: list[Point | None] = []
    for number, (start, pieces) in enumerate(curves):
        if not signed[number]:
            found.append(None)
            continue
        others = [points for other, points in enumerate(sampled) if other != number]
        obstacles = np.concatenate([*others, placed, placed])
        candidates = _points_of(start, pieces, np.array(_SHARES))
        best = candidates[_most_free(candidates, obstacles, rooms)]
        placed = np.concatenate([placed, best[None]])
        found.append((round(float(best[0]), 1), round(float(best[1]), 1)))
    return found


def _points_of(start: Point, pieces: Sequence[Piece], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points of a chain of cubic Bézier curves, longer pieces first."""
    ends = [start, *(piece[-1] for piece in pieces)]
    order = sorted(range(len(pieces)), key=lambda at: -abs(ends[at + 1][0] - ends[at][0]))
    t = shares[:, None]
    found = []
    for at in order:
        p, (a, b, q) = np.array(ends[at]), map(np.array, pieces[at])
        found.append((1 - t) ** 3 * p + 3 * (1 - t) ** 2 * t * a + 3 * (1 - t) * t**2 * b + t**3 * q)
    return np.concatenate(found)


def _most_free(candidates: NDArray[np.float64], obstacles: NDArray[np.float64], rooms: NDArray[np.float64]) -> int:
    """Return the number of the candidate with the most room around it, the first of equals."""
    room = np.full(len(candidates), _ENOUGH)
    if len(obstacles):
        apart = np.hypot(*(candidates[:, None] - obstacles[None]).transpose(2, 0, 1)).min(axis=1)
        room = np.minimum(room, apart)
    if len(rooms):
        outside = np.abs(candidates[:, None] - rooms[None, :, :2]) - rooms[None, :, 2:]
        room = np.minimum(room, np.hypot(*np.maximum(outside, 0.0).transpose(2, 0, 1)).min(axis=1))
    return int(np.argmax(np.round(room, 1)))
