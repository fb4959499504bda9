"""Which arrows a partly directed graph can take: the one gate that every orientation step goes through.

Arrows are proposed in bundles (a collider is two arrows, taken or refused whole). All bundles of one call are equals:
when they contradict each other, all that take part in the contradiction are refused. So neither the order nor the
names of the nodes ever decide a direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Arrow, PartialGraph, find_cycle_arrows

Bundle: TypeAlias = tuple[Arrow, ...]

Obstacle: TypeAlias = Literal["knowledge", "opposite arrow", "directed cycle", "equal claims"]
"""Why a bundle of arrows was refused; "equal claims" are those of other bundles in the same call."""


def find_obstacles(graph: PartialGraph, bundles: Iterable[Bundle], knowledge: Knowledge) -> Mapping[Bundle, Obstacle]:
    """The bundles that cannot be taken, each with what stands in its way; all others can be taken together."""
    bundles = frozenset(bundles)
    alone = {bundle: _find_obstacle(graph, bundle, knowledge) for bundle in bundles}
    refused = {bundle: obstacle for bundle, obstacle in alone.items() if obstacle is not None}
    standing = bundles - refused.keys()
    clashing = find_cycle_arrows(graph.arrows, (arrow for bundle in standing for arrow in bundle))
    return refused | {bundle: "equal claims" for bundle in standing if not clashing.isdisjoint(bundle)}


def _find_obstacle(graph: PartialGraph, bundle: Bundle, knowledge: Knowledge) -> Obstacle | None:
    """What stands in the way of this bundle, were it the only one."""
    if any(knowledge.forbids(tail, head) for tail, head in bundle):
        return "knowledge"
    if any((head, tail) in graph.arrows for tail, head in bundle):
        return "opposite arrow"
    if find_cycle_arrows(graph.arrows, bundle):
        return "directed cycle"
    return None
