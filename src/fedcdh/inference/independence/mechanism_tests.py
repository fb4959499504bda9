"""Does the mechanism of x given Z differ between clients?  ℧ ⫫ x | Z, answered from the clients' second moments.

Four departures are looked for, each with the test that sees it best, and their p-values combined: other means, other
linear slopes, other functions (Chow tests), and other noise (Bartlett's test on the residual variances).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.batched_regression import (
    MIN_RESIDUAL_SHARE,
    combine_p_values,
    common_residual_scatter,
    partial_covariance,
    pillai_test,
    residual_scatter,
    sum_in_order,
)
from fedcdh.inference.independence.query_batch import ColumnIndex, JointColumns, QueryBatch, Shape, repeat_columns
from fedcdh.inference.orthonormal_basis import Basis


def put_domain_first(sheet: ColumnIndex, asked: QueryBatch) -> QueryBatch:
    """The same questions with the domain as x."""
    return asked.swap(asked.y == len(sheet.squares))


def shapes(basis: Basis, sheet: ColumnIndex, asked: QueryBatch) -> Indices:
    """Questions with equal rows can be answered together."""
    conditions = (columns.counts(asked) for columns in (sheet.predictors, sheet.targets, sheet.spans))
    return np.stack([sheet.targets.widths[asked.y], *conditions, sheet.spans.widths[asked.y] == 1], axis=1)


def elements(basis: Basis, shape: Shape) -> int:
    """How many numbers a question of this shape takes."""
    width, conditions, _, every, _ = shape
    return max(len(basis.rows) * (width + conditions) ** 2, (width + every) ** 2)


def answer_mechanisms(
    basis: Basis, sheet: ColumnIndex, together: JointColumns, asked: QueryBatch, shape: Shape
) -> tuple[Array, Array]:
    """Statistics and p-values for questions ℧ ⫫ y | Z of one shape."""
    # With two values the mean says all: noise follows it, and differs wherever Z does, mechanism or not.
    width, _, _, _, two_valued = shape
    count = len(asked)
    if not width:
        return np.zeros(count), np.ones(count)
    target, slopes = sheet.targets.of(asked.y[:, None]), sheet.targets.of(asked.given)
    bends = np.concatenate([sheet.bends.of(asked.given), repeat_columns(together.own, count)], axis=1)
    given = np.concatenate([slopes, bends], axis=1)
    rest = repeat_columns(together.common, count)
    everything, conditions = np.concatenate([given, rest], axis=1), given.shape[1]
    clients, rows = len(basis.rows), float(basis.rows.sum())

    common = partial_covariance(basis.total, target, everything)  # one regression for all
    shifted = partial_covariance(basis.within, target, everything)  # own means, common functions
    free = rows - clients - everything.shape[1]
    statistic, p_mean = pillai_test(common - shifted, common, clients - 1, free)
    parts = [p_mean]
    own = basis.can_regress(conditions)
    if own.sum() > 1:
        apart = partial_covariance(basis.each(own), np.concatenate([target, rest], axis=1), given)  # own functions
        if conditions:
            parts += _chow_tests(basis, target, slopes, bends, rest, own, apart)
        if width == 1 and not two_valued:
            parts.append(
                _variance_test(basis.rows[own] - 1 - conditions, apart, _kurtosis_inflation(basis, sheet, asked, rest))
            )
    p_value = combine_p_values(parts)
    determined = np.trace(common, axis1=-2, axis2=-1) <= MIN_RESIDUAL_SHARE * width * rows
    return statistic, np.where(determined, 1.0, p_value)


def _chow_tests(
    basis: Basis,
    target: Indices,
    slopes: Indices,
    bends: Indices,
    rest: Indices,
    own: npt.NDArray[np.bool_],
    apart: Array,
) -> list[Array]:
    """Own linear slopes, and own functions altogether, against own means only, among clients with rows enough.

    The rest of the columns has the same weights everywhere in each of these.
    """
    clients, width = int(own.sum()), target.shape[1]
    given = np.concatenate([slopes, bends], axis=1)
    freedom = float((basis.rows[own] - 1).sum()) - given.shape[1] - rest.shape[1]
    shifted = partial_covariance(basis.pool_scatter(own), target, np.concatenate([given, rest], axis=1))
    free = residual_scatter(sum_in_order(apart), width)
    most = (clients - 1) * given.shape[1]
    _, p_functions = pillai_test(shifted - free, shifted, most, freedom - most)
    if not bends.shape[1]:
        return [p_functions]
    without_slopes = sum_in_order(
        partial_covariance(basis.each(own), np.concatenate([target, bends, rest], axis=1), slopes)
    )
    more = (clients - 1) * slopes.shape[1]
    _, p_slopes = pillai_test(shifted - residual_scatter(without_slopes, width), shifted, more, freedom - more)
    return [p_slopes, p_functions]


def _variance_test(freedom: Array, apart: Array, heavy: Array) -> Array:
    """Bartlett's test on the residual variances, its statistic divided by (κ − 1)/2 for noise of kurtosis κ."""
    left, rest = common_residual_scatter(apart, 1)[..., 0, 0], apart.shape[-1] - 1
    freedom = np.broadcast_to((freedom * (1 - rest / max(freedom.sum(), 1.0)))[:, None], left.shape)
    usable = (freedom > 2) & (left > MIN_RESIDUAL_SHARE * (freedom + 1))
    variances = np.where(usable, left / freedom, 1.0)
    return _bartlett_test(variances, np.where(usable, freedom, 0.0), heavy)


def _kurtosis_inflation(basis: Basis, sheet: ColumnIndex, asked: QueryBatch, rest: Indices) -> Array:
    """(κ − 1)/2 of the noise r in x = m(Z) + r, one standard error above its estimate and at least 1, as if Gaussian.

    Var(x² | Z) = 4 m² σ² + Var(r²) on average over Z, for centred x and symmetric r; all but the last is a second
    moment of features, so Var(r²) = (κ − 1) σ⁴ follows. The clients' fourth moments are never needed. E[x² | Z] bends
    even where E[x | Z] does not, hence all columns of Z; what it holds of products of several Z counts as kurtosis.
    """
    rows = basis.rows.sum()
    given = np.concatenate([sheet.spans.of(asked.given), rest], axis=1)
    columns = sheet.leading.of(asked.y[:, None])
    left = partial_covariance(basis.total, columns, given) / max(rows - 1 - given.shape[1], 1.0)
    noise = np.maximum(left[:, 0, 0], MIN_RESIDUAL_SHARE)
    square = sheet.squares[asked.y][:, None, :]
    about_square = (square @ left @ np.swapaxes(square, 1, 2))[:, 0, 0]
    error = about_square * np.sqrt(10 / rows)  # of a variance whose own kurtosis is about that of squares, 11 or so
    kurtosis = (about_square + error - 4 * noise * np.maximum(1 - noise, 0.0)) / noise**2  # κ − 1
    return np.asarray(np.maximum(kurtosis / 2, 1.0))


def _bartlett_test(variances: Array, freedom: Array, inflation: Array) -> Array:
    """p-values of equal variances, (clients, questions) in; clients without degrees of freedom are left out."""
    groups, total = (freedom > 0).sum(axis=0), np.maximum(freedom.sum(axis=0), 1.0)
    pooled = sum_in_order(freedom * variances) / total
    spread = total * np.log(np.maximum(pooled, np.finfo(float).tiny)) - sum_in_order(freedom * np.log(variances))
    inverse = sum_in_order(np.where(freedom > 0, 1 / np.maximum(freedom, 1.0), 0.0)) - 1 / total
    correction = (1 + inverse / (3 * np.maximum(groups - 1, 1))) * inflation
    return np.where(groups > 1, special.chdtrc(np.maximum(groups - 1, 1), np.maximum(spread / correction, 0.0)), 1.0)
