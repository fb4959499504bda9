"""Tests of ℧ ⫫ x | Z: does the mechanism of x given Z differ between clients? Second moments of the clients suffice.

Four departures are tested, each with the test that has most power against it: different means, linear slopes and
functions (Chow tests), and different noise (Bartlett's test on the residual variances). Their p-values are combined.
Where only sums over clients are known, means are tested in the same way, and the rest by `spread_tests`.
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
from fedcdh.inference.independence.spread_tests import compare_squares
from fedcdh.inference.orthonormal_basis import Basis


def put_domain_first(index: ColumnIndex, batch: QueryBatch) -> QueryBatch:
    """Return the same queries with the domain as x."""
    return batch.swap(batch.y == len(index.squares))


def query_shapes(basis: Basis, index: ColumnIndex, batch: QueryBatch) -> Indices:
    """Return a row of numbers per query; queries with equal rows can be answered together."""
    conditions = (columns.counts(batch) for columns in (index.predictors, index.targets, index.spans))
    return np.stack([index.targets.widths[batch.y], *conditions, index.spans.widths[batch.y] == 1], axis=1)


def count_elements(basis: Basis, shape: Shape) -> int:
    """Return how many numbers a query of this shape takes."""
    width, conditions, _, every, _ = shape
    return max(len(basis.rows) * (width + conditions) ** 2, (width + every) ** 2)


def answer_mechanisms(
    basis: Basis, index: ColumnIndex, joint: JointColumns, batch: QueryBatch, shape: Shape
) -> tuple[Array, Array]:
    """Return statistics and p-values of queries ℧ ⫫ y | Z of one shape."""
    # With two values the mean determines the variance, which then differs wherever Z does, without any change.
    width, _, _, _, two_valued = shape
    count = len(batch)
    if not width:
        return np.zeros(count), np.ones(count)
    target, slopes = index.targets.of(batch.y[:, None]), index.targets.of(batch.given)
    nonlinear = np.concatenate([index.nonlinear.of(batch.given), repeat_columns(joint.own, count)], axis=1)
    given = np.concatenate([slopes, nonlinear], axis=1)
    rest = repeat_columns(joint.common, count)
    everything, conditions = np.concatenate([given, rest], axis=1), given.shape[1]
    clients, rows = len(basis.rows), float(basis.rows.sum())

    common = partial_covariance(basis.total, target, everything)  # one regression for all clients
    shifted = partial_covariance(basis.within, target, everything)  # separate means, common functions
    free = rows - clients - everything.shape[1]
    statistic, p_mean = pillai_test(common - shifted, common, clients - 1, free)
    parts = [p_mean]
    own = basis.can_regress(conditions)
    if not basis.has_client_scatter:
        if width == 1 and not two_valued and clients > 1:
            parts.append(_spread_test(basis, index, batch, own))
    elif own.sum() > 1:
        separate = partial_covariance(
            basis.scatter_of(own), np.concatenate([target, rest], axis=1), given
        )  # separate functions
        if conditions:
            parts += _chow_tests(basis, target, slopes, nonlinear, rest, own, separate)
        if width == 1 and not two_valued:
            parts.append(
                _variance_test(
                    basis.rows[own] - 1 - conditions, separate, _kurtosis_inflation(basis, index, batch, rest)
                )
            )
    p_value = combine_p_values(parts)
    determined = np.trace(common, axis1=-2, axis2=-1) <= MIN_RESIDUAL_SHARE * width * rows
    return statistic, np.where(determined, 1.0, p_value)


def _spread_test(basis: Basis, index: ColumnIndex, batch: QueryBatch, own: npt.NDArray[np.bool_]) -> Array:
    """Return p-values of equal spread at clients of which only sums are known; without Z, those of a cohort."""
    if index.spans.counts(batch).any():
        return compare_squares(basis, index, batch)
    if own.sum() < 2:
        return np.ones(len(batch))
    separate = (basis.client_variances[batch.y] * basis.rows).T[own][:, :, None, None]
    heavy = _kurtosis_inflation(basis, index, batch, np.zeros((len(batch), 0), dtype=np.intp))
    return _variance_test(basis.rows[own] - 1, separate, heavy)


def _chow_tests(
    basis: Basis,
    target: Indices,
    slopes: Indices,
    nonlinear: Indices,
    rest: Indices,
    own: npt.NDArray[np.bool_],
    separate: Array,
) -> list[Array]:
    """Test separate linear slopes, and separate functions, against separate means only, among clients with enough rows.

    The remaining columns have the same weights at all clients in each of these models.
    """
    clients, width = int(own.sum()), target.shape[1]
    given = np.concatenate([slopes, nonlinear], axis=1)
    freedom = float((basis.rows[own] - 1).sum()) - given.shape[1] - rest.shape[1]
    shifted = partial_covariance(basis.pool_scatter(own), target, np.concatenate([given, rest], axis=1))
    free = residual_scatter(sum_in_order(separate), width)
    most = (clients - 1) * given.shape[1]
    _, p_functions = pillai_test(shifted - free, shifted, most, freedom - most)
    if not nonlinear.shape[1]:
        return [p_functions]
    without_slopes = sum_in_order(
        partial_covariance(basis.scatter_of(own), np.concatenate([target, nonlinear, rest], axis=1), slopes)
    )
    more = (clients - 1) * slopes.shape[1]
    _, p_slopes = pillai_test(shifted - residual_scatter(without_slopes, width), shifted, more, freedom - more)
    return [p_slopes, p_functions]


def _variance_test(freedom: Array, separate: Array, heavy: Array) -> Array:
    """Return p-values of Bartlett's test of the residual variances, its statistic divided by (κ − 1)/2."""
    left, rest = common_residual_scatter(separate, 1)[..., 0, 0], separate.shape[-1] - 1
    freedom = np.broadcast_to((freedom * (1 - rest / max(freedom.sum(), 1.0)))[:, None], left.shape)
    usable = (freedom > 2) & (left > MIN_RESIDUAL_SHARE * (freedom + 1))
    variances = np.where(usable, left / freedom, 1.0)
    return _bartlett_test(variances, np.where(usable, freedom, 0.0), heavy)


def _kurtosis_inflation(basis: Basis, index: ColumnIndex, batch: QueryBatch, rest: Indices) -> Array:
    """Return (κ − 1)/2 of the noise r in x = m(Z) + r, one standard error above its estimate, at least 1 (Gaussian).

    Var(x² | Z) = 4 m² σ² + Var(r²) on average over Z, for centred x and symmetric r. All but the last is a second
    moment of features, so Var(r²) = (κ − 1) σ⁴ follows, and the clients' fourth moments are not needed. E[x² | Z] is
    nonlinear even where E[x | Z] is linear, hence all columns of Z; its dependence on products of several Z counts as
    kurtosis.
    """
    rows = basis.rows.sum()
    given = np.concatenate([index.spans.of(batch.given), rest], axis=1)
    columns = index.leading.of(batch.y[:, None])
    left = partial_covariance(basis.total, columns, given) / max(rows - 1 - given.shape[1], 1.0)
    noise = np.maximum(left[:, 0, 0], MIN_RESIDUAL_SHARE)
    square = index.squares[batch.y][:, None, :]
    about_square = (square @ left @ np.swapaxes(square, 1, 2))[:, 0, 0]
    error = about_square * np.sqrt(10 / rows)  # the kurtosis of a squared normal variable is about 11
    kurtosis = (about_square + error - 4 * noise * np.maximum(1 - noise, 0.0)) / noise**2  # κ − 1
    return np.asarray(np.maximum(kurtosis / 2, 1.0))


def _bartlett_test(variances: Array, freedom: Array, inflation: Array) -> Array:
    """Return p-values of equal variances, (clients, queries) in; clients without degrees of freedom are left out."""
    groups, total = (freedom > 0).sum(axis=0), np.maximum(freedom.sum(axis=0), 1.0)
    pooled = sum_in_order(freedom * variances) / total
    spread = total * np.log(np.maximum(pooled, np.finfo(float).tiny)) - sum_in_order(freedom * np.log(variances))
    inverse = sum_in_order(np.where(freedom > 0, 1 / np.maximum(freedom, 1.0), 0.0)) - 1 / total
    correction = (1 + inverse / (3 * np.maximum(groups - 1, 1))) * inflation
    return np.where(groups > 1, special.chdtrc(np.maximum(groups - 1, 1), np.maximum(spread / correction, 0.0)), 1.0)
