"""Strata added up for a regression: Σ_k w_k S_k over a target and its predictors, w_k its precision in stratum k.

The weights depend on the target x only, whatever predicts it. Without conditioning variables, the part about y is thus
a product of two things that are made once for each variable, not for each pair:

    Σ_k w_kx S_k[y, y]  =  (w_1x, ..., w_Kx) · (S_1[y, y], ..., S_K[y, y])

and only S_k[x, y], one row for a single target, is looked up for each pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.batched_regression import (
    MIN_RESIDUAL_SHARE,
    Matrices,
    ResidualScatter,
    gather_blocks,
    sum_in_order,
)


class PooledScatter(NamedTuple):
    """The pooled scatter for regressions of the first columns on the others, for every query.

    It is made with the strata's degrees of freedom, (strata, queries), or (strata, 1) if these are the same for all
    queries.
    """

    scatter: Array  # (queries, columns, columns)
    targets: int  # how many of the columns are targets; they come first
    freedom: Array  # per query, of the strata with weight


def pool_strata(left: ResidualScatter, freedom: Array, targets: Indices, others: Indices) -> PooledScatter:
    """Pool columns, given by their positions, after regression on the conditioning variables."""
    count = len(targets)
    across = left(targets, np.concatenate([targets, others]))
    weights = _stratum_weights(across[..., :count], freedom)
    scatter = _join_blocks(_weighted_sum(across, weights), _weighted_sum(left(others, others), weights))
    return PooledScatter(scatter, count, _pooled_freedom(weights, freedom))


def pool_unconditional(strata: Matrices, freedom: Array, targets: Indices, others: Indices) -> PooledScatter:
    """Pool the columns of two variables without conditioning variables: (queries, columns) of each."""
    own, target = _unique_blocks(strata, targets)
    other_blocks, other = _unique_blocks(strata, others)
    weights = _stratum_weights(own, freedom)
    cross = _weighted_sum(gather_blocks(strata, targets, others), weights.take(target, axis=1))
    across = np.concatenate([_weighted_sum(own, weights)[target], cross], axis=-1)
    n_strata, variables, width, _ = other_blocks.shape
    blocks = np.swapaxes(other_blocks, 0, 1).reshape(variables, n_strata, width**2)
    inner = weights.T.take(target, axis=0)[:, None] @ blocks.take(other, axis=0)
    scatter = _join_blocks(across, inner.reshape(-1, width, width))
    return PooledScatter(scatter, targets.shape[1], _pooled_freedom(weights, freedom)[target])


def _unique_blocks(strata: Matrices, columns: Indices) -> tuple[Array, Indices]:
    """Return each variable's scatter (strata, variables, columns, columns), and each query's variable."""
    _, first, which = np.unique(columns[:, 0], return_index=True, return_inverse=True)
    return gather_blocks(strata, columns[first], columns[first]), which


def _stratum_weights(own: Array, freedom: Array) -> Array:
    """Return weights (strata, queries): 0 for determined targets; else precisions of a single target, or 1."""
    count, size = own.shape[-1], np.trace(own, axis1=-2, axis2=-1)
    determined = size <= MIN_RESIDUAL_SHARE * count * (freedom + 1)
    weights = np.where(determined | (freedom <= 0), 0.0, 1.0)
    if count == 1:
        weights = weights * freedom / np.where(weights > 0, size, 1.0)
    return np.asarray(weights)


def _pooled_freedom(weights: Array, freedom: Array) -> Array:
    return np.asarray((freedom * (weights > 0)).sum(axis=0))


def _weighted_sum(stack: Array, weights: Array) -> Array:
    """Return the sum over strata of (strata, queries, rows, columns) with weights (strata, queries)."""
    return sum_in_order(stack * weights[..., None, None])


def _join_blocks(across: Array, inner: Array) -> Array:
    """Return the whole matrix from its first rows and the block of all others."""
    count, columns = across.shape[-2:]
    joint = np.empty((len(across), columns, columns))
    joint[:, :count] = across
    joint[:, count:, :count] = np.swapaxes(across[..., count:], 1, 2)
    joint[:, count:, count:] = inner
    return joint
