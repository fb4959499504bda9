"""Consensus ADMM with an acyclicity constraint, which both methods of Ng & Zhang (2022) share.

Every client keeps its own parameters, and the server keeps a shared set. A penalty that grows from round to round draws
them together (consensus ADMM). A second penalty, which grows faster, removes cycles from the shared ones (augmented
Lagrangian). In a round the server sends the shared parameters to all clients, and each client answers with its own.
Nothing else is sent: client and server each derive the client's multipliers (the duals) from these two. The server uses
only the mean of the answers, and the largest deviation from it, which says when to stop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from scipy import linalg, optimize

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.interface import CountingChannel

SmoothFunction = Callable[[Array], tuple[float, Array]]
"""A function of a flat array, as its value and its gradient."""

MAX_PENALTY = 1e16
"""Penalties do not grow beyond this; the search ends when both have reached it."""

CONVERGENCE_TOLERANCE = 1e-6
"""The search ends when no parameter moves by more and no client deviates by more: further rounds would not change a
graph. Moves shrink as the consensus penalty grows, so that all later ones together are about five times the last."""


class AdmmClient(ABC):
    """A client of ADMM: it moves its parameters towards the shared ones as far as its rows agree."""

    def __init__(self, start: Array) -> None:
        self._own = start
        self._duals: Array | float = 0.0
        self._penalty = 0.0  # of the round before

    def answer(self, shared: Array, penalty: float) -> Array:
        """Return the client's own parameters after a step towards the shared ones."""
        self._duals = self._duals + self._penalty * (self._own - shared)
        self._penalty = penalty
        self._own = self.proximal_step(shared - self._duals / penalty, penalty, self._own)
        return self._own

    @abstractmethod
    def proximal_step(self, target: Array, penalty: float, start: Array) -> Array:
        """Return the x with the least loss(x) + penalty / 2 · |x − target|², sought from `start`."""


class AdmmServer:
    """The shared parameters: near all answers, with few and small weights and without cycles.

    The first `weights` parameters are weights of arrows. Their absolute values cost `l1` each, and `acyclicity`
    measures how far they are from a DAG. The server sees no row.
    """

    def __init__(self, start: Array, weights: int, l1: float, acyclicity: SmoothFunction) -> None:
        self.shared = start
        self.has_converged = False
        self._weights, self._l1, self._acyclicity = weights, l1, acyclicity
        self._duals: Array | float = 0.0  # mean over clients
        self._multiplier = 0.0

    def update(self, answers: Sequence[Array], cycle_penalty: float, penalty: float) -> None:
        """Compute new shared parameters from what all clients answered."""
        mean, before = np.mean(answers, axis=0), self.shared
        target = mean + self._duals / penalty
        self.shared = self._nearest(target, len(answers) * penalty, cycle_penalty)
        self._duals = self._duals + penalty * (mean - self.shared)
        self._multiplier += cycle_penalty * self._acyclicity(self.shared[: self._weights])[0]
        self.has_converged = (
            max(np.abs(other - self.shared).max() for other in (before, *answers)) < CONVERGENCE_TOLERANCE
        )

    def _nearest(self, target: Array, penalty: float, cycle_penalty: float) -> Array:
        """Minimise l1 · |weights| + multiplier · h + cycle penalty / 2 · h² + penalty / 2 · |x − target|²."""

        def smooth(x: Array) -> tuple[float, Array]:
            h, slope = self._acyclicity(x[: self._weights])
            off = x - target
            gradient = penalty * off
            gradient[: self._weights] += (self._multiplier + cycle_penalty * h) * slope
            return self._multiplier * h + cycle_penalty / 2 * h * h + penalty / 2 * float(off @ off), gradient

        return minimise_with_l1(smooth, self.shared, self._weights, self._l1)


def minimise_with_l1(smooth: SmoothFunction, start: Array, weights: int, l1: float) -> Array:
    """Minimise smooth(x) + l1 · Σ |x_i| over the first `weights` entries, each split into two parts ≥ 0.

    The kink at 0 becomes a bound, and entries are exactly 0 where the penalty demands it.

    >>> minimise_with_l1(lambda x: (((x - 1) ** 2).sum() / 2, x - 1), np.zeros(2), weights=1, l1=0.25)
    array([0.75, 1.  ])
    """

    def split(parts: Array) -> tuple[float, Array]:
        with np.errstate(over="ignore", invalid="ignore"):  # the first step may be too long: L-BFGS-B shortens it
            value, slope = smooth(_join_parts(parts, weights))
        value += l1 * float(parts[: 2 * weights].sum())
        return value, np.concatenate([l1 + slope[:weights], l1 - slope[:weights], slope[weights:]])

    head, tail = start[:weights], start[weights:]
    parts = np.concatenate([np.maximum(head, 0.0), np.maximum(-head, 0.0), tail])
    lowest = np.concatenate([np.zeros(2 * weights), np.full(len(tail), -np.inf)])
    found = optimize.minimize(split, parts, jac=True, method="L-BFGS-B", bounds=optimize.Bounds(lowest, np.inf))
    return _join_parts(found.x, weights)


def _join_parts(parts: Array, weights: int) -> Array:
    return np.concatenate([parts[:weights] - parts[weights : 2 * weights], parts[2 * weights :]])


def acyclicity_of_strengths(strengths: Array) -> tuple[float, Array]:
    """Return h = tr e^S − d of strengths S ≥ 0 and its gradient; h is 0 if the arrows (S > 0) form no cycle.

    >>> acyclicity_of_strengths(np.array([[0.0, 2.0], [0.0, 0.0]]))[0]
    0.0
    """
    grown = linalg.expm(strengths)
    return float(np.trace(grown)) - len(strengths), np.asarray(grown.T)


def penalty_schedule(start: float, rounds: int) -> Iterator[tuple[float, float]]:
    """Yield the penalties on cycles and on disagreement for each round; both begin alike.

    >>> list(penalty_schedule(0.1, 2))
    [(0.1, 0.1), (0.17500000000000002, 0.125)]
    """
    cycle_penalty = penalty = start
    for _ in range(rounds):
        yield cycle_penalty, penalty
        if cycle_penalty < MAX_PENALTY:
            cycle_penalty *= 1.75
        if penalty < MAX_PENALTY:
            penalty *= 1.25
        if min(cycle_penalty, penalty) >= MAX_PENALTY:
            return


def run_rounds(
    clients: Sequence[AdmmClient], server: AdmmServer, channel: CountingChannel, steps: Iterator[tuple[float, float]]
) -> Array:
    """Run rounds until nothing moves any more or the penalties end, and return the shared parameters."""
    for cycle_penalty, penalty in steps:
        shared = channel.to_clients(server.shared)
        answers = [channel.to_server(client.answer(shared, penalty)) for client in clients]
        server.update(answers, cycle_penalty, penalty)
        if server.has_converged:
            break
    return server.shared


def count_all_rows(tables: Mapping[str, Array], channel: CountingChannel) -> int:
    """Return the number of rows of all clients, by which losses are divided; each client sends its own number."""
    counts = [channel.to_server(np.array(len(table))) for table in tables.values()]
    return int(channel.to_clients(np.sum(counts)))
