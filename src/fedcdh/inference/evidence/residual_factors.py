"""Log Bayes factors of free shape and size of the noise, from the answers about residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot, sqrt

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.inference.evidence.noise_shape import ShapeMoments, density_weights, shape_evidence
from fedcdh.inference.evidence.product_terms import PRODUCT_PRICE
from fedcdh.inference.evidence.residual_record import AskedForm
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.residuals import ResidualQuery, ResidualSums
from fedcdh.summaries.residuals.functions import MAX_LARGE_RESIDUAL, MAX_LOG_SIZE, SHAPE_FUNCTIONS, shape_bounds
from fedcdh.summaries.residuals.rounding import COARSE_LOG_SIZE_UNIT, ROUNDING, TAIL_UNIT

SIZE_PRICE = 5.0
"""Log prior odds against a size of the noise that depends on the parents."""
NOT_ASKED = float("-inf")
"""Score of a family about which the clients could not be asked."""
SIZE_CAUTION = 2.0
"""Standard deviations of rounding that the gain of a varying size has to exceed, where sums are coarse."""
_MIN_VARIANCE = 1e-6


def noise_factors(forms: Sequence[AskedForm], factors: Mapping[ResidualQuery, float]) -> list[float]:
    """Return the log Bayes factor of free shape and size against normal noise of constant size, for every form.

    A product of two parents may be in the regression as well.

    Parameters
    ----------
    forms : sequence of AskedForm
        The queries about each form.
    factors : mapping from ResidualQuery to float
        The `shape_factors` of the answers.

    Returns
    -------
    list of float
        0 for a form without a density, `NOT_ASKED` for a form without an answer.

    Examples
    --------
    >>> noise_factors([AskedForm(curved=False, scored=False)], {})
    [0.0]
    """
    found = []
    for form in forms:
        factor = 0.0 if form.plain is None else factors.get(form.plain, NOT_ASKED)
        if form.sized is not None and form.sized in factors and factor != NOT_ASKED:
            factor = float(np.logaddexp(factor, factors[form.sized] - SIZE_PRICE))
        if form.with_product is not None and form.with_product in factors and factor != NOT_ASKED:
            factor = float(np.logaddexp(factor, factors[form.with_product] - PRODUCT_PRICE))
        found.append(factor)
    return found


def shape_factors(answers: Sequence[ResidualSums], share: float = 1.0) -> list[float]:
    """Return the log Bayes factors of shape, size and product in these answers against normal noise of constant size.

    Parameters
    ----------
    answers : sequence of ResidualSums
        Answers of all clients together, about shapes.
    share : float, default 1.0
        Share of the rows that counts, where rows depend on each other.

    Returns
    -------
    list of float
        One factor per answer.
    """
    if not answers:
        return []
    means, squares, counted, coarseness = _shape_moments(answers, share)
    gains = np.zeros(len(answers))
    for number, one in enumerate(answers):
        if one.deviation is not None:  # residuals of other weights than the best: their variance is larger
            growth = max(squares[number], _MIN_VARIANCE) * (one.deviation / one.query.deviation) ** 2
            gains[number] = min(0.0, -counted[number] / 2 * np.log(growth))
        if one.query.size:
            log_size = one.sums[SHAPE_FUNCTIONS + 1] / (GRID * one.rows)
            constant, squares[number] = max(squares[number], _MIN_VARIANCE), _large_square(one)
            variance = max(squares[number] - means[number, 0] ** 2, _MIN_VARIANCE)
            gains[number] -= counted[number] / 2 * (np.log(variance / constant) + log_size * MAX_LOG_SIZE)
            gains[number] -= (len(one.query.size) - 1) / 2 * np.log(counted[number])
            gains[number] -= SIZE_CAUTION * share * _size_gain_error(one, variance)
        if one.query.product:
            constant, squares[number] = max(squares[number], _MIN_VARIANCE), _large_square(one)
            variance = max(squares[number] - means[number, 0] ** 2, _MIN_VARIANCE)
            gains[number] -= counted[number] / 2 * np.log(variance / constant) + np.log(counted[number]) / 2
    return [float(value) for value in shape_evidence(ShapeMoments(means, squares, counted, coarseness)) + gains]


def fit_densities(answers: Sequence[ResidualSums], share: float = 1.0) -> Array:
    """Return the log ratios of fitted densities to normal ones, as weights of the shape functions.

    Parameters
    ----------
    answers : sequence of ResidualSums
        Answers of all clients together, about shapes.
    share : float, default 1.0
        Share of the rows that counts, where rows depend on each other.

    Returns
    -------
    array
        (answers, functions), see `density_weights`.
    """
    if not answers:
        return np.zeros((0, SHAPE_FUNCTIONS))
    means, squares, counted, coarseness = _shape_moments(answers, share)
    for number, one in enumerate(answers):
        if one.query.size or one.query.product:
            squares[number] = _large_square(one)
    return density_weights(ShapeMoments(means, squares, counted, coarseness))


def _shape_moments(answers: Sequence[ResidualSums], share: float) -> tuple[Array, Array, Array, Array]:
    """Return the means of the shape functions, the mean squares, the rows that count and the coarseness."""
    rows = np.array([one.rows for one in answers], dtype=np.float64)
    means = np.array([one.sums[:SHAPE_FUNCTIONS] for one in answers]) / (GRID * rows[:, None]) * shape_bounds()
    squares = np.array([1.0 if one.mean_square is None else one.mean_square for one in answers])
    return means, squares, share * rows, np.array([one.coarseness for one in answers])


def _size_gain_error(answer: ResidualSums, variance: float) -> float:
    """Return the standard deviation that coarse rounding adds to the gain of a varying size; 0 for usual sums."""
    if answer.coarseness == 1:
        return 0.0
    per_row = ROUNDING * answer.coarseness / sqrt(12) * hypot(TAIL_UNIT / variance, COARSE_LOG_SIZE_UNIT)
    return sqrt(answer.rows) / 2 * per_row


def _large_square(answer: ResidualSums) -> float:
    """Return the mean of z² without the clipping of the shape functions."""
    return float(answer.sums[SHAPE_FUNCTIONS]) / (GRID * answer.rows) * MAX_LARGE_RESIDUAL**2
