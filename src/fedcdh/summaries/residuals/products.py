"""The product of two parents less its regression on these parents, from a summary.

A summary holds the products of a variable and its square with those of any other variable. This is all that the
regression of a product a·b on 1, a and b needs. Only how residuals depend on the product has to be asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.summaries.feature_layout import POWER_COLUMNS
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.functions import MAX_COORDINATE
from fedcdh.summaries.residuals.request import Coordinates
from fedcdh.summaries.summary import Summary

RIDGE = 1e-6
"""Added to the mean squares of the regressors: keeps parents that nearly equal each other solvable."""
MIN_VARIANCE = 1e-3
"""Smallest variance of a product that is left, in units of standardised parents."""


class ProductRegression(NamedTuple):
    """The regression of the product of two parents on these parents.

    Attributes
    ----------
    mean : float
        Its level.
    slopes : tuple of float
        Its slopes on the two parents.
    variance : float
        Variance of the product that is left.

    Examples
    --------
    >>> ProductRegression(0.0, (0.0, 0.0), 1.0).variance
    1.0
    """

    mean: float
    slopes: tuple[float, ...]
    variance: float


def regress_product(
    pair: Sequence[str], coordinates: Mapping[str, Coordinates], plan: StudyPlan, summary: Summary
) -> ProductRegression:
    """Regress the product of the standardised values of two variables on 1 and on these values.

    Parameters
    ----------
    pair : sequence of two str
        Names of two continuous variables.
    coordinates : mapping from str to Coordinates
        Coordinates of these variables; the first is the standardised value.
    plan : StudyPlan
        Plan of the study.
    summary : Summary
        Summary of a client, or of all clients.

    Returns
    -------
    ProductRegression
        The regression, without the clipping of extreme values.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, summarize
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north",))
    >>> summary = summarize({"a": [1.0, 1.0, -1.0, -1.0], "b": [1.0, -1.0, 1.0, -1.0]}, plan, "north")
    >>> value = Coordinates((0.0,) * 6, ((plan.clip,) + (0.0,) * 5,))
    >>> round(regress_product("ab", {"a": value, "b": value}, plan, summary).variance, 1)
    1.0
    """
    powers = _mean_powers(pair, coordinates, plan, summary)
    inner = np.array(
        [
            [1.0, powers[1, 0], powers[0, 1]],
            [powers[1, 0], powers[2, 0], powers[1, 1]],
            [powers[0, 1], powers[1, 1], powers[0, 2]],
        ]
    )
    cross = np.array([powers[1, 1], powers[2, 1], powers[1, 2]])
    mean, *slopes = np.linalg.solve(inner + RIDGE * np.eye(3), cross).tolist()
    left = float(powers[2, 2] - cross @ [mean, *slopes])
    steep = np.clip(slopes, -MAX_COORDINATE, MAX_COORDINATE).tolist()  # a product of clipped values is nowhere steeper
    return ProductRegression(
        float(np.clip(mean, -(MAX_COORDINATE**2), MAX_COORDINATE**2)), tuple(steep), max(left, MIN_VARIANCE)
    )


def _mean_powers(
    pair: Sequence[str], coordinates: Mapping[str, Coordinates], plan: StudyPlan, summary: Summary
) -> Array:
    """Return the means of aⁱ bʲ for i and j from 0 to 2, from the linear feature and the square of each variable."""
    places = [slice(plan.layout.spans[name].start, plan.layout.spans[name].start + POWER_COLUMNS) for name in pair]
    means = [summary.means[place] for place in places]
    raw = np.ones((3, 3))
    raw[1:, 0], raw[0, 1:] = means
    raw[1:, 1:] = summary.scatter(*places) / summary.rows + np.outer(*means)
    first, second = (_powers_of(coordinates[name]) for name in pair)
    return np.asarray(first @ raw @ second.T)


def _powers_of(one: Coordinates) -> Array:
    """Return 1, x and x² of the standardised value x in terms of 1, the linear feature and its square."""
    slope, centre = one.matrix[0][0], one.centre[0]
    level = -slope * centre
    return np.array([[1.0, 0.0, 0.0], [level, slope, 0.0], [level**2, 2 * slope * level, slope**2]])
