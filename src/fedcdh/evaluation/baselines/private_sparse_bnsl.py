"""Fed-Sparse-BNSL with differential privacy: chosen by the exponential mechanism, blurred by Gaussian noise.

The rounds are those of `sparse_bnsl`. In each, a client evaluates the gradient of its loss over its rows,

    Σ_rows −x rᵀ,   r = x − Wᵀx,

where every row's matrix (without its diagonal) is shortened to a Frobenius norm of at most `clip`. One row more or less
then changes the sum by at most `clip` in Euclidean length, and so does every entry.

1. *Choice.* The score of an entry is curvature × |its proximal move|. The proximal map is a contraction, so that a row
   changes a score by no more than it changes the gradient's entry. The `picks` entries with the largest score plus
   Gumbel noise are `picks` draws of the exponential mechanism without replacement.
2. *Value.* The gradient's entries at these places get Gaussian noise, and take the proximal step.

Both are counted in zCDP (`zcdp`), and all rounds together are (ε, δ) for one row more or less at one client. Half of
the budget is for choices. Rows of different clients are different: their budgets do not add up.

What the authors' text leaves open is ours: the share of the budget, few rounds with penalties that begin higher, and a
curvature that is declared (rows are scaled to variance 1) rather than read off the rows. Locations, scales and numbers
of rows are taken as known without looking, as they are in a plan with noise; here they are computed from all rows.
Noise comes from numpy's generator, keyed by the seed: good for a comparison, and no good for privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.admm import penalty_schedule
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel, dag_of_weights
from fedcdh.evaluation.baselines.sparse_bnsl import SparseClient, run_sparse_rounds, shrink
from fedcdh.evaluation.baselines.zcdp import (
    cost_of_epsilon,
    cost_of_exponential_mechanism,
    cost_of_gaussian_noise,
)
from fedcdh.evaluation.simulation import keyed_generator


@dataclass(frozen=True)
class NoiseSchedule:
    """How much noise every round has: the ε of one choice, and the standard deviation in a sum of gradients."""

    rounds: int
    picks: int
    clip: float
    choice_epsilon: float
    deviation: float

    @property
    def cost(self) -> float:
        """Return ρ of all rounds together."""
        choices = self.picks * cost_of_exponential_mechanism(self.choice_epsilon)
        return self.rounds * (choices + cost_of_gaussian_noise(self.clip, self.deviation))

    @classmethod
    def calibrate(
        cls, epsilon: float, delta: float, *, rounds: int, picks: int, clip: float, choice_share: float = 0.5
    ) -> NoiseSchedule:
        """Return the least noise with which all rounds are (ε, δ).

        >>> schedule = NoiseSchedule.calibrate(1.0, 1e-5, rounds=10, picks=4, clip=2.0)
        >>> bool(np.isclose(schedule.cost, cost_of_epsilon(1.0, 1e-5)))
        True
        """
        per_round = cost_of_epsilon(epsilon, delta) / rounds
        return cls(
            rounds,
            picks,
            clip,
            choice_epsilon=math.sqrt(8.0 * choice_share * per_round / picks),
            deviation=clip / math.sqrt(2.0 * (1.0 - choice_share) * per_round),
        )


def sum_clipped_gradients(rows: Array, weights: Array, clip: float) -> Array:
    """Return Σ −x (x − Wᵀx)ᵀ without the diagonal, where every row's matrix has a Frobenius norm of at most `clip`.

    >>> sum_clipped_gradients(np.array([[3.0, 4.0]]), np.zeros((2, 2)), clip=1.0).round(3)
    array([[ 0.   , -0.707],
           [-0.707,  0.   ]])
    """
    errors = rows - rows @ weights
    diagonal = np.square(rows * errors).sum(axis=1)
    squares = np.square(rows).sum(axis=1) * np.square(errors).sum(axis=1) - diagonal
    sizes = np.sqrt(np.maximum(squares, 0.0))
    factors = np.minimum(1.0, clip / np.maximum(sizes, 1e-300))
    total = -(rows * factors[:, None]).T @ errors
    np.fill_diagonal(total, 0.0)
    return np.asarray(total)


class PrivateClient(SparseClient):
    """A client whose answers are private: rows enter through clipped gradients only."""

    def __init__(self, rows: Array, total: int, l1: float, schedule: NoiseSchedule, draw: np.random.Generator) -> None:
        super().__init__(rows.shape[1])
        self._rows, self._total = rows, total
        self._share = len(rows) / total
        self._l1, self._schedule, self._draw = l1 * self._share, schedule, draw
        self.rounds_spent = 0

    def move_entries(self, target: Array, penalty: float) -> None:
        schedule, own = self._schedule, self._own
        if self.rounds_spent >= schedule.rounds:
            raise SettingsError(
                f"found a further round; expected at most {schedule.rounds} rounds, for which the noise is enough; "
                "calibrate the noise for more"
            )
        curvature = _DECLARED_CURVATURE * self._share + penalty
        sums = sum_clipped_gradients(self._rows, own, schedule.clip)
        pull = penalty * (own - target)
        scores = curvature * np.abs(self._move(sums, pull, curvature) - own)
        chosen = self._choose(scores)
        noisy = sums + 0.0
        noisy[chosen] += schedule.deviation * self._draw.standard_normal(len(chosen[0]))
        own[chosen] = self._move(noisy, pull, curvature)[chosen]
        self.rounds_spent += 1

    def _move(self, sums: Array, pull: Array, curvature: float) -> Array:
        return shrink(self._own - (sums / self._total + pull) / curvature, self._l1 / curvature)

    def _choose(self, scores: Array) -> tuple[np.ndarray, np.ndarray]:
        """Draw entries without replacement, each with chances ∝ exp(ε · score / (2 · sensitivity)) among the rest."""
        scale = 2.0 * self._schedule.clip / self._total / self._schedule.choice_epsilon
        noisy = scores + scale * self._draw.gumbel(size=scores.shape)
        np.fill_diagonal(noisy, -np.inf)
        places = np.argsort(noisy, axis=None)[::-1][: self._schedule.picks]
        rows, columns = np.unravel_index(places, scores.shape)
        return rows, columns


_DECLARED_CURVATURE = 2.0  # of a loss over rows of variance 1; a client's own variance may be above that of all


def run_private_sparse_bnsl(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    threshold: float = 0.15,
    l1: float = 0.01,
    rounds: int = 15,
    picks_per_variable: float = 2.0,
    clip_per_variable: float = 0.25,
    initial_penalty: float = 0.1,
) -> BaselineResult:
    """Return the arrows with a weight above the threshold; all that a client sends is (ε, δ)-private.

    >>> draw = np.random.default_rng(0)
    >>> cause = draw.standard_normal((2, 5000))
    >>> tables = {f"client{k}": np.column_stack([x, 2 * x + draw.standard_normal(5000)]) for k, x in enumerate(cause)}
    >>> len(run_private_sparse_bnsl(tables, ("dose", "effect"), epsilon=4.0).graph.skeleton)
    1
    """
    channel = CountingChannel(len(tables))
    variables = len(names)
    possible = max(variables * (variables - 1), 1)
    schedule = NoiseSchedule.calibrate(
        epsilon,
        delta,
        rounds=rounds,
        picks=min(max(round(picks_per_variable * variables), 1), possible),
        clip=clip_per_variable * variables,
    )
    scaled = _scale_as_declared(tables)
    total = sum(map(len, scaled.values()))
    clients = [
        PrivateClient(rows, total, l1, schedule, keyed_generator(seed, "sparse-bnsl", client))
        for client, rows in scaled.items()
    ]
    weights = run_sparse_rounds(clients, variables, channel, penalty_schedule(initial_penalty, rounds))
    return BaselineResult(dag_of_weights(weights, names, threshold), channel.traffic)


def _scale_as_declared(tables: Mapping[str, Array]) -> dict[str, Array]:
    """Return rows with the location and scale that a plan would declare: those of all rows."""
    pooled = np.concatenate([tables[client] for client in sorted(tables)])
    location, scale = pooled.mean(axis=0), pooled.std(axis=0)
    constant = pooled.max(axis=0) == pooled.min(axis=0)
    factor = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, scale))
    return {client: (tables[client] - location) * factor for client in sorted(tables)}
