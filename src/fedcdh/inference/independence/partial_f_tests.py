"""Partial F tests of whether, given the conditioning variables, y helps to predict x, or x to predict y.

x ⫫ y | Z is tested as E[x | φ(Z), φ(y)] = E[x | φ(Z)] and the other way round, with additive nonlinear functions of all
predictors, and with the linear feature (or the level indicators) as target. A matrix of pairwise moments can estimate
E[x | Z] if it is additive in Z. It cannot estimate E[cos(wx) | Z], which the kernel test of the paper needs, for |Z| >
1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.batched_regression import (
    MIN_RESIDUAL_SHARE,
    Matrices,
    ResidualScatter,
    combine_p_values,
    common_residual_scatter,
    explained_scatter,
    group_by_shape,
    pillai_test,
    residual_scatter,
    sum_in_order,
)
from fedcdh.inference.independence.query_batch import (
    ColumnIndex,
    ColumnTable,
    JointColumns,
    QueryBatch,
    Shape,
    repeat_columns,
)
from fedcdh.inference.independence.spread_tests import measure_uneven_spread
from fedcdh.inference.independence.stratum_pooling import PooledScatter, pool_strata, pool_unconditional
from fedcdh.inference.orthonormal_basis import Basis


def put_narrow_first(index: ColumnIndex, batch: QueryBatch) -> QueryBatch:
    """Return the same queries with the variable of fewer columns first: fewer shapes, and the test is symmetric."""
    widths = index.predictors.widths
    return batch.swap(widths[batch.x] > widths[batch.y])


def query_shapes(basis: Basis, index: ColumnIndex, batch: QueryBatch) -> Indices:
    """Return a row of numbers per query; queries with equal rows can be answered together.

    The number of conditions may differ among them, but not whether there are any.
    """
    sides = [columns.widths[end] for end in (batch.x, batch.y) for columns in _column_tables(index)]
    conditions, within = index.count_conditions(batch), batch.has_domain[batch.set_index]
    different, which = np.unique(conditions, return_inverse=True)
    strata = np.array([_count_strata(basis, number) for number in different.tolist()], dtype=np.intp).reshape(-1, 2)
    return np.column_stack([*sides, conditions > 0, within, np.where(within[:, None], strata[which], 0)])


def _count_strata(basis: Basis, conditions: int) -> tuple[int, bool]:
    """Return how many clients are strata of their own, and whether the other clients form one together."""
    if not basis.has_client_scatter:
        return 1, False
    own = basis.can_regress(conditions)
    return int(own.sum()), bool((basis.rows - 1)[~own].sum() > conditions)


def _column_tables(index: ColumnIndex) -> tuple[ColumnTable, ColumnTable, ColumnTable]:
    return index.side_columns, index.predictors, index.targets


def count_elements(basis: Basis, shape: Shape) -> int:
    """Return how many numbers a query of this shape takes."""
    whole_x, _, _, whole_y, _, _, _, _, own, others = shape
    return max(own + others, 1) * (whole_x + whole_y) ** 2


def answer_pairs(
    basis: Basis, index: ColumnIndex, joint: JointColumns, batch: QueryBatch, shape: Shape
) -> tuple[Array, Array]:
    """Return statistics and p-values of queries of one shape about two variables."""
    whole_x, wide_x, mean_x, whole_y, wide_y, mean_y, conditioned, within, *_ = shape
    count = len(batch)
    if not (wide_x and wide_y):  # a constant is independent of everything
        return np.zeros(count), np.ones(count)
    ends = index.side_columns.of(batch.x[:, None]), index.side_columns.of(batch.y[:, None])
    columns = np.concatenate([*ends, repeat_columns(joint.common, count)], axis=1)
    conditions = index.count_conditions(batch)
    strata, freedom = _strata(basis, int(conditions[0])) if within else _single_stratum(basis)
    left = ResidualScatter(
        strata, columns, _conditioning_columns(index, batch, joint, len(strata)) if conditioned else ()
    )
    freedom = freedom[:, None] - (conditions if conditioned else 0)
    x, y, rest = np.split(np.arange(columns.shape[1]), [whole_x, whole_x + whole_y])
    if conditioned or len(rest):
        of_x = pool_strata(left, freedom, x[:mean_x], np.concatenate([rest, y]))
        of_y = pool_strata(left, freedom, y[:mean_y], np.concatenate([rest, x]))
    else:
        of_x = pool_unconditional(strata, freedom, ends[0][:, :mean_x], ends[1])
        of_y = pool_unconditional(strata, freedom, ends[1][:, :mean_y], ends[0])
    if within and not basis.has_client_scatter:  # clients cannot be weighted by their precisions: fewer rows count
        uneven = measure_uneven_spread(basis, batch)
        of_x, of_y = (of._replace(freedom=of.freedom / uneven) for of in (of_x, of_y))
    ways = _Direction(of_x, whole_y, wide_y, mean_y), _Direction(of_y, whole_x, wide_x, mean_x)
    statistics, parts = _test_both_directions(ways, np.arange(len(rest)), joint.with_squares)
    if within and len(freedom) > 1 and mean_x == mean_y == 1:  # a categorical variable has no column that comes first
        share = 1 - len(rest) / np.maximum(freedom.sum(axis=0), 1.0)
        values = np.concatenate([x[:1], y[:1], rest])
        parts.append(_slope_heterogeneity_test(common_residual_scatter(left(values, values), 2), freedom * share))
    return statistics, combine_p_values(parts)


def _conditioning_columns(
    index: ColumnIndex, batch: QueryBatch, joint: JointColumns, strata: int
) -> list[tuple[Indices, Indices]]:
    """Return the columns of the conditioning sets, by position, for queries with equally many of them."""
    parts = group_by_shape(index.count_conditions(batch)[:, None], lambda shape: strata * (shape[0] + 1) ** 2)
    sets = batch.given
    return [
        (part, np.concatenate([index.predictors.of(sets[part]), repeat_columns(joint.own, len(part))], axis=1))
        for part in parts
    ]


def _strata(basis: Basis, conditions: int) -> tuple[Matrices, Array]:
    """Return scatter and degrees of freedom per client, for regressions that may differ between clients.

    Clients with too few rows for regressions of their own form one stratum, in which only their means differ. Where
    only sums over clients are known, all clients do.
    """
    if not basis.has_client_scatter:
        return basis.scatter, np.array([basis.total_rows - len(basis.rows)])
    freedom = basis.rows - 1
    own = basis.can_regress(conditions)
    if freedom[~own].sum() <= conditions:
        return basis.scatter_of(own), freedom[own]
    return [*basis.scatter_of(own), basis.pool_scatter(~own)], np.append(freedom[own], freedom[~own].sum())


def _single_stratum(basis: Basis) -> tuple[Matrices, Array]:
    """Return one stratum of all rows, about the pooled mean."""
    return basis.total[None], np.array([basis.rows.sum() - 1.0])


class _Direction(NamedTuple):
    """One variable as target; how many columns of the other exist, predict it, and are linear."""

    of: PooledScatter
    whole: int
    wide: int
    linear: int


def _test_both_directions(
    ways: tuple[_Direction, _Direction], common: Indices, closely: bool
) -> tuple[Array, list[Array]]:
    """Return the larger of two F, and the p-values of all columns each way, of linear ones and, on request, of squares.

    The strata's weights are those of the target: both ways are tested, so the order of the two variables does not
    matter.
    """
    side = len(common) + np.arange(max(way.whole for way in ways))
    (f_x, p_x), (f_y, p_y) = found = [_partial_f_test(way.of, side[: way.wide], common) for way in ways]
    linear = [
        p if way.wide == way.linear else _partial_f_test(way.of, side[: way.linear], common)[1]
        for way, (_, p) in zip(ways, found, strict=True)
    ]
    parts = [p_x, p_y, combine_p_values(linear)]
    curved = [way.of for way in ways if closely and way.linear == 1 and way.whole > 1]
    if curved:  # one part of five: it must not outweigh the tests of values
        parts.append(combine_p_values([_partial_f_test(of, side[1:2], np.append(common, side[0]))[1] for of in curved]))
    return np.maximum(f_x, f_y), parts


def _partial_f_test(of: PooledScatter, predictors: Indices, common: Indices) -> tuple[Array, Array]:
    """Test common coefficients of the predictors; predictors and common columns are positions among those not targets.

    The common columns are regressed out with the same weights in all strata.
    """
    count = of.targets
    chosen = np.concatenate([np.arange(count), count + predictors, count + common])
    joint = of.scatter[:, chosen[:, None], chosen]
    joint = residual_scatter(joint, count + len(predictors)) if len(common) else joint
    explained, total = explained_scatter(joint, count), joint[..., :count, :count]
    return pillai_test(explained, total, len(predictors), of.freedom - len(common) - len(predictors))


def _slope_heterogeneity_test(left: Array, freedom: Array) -> Array:
    """Return the p-value of a χ² test of the correlations within strata, by Fisher's z."""
    of_x, of_y, both = left[..., 0, 0], left[..., 1, 1], left[..., 0, 1]
    correlation = np.clip(both / np.sqrt(np.maximum(of_x * of_y, np.finfo(float).tiny)), -1 + 1e-12, 1 - 1e-12)
    determined = np.minimum(of_x, of_y) <= MIN_RESIDUAL_SHARE * (freedom + 1)
    usable = ~determined & (freedom > 3)
    squares = np.where(usable, np.arctanh(correlation) ** 2 * (freedom - 2), 0.0)
    return np.asarray(special.chdtrc(np.maximum(usable.sum(axis=0), 1), sum_in_order(squares)))
