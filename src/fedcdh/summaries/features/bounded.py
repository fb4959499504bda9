"""Features of studies with noise: few per variable, and those of one row inside a ball.

A standardised value z gives z, ½(z² − 1)/√2 and 0.3 (z³ − 3z)/√6: orthogonal under N(0, 1), so that the noise does not
have to separate them. A level gives √2 times its indicators. All are divided by one radius R, and rows outside the unit
ball are projected onto it. So the contribution of a row is bounded by 1 for any number of variables, while R² only has
to be as large as |features|² usually is, not as it could be.

Projected rows carry a little dependence between variables. With more rows, smaller dependences become visible and noise
matters less, so R grows with the number of rows that a plan expects.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fedcdh._runtime.array_types import Array

WEIGHTS = (1.0, 0.5, 0.3)
"""Weights of z, z² and z³: chosen on seeds below 1000, see `docs/noise.md`."""
BOUNDED_CLIP = 6.0
"""Scales at which values are clipped by default; a plan with noise may state up to 10."""
INDICATOR_WEIGHT = math.sqrt(2.0)
"""Weight of indicators: two levels of equal frequency then vary as much as a standardised value."""
RADIUS_DEVIATIONS = 2.0
"""R² is this many standard deviations above the mean of |features|² where 10,000 rows are expected; 4 % of rows are
then projected."""
_SQUARED_NORM_MOMENTS = ((1.0, 2.0), (1.25, 4.875), (1.34, 8.0502))
"""Mean and variance of a variable's part of |features|² under N(0, 1), for degree 1, 2 and 3."""


def power_features(z: Array, degree: int) -> Iterator[Array]:
    """Yield z and its powers up to a degree, each as an array of its own."""
    yield z * WEIGHTS[0]
    if degree > 1:
        yield (z * z - 1) * (WEIGHTS[1] / math.sqrt(2))
    if degree > 2:
        yield (z * z - 3) * z * (WEIGHTS[2] / math.sqrt(6))


def compute_radius(n_continuous: int, n_categorical: int, degree: int, rows: int) -> float:
    """Return the radius R for these numbers of continuous and categorical variables and of expected rows."""
    mean, variance = _SQUARED_NORM_MOMENTS[degree - 1]
    reach = RADIUS_DEVIATIONS * math.sqrt(n_continuous * variance * rows / 10_000)
    return math.sqrt(n_continuous * mean + reach + INDICATOR_WEIGHT**2 * n_categorical)


def project_into_ball(features: Array) -> Array:
    """Shorten each row outside the unit ball, in place; `features` is columns × rows."""
    size = np.zeros(features.shape[1])
    for column in features:
        size += column * column
    features /= np.sqrt(np.maximum(size, 1.0))
    return features
