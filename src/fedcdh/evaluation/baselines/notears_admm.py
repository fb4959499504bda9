"""NOTEARS-ADMM: the linear method of Ng & Zhang (2022).

"Towards Federated Bayesian Network Structure Learning with Continuous Optimization", arXiv 2110.09356.

One linear model for all clients, x = Wᵀx + ε with W a DAG: the least squares of all rows plus l1 · |W|. What is sent is
in `admm`. Penalties and their growth, l1 = 0.01, at most 200 rounds and thresholds are those of the authors' program,
and so are the steps: a client's is a linear system with its own covariance matrix, the server's is L-BFGS-B. As there,
every client centres its columns at its own means and scales nothing. The method therefore relies on variances that grow
along the arrows, as they do in most simulations. On standardised data its directions are wrong more often than right.
Penalties grow at a fixed pace, so that weights freeze a little short of the best ones, the more so the more clients
there are.

This module differs from the program in four points:

- |W| has a kink at 0, which the program hands to L-BFGS-B as it is; here W is split into two parts ≥ 0, which is exact.
- The program requires clients with equally many rows. Here every row counts the same, which for such clients is the
  same.
- Rounds end when nothing moves any more (`admm.CONVERGENCE_TOLERANCE`), not only with the penalties at 10¹⁶.
- If there are cycles above the threshold, the program raises the threshold for all arrows until there is none;
  `dag_of_weights` leaves out only arrows that close a cycle. After all rounds there are hardly ever any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.admm import (
    AdmmClient,
    AdmmServer,
    acyclicity_of_strengths,
    count_all_rows,
    penalty_schedule,
    run_rounds,
)
from fedcdh.evaluation.baselines.fitted_weights import FittedWeights
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel

_INITIAL_PENALTY = 0.001


def run_notears_admm(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    threshold: float = 0.1,
    l1: float = 0.01,
    rounds: int = 200,
) -> BaselineResult:
    """Return the arrows with a weight above the threshold.

    FedCDH's authors tried 0.1 and 0.3; those of NOTEARS-ADMM use 0.3.

    >>> draw = np.random.default_rng(0)
    >>> cause = draw.standard_normal((2, 100))
    >>> tables = {f"client{k}": np.column_stack([x, 2 * x + draw.standard_normal(100)]) for k, x in enumerate(cause)}
    >>> print(run_notears_admm(tables, ("dose", "effect")).graph)
    dose → effect
    """
    return fit_notears_admm(tables, names, seed, l1=l1, rounds=rounds).apply_threshold(names, threshold)


def fit_notears_admm(
    tables: Mapping[str, Array], names: Sequence[str], seed: int = 0, *, l1: float = 0.01, rounds: int = 200
) -> FittedWeights:
    """Return the weights before the threshold; nothing is drawn at random."""
    channel = CountingChannel(len(tables))
    weights = fit_shared_weights(tables, channel, l1, rounds)
    return FittedWeights(weights, channel.traffic)


def fit_shared_weights(tables: Mapping[str, Array], channel: CountingChannel, l1: float, rounds: int) -> Array:
    """Return W after all rounds; W[i, j] is the weight of the arrow from i to j."""
    total = count_all_rows(tables, channel)
    clients = [_LinearClient(tables[name], total) for name in sorted(tables)]
    size = next(iter(tables.values())).shape[1]
    server = AdmmServer(np.zeros(size * size), size * size, l1, acyclicity_of_weights)
    return run_rounds(clients, server, channel, penalty_schedule(_INITIAL_PENALTY, rounds)).reshape(size, size)


class _LinearClient(AdmmClient):
    """Minimise tr (I − W)ᵀ S (I − W) / 2; the rows are needed once, for the covariance matrix S."""

    def __init__(self, rows: Array, total: int) -> None:
        super().__init__(np.zeros(rows.shape[1] ** 2))
        centred = rows - rows.mean(axis=0)
        self._covariance = centred.T @ centred / total

    def proximal_step(self, target: Array, penalty: float, start: Array) -> Array:
        own = self._covariance
        found = np.linalg.solve(own + penalty * np.eye(len(own)), own + penalty * target.reshape(own.shape))
        return found.ravel()


def acyclicity_of_weights(weights: Array) -> tuple[float, Array]:
    """Return h of the squared weights, which come in one flat array, and its gradient."""
    size = round(np.sqrt(len(weights)))
    matrix = weights.reshape(size, size)
    value, slope = acyclicity_of_strengths(matrix * matrix)
    return value, (2 * slope * matrix).ravel()
