"""The arrows that a partially directed graph can take; every step of the orientation uses this check.

Arrows are proposed in bundles (a collider is a bundle of two arrows, taken or refused together). All bundles of one
call are equal: if some contradict each other, all of these are refused. The order and the names of the nodes therefore
never decide a direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Arrow, PartialGraph, find_cycle_arrows

Bundle: TypeAlias = tuple[Arrow, ...]

Obstacle: TypeAlias = Literal["knowledge", "opposite arrow", "directed cycle", "equal claims"]
"""The reason why a bundle of arrows is refused; "equal claims" are those of other bundles in the same call."""


def find_obstacles(graph: PartialGraph, bundles: Iterable[Bundle], knowledge: Knowledge) -> Mapping[Bundle, Obstacle]:
    """Return the bundles that cannot be taken, each with the reason; all others can be taken together."""
    bundles = frozenset(bundles)
    alone = {bundle: _find_obstacle(graph, bundle, knowledge) for bundle in bundles}
    refused = {bundle: obstacle for bundle, obstacle in alone.items() if obstacle is not None}
    standing = bundles - refused.keys()
    clashing = find_cycle_arrows(graph.arrows, (arrow for bundle in standing for arrow in bundle))
    return refused | {bundle: "equal claims" for bundle in standing if not clashing.isdisjoint(bundle)}


def _find_obstacle(graph: PartialGraph, bundle: Bundle, knowledge: Knowledge) -> Obstacle | None:
    """Return the reason against this bundle alone, or None."""
    if any(knowledge.forbids(tail, head) for tail, head in bundle):
        return "knowledge"
    if any((head, tail) in graph.arrows for tail, head in bundle):
        return "opposite arrow"
    if find_cycle_arrows(graph.arrows, bundle):
        return "directed cycle"
    return None
