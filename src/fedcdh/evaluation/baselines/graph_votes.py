"""Two early methods in which each client learns a graph alone and sends it, once.

- `run_na_yang`: Na and Yang (2010), "Distributed Bayesian network structure learning". An edge stays if more than half
  of the clients have it. Its direction is that of the majority, where a line counts half for each direction; with as
  many votes for one as for the other it stays a line. Of arrows in a circle, the one with the weakest majority becomes
  a line: the vote was for the edge.
- `run_gou`: Gou, Jun, Zhao (2007), "Learning Bayesian network structure from distributed homogeneous data". The server
  takes the union of all local edges. An edge that not all clients have is tested on all data: Fisher's z from summed
  moments, given the union's neighbours of either end. It goes if one of the two sets separates its ends. Directions
  come from colliders (the largest p-value with and without the middle, sets of at most three) and Meek's rules.

The publications leave the local learner to the client. Here it is GES with the Gaussian BIC. The moments are those
within clients, so that each keeps its own means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from scipy import special

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.family_messages import decode_graph, encode_graph
from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic, GaussianMoments, pool_within_clients
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel, dag_of_weights
from fedcdh.graphs.partial_graph import Pair, PartialGraph, sort_pair
from fedcdh.protocols import Answer, Query
from fedcdh.search.colliders import make_largest_p_rule
from fedcdh.search.greedy_equivalence_search import find_equivalence_class
from fedcdh.search.orientation import orient_skeleton
from fedcdh.search.skeleton import Skeleton

ALPHA = 0.05
MAX_CONDITIONING_SIZE = 3
"""The largest set that colliders are decided with."""


def run_na_yang(tables: Mapping[str, Array], names: Sequence[str], seed: int = 0) -> BaselineResult:
    """Keep the edges and the directions that most clients find alone; nothing is random.

    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 200))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_na_yang({"north": table[:90], "south": table[90:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    channel = CountingChannel(len(tables))
    sent = [channel.to_server(encode_graph(_learn_alone(table, names), names)) for table in tables.values()]
    return BaselineResult(_count_votes(np.array(sent, dtype=float), names), channel.traffic)


def run_gou(
    tables: Mapping[str, Array], names: Sequence[str], seed: int = 0, *, alpha: float = ALPHA
) -> BaselineResult:
    """Test the edges of the union of local graphs on summed moments; nothing is random.

    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 200))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_gou({"north": table[:90], "south": table[90:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    channel = CountingChannel(len(tables))
    local, moments = [], []
    for table in tables.values():
        graph = channel.to_server(encode_graph(_learn_alone(table, names), names))
        local.append(decode_graph(graph, names).skeleton)
        received = channel.to_server(GaussianMoments.of(table).to_message())
        moments.append(GaussianMoments.from_message(received, len(names)))
    test = PartialCorrelationTest(pool_within_clients(moments), names, len(moments))
    return BaselineResult(_orient(_keep_dependent(local, names, test, alpha), test, names), channel.traffic)


def _learn_alone(table: Array, names: Sequence[str]) -> PartialGraph:
    return find_equivalence_class(names, GaussianBic.of_table(table, names)).cpdag


# Na and Yang


def _count_votes(graphs: Array, names: Sequence[str]) -> PartialGraph:
    """Return the graph of the majority; `graphs` is clients × variables × variables, as in `encode_graph`."""
    turned = graphs.transpose(0, 2, 1)
    joined = np.maximum(graphs, turned).sum(axis=0) > len(graphs) / 2
    majority = np.where(joined, (graphs - turned).sum(axis=0), 0.0)
    arrows = dag_of_weights(np.maximum(majority, 0.0), names, 0.0).arrows
    pairs = frozenset(frozenset((names[i], names[j])) for i, j in np.argwhere(joined).tolist())
    return PartialGraph(tuple(names), arrows, pairs - {frozenset(arrow) for arrow in arrows})


# Gou, Jun and Zhao


class PartialCorrelationTest:
    """Fisher's z from moments within clients, an `IndependenceTest`; too few rows reject nothing.

    √(n − K − |S| − 2) · artanh(r) is standard normal if the partial correlation is 0, for n rows of K clients.
    """

    def __init__(self, moments: GaussianMoments, names: Sequence[str], clients: int) -> None:
        self._rows, self._clients = moments.rows, clients
        self._place = {name: place for place, name in enumerate(names)}
        scale = np.sqrt(np.diag(moments.covariance))
        unit = moments.covariance / np.outer(np.where(scale > 0, scale, 1), np.where(scale > 0, scale, 1))
        self._correlations = unit + np.diag((scale == 0).astype(float))

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Return one answer per query, in order."""
        return [self._answer(query) for query in queries]

    def _answer(self, query: Query) -> Answer:
        chosen = [self._place[name] for name in (*sorted(query.pair), *sorted(query.given))]
        precision = np.linalg.pinv(self._correlations[np.ix_(chosen, chosen)], hermitian=True)
        size = math.sqrt(max(precision[0, 0] * precision[1, 1], 1e-300))
        r = float(np.clip(-precision[0, 1] / size, -1 + 1e-12, 1 - 1e-12))
        left = self._rows - self._clients - len(query.given) - 2
        statistic = math.sqrt(max(left, 0)) * math.atanh(r)
        p_value = float(2 * special.ndtr(-abs(statistic))) if left > 0 else 1.0
        return Answer(query, statistic, p_value, self._rows)


def _keep_dependent(
    local: Sequence[frozenset[Pair]], names: Sequence[str], test: PartialCorrelationTest, alpha: float
) -> PartialGraph:
    """Return the union of edges, without those that not all clients have and that a set of neighbours separates."""
    union = PartialGraph(tuple(names), lines=frozenset[Pair]().union(*local))
    doubtful = union.skeleton - frozenset.intersection(*local)
    queries = [
        Query(a, b, union.neighbours(end) - {a, b}) for a, b in sorted(map(sort_pair, doubtful)) for end in (a, b)
    ]
    separated = {answer.query.pair for answer in test(queries) if answer.p_value > alpha}
    return union.remove_edges(*separated)


def _orient(graph: PartialGraph, test: PartialCorrelationTest, names: Sequence[str]) -> PartialGraph:
    levels = (len(list(combinations(names, 2))),) * (MAX_CONDITIONING_SIZE + 1)
    skeleton = Skeleton(graph, {}, {}, levels)
    return orient_skeleton(skeleton, make_largest_p_rule(test, MAX_CONDITIONING_SIZE)).graph
