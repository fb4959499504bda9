"""Rounding of sums of residuals: a site sends them to a twentieth of the root of its rows.

From many exact sums about few rows, the rows could be computed. Rounded ones say far less, and directions come out the
same. The numbers come from `benchmarks/attacks/residuals.py`.
"""

from __future__ import annotations

import math

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.functions import (
    MAX_LARGE_RESIDUAL,
    MAX_LOG_SIZE,
    PRODUCT_BOUND,
    SHAPE_FUNCTIONS,
    STEP_CENTRES,
    shape_bounds,
    size_bounds,
)
from fedcdh.summaries.residuals.request import PRODUCTS, SIZE, TIES, Integers, ResidualQuery

ROUNDING = 0.05
"""Sums are rounded to multiples of this times √rows, in units of the function (`rounding_units`). Twice as coarse, a
pair of 1000 rows with exponential noise loses two thirds of the evidence for its direction."""
TAIL_UNIT, STEP_UNIT, LOG_UNITS = 0.25, 1.0, (6.0, 6.0, 9.0)
"""Units of z, z² and the two tails, of soft steps, and of log(z² + 0.01) times 1, x and x² − 1. The evidence is
sensitive to tails, which tell an attacker little; sums about the size of the noise tell the most and need the least."""
PRODUCT_UNIT = 6.0
"""Unit of products of two parents times residuals: a test of their sums loses less than 1 % of its information."""


def rounding_units(query: ResidualQuery, plan: StudyPlan) -> tuple[Array, Array]:
    """Return the unit in which each sum of an answer is rounded, and the bound of its function.

    Parameters
    ----------
    query : ResidualQuery
        The query, about a shape, a size or products.
    plan : StudyPlan
        Plan of the study.

    Returns
    -------
    tuple of two arrays
        One unit and one bound per sum.
    """
    if query.about == SIZE:
        parents = len(query.continuous_parents(plan))
        return np.array([LOG_UNITS[0], *LOG_UNITS[1:] * parents]), size_bounds(parents)
    if query.about == PRODUCTS:
        pairs = len(query.pairs(plan))
        return np.full(pairs, PRODUCT_UNIT), np.full(pairs, PRODUCT_BOUND)
    units, bounds = _shape_units(), shape_bounds()
    if query.product:
        return np.append(units, TAIL_UNIT), np.append(bounds, MAX_LARGE_RESIDUAL**2)
    if not query.size:
        return units, bounds
    return np.append(units, [TAIL_UNIT, STEP_UNIT]), np.append(bounds, [MAX_LARGE_RESIDUAL**2, MAX_LOG_SIZE])


def rounding_steps(query: ResidualQuery, plan: StudyPlan, rows: int) -> Integers:
    """Return the step to whose multiples each sum of an answer is rounded: 0.05 √rows units of the function.

    Parameters
    ----------
    query : ResidualQuery
        The query.
    plan : StudyPlan
        Plan of the study.
    rows : int
        Number of rows of the site.

    Returns
    -------
    array of int64
        One step per sum, in steps of the grid, at least 1. The count of shared values is rounded to 1 row.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> query = ResidualQuery("y", (), "shape", weights=(), widths=(), deviation=1.0)
    >>> int(rounding_steps(query, StudyPlan((Continuous("y"),), ("north",)), 400)[-1]) / GRID
    1.0
    """
    if query.about == TIES:
        return np.array([GRID], dtype=np.int64)
    units, bounds = rounding_units(query, plan)
    return np.maximum(np.rint(ROUNDING * math.sqrt(rows) * units / bounds * GRID), 1).astype(np.int64)


def rounding_variances() -> Array:
    """Return the variance of the rounding error of every sum about a shape, per row of all clients.

    A step is in proportion to the root of a client's rows, so the variances of all clients add up to this times all
    rows, however these are distributed.

    Returns
    -------
    array
        One variance per shape function, in the units of the function.

    Examples
    --------
    >>> float(rounding_variances()[-1]) == ROUNDING**2 / 12
    True
    """
    return np.asarray((ROUNDING * _shape_units()) ** 2 / 12)


def _shape_units() -> Array:
    steps = len(STEP_CENTRES)
    return np.repeat([TAIL_UNIT, STEP_UNIT], [SHAPE_FUNCTIONS - steps, steps])


def round_sums(sums: Integers, steps: Integers, rows: int) -> Integers:
    """Return sums rounded to the nearest multiples of their steps, halves upwards, within the bounds of the rows.

    Parameters
    ----------
    sums : array of int64
        Sums on the grid.
    steps : array of int64
        Their `rounding_steps`.
    rows : int
        Number of rows: no sum is above rows × grid.

    Returns
    -------
    array of int64
        Rounded sums. Integers only: the same on every computer.

    Examples
    --------
    >>> round_sums(np.array([14, -14, 15]), np.array([10, 10, 10]), 1)
    array([ 10, -10,  20])
    """
    rounded = (2 * sums + steps) // (2 * steps) * steps
    return np.asarray(np.clip(rounded, -rows * GRID, rows * GRID), dtype=np.int64)
