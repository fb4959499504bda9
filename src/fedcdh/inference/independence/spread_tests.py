"""Tests of equal spread between clients of which only sums are known.

A sum over clients has no products of two variables at one client. But the square of a variable is one of its features,
and the means of all features are known at every client k, hence E_k[x²]. For ℧ ⫫ x | Z we ask whether E_k[x²] differs
more between clients than functions of Z explain: other noise and other slopes both show there.

With m(Z) = E[x | Z] and noise whose size does not depend on Z, E[x² | Z] = m(Z)² + σ². For one conditioning variable
that is a function of it, which features follow. For more, m² also has products of two of them. Their means at a client
are predicted from its own means and deviations, and from the correlation that all clients have together.
"""

from __future__ import annotations

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


def measure_uneven_spread(basis: Basis, batch: QueryBatch) -> Array:
    """Return by how much Σ x y varies more than with equal spreads at all clients, at least 1, for each query.

    With variances v_k at the clients, it is n Σ n_k v_k(x) v_k(y) / (Σ n_k v_k(x) · Σ n_k v_k(y)). Where x and y both
    vary more at the same clients, fewer rows count than there are.
    """
    rows, of_x, of_y = basis.rows, basis.client_variances[batch.x], basis.client_variances[batch.y]
    both = rows.sum() * (of_x * of_y) @ rows
    return np.asarray(np.maximum(both / ((of_x @ rows) * (of_y @ rows)), 1.0))


def compare_squares(basis: Basis, index: ColumnIndex, batch: QueryBatch) -> Array:
    """Return p-values of whether E_k[x²] differs between clients beyond functions of Z, for queries ℧ ⫫ x | Z.

    F test of the clients' means. Where m(Z) is large, x² varies more; the degrees of freedom allow for that, by the
    approximation of Satterthwaite.
    """
    given, clients = index.spans.of(batch.given), len(basis.rows)
    columns = np.concatenate([index.leading.of(batch.y[:, None]), given], axis=1)
    to_square = _square_weights(index.squares[batch.y], columns.shape[1])
    total, within = (to_square @ gather_blocks(of, columns, columns) @ np.swapaxes(to_square, 1, 2) for of in _both(basis))
    means = to_square @ basis.means.T[columns]  # (queries, 1 + given, clients)
    total = _subtract_from_first(total, means, _predict_products(basis, index, batch), basis.rows)
    common, shifted = residual_scatter(total, 1)[:, 0, 0], residual_scatter(within, 1)[:, 0, 0]
    free = max(basis.total_rows - clients - given.shape[1], 1.0)
    noise = np.maximum(partial_covariance(basis.within, columns[:, :1], given)[:, 0, 0] / free, MIN_RESIDUAL_SHARE)
    each = shifted[:, None] / free + 4 * noise[:, None] * means[:, 0]  # Var(x² | Z) = 4 m² σ² + Var(r²)
    each = np.maximum(each, np.minimum(shifted / free, 2 * noise**2)[:, None])
    weights = 1 - basis.rows / basis.total_rows
    expected = each @ weights
    statistic = np.maximum(common - shifted, 0.0) / np.maximum(expected, np.finfo(float).tiny)
    freedom = np.minimum(expected**2 / np.maximum(each**2 @ weights, np.finfo(float).tiny), clients - 1)
    return np.where(expected > 0, special.fdtrc(np.maximum(freedom, 1e-9), free, statistic), 1.0)


def _both(basis: Basis) -> tuple[Array, Array]:
    """Return the scatter about the pooled means, and about those of the clients."""
    return basis.total, basis.within


def _square_weights(square: Array, columns: int) -> Array:
    """Return the matrix that makes [x², Z] of [leading columns, Z], up to a constant, for every query."""
    found = np.zeros((len(square), columns - 1, columns))
    found[:, 0, :2] = square
    found[:, 1:, 2:] = np.eye(columns - 2)
    return found


def _subtract_from_first(total: Array, means: Array, offset: Array, rows: Array) -> Array:
    """Return the scatter about the pooled means after a number for each client is taken from the first column."""
    apart = rows * (offset - (offset @ rows / rows.sum())[:, None])
    cross = (means @ apart[:, :, None])[:, :, 0]
    found = total.copy()
    found[:, 0, :] -= cross
    found[:, :, 0] -= cross
    found[:, 0, 0] += (apart**2 / rows).sum(axis=1)
    return found


def _predict_products(basis: Basis, index: ColumnIndex, batch: QueryBatch) -> Array:
    """Return the part of E_k[m(Z)²] that products of two conditioning variables make, (queries, clients)."""
    slopes, rows = index.targets.of(batch.given), basis.rows
    owner = _owners(basis)[slopes]
    inner = gather_blocks(basis.within, slopes, slopes)
    weights = solve_regularized(inner, gather_blocks(basis.within, slopes, index.leading.of(batch.y[:, None])[:, :1]))
    pairs = np.where(owner[:, :, None] == owner[:, None, :], 0.0, weights @ np.swapaxes(weights, 1, 2))
    if not pairs.any():
        return np.zeros((len(batch), len(rows)))
    means, spread = basis.means.T[slopes], np.sqrt(basis.client_variances[owner])
    size = (spread * rows) @ np.swapaxes(spread, 1, 2)
    linked = pairs * inner / np.maximum(size, np.finfo(float).tiny)
    return np.asarray((means * (pairs @ means)).sum(axis=1) + (spread * (linked @ spread)).sum(axis=1))


def _owners(basis: Basis) -> Indices:
    """Return the number of the variable to which each column belongs."""
    return np.repeat(np.arange(len(basis.spans)), [len(columns) for columns in basis.spans.values()])
