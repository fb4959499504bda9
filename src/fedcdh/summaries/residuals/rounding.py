"""Rounding of sums of residuals: a site sends them to a twentieth of the root of its rows, or coarser.

From many exact sums about few rows, the rows could be computed. Rounded ones say far less, and directions come out the
same. Sites with few rows are asked for coarse sums: the fewer the rows, the coarser (`choose_coarseness`). A coarse
step is wider than the sums of sites differ. Every site then rounds from a starting point of its own, or the errors of
all sites would be the same and add up. The starting point is the same for all regressions, so that the errors of
similar regressions are alike and cancel where these are compared. The numbers come from
`benchmarks/attacks/residuals.py`.
"""

from __future__ import annotations

import hashlib
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
LOG_SIZE_UNIT, COARSE_LOG_SIZE_UNIT = 1.0, 0.1
"""Units of the sum of log sizes, in usual and in coarse answers. It is a function of the parents that the summary
nearly holds, and its error enters the evidence undiminished."""
MAX_COARSE_ROUNDING, MIN_COARSE_ROUNDING = 5.0, 0.2
"""Coarsest and finest rounding of coarse sums, in place of `ROUNDING`."""
COARSE_ROWS_PER_COLUMN = 6.5
"""Rows per column of the summary at which coarse sums have the coarsest rounding. It falls with the square of the rows:
somebody who knows all other columns then learns about equally much from as many sums, from 232 to 1000 rows."""


def choose_coarseness(plan: StudyPlan, rows: int) -> float:
    """Return how many times coarser than usual a client rounds the sums of a coarse request.

    Parameters
    ----------
    plan : StudyPlan
        Plan of the study.
    rows : int
        Number of rows of the client.

    Returns
    -------
    float
        A multiple of `ROUNDING`: the rounding is 5 (6.5 p/rows)² for p columns, but at least 0.2 and at most 5.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan(tuple(map(Continuous, "abcdef")), ("north",))
    >>> [round(ROUNDING * choose_coarseness(plan, rows), 2) for rows in (232, 300, 500, 2000)]
    [5.0, 3.04, 1.1, 0.2]
    """
    ratio = COARSE_ROWS_PER_COLUMN * (plan.layout.n_columns - 1) / rows
    return min(max(MAX_COARSE_ROUNDING * ratio * ratio, MIN_COARSE_ROUNDING), MAX_COARSE_ROUNDING) / ROUNDING


def rounding_units(query: ResidualQuery, plan: StudyPlan, *, coarse: bool = False) -> tuple[Array, Array]:
    """Return the unit in which each sum of an answer is rounded, and the bound of its function.

    Parameters
    ----------
    query : ResidualQuery
        The query, about a shape, a size or products.
    plan : StudyPlan
        Plan of the study.
    coarse : bool, default False
        Whether the request is one for coarse sums.

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
    log_size = COARSE_LOG_SIZE_UNIT if coarse else LOG_SIZE_UNIT
    return np.append(units, [TAIL_UNIT, log_size]), np.append(bounds, [MAX_LARGE_RESIDUAL**2, MAX_LOG_SIZE])


def rounding_steps(query: ResidualQuery, plan: StudyPlan, rows: int, coarseness: float | None = None) -> Integers:
    """Return the step to whose multiples each sum of an answer is rounded: 0.05 √rows units of the function.

    Parameters
    ----------
    query : ResidualQuery
        The query.
    plan : StudyPlan
        Plan of the study.
    rows : int
        Number of rows of the site.
    coarseness : float, optional
        How many times coarser the sums are, in a request for coarse ones.

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
    units, bounds = rounding_units(query, plan, coarse=coarseness is not None)
    units = units if coarseness is None else coarseness * units
    return np.maximum(np.rint(ROUNDING * math.sqrt(rows) * units / bounds * GRID), 1).astype(np.int64)


def rounding_variances() -> Array:
    """Return the variance of the usual rounding error of every sum about a shape, per row of all clients.

    A step is in proportion to the root of a client's rows, so the variances of all clients add up to this times all
    rows, however these are distributed. It grows with the square of the coarseness.

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


def choose_offsets(steps: Integers, plan: StudyPlan, client: str, about: str) -> Integers:
    """Return where a client starts to count the steps of coarse sums: anywhere, but always at the same place.

    Parameters
    ----------
    steps : array of int64
        Steps of the sums.
    plan : StudyPlan
        Plan of the study.
    client : str
        Name of the client.
    about : str
        What the query asks about.

    Returns
    -------
    array of int64
        One number from 0 to step − 1 per sum, from a hash of plan, client and place. It is no secret.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> plan = StudyPlan((Continuous("y"),), ("north", "south"))
    >>> [choose_offsets(np.array([100, 100]), plan, client, "shape").tolist() for client in plan.clients]
    [[95, 71], [86, 71]]
    """
    text = f"{plan.fingerprint}\n{about}\n{client}"
    words = np.frombuffer(hashlib.shake_256(text.encode()).digest(8 * len(steps)), dtype="<u8")
    return np.asarray(words % steps.astype(np.uint64), dtype=np.int64)


def round_sums(sums: Integers, steps: Integers, rows: int, offsets: Integers | None = None) -> Integers:
    """Return sums rounded to the nearest multiples of their steps, halves upwards, within the bounds of the rows.

    Parameters
    ----------
    sums : array of int64
        Sums on the grid.
    steps : array of int64
        Their `rounding_steps`.
    rows : int
        Number of rows: no sum is above rows × grid.
    offsets : array of int64, optional
        The `choose_offsets` of a client, for coarse sums: multiples are counted from there.

    Returns
    -------
    array of int64
        Rounded sums. Integers only: the same on every computer.

    Examples
    --------
    >>> round_sums(np.array([14, -14, 15]), np.array([10, 10, 10]), 1)
    array([ 10, -10,  20])
    """
    start = 0 if offsets is None else offsets
    rounded = (2 * (sums - start) + steps) // (2 * steps) * steps + start
    return np.asarray(np.clip(rounded, -rows * GRID, rows * GRID), dtype=np.int64)
