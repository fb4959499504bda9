"""The clients of DARLIS: they hold rows, and answer the gradient of their loss at parameters that the server sends.

A *family problem* is a node with the variables that stand before it in an order, its candidates. A batch of them is
asked at once. Parameters of a batch are one flat array, and an answer has the gradient at the same places, followed by
the loss of every problem.

- A number has the Gaussian loss −log ρ + ½ mean (ρ x_j − Σ_i φ_i x_i)², with ρ = 1/σ_j and φ = B/σ_j. In (ρ, φ) it is
  convex, and minimal over ρ it is ½ log of the residual variance: no assumption about equal variances. The server adds
  −log ρ, for which it needs no row.
- A label has the multinomial loss with one column of parameters per level.

Every client has intercepts of its own. For numbers they are removed by centring. For labels a client finds the best
ones for the parameters received, and keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.evaluation.baselines.column_scales import ColumnScales

_NEWTON_STEPS = 25  # for a client's intercepts, at most; two or three are enough from the ones before
_NEWTON_TOLERANCE = 1e-8  # of the share of a level


@dataclass(frozen=True)
class DesignLayout:
    """Which columns of the design belong to which variable: one for a number, one per level for a label.

    `levels` has the values of a label, and is empty for a number.
    """

    levels: tuple[tuple[float, ...], ...]

    @cached_property
    def places(self) -> tuple[Indices, ...]:
        """Return the columns of every variable."""
        ends = np.cumsum([max(len(found), 1) for found in self.levels])
        return tuple(np.arange(end - max(len(found), 1), end) for end, found in zip(ends, self.levels, strict=True))

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return sum(max(len(found), 1) for found in self.levels)

    def is_label(self, variable: int) -> bool:
        """Return whether the variable is a label."""
        return bool(self.levels[variable])

    def freedom(self, node: int, candidate: int) -> int:
        """Return how many free parameters the candidate has in the model of the node."""
        return max(len(self.levels[node]) - 1, 1) * max(len(self.levels[candidate]) - 1, 1)


@dataclass(frozen=True)
class FamilyProblem:
    """A node and its candidates, in ascending order."""

    node: int
    candidates: tuple[int, ...]


class ProblemBatch:
    """Several family problems, with the place of every parameter in the flat array.

    The parameters of a number are ρ, then φ of all candidates' columns; those of a label are columns × levels, row by
    row.
    """

    def __init__(self, problems: Sequence[FamilyProblem], layout: DesignLayout) -> None:
        self.problems, self.layout = tuple(problems), layout
        owners, groups, self.slices = [], [], []
        self.rho_places: list[int] = []
        start = group = 0
        for number, problem in enumerate(self.problems):
            levels = max(len(layout.levels[problem.node]), 1)
            if not layout.is_label(problem.node):
                self.rho_places.append(start)
                groups.append(-1)
            for candidate in problem.candidates:
                groups.extend([group] * (len(layout.places[candidate]) * levels))
                group += 1
            owners.extend([number] * (len(groups) - start))
            self.slices.append(slice(start, len(groups)))
            start = len(groups)
        self.size = start
        self.owners: Indices = np.array(owners, dtype=np.intp)
        self.groups: Indices = np.array(groups, dtype=np.intp)
        self.group_count = group
        self.has_single_groups = bool((np.bincount(self.groups[self.groups >= 0], minlength=1) <= 1).all())
        self._index_numbers()

    def _index_numbers(self) -> None:
        """Find the places of all parameters of numbers in a matrix columns × problems."""
        at, cells = [], []
        number_problems: list[int] = []
        for number, (problem, part) in enumerate(zip(self.problems, self.slices, strict=True)):
            if not self.layout.is_label(problem.node):
                columns = self.columns(problem.candidates)
                rows = np.concatenate([self.layout.places[problem.node], columns])
                cells.append((rows, np.full(len(rows), len(number_problems))))
                at.append(np.arange(part.start, part.stop))
                number_problems.append(number)
        self.number_problems = number_problems
        self.number_places: Indices = np.concatenate(at) if at else np.zeros(0, dtype=np.intp)
        shape = (self.layout.width, len(number_problems))
        self.number_cells: Indices = (
            np.ravel_multi_index(
                (np.concatenate([rows for rows, _ in cells]), np.concatenate([which for _, which in cells])), shape
            )
            if cells
            else np.zeros(0, dtype=np.intp)
        )
        self.signs = -np.ones(len(self.number_cells))  # ρ x_j − Σ φ_i x_i
        self.signs[np.isin(self.number_places, self.rho_places)] = 1.0
        self.number_shape = shape

    def columns(self, candidates: Sequence[int]) -> Indices:
        """Return the columns of the design that belong to these variables."""
        return np.concatenate([np.zeros(0, dtype=np.intp), *(self.layout.places[i] for i in candidates)])

    @property
    def label_problems(self) -> list[int]:
        """Return the numbers of the problems whose node is a label."""
        return [n for n, problem in enumerate(self.problems) if self.layout.is_label(problem.node)]


class DarlisClient:
    """The rows of one client, as a design whose columns are centred here and scaled alike everywhere."""

    def __init__(self, table: Array, scales: ColumnScales, layout: DesignLayout) -> None:
        self._share = 1.0 / scales.rows
        self._layout = layout
        # Rows of labels repeat: each is kept once, with its count.
        distinct, counts = np.unique(table, axis=0, return_counts=True)
        self._counts = counts.astype(float)
        self._codes = {
            variable: np.searchsorted(levels, distinct[:, variable])
            for variable, levels in enumerate(layout.levels)
            if levels
        }
        design = np.empty((len(distinct), layout.width))
        for variable, (levels, places) in enumerate(zip(layout.levels, layout.places, strict=True)):
            if levels:
                design[:, places] = np.identity(len(levels))[self._codes[variable]]
            else:
                design[:, places[0]] = distinct[:, variable] / scales.deviations[variable]
        centred = design - self._counts @ design / len(table)
        centred[:, design.max(axis=0) == design.min(axis=0)] = 0.0
        self._columns = np.ascontiguousarray(centred.T)
        self._moments = (self._columns * self._counts) @ self._columns.T * self._share
        self._intercepts: dict[int, Array] = {}

    def curvature(self) -> float:
        """Return the largest eigenvalue of the client's part of the second moments."""
        return float(np.linalg.eigvalsh(self._moments)[-1])

    def answer(self, batch: ProblemBatch, parameters: Array) -> Array:
        """Return the gradient of the client's part of the loss, and the loss of every problem."""
        found = np.empty(batch.size + len(batch.problems))
        if batch.number_problems:
            self._answer_numbers(batch, parameters, found)
        for number in batch.label_problems:
            self._answer_label(batch, number, parameters, found)
        return found

    def _answer_numbers(self, batch: ProblemBatch, parameters: Array, found: Array) -> None:
        weights = np.zeros(batch.number_shape)
        weights.flat[batch.number_cells] = batch.signs * parameters[batch.number_places]
        slopes = self._moments @ weights
        found[batch.number_places] = batch.signs * slopes.take(batch.number_cells)
        found[batch.size :][batch.number_problems] = 0.5 * np.einsum("ij,ij->j", weights, slopes)

    def _answer_label(self, batch: ProblemBatch, number: int, parameters: Array, found: Array) -> None:
        problem, part = batch.problems[number], batch.slices[number]
        codes, levels = self._codes[problem.node], len(self._layout.levels[problem.node])
        inputs = self._columns[batch.columns(problem.candidates)]
        scores = parameters[part].reshape(-1, levels).T @ inputs
        chances = self._fit_intercepts(problem.node, scores, codes)
        places = np.arange(len(codes))
        found[batch.size + number] = -self._share * float(
            self._counts @ np.log(np.maximum(chances[codes, places], 1e-300))
        )
        chances[codes, places] -= 1.0
        found[part] = (inputs @ (chances * self._counts).T * self._share).ravel()

    def _fit_intercepts(self, node: int, scores: Array, codes: Indices) -> Array:
        """Find the intercepts with the least loss by Newton's method, keep them, and return the chances of all levels.

        A level that the client has not seen gets no chance. Arrays are levels × rows.
        """
        seen_counts = np.bincount(codes, self._counts, len(scores))
        seen = seen_counts > 0
        scores = scores - scores.max(axis=0)
        found = self._intercepts.get(node, np.where(seen, np.log(np.maximum(seen_counts, 1.0)), -np.inf))
        for _ in range(_NEWTON_STEPS):
            chances = np.exp(scores + (found - found.max())[:, None])
            chances /= np.maximum(chances.sum(axis=0), 1e-300)
            expected = chances @ self._counts
            slope = expected - seen_counts
            if np.abs(slope).max() <= _NEWTON_TOLERANCE * self._counts.sum():
                break
            hessian = np.diag(expected) - (chances * self._counts) @ chances.T
            step = np.linalg.lstsq(hessian[np.ix_(seen, seen)], slope[seen], rcond=1e-12)[0]
            found = found.copy()
            found[seen] -= np.clip(step, -2.0, 2.0)
        self._intercepts[node] = found
        return np.asarray(chances)
