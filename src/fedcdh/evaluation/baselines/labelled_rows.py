"""Rows of one client for several multinomial models of equal shape at once, and its answers about them.

Models have the same numbers of levels and of predictors; shorter lists of rows are filled up with rows of weight 0. A
level that the client lacks has the probability 0: the limit of its own intercept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array, Indices

Fit = tuple[int, tuple[int, ...]]
"""A target and its predictors, sorted, by place of the variable."""

_MAX_STEPS = 50
_MAX_HALVINGS = 30


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The level, the predictors and the weight of each row, for each of several fits; and the client's intercepts."""

    fits: Sequence[Fit]
    outcome: npt.NDArray[np.intp]  # fits × rows
    columns: Array  # fits × rows × predictors
    counts: Array  # fits × rows, 0 where rows were filled up
    intercepts: dict[int, Array]  # by the number of levels, those of the last round

    @classmethod
    def gather(cls, fits: Sequence[Fit], rows: Sequence[tuple[Indices, Array, Array]]) -> LabelledRows:
        """Put the rows of all fits into arrays of one shape."""
        longest = max(len(counts) for _, _, counts in rows)
        outcome = np.zeros((len(fits), longest), dtype=np.intp)
        columns, counts = np.zeros((len(fits), longest, rows[0][1].shape[1])), np.zeros((len(fits), longest))
        for place, (own_outcome, own_columns, own_counts) in enumerate(rows):
            end = len(own_counts)
            outcome[place, :end], columns[place, :end], counts[place, :end] = own_outcome, own_columns, own_counts
        return cls(fits, outcome, columns, counts, {})

    def answer(self, active: Indices, coefficients: Array) -> Array:
        """Return XᵀWX, XᵀWz and the log-likelihood, flat, for each active fit; intercepts are profiled out."""
        fits, others, width = coefficients.shape
        outcome, columns, counts = self.outcome[active], self.columns[active], self.counts[active]
        observed = _count_levels(outcome, counts, others + 1)
        if (others + 1) not in self.intercepts:
            whole = _count_levels(self.outcome, self.counts, others + 1)
            self.intercepts[others + 1] = np.log(np.maximum(whole, 0.5))
        full = np.concatenate([np.zeros((fits, 1, width)), coefficients], axis=1)
        offsets = np.where(observed[:, None, :] > 0, columns @ full.transpose(0, 2, 1), -np.inf)
        fitted, chances = _fit_intercepts(offsets, self.intercepts[others + 1][active], outcome, counts, observed)
        self.intercepts[others + 1][active] = fitted
        curvature, slopes = _profile(columns, outcome, counts, chances)
        inner, slope = curvature[:, width:, width:], slopes[:, width:]  # the first level has no coefficients
        response = (inner @ coefficients.reshape(fits, others * width, 1))[:, :, 0] + slope
        likelihood = _log_likelihood(chances, outcome, counts)
        return np.column_stack([inner.reshape(fits, (others * width) ** 2), response, likelihood])


def _count_levels(outcome: npt.NDArray[np.intp], counts: Array, levels: int) -> Array:
    return np.asarray((counts[:, :, None] * (outcome[:, :, None] == np.arange(levels))).sum(axis=1))


def _softmax(logits: Array) -> Array:
    raised = np.exp(logits - logits.max(axis=2, keepdims=True))
    return np.asarray(raised / raised.sum(axis=2, keepdims=True))


def _log_likelihood(chances: Array, outcome: npt.NDArray[np.intp], counts: Array) -> Array:
    own = np.take_along_axis(chances, outcome[:, :, None], axis=2)[:, :, 0]
    return np.asarray((counts * np.log(np.maximum(own, 1e-300))).sum(axis=1))


def _fit_intercepts(
    offsets: Array, intercepts: Array, outcome: npt.NDArray[np.intp], counts: Array, observed: Array
) -> tuple[Array, Array]:
    """Return the best intercepts for these offsets, and the probabilities of all levels, by damped Newton steps."""
    present = observed > 0
    chances = _softmax(offsets + intercepts[:, None, :])
    best = _log_likelihood(chances, outcome, counts)
    for _ in range(_MAX_STEPS):
        weighted = counts[:, :, None] * chances
        expected = weighted.sum(axis=1)
        missing = observed - expected
        moving = np.flatnonzero(np.abs(missing).max(axis=1) > 1e-8 * observed.sum(axis=1))
        if not len(moving):
            break
        step = _newton_step(weighted[moving], chances[moving], expected[moving], missing[moving], present[moving])
        moved = False
        for _ in range(_MAX_HALVINGS):
            tried = _softmax(offsets[moving] + (intercepts[moving] + step)[:, None, :])
            reached = _log_likelihood(tried, outcome[moving], counts[moving])
            better = reached > best[moving]
            taken = moving[better]
            intercepts[taken] += step[better]
            chances[taken], best[taken] = tried[better], reached[better]
            moved = moved or bool(better.any())
            moving, step = moving[~better], step[~better] / 2
            if not len(moving):
                break
        if not moved:  # nothing but rounding is left
            break
    return intercepts, chances


def _newton_step(
    weighted: Array, chances: Array, expected: Array, missing: Array, present: npt.NDArray[np.bool_]
) -> Array:
    """Return the Newton step of the intercepts; a common shift of all, which changes nothing, is held at 0."""
    levels = present.shape[1]
    curvature = -(weighted.transpose(0, 2, 1) @ chances)
    total = expected.sum(axis=1)[:, None]
    curvature[:, np.arange(levels), np.arange(levels)] += expected + np.where(present, 1e-10 * total, 1.0)
    curvature += (present[:, :, None] & present[:, None, :]) * total[:, :, None] / levels**2
    return np.asarray(np.linalg.solve(curvature, missing[:, :, None])[:, :, 0])


def _profile(columns: Array, outcome: npt.NDArray[np.intp], counts: Array, chances: Array) -> tuple[Array, Array]:
    """Return minus the Hessian and the gradient of the log-likelihood in β, with the intercepts profiled out."""
    fits, rows, width = columns.shape
    levels = chances.shape[2]
    extended = np.concatenate([np.ones((fits, rows, 1)), columns], axis=2)
    weighted = counts[:, :, None] * chances
    plain = (chances[:, :, :, None] * extended[:, :, None, :]).reshape(fits, rows, levels * (width + 1))
    whole = -((counts[:, :, None] * plain).transpose(0, 2, 1) @ plain)
    whole = whole.reshape(fits, levels, width + 1, levels, width + 1)
    for level in range(levels):
        whole[:, level, :, level] += (extended * weighted[:, :, level, None]).transpose(0, 2, 1) @ extended
    difference = counts[:, :, None] * (outcome[:, :, None] == np.arange(levels)) - weighted
    slopes = (difference.transpose(0, 2, 1) @ columns).reshape(fits, levels * width)
    own = whole[:, :, 0, :, 0]
    cross = whole[:, :, 1:, :, 0].reshape(fits, levels * width, levels)
    inner = whole[:, :, 1:, :, 1:].reshape(fits, levels * width, levels * width)
    return inner - cross @ np.linalg.pinv(own, hermitian=True) @ cross.transpose(0, 2, 1), slopes
