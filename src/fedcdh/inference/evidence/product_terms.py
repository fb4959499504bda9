"""Two parents that act by their product: its weight and its gain in Gaussian evidence, from one sum for each pair.

The residuals z of a regression have mean square 1 and do not depend on the parents linearly. Where they depend on the
product p of two parents, p less its regression on these parents has the weight Σ p z / Σ p², and explains
(Σ p z)² / Σ p² of Σ z². Sums of p z come from the clients; the rest comes from the summaries. A curved regression
leaves less of p than a linear one, so that the weight is a little too small there. Clients are then asked about the
residuals with the weight that was found, and their answer says how much it explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import NamedTuple

from fedcdh._runtime.array_types import Array
from fedcdh.summaries.residuals.products import ProductRegression

PRODUCT_PRICE = 5.0
"""Log prior odds against a product of two parents, as against nonlinear effects."""
MIN_UNEXPLAINED = 1e-3
"""Smallest share of the variance that a product leaves."""


class ProductFit(NamedTuple):
    """The product of two parents that explains most.

    Attributes
    ----------
    pair : tuple of two str
        The parents.
    weights : tuple of float
        Weight of their product in standard deviations of the residuals, its mean, and its slopes on the two parents.
    gain : float
        Expected gain in Gaussian evidence, less the log prior odds.

    Examples
    --------
    >>> ProductFit(("a", "b"), (0.3, 0.0, 0.0, 0.0), 12.5).gain
    12.5
    """

    pair: tuple[str, str]
    weights: tuple[float, ...]
    gain: float


def fit_product(
    sums: Array, regressions: Mapping[tuple[str, str], ProductRegression], rows: float, share: float = 1.0
) -> ProductFit:
    """Return the product that explains most of the residuals.

    Parameters
    ----------
    sums : array
        Sums of residuals times the product of each pair of parents.
    regressions : mapping from pair to ProductRegression
        The regression of each product on its parents, in the same order.
    rows : float
        Number of rows.
    share : float, default 1.0
        Share of the rows that counts, where rows depend on each other.

    Returns
    -------
    ProductFit
        The first of the best pairs.

    Examples
    --------
    >>> import numpy as np
    >>> alone = ProductRegression(0.0, (0.0, 0.0), 1.0)
    >>> fit = fit_product(np.array([30.0, -2.0]), {("a", "b"): alone, ("a", "c"): alone}, 100)
    >>> fit.pair, fit.weights[0]
    (('a', 'b'), 0.3)
    """
    found = [
        _fit_pair(pair, regression, float(total), rows, share)
        for (pair, regression), total in zip(regressions.items(), sums, strict=True)
    ]
    return max(found, key=lambda fit: fit.gain)


def _fit_pair(
    pair: tuple[str, str], regression: ProductRegression, total: float, rows: float, share: float
) -> ProductFit:
    left = rows * regression.variance
    explained = min(total**2 / left / rows, 1 - MIN_UNEXPLAINED)
    gain = -share * rows / 2 * log(1 - explained) - log(share * rows) / 2 - PRODUCT_PRICE
    return ProductFit(pair, (total / left, regression.mean, *regression.slopes), gain)
