"""The laws that moments of features on the grid obey, whatever the rows are.

Every check is a law of all sums of features on the grid, with a tolerance, where there is one, that is derived and not
tuned. The feature φ_i of a row is a whole number of steps, |φ_i| ≤ G; the constant is φ_0 = G. S = Σ φφᵀ, n rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf

from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.array_types import Array
from fedcdh.errors import (
    InfeasibleMomentsError,
    MomentBoundsError,
    MomentIdentityError,
    NotPositiveSemidefiniteError,
    SummaryError,
)
from fedcdh.summaries import _moment_space
from fedcdh.summaries.dp_parameters import CONSTANT_VARIANCE_RATIO
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical, Continuous

Flags = npt.NDArray[np.bool_]

REMAKE_ADVICE = "make the summary again from the table with this plan"
RARE_EXPONENT = 64.0
"""Events of a probability below 2 exp(−64) are taken to be impossible."""
UNIT_ROUNDOFF = 2.0**-53
_BLOCK_ROWS = 256  # rows of the matrix at a time: no copies of a matrix of 6000 columns


def check_moments(summary: Summary, plan: StudyPlan) -> None:
    """Raise an error if no rows can have given these moments; the checks run from fast to slow."""
    if summary.noise:
        _check_noisy_moments(summary, plan)
        return
    _check_grid_steps(summary, plan)
    _check_bounds(summary, plan)
    _check_indicators(summary, plan)
    _check_squares(summary, plan)
    _check_positive_semidefinite(summary, plan)
    _check_moment_space(summary, plan)


def _check_grid_steps(summary: Summary, plan: StudyPlan) -> None:
    """Check that moments are sums of whole steps of the grid.

    S_00 = n G² and S_0i = G Σφ_i. Whole numbers y have y² ≡ y mod 2 and y² ≥ y, and so have sums of y = φ_i − k. The
    sharpest k is the mean, rounded down.
    """
    first, squares, n = summary.moments[0], summary.moments.diagonal(), np.int64(summary.rows)
    _raise_at_column(MomentIdentityError, first[:1] & (GRID**2 - 1) != 0, summary, plan, "a whole number of rows")
    _raise_at_column(MomentIdentityError, first & (GRID - 1) != 0, summary, plan, "whole steps of the grid")
    sums = first // GRID
    _raise_at_column(
        MomentIdentityError, (squares ^ sums) & 1 != 0, summary, plan, "a sum of squares as odd or even as the sum"
    )
    mean = sums // n
    rest = sums - mean * n
    about = squares - 2 * mean * rest - mean * mean * n
    _raise_at_column(
        MomentBoundsError,
        (squares < 0) | (about < rest),
        summary,
        plan,
        "squares that are as large as the sums ask for",
    )


def _check_bounds(summary: Summary, plan: StudyPlan) -> None:
    """Check the bounds of products.

    Σ w φ_j with weights w ≥ 0 is at most G Σw in size; weights are G + φ_i, G − φ_i, and φ_i where it is never
    negative. And |S_ij| ≤ √S_ii √S_jj, in float64 with the few roundings that takes.
    """
    top, root = summary.moments[0] >> 1, np.sqrt(summary.moments.diagonal().astype(np.float64))
    positive = _nonnegative_columns(plan)
    for rows in row_blocks(len(top)):
        # halves, because a sum of two entries may need 65 bits; each is up to one half too small
        part, weight = summary.moments[rows] >> 1, top[rows, None]
        wrong = (np.abs(top + part) > top[0] + weight + 2) | (np.abs(top - part) > top[0] - weight + 2)
        wrong |= positive[rows, None] & ((np.abs(part) > weight + 1) | (positive & (part < 0)))
        _raise_at_product(wrong, rows, summary, plan, "products within the bounds that the sums set")
        largest: Array = np.multiply.outer(root[rows], root) * (1 + 8 * UNIT_ROUNDOFF)
        wrong = np.asarray(np.abs(summary.moments[rows]) > largest)
        _raise_at_product(wrong, rows, summary, plan, "products no larger than the squares allow")


def _nonnegative_columns(plan: StudyPlan) -> Flags:
    """Mark the columns that are never negative: the constant, indicators, squares, and the first eigenfunction."""
    found = np.zeros(plan.layout.n_columns, dtype=np.bool_)
    found[0] = True
    for variable, span in zip(plan.variables, plan.layout.spans.values(), strict=True):
        if isinstance(variable, Categorical):
            found[span] = True
        else:
            found[span.start + 1 : span.start + 2 + isinstance(plan.family, Hermite)] = True
    return found


def _check_indicators(summary: Summary, plan: StudyPlan) -> None:
    """Check that exactly one indicator of a variable is G in every row: products with any φ_j add up to its sum."""
    labels = np.zeros(plan.layout.n_columns, dtype=np.bool_)
    for variable, span in zip(plan.variables, plan.layout.spans.values(), strict=True):
        if not isinstance(variable, Categorical):
            continue
        labels[span] = True
        own, all_levels = summary.moments[span, span], summary.moments[span].sum(axis=0)
        what = f"the levels of {variable.name!r}"
        wrong = np.zeros(plan.layout.n_columns, dtype=np.bool_)
        wrong[span] = (own != np.diag(summary.moments[0, span])).any(axis=0)
        _raise_at_column(MomentIdentityError, wrong, summary, plan, f"{what} to exclude one another")
        _raise_at_column(
            MomentIdentityError, all_levels != summary.moments[0], summary, plan, f"{what} to cover all rows"
        )
    digits = np.zeros(plan.layout.n_columns, dtype=np.int64)  # union of the binary digits of all entries
    for rows in row_blocks(len(labels)):
        digits |= np.bitwise_or.reduce(summary.moments[rows][labels[rows]], axis=0)
    _raise_at_column(
        MomentIdentityError, digits & (GRID - 1) != 0, summary, plan, "whole steps in sums over the rows of a level"
    )
    wrong = labels & (digits & (GRID**2 - 1) != 0)
    _raise_at_column(MomentIdentityError, wrong, summary, plan, "a whole number of rows with two levels")


def _check_squares(summary: Summary, plan: StudyPlan) -> None:
    """Check that the sum of squared values agrees with the sum of the column of squares.

    φ = G l + e and ψ = G l² + e', |e|, |e'| ≤ 1/2, so that φ² − Gψ = 2φe − e² − Ge'. Summed, this is at most
    Σ|φ| + n/4 + nG/2 in size, and Σ|φ| ≤ √(n Σφ²). One step more covers the last digits of l² in float64.
    """
    n = summary.rows
    for variable, span in zip(plan.variables, plan.layout.spans.values(), strict=True):
        if isinstance(variable, Continuous):
            squares, sums = (int(summary.moments[k]) for k in ((span.start, span.start), (0, span.start + 1)))
            if abs(squares - sums) > isqrt(n * squares) + n * (GRID // 2 + 1) + 1:
                raise MomentIdentityError(
                    f"the summary of {describe_clients(summary)} has two different sums of squares of "
                    f"{variable.name!r}; expected that of the values and that of the column of squares to agree; "
                    f"{REMAKE_ADVICE}"
                )


def _check_positive_semidefinite(summary: Summary, plan: StudyPlan) -> None:
    """Check that S = Σ φφᵀ is positive semidefinite.

    With a unit diagonal and a shift, its Cholesky decomposition exists.

    Entries in float64, divided by two roots, are off by at most 8 roundings u, which changes eigenvalues by at most
    8pu; the decomposition exists if the least eigenvalue is above p(p+1)u/(1 − (p+1)u) (Demmel; Higham, Theorem
    10.7).
    """
    squares = summary.moments.diagonal()
    empty = squares == 0  # all products of such a column are 0 too, being bounded by its squares
    p = len(squares)
    scale = 1.0 / np.sqrt(np.where(empty, 1, squares).astype(np.float64))
    matrix = summary.moments * scale
    matrix *= scale[:, None]
    matrix[np.diag_indices(p)] = 1.0 + 2 * p * (p + 8) * UNIT_ROUNDOFF
    # the transpose is the same matrix, in the order that saves a copy
    _, stopped = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    if stopped:
        where = _describe_column(plan, stopped - 1)
        raise NotPositiveSemidefiniteError(
            f"no rows have the moments in the summary of {describe_clients(summary)}: some sum of squares would be "
            f"negative, the first with {where}; {REMAKE_ADVICE}"
        )


def _check_moment_space(summary: Summary, plan: StudyPlan) -> None:
    """Check that the moments of each continuous variable are those of some values in the plan's range."""
    for variable, span in zip(plan.variables, plan.layout.spans.values(), strict=True):
        if isinstance(variable, Continuous):
            columns = np.array([0, *range(span.start, span.stop)])
            moments = summary.moments[columns[:, None], columns] / float(summary.rows * GRID**2)
            if not _moment_space.is_feasible(moments, variable, plan):
                raise InfeasibleMomentsError(
                    f"the moments of {variable.name!r} in the summary of {describe_clients(summary)} are those of no "
                    f"{summary.rows} values within {plan.clip:g} scales of {variable.location:g}; look for other "
                    f"units, another seed or a wrong number of rows, and {REMAKE_ADVICE}"
                )


def _check_noisy_moments(summary: Summary, plan: StudyPlan) -> None:
    """Check the laws that noise leaves visible; honest summaries violate them with a probability below exp(−64).

    With the constant divided by √3 the noise E of p columns has no direction uᵀEu below −(2√p + t)σ, except with a
    probability of exp(−t²/4); S has none below 0. And |features|² ≤ 1 in every row, so Σ_i S_ii ≤ S_00; the noise of
    the difference has a variance of 2(p − 1)σ² + 18σ².
    """
    deviation, scale = float(summary.noise) ** 0.5, np.ones(len(summary.moments))
    scale[0] = CONSTANT_VARIANCE_RATIO**-0.5
    p = len(scale)
    least = float(np.linalg.eigvalsh(summary.moments * scale[:, None] * scale)[0])
    if least < -(2 * p**0.5 + 2 * RARE_EXPONENT**0.5) * deviation * (1 + 1e-6):
        raise NotPositiveSemidefiniteError(
            f"the summary of {describe_clients(summary)} has a direction in which squares add up to less than noise "
            f"explains; {REMAKE_ADVICE}"
        )
    beyond = float(summary.moments.diagonal()[1:].astype(np.float64).sum()) - float(summary.moments[0, 0])
    if beyond > (2 * RARE_EXPONENT * (2 * p + 2 * CONSTANT_VARIANCE_RATIO**2)) ** 0.5 * deviation + GRID**2:
        raise MomentBoundsError(
            f"the summary of {describe_clients(summary)} has squares that add up to more than its rows and noise "
            f"explain; {REMAKE_ADVICE}"
        )


def _raise_at_column(error: type[SummaryError], wrong: Flags, summary: Summary, plan: StudyPlan, expected: str) -> None:
    """Raise an error that names the first wrong column."""
    if wrong.any():
        where = _describe_column(plan, int(np.argmax(wrong)))
        raise error(
            f"the summary of {describe_clients(summary)} contradicts itself at {where}: expected {expected}; "
            f"{REMAKE_ADVICE}"
        )


def _raise_at_product(wrong: Flags, rows: slice, summary: Summary, plan: StudyPlan, expected: str) -> None:
    """Raise an error that names the first two columns whose product is wrong, in these rows of the matrix."""
    if wrong.any():
        i, j = (int(index) for index in np.argwhere(wrong)[0])
        raise MomentBoundsError(
            f"the summary of {describe_clients(summary)} contradicts itself at "
            f"{_describe_column(plan, rows.start + i)} times {_describe_column(plan, j)}: expected {expected}; "
            f"{REMAKE_ADVICE}"
        )


def _describe_column(plan: StudyPlan, column: int) -> str:
    for variable, span in zip(plan.variables, plan.layout.spans.values(), strict=True):
        if span.start <= column < span.stop:
            return f"column {column - span.start + 1} of {variable.name!r}"
    return "the column of ones"


def row_blocks(columns: int) -> Iterator[slice]:
    """Return slices that cover the rows of a matrix, a block at a time."""
    return (slice(start, start + _BLOCK_ROWS) for start in range(0, columns, _BLOCK_ROWS))


def describe_clients(summary: Summary) -> str:
    """Describe in words whose summary this is."""
    return f"client {abbreviate_list(map(repr, summary.clients))}"
