"""Directions by votes on local graphs, counted in several ways: python -m benchmarks.bench_votes --help

Na and Yang leave the local learner open, and what a line is worth in a vote. All rows have the same instances and
nearly the same skeletons, at the paper's base setting (linear, standardised). The spread of the directions is that of
such choices. "se" is one standard error of the mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Sequence

import numpy as np

from benchmarks.bench_rivals import RivalSetting
from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel, dag_of_weights
from fedcdh.evaluation.experiments.kinds.graph_recovery import score_result
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.partial_graph import Arrow, PartialGraph
from fedcdh.search.greedy_equivalence_search import find_equivalence_class
from fedcdh.search.order_search import best_dag

SETTING = RivalSetting("linear", 6, 10, 100, "paper")


def learn_by_ges(table: Array, names: Sequence[str]) -> PartialGraph:
    return find_equivalence_class(names, GaussianBic.of_table(table, names)).cpdag


def learn_exact_dag(table: Array, names: Sequence[str]) -> PartialGraph:
    return best_dag(tuple(names), GaussianBic.of_table(table, names), seed=0).dag


def learn_exactly(table: Array, names: Sequence[str]) -> PartialGraph:
    return to_cpdag(learn_exact_dag(table, names))


def count_votes(graphs: Sequence[PartialGraph], names: Sequence[str], *, most_of_all: bool) -> PartialGraph:
    """Return the graph of the majority: arrows with more votes than their reverse, or those of most clients."""
    arrows = _count(names, [graph.arrows for graph in graphs])
    lines = _count(names, [{(a, b) for a, b in map(sorted, graph.lines)} for graph in graphs])
    joined = arrows + arrows.T + lines + lines.T > len(graphs) / 2
    chosen = arrows > len(graphs) / 2 if most_of_all else arrows > arrows.T
    found = dag_of_weights(np.where(joined & chosen, arrows - arrows.T, 0.0), names, 0.0).arrows
    pairs = frozenset(frozenset((names[i], names[j])) for i, j in np.argwhere(joined).tolist())
    return PartialGraph(tuple(names), found, pairs - {frozenset(arrow) for arrow in found})


def _count(names: Sequence[str], marked: Sequence[Container[Arrow]]) -> Array:
    return np.array([[sum((a, b) in marks for marks in marked) for b in names] for a in names], dtype=float)


WAYS: dict[str, tuple[Callable[[Array, Sequence[str]], PartialGraph], bool]] = {
    "GES, more votes than the reverse (`na-yang`)": (learn_by_ges, False),
    "GES, votes of most clients": (learn_by_ges, True),
    "exact classes, more votes than the reverse": (learn_exactly, False),
    "exact classes, votes of most clients": (learn_exactly, True),
    "exact DAGs, more votes than the reverse": (learn_exact_dag, False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1030", help="first:last+1 (default 1000:1030)")
    first, last = map(int, parser.parse_args().seeds.split(":"))
    instances = [SETTING.draw(seed) for seed in range(first, last)]
    print(f"{'':46}{'skeleton F1':>12}{'direction F1':>14}{'se':>8}")
    for way, (learn, most_of_all) in WAYS.items():
        scores = []
        for instance in instances:
            graphs = [learn(table, instance.names) for table in instance.tables.values()]
            merged = count_votes(graphs, instance.names, most_of_all=most_of_all)
            found = score_result(instance, BaselineResult(merged, CountingChannel(len(graphs)).traffic))
            scores.append((found["skeleton_f1"], found["direction_f1"]))
        skeleton, direction = np.mean(scores, axis=0)
        error = np.std([score for _, score in scores]) / np.sqrt(len(scores))
        print(f"{way:46}{skeleton:12.3f}{direction:14.3f}{error:8.3f}")


if __name__ == "__main__":
    main()
