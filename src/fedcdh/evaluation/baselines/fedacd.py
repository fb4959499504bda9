"""Layer-wise votes about a skeleton: FedACD and FedECD, both by Guo et al. (2024).

The server keeps one skeleton. In the layer of conditioning sets of one size, every client says for each edge whether a
set among the neighbours of either end separates it on the client's own rows. An edge stays if at least as many clients
keep it as remove it. All clients then orient the skeleton as in FedCSL, with equal weights.

**FedACD**: a client withholds its answer on 60 % of the edges that it would remove, rounded up, the least clear ones:
those whose largest p-value is smallest. For Fisher's z and sets of one size, this is the largest of the smallest |r|,
as in the authors' program.

**FedECD** ("Enhancing Causal Discovery in Federated Settings with Limited Local Samples"): nothing is withheld. Edges
about to go are tried again on fifteen copies of each client's rows, drawn with replacement. On one copy the weight of
removal is the mean certainty of the tests that separate the pair, or 0 if none does. An edge stays if the mean weight
over copies and clients is at most 0.10. Directions are found on copies, merged at the client, and again at the server.

The authors' programs remove edges while a client works through a layer; here the neighbours are those at its start, so
that the order of the variables does not matter. Sets come from the neighbours of both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.data.sources import ColumnKind
from fedcdh.evaluation.baselines.directed_votes import Marks, graph_to_marks, merge_votes, votes_of_marks
from fedcdh.evaluation.baselines.fedcsl import vote_on_directions
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.evaluation.baselines.local_structure import (
    ALPHA,
    MAX_CONDITIONING_SIZE,
    Bools,
    ClientRows,
    draw_copies,
    measure_certainty,
    orient_locally,
    prepare_clients,
)

PairVotes: TypeAlias = npt.NDArray[np.int8]

KEEP, REMOVE, NO_ANSWER = 1, 0, -1
MASK_RATE = 0.6
COPIES = 15
MAX_REMOVAL_WEIGHT = 0.10


def run_fedacd(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    kinds: Mapping[str, ColumnKind] | None = None,
    alpha: float = ALPHA,
    mask_rate: float = MASK_RATE,
) -> BaselineResult:
    """Run FedACD; `seed` fixes restarts of the climb.

    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 400))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_fedacd({"north": table[:190], "south": table[190:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    channel = CountingChannel(len(tables))
    clients = [*prepare_clients(tables, names, kinds, channel).values()]

    def vote(joined: Bools, size: int) -> Bools:
        votes = [channel.to_server(_vote_masked(rows, joined, size, alpha, mask_rate)) for rows in clients]
        return keep_by_majority(np.stack(votes))

    joined = _find_skeleton(len(names), vote, channel)
    graph = vote_on_directions(clients, np.ones(len(clients)), joined, names, channel, seed)
    return BaselineResult(graph, channel.traffic)


def run_fedecd(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    kinds: Mapping[str, ColumnKind] | None = None,
    alpha: float = ALPHA,
    copies: int = COPIES,
) -> BaselineResult:
    """Run FedECD; `seed` fixes restarts, and with a client's name the copies of its rows."""
    channel = CountingChannel(len(tables))
    clients = prepare_clients(tables, names, kinds, channel)
    redrawn = {client: draw_copies(client, rows, copies, seed) for client, rows in clients.items()}

    def vote(joined: Bools, size: int) -> Bools:
        votes = [channel.to_server(_vote_masked(rows, joined, size, alpha, 0.0)) for rows in clients.values()]
        kept = keep_by_majority(np.stack(votes))
        about_to_go = np.asarray(channel.to_clients(_pairs(joined) & ~kept))
        weights = [
            channel.to_server(_weigh_removals(own, joined, about_to_go, size, alpha)) for own in redrawn.values()
        ]
        kept[about_to_go] = np.mean(weights, axis=0) <= MAX_REMOVAL_WEIGHT
        return kept

    joined = np.asarray(channel.to_clients(_find_skeleton(len(names), vote, channel)))
    sent = [channel.to_server(_orient_copies(own, joined, names, seed)) for own in redrawn.values()]
    return BaselineResult(merge_votes(np.sum([votes_of_marks(m) for m in sent], axis=0), names), channel.traffic)


def keep_by_majority(votes: PairVotes) -> Bools:
    """Return the pairs that at least as many clients keep as remove, among those who answer (client, pair)."""
    return np.asarray((votes == KEEP).sum(axis=0) >= (votes == REMOVE).sum(axis=0))


def _find_skeleton(variables: int, vote: Callable[[Bools, int], Bools], channel: CountingChannel) -> Bools:
    """Return the edges that stay, layer by layer, until no set of that size is left."""
    joined = ~np.eye(variables, dtype=np.bool_)
    for size in range(MAX_CONDITIONING_SIZE + 1):
        if joined.sum(axis=0).max(initial=0) <= size:
            break
        known = np.asarray(channel.to_clients(joined))
        joined = joined & _matrix(vote(known, size), variables)
    return joined


def _vote_masked(rows: ClientRows, joined: Bools, size: int, alpha: float, mask_rate: float) -> PairVotes:
    """Return a client's votes about all pairs; those without an edge have no answer."""
    votes = np.where(_pairs(joined), KEEP, NO_ANSWER).astype(np.int8)
    largest = {
        place: max((rows.test(a, b, given)[1] for given in sets), default=0.0)
        for place, a, b, sets in _list_sets(joined, size)
    }
    removed = [place for place in largest if largest[place] > alpha]
    votes[removed] = REMOVE
    withheld = sorted(removed, key=lambda place: largest[place])[: math.ceil(mask_rate * len(removed))]
    votes[withheld] = NO_ANSWER
    return votes


def _weigh_removals(copies: Sequence[ClientRows], joined: Bools, asked: Bools, size: int, alpha: float) -> Array:
    """Return the mean weight of removal over a client's copies, for the edges about to go."""
    weights = np.zeros(len(asked))
    for place, a, b, sets in _list_sets(joined, size):
        if asked[place]:
            for rows in copies:
                p_values = np.array([rows.test(a, b, given)[1] for given in sets])
                separating = measure_certainty(p_values[p_values > alpha], alpha)
                weights[place] += separating.mean() / len(copies) if len(separating) else 0.0
    return weights[asked]


def _orient_copies(copies: Sequence[ClientRows], joined: Bools, names: Sequence[str], seed: int) -> Marks:
    """Return a client's graph: the directions that most of its copies have."""
    own = [votes_of_marks(graph_to_marks(orient_locally(rows, joined, names, seed), names)) for rows in copies]
    return graph_to_marks(merge_votes(np.sum(own, axis=0), names), names)


def _list_sets(joined: Bools, size: int) -> Iterator[tuple[int, int, int, list[tuple[int, ...]]]]:
    """Yield every edge with its place among all pairs, its ends, and the sets of this size around either end."""
    around = [np.flatnonzero(row).tolist() for row in joined]
    for place, (a, b) in enumerate(zip(*np.triu_indices(len(joined), 1), strict=True)):
        if joined[a, b]:
            near = ([node for node in around[end] if node not in (a, b)] for end in (a, b))
            yield place, int(a), int(b), [*dict.fromkeys(s for nodes in near for s in combinations(nodes, size))]


def _pairs(matrix: Bools) -> Bools:
    return np.asarray(matrix[np.triu_indices(len(matrix), 1)])


def _matrix(pairs: Bools, variables: int) -> Bools:
    matrix = np.zeros((variables, variables), dtype=np.bool_)
    matrix[np.triu_indices(variables, 1)] = pairs
    return matrix | matrix.T
