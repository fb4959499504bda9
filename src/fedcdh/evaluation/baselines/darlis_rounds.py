"""The server of DARLIS: it minimises penalised losses over all clients by proximal gradient rounds.

In a round the server sends parameters, every client answers its gradient there, and the server adds the answers up:
clients divide by the number of all rows, so that the sum is the gradient of the mean loss. The step is accelerated
(Beck and Teboulle 2009) and restarts where the momentum points uphill (O'Donoghue and Candès 2015), for each problem by
itself. Its length is one over a bound of the curvature: the sum of the largest eigenvalues of the clients' parts of the
second moments, of which every client sends one number. The multinomial loss has at most half of that curvature.

The penalty λ Σ_i ‖B_ij‖ (group lasso) and −log ρ of a number are proximal: neither needs a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.darlis_clients import DarlisClient, DesignLayout, FamilyProblem, ProblemBatch
from fedcdh.evaluation.baselines.interface import CountingChannel

_MARGIN = 1.0 + 1e-9  # of the step length, against rounding


@dataclass(frozen=True, eq=False)
class FamilyFit:
    """The best parameters of a family problem: its penalised loss, its loss alone, and the candidates that it keeps."""

    objective: float
    loss: float
    parameters: Array
    parents: tuple[int, ...]


class DarlisServer:
    """The server, which knows the layout and the clients' answers, and no row."""

    def __init__(self, clients: Sequence[DarlisClient], layout: DesignLayout, channel: CountingChannel) -> None:
        self._clients, self._layout, self._channel = clients, layout, channel
        self._curvature = float(np.sum([channel.to_server(np.array(client.curvature())) for client in clients]))

    def fit(
        self,
        problems: Sequence[FamilyProblem],
        penalty: float,
        starts: Sequence[Array | None] | None = None,
        *,
        tolerance: float,
        max_rounds: int,
    ) -> list[FamilyFit]:
        """Return the best parameters of all problems, found in common rounds.

        Rounds end when no entry of the gradient mapping is above the tolerance.
        """
        if not problems:
            return []
        batch = ProblemBatch(problems, self._layout)
        self._send_problems(problems)
        found = self._start(batch, starts)
        halves = np.array([0.5 if self._layout.is_label(problem.node) else 1.0 for problem in problems])
        steps = 1.0 / (self._curvature * _MARGIN * halves[batch.owners])
        point, momentum = found, np.ones(len(problems))
        for _ in range(max_rounds):
            gradient = self._ask(batch, point)[: batch.size]
            moved = _proximal_step(batch, point - steps * gradient, steps, penalty)
            if (np.abs(moved - point) > tolerance * steps).sum() == 0:
                found = moved
                break
            point, momentum = _extrapolate(batch, found, moved, point, momentum)
            found = moved
        losses = self._ask(batch, found)[batch.size :]
        return [self._describe_fit(batch, number, found, losses[number], penalty) for number in range(len(problems))]

    def largest_slope(self, problems: Sequence[FamilyProblem], parameters: Sequence[Array]) -> float:
        """Return the largest norm of the gradient with respect to one candidate, at these parameters."""
        batch = ProblemBatch(problems, self._layout)
        slopes = self._ask(batch, np.concatenate(parameters))[: batch.size]
        penalised = batch.groups >= 0
        norms = np.sqrt(np.bincount(batch.groups[penalised], slopes[penalised] ** 2, max(batch.group_count, 1)))
        return float(norms.max(initial=0.0))

    def _send_problems(self, problems: Iterable[FamilyProblem]) -> None:
        """Send every client the nodes and their candidates, one bit of a byte each."""
        marks = np.zeros((0, len(self._layout.levels) + 1), dtype=np.uint8)
        for problem in problems:
            row = np.zeros((1, marks.shape[1]), dtype=np.uint8)
            row[0, 0], row[0, [1 + i for i in problem.candidates]] = problem.node, 1
            marks = np.concatenate([marks, row])
        self._channel.to_clients(np.packbits(marks[:, 1:], axis=1))
        self._channel.to_clients(marks[:, 0].copy())

    def _ask(self, batch: ProblemBatch, parameters: Array) -> Array:
        """Send parameters to all clients, and add up their answers."""
        sent = self._channel.to_clients(parameters)
        total = np.zeros(batch.size + len(batch.problems))
        for client in self._clients:
            total += self._channel.to_server(client.answer(batch, sent))
        return total

    def _start(self, batch: ProblemBatch, starts: Sequence[Array | None] | None) -> Array:
        """Return the given parameters, or ρ = 1 and no dependence."""
        found = np.zeros(batch.size)
        found[batch.rho_places] = 1.0
        for part, start in zip(batch.slices, starts or [None] * len(batch.problems), strict=True):
            if start is not None:
                found[part] = start
        return found

    def _describe_fit(self, batch: ProblemBatch, number: int, found: Array, loss: float, penalty: float) -> FamilyFit:
        problem, part = batch.problems[number], batch.slices[number]
        values, groups = found[part], batch.groups[part]
        first = int(groups[groups >= 0].min(initial=batch.group_count))
        norms = np.sqrt(np.bincount(groups[groups >= 0] - first, values[groups >= 0] ** 2, len(problem.candidates)))
        if not self._layout.is_label(problem.node):
            loss -= float(np.log(values[0]))
        kept = tuple(np.array(problem.candidates, dtype=int)[norms > 0].tolist())
        size = float(norms.sum())
        return FamilyFit(loss + (penalty * size if size else 0.0), loss, values.copy(), kept)


def _proximal_step(batch: ProblemBatch, values: Array, steps: Array, penalty: float) -> Array:
    """Shrink every group of parameters towards 0, and move every ρ by the proximal map of −log ρ."""
    rho, rho_steps = values[batch.rho_places], steps[batch.rho_places]
    if batch.has_single_groups:
        values = np.sign(values) * np.maximum(np.abs(values) - steps * penalty, 0.0)
    elif penalty:
        penalised = batch.groups >= 0
        groups = batch.groups[penalised]
        norms = np.sqrt(np.bincount(groups, values[penalised] ** 2, batch.group_count))[groups]
        with np.errstate(divide="ignore"):
            values[penalised] *= np.maximum(1.0 - steps[penalised] * penalty / norms, 0.0)
    values[batch.rho_places] = 0.5 * (rho + np.sqrt(rho * rho + 4.0 * rho_steps))
    return values


def _extrapolate(
    batch: ProblemBatch, before: Array, moved: Array, point: Array, momentum: Array
) -> tuple[Array, Array]:
    """Return the next point to ask about, and the momentum of every problem."""
    direction = moved - before
    uphill = np.bincount(batch.owners, (point - moved) * direction, len(momentum)) > 0
    momentum = np.where(uphill, 1.0, momentum)
    grown = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
    return moved + ((momentum - 1.0) / grown)[batch.owners] * direction, grown
