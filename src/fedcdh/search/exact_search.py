"""The best of all DAGs, by dynamic programming over sets of variables (Silander and Myllymäki 2006).

Every DAG has a sink. The best DAG on a set of variables is, for one variable as the sink, the best DAG on the others
plus the best parents of the sink among the others. All families are scored in one batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fedcdh.search.parent_sets import (
    TIE_TOLERANCE,
    NodeSet,
    ParentSpace,
    ScoreCache,
    iterate_members,
    iterate_subsets,
    select_best,
)


class _BestSubgraph(NamedTuple):
    """The best DAG on a set of variables, by its last sink."""

    total: float
    arrows: int
    sink: int


def solve_exactly(space: ParentSpace, scores: ScoreCache) -> Mapping[int, NodeSet]:
    """Return the parents of every variable in the best DAG; among equals one with the fewest arrows."""
    everything = sum(1 << node for node in space.variables)
    scores.compute(
        (node, parents) for node in space.variables for parents in space.parent_sets(node, space.possible[node])
    )
    choices = {node: _choose_parents(space, node, scores.of(node)) for node in space.variables}
    last = _find_sinks(space, everything, choices, scores)
    parents: dict[int, NodeSet] = {}
    left = everything
    while left:
        sink = last[left].sink
        left ^= 1 << sink
        parents[sink] = choices[sink][(left | space.roots) & space.optional[sink]]
    return parents


def _choose_parents(space: ParentSpace, node: int, scores: Mapping[NodeSet, float]) -> dict[NodeSet, NodeSet]:
    """Return the best choice from every set of optional parents: all of it, or the best from a set with one fewer."""
    required = space.required[node]
    best: dict[NodeSet, NodeSet] = {}
    for available in iterate_subsets(space.optional[node]):
        options = {best[available ^ left_out] for left_out in iterate_members(available)}
        if required | available in scores:
            options.add(required | available)
        best[available] = select_best(options, scores)
    return best


def _find_sinks(
    space: ParentSpace, everything: NodeSet, choices: Mapping[int, Mapping[NodeSet, NodeSet]], scores: ScoreCache
) -> Mapping[NodeSet, _BestSubgraph]:
    """Return the best DAG on every set of variables that contains the required parents of its members."""
    best = {0: _BestSubgraph(0.0, 0, -1)}
    for members in iterate_subsets(everything):
        for sink in space.variables:
            others = members ^ 1 << sink
            if others > members or others not in best or space.required[sink] & ~(others | space.roots):
                continue
            before, parents = best[others], choices[sink][(others | space.roots) & space.optional[sink]]
            option = _BestSubgraph(before.total + scores.of(sink)[parents], before.arrows + parents.bit_count(), sink)
            if members not in best or _is_better(option, best[members]):
                best[members] = option
    return best


def _is_better(option: _BestSubgraph, other: _BestSubgraph) -> bool:
    """Return whether a total is higher; among equals whether it has fewer arrows, then a later sink by name."""
    if abs(option.total - other.total) > TIE_TOLERANCE:
        return option.total > other.total
    return (-option.arrows, option.sink) > (-other.arrows, other.sink)
