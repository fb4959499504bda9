"""Noise whose size depends on the parents: log σ²(x) = a₀ + Σ (a x + b (x² − 1)), from one round of sums.

Harvey's regression: log(z² + 0.01) of the residuals is regressed on x and x² − 1 of every parent. The sums of the left
side times the terms come from the clients; the products of the terms come from the summaries. No iteration is needed,
and large residuals count little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedcdh._runtime.array_types import Array, Indices

RIDGE = 0.01
"""Rows of a prior in which the size does not depend on the parents."""
MEAN_LOG_SQUARE = -1.4
"""Level of log(z² + 0.01) that counts as variance one; its mean is -1.03 for normal noise, -1.17 for exponential."""
LOG_SQUARE_VARIANCE = 2.853
"""Variance of log(z² + 0.01) for normal noise."""
MAX_LEVEL = 2.0


class SizeFit(NamedTuple):
    """The coefficients of the log size, level first, and how much of log z² they explain.

    Attributes
    ----------
    coefficients : tuple of float
        Level, then two coefficients per parent.
    chi_square : float
        A statistic that has about a chi-square distribution if the size is constant.
    """

    coefficients: tuple[float, ...]
    chi_square: float

    def expected_gain(self, price: float, rows: float, share: float = 1.0) -> float:
        """Return how much the log likelihood rises by this size, less the price and that of the coefficients.

        The likelihood of normal noise uses half the variance of log z² times as much information as the regression. A
        fifth is added for noise of other shapes.

        Parameters
        ----------
        price : float
            Log prior odds against a size that varies.
        rows : float
            Number of rows.
        share : float, default 1.0
            Share of the rows that counts, where rows depend on each other.

        Returns
        -------
        float
            A rough figure.
        """
        cost = price + (len(self.coefficients) - 1) / 2 * np.log(share * rows)
        return float(1.2 * LOG_SQUARE_VARIANCE / 4 * share * self.chi_square - cost)


def fit_size(sums: Array, products: Array, rows: float) -> SizeFit:
    """Regress log(z² + 0.01) on the terms of the parents.

    Parameters
    ----------
    sums : array
        (1 + terms,): sums of log(z² + 0.01), and of it times every term.
    products : array
        (1 + terms, 1 + terms): sums of products of 1 and the terms.
    rows : float
        Number of rows.

    Returns
    -------
    SizeFit
        The coefficients, and a statistic that has about a chi-square distribution if the size is constant.

    Examples
    --------
    >>> fit = fit_size(np.array([-140.0, 50.0]), np.diag([100.0, 100.0]), 100)
    >>> [round(value, 2) for value in fit.coefficients]
    [0.0, 0.5]
    """
    penalty = RIDGE * np.eye(len(products))
    found = np.linalg.solve(products + penalty, sums)
    slopes = found[1:]
    centred = products[1:, 1:] - np.outer(products[0, 1:], products[0, 1:]) / rows
    level = float(np.clip(found[0] - MEAN_LOG_SQUARE, -MAX_LEVEL, MAX_LEVEL))
    return SizeFit((level, *slopes.tolist()), float(slopes @ centred @ slopes / LOG_SQUARE_VARIANCE))


def term_products(moments: Array, places: Indices, squares: list[tuple[float, float]], second: Indices) -> Array:
    """Return the sums of products of 1, x and x² − 1 of the parents, from the moments of the basis.

    x² of a standardised column e₁ is 1 + b e₁ + c e₂, so that x² − 1 lies in the span of two columns.

    Parameters
    ----------
    moments : array
        Sums of products of [1, coordinates], over all rows.
    places : array
        Place of e₁ of each parent among the moments.
    squares : list of (float, float)
        Coefficients b and c of each parent.
    second : array
        Place of e₂ of each parent.

    Returns
    -------
    array
        (1 + 2 parents, 1 + 2 parents).
    """
    turn = np.zeros((1 + 2 * len(places), len(moments)))
    turn[0, 0] = 1.0
    for number, (place, (b, c), other) in enumerate(zip(places, squares, second, strict=True)):
        turn[1 + 2 * number, place] = 1.0
        turn[2 + 2 * number, place] += b
        turn[2 + 2 * number, other] += c
    return np.asarray(turn @ moments @ turn.T)
