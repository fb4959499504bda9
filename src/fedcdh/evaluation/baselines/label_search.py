"""Searches by score on counts of labels that all clients add up: K2, and hill climbing among DAGs with BDeu.

Where rows are spread over clients, privacy-preserving K2 (Samet and Miri 2009) adds up counts by secure sums. Its graph
is that of K2 (Cooper and Herskovits 1992) on all rows in one place.

K2 needs an order in which causes precede effects. It is

- given, as K2's authors have it: an experiment takes it from the true graph, an advantage that no other method has;
- or found, as by Singh and Valtorta (1995): PC with exact chi-square tests on summed counts, extended to a DAG.

For each variable, K2 adds the predecessor that raises the score most, as long as one does. The largest number of
parents is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from graphlib import TopologicalSorter

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import ColumnKind
from fedcdh.errors import DataError
from fedcdh.evaluation.baselines.fedc2sl import ALPHA, ExactLength, FederatedChiSquare, find_pc_graph
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.evaluation.baselines.label_counts import Counts, LabelStudy, agree_on_levels
from fedcdh.evaluation.baselines.label_scores import BdeuScore, CooperHerskovitsScore
from fedcdh.evaluation.baselines.restarted_climb import climb_with_restarts, round_scores
from fedcdh.graphs.equivalence import extend_to_dag, to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import Family, LocalScore

MAX_PARENTS = 5
"""The largest number of parents, which K2 has to be given: ours."""


def run_k2(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    kinds: Mapping[str, ColumnKind] | None = None,
    order: Sequence[str] | None = None,
    find_order: bool = True,
) -> BaselineResult:
    """Run K2 on summed counts; nothing is random. Without a given order, one is found by tests.

    >>> x, e = np.random.default_rng(1).integers(0, 3, (2, 300))
    >>> table = np.column_stack([x, np.where(e > 0, x, e)]).astype(float)
    >>> print(run_k2({"north": table[:99], "south": table[99:]}, ("x", "y"), order=("x", "y")).graph)
    x → y
    """
    channel = CountingChannel(len(tables))
    study = agree_on_levels(tables, channel)
    ranked = _name_by_rank(study)
    if order is not None:
        inner = dict(zip(names, ranked, strict=True))
        places = [inner[name] for name in _check_order(order, names)]
    elif find_order:
        places = _find_order(find_pc_graph(ranked, FederatedChiSquare(study, ranked, channel, ExactLength()), ALPHA))
    else:
        raise DataError(
            "found no order of the variables; expected one in which causes precede effects; pass `order`, or choose "
            "'k2-counts', which finds one by tests"
        )
    score = CooperHerskovitsScore(make_summed_counts(study, channel), ranked, study.levels)
    dag = _rename(search_k2(places, round_scores(score)), ranked, names)
    return BaselineResult(dag if order is not None else to_cpdag(dag), channel.traffic, dag)


def run_bdeu_climb(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    kinds: Mapping[str, ColumnKind] | None = None,
) -> BaselineResult:
    """Climb to the DAG with the best BDeu on summed counts, from the graph without edges; `seed` fixes restarts."""
    channel = CountingChannel(len(tables))
    study = agree_on_levels(tables, channel)
    ranked = _name_by_rank(study)
    score = BdeuScore(make_summed_counts(study, channel), ranked, study.levels)
    found = climb_with_restarts(ranked, score, PartialGraph.complete(ranked).lines, seed, max_parents=MAX_PARENTS)
    dag = _rename(found, ranked, names)
    return BaselineResult(to_cpdag(dag), channel.traffic, dag)


def make_summed_counts(study: LabelStudy, channel: CountingChannel) -> Callable[[Sequence[int]], Counts]:
    """Return a function that asks all clients for a table of counts and adds up what they send."""

    def count(columns: Sequence[int]) -> Counts:
        asked = channel.to_clients(np.array(columns)).tolist()
        return np.asarray(np.sum([channel.to_server(client.count(asked)) for client in study.clients], axis=0))

    return count


def search_k2(order: Sequence[str], score: LocalScore, max_parents: int = MAX_PARENTS) -> PartialGraph:
    """Return the DAG of K2: for each variable, predecessors are added one by one while the score rises."""
    arrows = set[tuple[str, str]]()
    for place, node in enumerate(order):
        parents, best = frozenset[str](), score([Family(node)])[0]
        while len(parents) < max_parents and (left := [name for name in order[:place] if name not in parents]):
            scores = score([Family(node, parents | {name}) for name in left])
            chosen = int(np.argmax(scores))
            if scores[chosen] <= best:
                break
            parents, best = parents | {left[chosen]}, scores[chosen]
        arrows |= {(parent, node) for parent in parents}
    return PartialGraph.from_dag(tuple(order), arrows)


def _find_order(graph: PartialGraph) -> list[str]:
    """Return an order of the variables in which the arrows of a graph, extended to a DAG, point forward."""
    dag = extend_to_dag(graph)
    return [*TopologicalSorter({node: sorted(dag.parents(node)) for node in sorted(dag.nodes)}).static_order()]


def _check_order(order: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    if sorted(order) != sorted(names):
        raise DataError(
            f"found an order of {len(order)} variables, {', '.join(map(repr, order))}; expected each of the "
            f"{len(names)} variables of the tables once; correct the order"
        )
    return order


def _name_by_rank(study: LabelStudy) -> tuple[str, ...]:
    """Return names of the columns by rank, so that ties of a search do not depend on the names of a study."""
    return tuple(f"{rank:06d}" for rank in study.ranks)


def _rename(dag: PartialGraph, inner: Sequence[str], names: Sequence[str]) -> PartialGraph:
    outer = dict(zip(inner, names, strict=True))
    return PartialGraph.from_dag(tuple(names), ((outer[tail], outer[head]) for tail, head in dag.arrows))
