"""Layered layout of a graph: layers from causes on the left to effects on the right, with few crossings.

igraph orders the nodes of every layer (Sugiyama's method). An edge that passes a layer gets a waypoint there. The
waypoint takes part in the ordering like a node, so that no edge runs through a box.

References
----------
Sugiyama, Tagawa and Toda (1981), Methods for visual understanding of hierarchical system structures. Gansner,
Koutsofios, North and Vo (1993), A technique for drawing directed graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fedcdh._runtime.optional_imports import optional_import

if TYPE_CHECKING:
    from types import ModuleType

COLUMN_GAP = 64.0
"""Distance between the boxes of two layers, with room for curves and arrowheads."""
ROW_GAP = 14.0
NARROW_GAP = 5.0
"""Distance between passing edges, and to a box, in a layout whose layers are limited."""
WAYPOINT_HEIGHT = 10.0
"""Height kept free for an edge that passes a layer."""
STRAIGHTENING_SWEEPS = 24
"""After about twenty sweeps, nothing moves by more than a pixel in graphs of a hundred nodes."""
_MIN_ISOLATED_WIDTH = 640.0
"""Width over which nodes without edges are spread, if the graph is not wider."""

NamePair = tuple[str, str]


@dataclass(frozen=True)
class BoxSize:
    """The size of a node in pixels."""

    width: float
    height: float


@dataclass(frozen=True)
class LayeredLayout:
    """Centres of the boxes, the points that each edge passes from end to end, and the size of the whole."""

    centres: Mapping[str, tuple[float, float]]
    waypoints: Mapping[NamePair, tuple[tuple[float, float], ...]]
    width: float
    height: float


def compute_layout(
    boxes: Mapping[str, BoxSize], edges: Sequence[NamePair], *, max_per_layer: int | None = None
) -> LayeredLayout:
    """Place boxes in layers so that no two overlap; nodes without edges stand in rows below.

    With `max_per_layer`, no layer has more boxes than that, so that a graph grows along its layers only.
    """
    with_edges = {name for edge in edges for name in edge}
    joined = [name for name in boxes if name in with_edges]
    layers = _assign_layers(joined, edges, max_per_layer)
    chains = _split_long_edges(edges, layers)
    levels = {**layers, **{node: level for chain in chains.values() for node, level in chain[1:-1]}}
    links = [(a, b) for chain in chains.values() for (a, _), (b, _) in pairwise(chain)]
    rows = _order_layers(levels, links)
    heights = {node: boxes[node].height if node in boxes else WAYPOINT_HEIGHT for node in levels}
    across = _straighten(rows, links, heights, ROW_GAP if max_per_layer is None else NARROW_GAP)
    columns, right = _place_columns(rows, boxes)
    centres = {name: (columns[layers[name]][0], across[name]) for name in joined}
    bottom = max((across[node] + heights[node] / 2 for node in levels), default=0.0)
    waypoints = {
        edge: tuple(_cross_layer(columns[level], across[node]) for node, level in chain[1:-1])
        for edge, chain in chains.items()
    }
    alone, width, height = place_isolated([name for name in boxes if name not in layers], boxes, right, bottom)
    flat = {edge: tuple(point for both in passed for point in both) for edge, passed in waypoints.items()}
    return LayeredLayout({**centres, **alone}, flat, width, height)


def _import_igraph() -> ModuleType:
    with optional_import("igraph", extra="report"):
        import igraph  # type: ignore[import-untyped]
    return igraph  # type: ignore[no-any-return]


def _assign_layers(names: Sequence[str], edges: Sequence[NamePair], max_per_layer: int | None = None) -> dict[str, int]:
    """Assign layers by longest paths, then move every node as close to its neighbours as its edges allow."""
    number = {name: position for position, name in enumerate(names)}
    graph: Any = _import_igraph().Graph(len(names), [(number[a], number[b]) for a, b in edges], directed=True)
    against = set(graph.feedback_arc_set()) if not graph.is_dag() else set()
    forward = [edge if index not in against else edge[::-1] for index, edge in enumerate(edges)]
    graph = _import_igraph().Graph(len(names), [(number[a], number[b]) for a, b in forward], directed=True)
    parents: dict[str, list[str]] = {name: [] for name in names}
    children: dict[str, list[str]] = {name: [] for name in names}
    for a, b in forward:
        parents[b].append(a)
        children[a].append(b)
    order = [names[position] for position in graph.topological_sorting()]
    if max_per_layer is not None:
        return _assign_small_layers(order, parents, children, max_per_layer)
    layer: dict[str, int] = {}
    for name in order:
        layer[name] = max((layer[parent] + 1 for parent in parents[name]), default=0)
    for name in reversed(order):
        if children[name] and len(children[name]) >= len(parents[name]):
            layer[name] = min(layer[child] for child in children[name]) - 1
    return layer


def _assign_small_layers(
    order: Sequence[str], parents: Mapping[str, Sequence[str]], children: Mapping[str, Sequence[str]], most: int
) -> dict[str, int]:
    """Assign layers of limited size: of the nodes whose parents are placed, those with the longest way to go are next.

    References
    ----------
    Coffman and Graham (1972), Optimal scheduling for two-processor systems.
    """
    left: dict[str, int] = {}
    for name in reversed(order):
        left[name] = max((left[child] + 1 for child in children[name]), default=0)
    layer: dict[str, int] = {}
    waiting, at = list(order), 0
    while waiting:
        ready = [name for name in waiting if all(layer.get(parent, at) < at for parent in parents[name])]
        # among nodes with the same way to go, one whose parents were placed last makes shorter edges
        ready.sort(key=lambda name: (-left[name], -max((layer[parent] for parent in parents[name]), default=-1)))
        for name in ready[:most]:
            layer[name] = at
        waiting, at = [name for name in waiting if name not in layer], at + 1
    return layer


def _split_long_edges(edges: Sequence[NamePair], layers: Mapping[str, int]) -> dict[NamePair, list[tuple[Any, int]]]:
    """Return for every edge the nodes and waypoints it visits, one per layer, from left to right."""
    chains = {}
    for edge in edges:
        left, right = sorted(edge, key=lambda name: layers[name])
        between: list[tuple[Any, int]] = [((left, right, at), at) for at in range(layers[left] + 1, layers[right])]
        chains[edge] = [(left, layers[left]), *between, (right, layers[right])]
    return chains


def _order_layers(levels: Mapping[Any, int], links: Sequence[tuple[Any, Any]]) -> list[list[Any]]:
    """Return the nodes of every layer from top to bottom, with few crossings between layers."""
    if not levels:
        return []
    nodes = list(levels)
    number = {node: position for position, node in enumerate(nodes)}
    graph = _import_igraph().Graph(len(nodes), [(number[a], number[b]) for a, b in links], directed=True)
    found = graph.layout_sugiyama(layers=[levels[node] for node in nodes], maxiter=500)
    rows: list[list[Any]] = [[] for _ in range(max(levels.values()) + 1)]
    for node in sorted(nodes, key=lambda node: (found[number[node]][0], number[node])):
        rows[levels[node]].append(node)
    return rows


def _straighten(
    rows: Sequence[Sequence[Any]],
    links: Sequence[tuple[Any, Any]],
    heights: Mapping[Any, float],
    waypoint_gap: float = ROW_GAP,
) -> dict[Any, float]:
    """Pull every node to the middle of its neighbours without changing the order in its layer.

    Two waypoints attract each other eight times as much as two boxes do, and a waypoint and a box twice as much
    (Gansner et al. 1993), so bends far from any box disappear first.
    """
    near: dict[Any, list[tuple[Any, float]]] = {node: [] for row in rows for node in row}
    for a, b in links:
        strength = (1.0, 2.0, 8.0)[isinstance(a, tuple) + isinstance(b, tuple)]
        near[a].append((b, strength))
        near[b].append((a, strength))
    pulls = [[sum((by for _, by in near[node]), 0.0) for node in row] for row in rows]
    between = (ROW_GAP, waypoint_gap, waypoint_gap)  # of two boxes, of a box and a waypoint, of two waypoints
    gaps = [
        [(heights[a] + heights[b]) / 2 + between[isinstance(a, tuple) + isinstance(b, tuple)] for a, b in pairwise(row)]
        for row in rows
    ]
    at: dict[Any, float] = {}
    for row, gap, pull in zip(rows, gaps, pulls, strict=True):
        at.update(zip(row, _separate([0.0] * len(row), gap, pull), strict=True))
    for sweep in range(STRAIGHTENING_SWEEPS):
        for row, gap, pull in list(zip(rows, gaps, pulls, strict=True))[:: 1 if sweep % 2 == 0 else -1]:
            wished = [
                sum(at[other] * by for other, by in near[node]) / total for node, total in zip(row, pull, strict=True)
            ]
            at.update(zip(row, _separate(wished, gap, pull), strict=True))
    top = min((at[node] - heights[node] / 2 for node in at), default=0.0)
    return {node: position - top for node, position in at.items()}


def _separate(wished: Sequence[float], gaps: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the positions nearest to the wished ones, in least squares, that keep the gaps (isotonic regression)."""
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    blocks: list[tuple[float, float, int]] = []  # mean, weight and size of pooled neighbours
    for wish, offset, weight in zip(wished, offsets, weights, strict=False):
        mean, size = wish - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, heavy, count = blocks.pop()
            mean, weight, size = (before * heavy + mean * weight) / (heavy + weight), heavy + weight, count + size
        blocks.append((mean, weight, size))
    flat = [mean for mean, _, size in blocks for _ in range(size)]
    return [mean + offset for mean, offset in zip(flat, offsets, strict=False)]


def _place_columns(
    rows: Sequence[Sequence[Any]], boxes: Mapping[str, BoxSize]
) -> tuple[list[tuple[float, float]], float]:
    """Return the centre and the width of every layer, and the right end of the last."""
    columns, left = [], 0.0
    for row in rows:
        width = max((boxes[node].width for node in row if node in boxes), default=0.0)
        columns.append((left + width / 2, width))
        left += width + COLUMN_GAP
    return columns, max(left - COLUMN_GAP, 0.0)


def _cross_layer(column: tuple[float, float], across: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the two points at which an edge enters and leaves a layer."""
    centre, width = column
    return (centre - width / 2, across), (centre + width / 2, across)


def place_isolated(
    names: Sequence[str],
    boxes: Mapping[str, BoxSize],
    right: float,
    bottom: float,
    min_width: float = _MIN_ISOLATED_WIDTH,
) -> tuple[dict[str, tuple[float, float]], float, float]:
    """Place nodes without edges in rows below the others; return them with the width and height of the whole."""
    if not names:
        return {}, right, bottom
    widest, tallest = max(boxes[name].width for name in names), max(boxes[name].height for name in names)
    each = widest + ROW_GAP
    per_line = max(1, int((max(right, min_width) + ROW_GAP) // each))
    top = bottom + 3 * ROW_GAP if bottom else 0.0
    centres = {}
    for position, name in enumerate(names):
        line, place = divmod(position, per_line)
        centres[name] = (place * each + widest / 2, top + line * (tallest + ROW_GAP) + tallest / 2)
    width = max(right, min(len(names), per_line) * each - ROW_GAP)
    return centres, width, max(y for _, y in centres.values()) + tallest / 2
