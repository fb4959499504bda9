"""FedCSL: Guo et al. (2024), "FedCSL: A Scalable and Accurate Approach to Federated Causal Structure Learning".

1. Every client finds candidate neighbours of each variable by HITON-PC, and sends them with its weight: how decided its
   tests of pairs are on average.
2. For each variable the server takes the number of neighbours with the largest summed weight, and that many variables
   with the largest summed weights. Where a has b but b does not have a, clients that have both or neither of the two
   decide, by their weights.
3. Every client orients the common skeleton by hill climbing, and sends its graph. Graphs are merged by weighted votes.

Two things are ours. A client sends the class of its DAG, so that an edge that the score can orient either way counts
half for both directions: in the authors' program the order of the columns decides. And an arrow that would close a
circle is a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import ColumnKind
from fedcdh.evaluation.baselines.directed_votes import graph_to_marks, merge_votes, votes_of_marks
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.evaluation.baselines.local_structure import (
    ALPHA,
    Bools,
    ClientRows,
    find_candidates,
    measure_certainty,
    orient_locally,
    prepare_clients,
)
from fedcdh.graphs.partial_graph import PartialGraph

_MIN_DIFFERENCE = 1e-9  # a smaller difference of weights is one of rounding


def run_fedcsl(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    kinds: Mapping[str, ColumnKind] | None = None,
    alpha: float = ALPHA,
) -> BaselineResult:
    """Run FedCSL; `seed` fixes restarts of the climb.

    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 200))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_fedcsl({"north": table[:90], "south": table[90:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    channel = CountingChannel(len(tables))
    clients = [*prepare_clients(tables, names, kinds, channel).values()]
    sent = [_find_own_candidates(rows, len(names), alpha) for rows in clients]
    candidates = np.stack([channel.to_server(own) for own, _ in sent])
    weights = np.array([channel.to_server(weight) for _, weight in sent])
    joined = select_skeleton(candidates, weights)
    return BaselineResult(vote_on_directions(clients, weights, joined, names, channel, seed), channel.traffic)


def vote_on_directions(
    clients: Sequence[ClientRows],
    weights: Array,
    joined: Bools,
    names: Sequence[str],
    channel: CountingChannel,
    seed: int,
) -> PartialGraph:
    """Let every client orient the skeleton, and merge their graphs by weighted votes."""
    known = np.asarray(channel.to_clients(joined))
    sent = [channel.to_server(graph_to_marks(orient_locally(rows, known, names, seed), names)) for rows in clients]
    votes = np.sum([weight * votes_of_marks(marks) for weight, marks in zip(weights, sent, strict=True)], axis=0)
    return merge_votes(votes, names)


def _find_own_candidates(rows: ClientRows, variables: int, alpha: float) -> tuple[Bools, Array]:
    """Return a client's candidates (row i has those of variable i) and its weight."""
    candidates = np.zeros((variables, variables), dtype=np.bool_)
    for target in range(variables):
        candidates[target, sorted(find_candidates(rows, variables, target, alpha))] = True
    pairs = [rows.test(i, j, ())[1] for i in range(variables) for j in range(i)]
    return candidates, np.array(measure_certainty(np.array(pairs), alpha).mean() if pairs else 0.0)


def select_skeleton(candidates: Bools, weights: Array) -> Bools:
    """Return the edges that the clients' candidates (client, variable, candidate) and weights lead to."""
    support = np.einsum("k,kij->ij", weights, candidates).round(9)
    chosen = np.zeros_like(candidates[0])
    for variable, row in enumerate(support):
        count = _choose_number(candidates[:, variable].sum(axis=1), weights)
        # Equal weights: the pair with more support from both of its ends.
        order = np.lexsort((-(support + support.T)[variable], -row))
        chosen[variable, order[:count]] = True
    both = (candidates & candidates.transpose(0, 2, 1)).astype(np.float64)
    neither = (~(candidates | candidates.transpose(0, 2, 1))).astype(np.float64)
    kept = np.einsum("k,kij->ij", weights, both - neither) >= -_MIN_DIFFERENCE
    return np.asarray(np.where(chosen == chosen.T, chosen, kept) & ~np.eye(len(chosen), dtype=np.bool_))


def _choose_number(counts: Array, weights: Array) -> int:
    """Return the number of neighbours with the largest summed weight, the smallest of equals."""
    summed = np.bincount(counts, weights=weights).round(9)
    return int(np.argmax(summed))
