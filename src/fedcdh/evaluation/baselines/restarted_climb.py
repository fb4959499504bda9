"""Hill climbing among DAGs, with restarts from other DAGs of the same class.

A score that is the same for all DAGs of an equivalence class leaves a climb on a plateau: reversing z → x gains
nothing, although y → z would then gain much. After each climb, a few other DAGs of the class that was reached are drawn
and the climb goes on from there, until no class is better.

Neither the names of variables nor their places decide between moves with the same gain: the caller names variables by
rank, and scores are rounded to multiples of 2⁻²⁰, whose sums are exact.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from fedcdh.evaluation.simulation import keyed_generator
from fedcdh.graphs.equivalence import extend_to_dag, to_cpdag
from fedcdh.graphs.partial_graph import Pair, PartialGraph
from fedcdh.protocols import Family, LocalScore
from fedcdh.search.hill_climbing import MIN_GAIN, BatchScore, climb

RESTARTS = 10
"""DAGs of a class from which the climb goes on: ours.

With 0, 2, 5 and 10, FedACD has direction F1 0.564, 0.620, 0.621 and 0.632 (linear, seeds 0 to 29, base setting).
"""
_SCORE_UNIT = 1 << 20
_MAX_STEPS = 10_000  # requests of a climb; the score rises with each, so that it ends long before


def climb_with_restarts(
    nodes: Sequence[str],
    score: LocalScore,
    pairs: Collection[Pair],
    seed: int,
    *,
    max_parents: int | None = None,
    restarts: int = RESTARTS,
) -> PartialGraph:
    """Return the best DAG that was reached from the graph without edges, with edges among these pairs only.

    >>> def score(families):
    ...     return [1.0 if family.parents == {"x"} else 0.0 for family in families]
    >>> print(climb_with_restarts("xy", score, [frozenset("xy")], 0))
    x → y
    """
    ordered = tuple(sorted(nodes))
    known = BatchScore(round_scores(score))
    starts, best, level = [PartialGraph(ordered)], PartialGraph(ordered), -math.inf
    for number in range(_MAX_STEPS):
        found = climb(starts, known, pairs, max_parents=max_parents, max_steps=_MAX_STEPS, neighbours_first=True)
        if found.score <= level + MIN_GAIN:
            break
        best, level = found.dag, found.score
        draws = [keyed_generator(seed, "restart", str(number), str(draw)) for draw in range(restarts)]
        starts = [draw_class_member(best, draw) for draw in draws]
        if not starts:
            break
    return best


def draw_class_member(dag: PartialGraph, draw: np.random.Generator) -> PartialGraph:
    """Return a DAG of the same class, by an extension of the class with the nodes in another order."""
    inner = dict(zip(dag.nodes, (f"{place:06d}" for place in draw.permutation(len(dag.nodes))), strict=True))
    outer = {name: node for node, name in inner.items()}
    cpdag = to_cpdag(dag)
    renamed = PartialGraph(
        tuple(sorted(outer)),
        frozenset((inner[tail], inner[head]) for tail, head in cpdag.arrows),
        frozenset(frozenset(inner[end] for end in line) for line in cpdag.lines),
    )
    arrows = extend_to_dag(renamed).arrows
    return PartialGraph.from_dag(dag.nodes, ((outer[tail], outer[head]) for tail, head in arrows))


def round_scores(score: LocalScore) -> LocalScore:
    """Return the same score, rounded to multiples of 2⁻²⁰; families that are not available keep −inf."""

    def ask(families: Sequence[Family], /) -> list[float]:
        return [_round_score(value) for value in score(families)]

    return ask


def _round_score(value: float) -> float:
    return round(value * _SCORE_UNIT) / _SCORE_UNIT if math.isfinite(value) else value
