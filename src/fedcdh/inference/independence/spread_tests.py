"""Tests of equal spread between clients of which only sums are known.

A sum over clients has no products of two variables at one client. But the square of a variable is one of its features,
and the means of all features are known at every client k, hence E_k[x²]. For ℧ ⫫ x | Z we ask whether E_k[x²] differs
more between clients than functions of Z explain: other noise and other slopes both show there.

With m(Z) = E[x | Z] and noise whose size does not depend on Z, E[x² | Z] = m(Z)² + σ². For one conditioning variable
that is a function of it, which features follow. For more, m² also has products of two of them. Their moments at a
client are predicted: from its own means and deviations, from the correlations within clients of all clients together,
and as if Z were Gaussian within a client.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.batched_regression import (
    MIN_RESIDUAL_SHARE,
    gather_blocks,
    partial_covariance,
    residual_scatter,
    solve_regularized,
)
from fedcdh.inference.independence.query_batch import ColumnIndex, QueryBatch
from fedcdh.inference.orthonormal_basis import Basis

MAX_SHIFTED_SHARE = 0.1
"""Share of the variance of m(Z) between clients up to which products of nonlinear functions count as alike at all."""


def measure_uneven_spread(basis: Basis, batch: QueryBatch) -> Array:
    """Return by how much Σ x y varies more than with equal spreads at all clients, at least 1, for each query.

    With variances v_k at the clients, it is n Σ n_k v_k(x) v_k(y) / (Σ n_k v_k(x) · Σ n_k v_k(y)). Where x and y both
    vary more at the same clients, fewer rows count than there are.
    """
    rows, of_x, of_y = basis.rows, basis.client_variances[batch.x], basis.client_variances[batch.y]
    both = rows.sum() * _weighted_sum(of_x * of_y, rows)
    return np.asarray(np.maximum(both / (_weighted_sum(of_x, rows) * _weighted_sum(of_y, rows)), 1.0))


def compare_squares(basis: Basis, index: ColumnIndex, batch: QueryBatch) -> Array:
    """Return p-values of whether E_k[x²] differs between clients beyond functions of Z, for queries ℧ ⫫ x | Z.

    F test of the clients' means. Where m(Z) is large, x² varies more; the degrees of freedom allow for that, by the
    approximation of Satterthwaite. Products of nonlinear functions of several variables cannot be predicted; where the
    means of such functions differ between clients, p is 1.
    """
    given, clients = index.spans.of(batch.given), len(basis.rows)
    columns = np.concatenate([index.leading.of(batch.y[:, None]), given], axis=1)
    to_square = _square_weights(index.squares[batch.y], columns.shape[1])
    total, within = (
        to_square @ gather_blocks(of, columns, columns) @ np.swapaxes(to_square, 1, 2)
        for of in (basis.total, basis.within)
    )
    means = to_square @ basis.means.T[columns]  # (queries, 1 + given, clients)
    shifted = residual_scatter(within, 1)[:, 0, 0]
    products = _predict_products(basis, index, batch, given)
    if products is not None:
        within = _subtract_within(within, products)
        total = _subtract_between(_subtract_within(total, products), means, products.means, basis.rows)
    explained = residual_scatter(total, 1)[:, 0, 0] - residual_scatter(within, 1)[:, 0, 0]
    free = max(basis.total_rows - clients - given.shape[1], 1.0)
    noise = np.maximum(partial_covariance(basis.within, columns[:, :1], given)[:, 0, 0] / free, MIN_RESIDUAL_SHARE)
    each = shifted[:, None] / free + 4 * noise[:, None] * means[:, 0]  # Var(x² | Z) = 4 m² σ² + Var(r²)
    each = np.maximum(each, np.minimum(shifted / free, 2 * noise**2)[:, None])
    weights = 1 - basis.rows / basis.total_rows
    expected = _weighted_sum(each, weights)
    statistic = np.maximum(explained, 0.0) / np.maximum(expected, np.finfo(float).tiny)
    freedom = np.minimum(expected**2 / np.maximum(_weighted_sum(each**2, weights), np.finfo(float).tiny), clients - 1)
    usable = expected > 0
    if products is not None:
        usable &= (index.nonlinear.counts(batch) == 0) | (_shifted_share(basis, index, batch) < MAX_SHIFTED_SHARE)
    return np.where(usable, special.fdtrc(np.maximum(freedom, 1e-9), free, statistic), 1.0)


def _shifted_share(basis: Basis, index: ColumnIndex, batch: QueryBatch) -> Array:
    """Return the share of the variance of m(Z) that lies between the means of clients, for each query."""
    columns, target = index.predictors.of(batch.given), index.leading.of(batch.y[:, None])[:, :1]
    inner = gather_blocks(basis.within, columns, columns)
    weights = solve_regularized(inner, gather_blocks(basis.within, columns, target))
    within = (np.swapaxes(weights, 1, 2) @ inner @ weights)[:, 0, 0]
    between = _weighted_sum((np.swapaxes(weights, 1, 2) @ basis.means.T[columns])[:, 0] ** 2, basis.rows)
    return np.asarray(between / np.maximum(within + between, np.finfo(float).tiny))


def _square_weights(square: Array, columns: int) -> Array:
    """Return the matrix that makes [x², Z] of [leading columns, Z], up to a constant, for every query."""
    found = np.zeros((len(square), columns - 1, columns))
    found[:, 0, :2] = square
    found[:, 1:, 2:] = np.eye(columns - 2)
    return found


class _Products(NamedTuple):
    """Moments of the part of m(Z)² that products of two conditioning variables make, for every query."""

    means: Array  # (queries, clients)
    cross: Array  # (queries, given): scatter within clients with the columns of Z, of all clients together


def _subtract_within(scatter: Array, products: _Products) -> Array:
    """Return the scatter of [x², Z] after the products are taken from x², as far as they vary with Z within clients."""
    found = scatter.copy()
    found[:, 0, 1:] -= products.cross
    found[:, 1:, 0] -= products.cross
    return found


def _subtract_between(total: Array, means: Array, offset: Array, rows: Array) -> Array:
    """Return the scatter about the pooled means after a number for each client is taken from the first column."""
    apart = rows * (offset - (_weighted_sum(offset, rows) / rows.sum())[:, None])
    cross = (means @ apart[:, :, None])[:, :, 0]
    found = total.copy()
    found[:, 0, :] -= cross
    found[:, :, 0] -= cross
    found[:, 0, 0] += (apart**2 / rows).sum(axis=1)
    return found


def _predict_products(basis: Basis, index: ColumnIndex, batch: QueryBatch, given: Indices) -> _Products | None:
    """Return the moments of P = Σ A_ij z_i z_j over pairs of conditioning variables; None where there is no pair.

    With means μ and covariance C within a client, E[P] = μᵀAμ + tr AC. For Gaussian z, cov(P, z_l) = 2 (CAμ)_l and
    cov(P, z_l²) = 4 μ_l (CAμ)_l + 2 (CAC)_ll.
    """
    slopes, rows = index.targets.of(batch.given), basis.rows
    owner = _owners(basis)[slopes]
    apart = owner[:, :, None] != owner[:, None, :]
    if not apart.any():
        return None
    inner = gather_blocks(basis.within, slopes, slopes)
    target = index.leading.of(batch.y[:, None])[:, :1]
    weights = solve_regularized(inner, gather_blocks(basis.within, slopes, target))
    pairs = np.where(apart, weights @ np.swapaxes(weights, 1, 2), 0.0)  # A
    means, spread = basis.means.T[slopes], np.sqrt(basis.client_variances[owner])  # (queries, slopes, clients)
    size = (spread * rows) @ np.swapaxes(spread, 1, 2)
    linked = inner / np.maximum(size, np.finfo(float).tiny)
    towards = pairs @ means  # Aμ
    expected = (means * towards).sum(axis=1) + (spread * ((pairs * linked) @ spread)).sum(axis=1)
    of_value = 2 * spread * (linked @ (spread * towards))
    covariance = linked[:, None] * np.swapaxes(spread, 1, 2)[..., None] * np.swapaxes(spread, 1, 2)[:, :, None]  # C
    through = ((covariance @ pairs[:, None]) * covariance).sum(axis=-1)
    of_square = 2 * means * of_value + 2 * np.swapaxes(through, 1, 2)
    first, second = index.squares[owner][..., 0], index.squares[owner][..., 1]
    safe = np.where(second == 0, 1.0, second)
    curved = np.where(second[..., None] == 0, 0.0, (of_square - first[..., None] * of_value) / safe[..., None])
    following = np.where(second == 0, -1, slopes + 1)  # the column of the square follows that of the value
    cross = _place(_weighted_sum(of_value, rows), slopes, given)
    cross += _place(_weighted_sum(curved, rows), following, given)
    return _Products(expected, cross)


def _weighted_sum(values: Array, weights: Array) -> Array:
    """Return the weighted sum over the last axis; unlike a product with a vector, it does not depend on other rows."""
    return np.asarray((np.ascontiguousarray(values) * weights).sum(axis=-1))


def _place(values: Array, columns: Indices, given: Indices) -> Array:
    """Return the values at the places of their columns among the given ones, and 0 elsewhere."""
    return np.asarray(((given[:, :, None] == columns[:, None, :]) * values[:, None, :]).sum(axis=2))


def _owners(basis: Basis) -> Indices:
    """Return the number of the variable to which each column belongs."""
    return np.repeat(np.arange(len(basis.spans)), [len(columns) for columns in basis.spans.values()])
