"""Features of studies with noise: few per variable, and those of one row inside a ball.

A standardised value z gives z, ½(z² − 1)/√2 and 0.3 (z³ − 3z)/√6: orthogonal under N(0, 1), so that none of them has to
be told from the others through the noise. A label gives √2 times its indicators. All are divided by one radius R, and
rows that then lie outside of the unit ball are drawn onto it. A row's weight is thereby bounded by 1 however many
variables there are, while R² only has to be as large as |features|² commonly is, not as it could be.

Rows that are drawn in carry a little dependence between variables. The more rows, the smaller the dependence that is
seen, and the less noise matters: so R grows with the number of rows that a plan expects.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fedcdh._runtime.array_types import Array

WEIGHTS = (1.0, 0.5, 0.3)
"""Of z, z² and z³: chosen on seeds below 1000, see `docs/noise.md`."""
BOUNDED_CLIP = 6.0
"""Scales at which values are cut before; with noise, plans may state up to 10."""
INDICATOR_WEIGHT = math.sqrt(2.0)
"""Of indicators: two labels of equal frequency then vary as much as a standardised value."""
RADIUS_DEVIATIONS = 2.0
"""R² is so many deviations above the mean of |features|² where 10,000 rows are expected: 4 % of rows are drawn in."""
_SQUARED_NORM_MOMENTS = ((1.0, 2.0), (1.25, 4.875), (1.34, 8.0502))
"""Mean and variance of a variable's part of |features|² under N(0, 1), for degree 1, 2 and 3."""


def power_features(z: Array, degree: int) -> Iterator[Array]:
    """z and what it is raised to, each an array of its own."""
    yield z * WEIGHTS[0]
    if degree > 1:
        yield (z * z - 1) * (WEIGHTS[1] / math.sqrt(2))
    if degree > 2:
        yield (z * z - 3) * z * (WEIGHTS[2] / math.sqrt(6))


def compute_radius(numbers: int, labels: int, degree: int, rows: int) -> float:
    """R of a plan with so many continuous and categorical variables, and rows expected."""
    mean, variance = _SQUARED_NORM_MOMENTS[degree - 1]
    reach = RADIUS_DEVIATIONS * math.sqrt(numbers * variance * rows / 10_000)
    return math.sqrt(numbers * mean + reach + INDICATOR_WEIGHT**2 * labels)


def project_into_ball(features: Array) -> Array:
    """Columns × rows: rows outside the unit ball are shortened, in place; each for itself, to the last digit."""
    size = np.zeros(features.shape[1])
    for column in features:
        size += column * column
    features /= np.sqrt(np.maximum(size, 1.0))
    return features
