"""Fed-Sparse-BNSL: NOTEARS-ADMM with greedy, sparse and optionally private answers.

Fassy El Fehri, Bellet and Bastien (2025), "Differentially Private and Federated Structure Learning in Bayesian
Networks", arXiv 2512.01708. It changes two points of NOTEARS-ADMM (`notears_admm`):

- The l1 penalty is at the clients, not at the server.
- A client does not solve its step. It moves a few entries of its weights by proximal greedy coordinate descent, the
  ones that gain most, and sends these only: their places and values. The server keeps a copy of each client's weights.

Rows, penalties, rounds and l1 are those of `notears_admm`; a client's l1 is its share of it, so that the sum over
clients is the same objective. `private_sparse_bnsl` has the version with noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.admm import AdmmServer, count_all_rows, penalty_schedule
from fedcdh.evaluation.baselines.column_scales import centre_columns
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel, dag_of_weights
from fedcdh.evaluation.baselines.notears_admm import acyclicity_of_weights

_INITIAL_PENALTY = 0.001
_ZERO_GAIN = 1e-9  # moves that gain less are rounding


class SparseAnswer(NamedTuple):
    """The entries that a client moved: places in the flat matrix, and their new values."""

    places: npt.NDArray[np.uint16]
    values: Array


class SparseClient(ABC):
    """A client of consensus ADMM that moves a few entries of its own weights in each round."""

    def __init__(self, variables: int) -> None:
        self._own = np.zeros((variables, variables))
        self._duals = np.zeros((variables, variables))
        self._penalty = 0.0  # of the round before

    def answer(self, shared: Array, penalty: float) -> SparseAnswer:
        """Return the entries that have moved."""
        self._duals += self._penalty * (self._own - shared)
        self._penalty = penalty
        before = self._own.copy()
        self.move_entries(shared - self._duals / penalty, penalty)
        places = np.flatnonzero((self._own != before).ravel())
        return SparseAnswer(places.astype(np.uint16), self._own.ravel()[places])

    @abstractmethod
    def move_entries(self, target: Array, penalty: float) -> None:
        """Lower loss(W) + l1 · |W| + penalty / 2 · |W − target|² by moving few entries of W."""


class GreedyClient(SparseClient):
    """A client that knows its second moments, and moves one entry after the other, always the one that gains most."""

    def __init__(self, table: Array, total: int, l1: float, moves: int) -> None:
        super().__init__(table.shape[1])
        centred = centre_columns(table)
        self._moments = centred.T @ centred / total
        self._l1, self._moves = l1 * len(table) / total, moves

    def move_entries(self, target: Array, penalty: float) -> None:
        own, moments = self._own, self._moments
        curvature = np.diag(moments)[:, None] + penalty
        gradient = moments @ own - moments + penalty * (own - target)
        for _ in range(self._moves):
            moved = shrink(own - gradient / curvature, self._l1 / curvature)
            gain = np.abs(moved - own) * np.sqrt(curvature)
            np.fill_diagonal(gain, 0.0)
            tail, head = divmod(int(np.argmax(gain)), len(own))
            if gain[tail, head] <= _ZERO_GAIN:
                return
            step = moved[tail, head] - own[tail, head]
            own[tail, head] = moved[tail, head]
            gradient[:, head] += moments[:, tail] * step
            gradient[tail, head] += penalty * step


def shrink(values: Array, by: Array | float) -> Array:
    """Return the proximal map of `by` · |x|: values moved towards 0 by that much, and no further.

    >>> shrink(np.array([3.0, -0.5, -2.0]), 1.0)
    array([ 2., -0., -1.])
    """
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - by, 0.0))


def run_sparse_bnsl(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    threshold: float = 0.3,
    l1: float = 0.01,
    rounds: int = 200,
    moves_per_variable: int = 1,
) -> BaselineResult:
    """Return the arrows with a weight above the threshold; a client moves `moves_per_variable` · d entries a round.

    >>> draw = np.random.default_rng(0)
    >>> cause = draw.standard_normal((2, 100))
    >>> tables = {f"client{k}": np.column_stack([x, 2 * x + draw.standard_normal(100)]) for k, x in enumerate(cause)}
    >>> print(run_sparse_bnsl(tables, ("dose", "effect")).graph)
    dose → effect
    """
    channel = CountingChannel(len(tables))
    total = count_all_rows(tables, channel)
    moves = moves_per_variable * len(names)
    clients = [GreedyClient(tables[client], total, l1, moves) for client in sorted(tables)]
    weights = run_sparse_rounds(clients, len(names), channel, penalty_schedule(_INITIAL_PENALTY, rounds))
    return BaselineResult(dag_of_weights(weights, names, threshold), channel.traffic)


def run_sparse_rounds(
    clients: Sequence[SparseClient],
    variables: int,
    channel: CountingChannel,
    penalties: Iterable[tuple[float, float]],
) -> Array:
    """Run rounds until nothing moves any more or the penalties end, and return the shared weights."""
    shape = (variables, variables)
    server = AdmmServer(np.zeros(variables**2), variables**2, 0.0, acyclicity_of_weights)
    copies = [np.zeros(variables**2) for _ in clients]
    for cycle_penalty, penalty in penalties:
        shared = channel.to_clients(server.shared).reshape(shape)
        for copy, client in zip(copies, clients, strict=True):
            answer = client.answer(shared, penalty)
            copy[channel.to_server(answer.places)] = channel.to_server(answer.values)
        server.update(copies, cycle_penalty, penalty)
        if server.has_converged:
            break
    return server.shared.reshape(shape)
