"""Linear algebra on many small blocks at once, for tests and scores that ask about many sets of columns.

The order of additions never depends on the other queries of a batch, and so neither does an answer, to its last digit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from scipy import special

from fedcdh._runtime.array_types import Array, Indices

Matrices: TypeAlias = Array | Sequence[Array]
"""One matrix, a stack of them, or a list of them, so that none has to be copied."""
Item = TypeVar("Item")

JITTER = 1e-9
"""Share of a column's variance added to the diagonal: it keeps duplicate columns solvable and is no penalty."""
MIN_RESIDUAL_SHARE = 1e-7
"""A variable with a smaller share of its variance left is a function of the others, and independent of the rest."""
_TINY_SCATTER = 1e-100  # keeps a scatter of zeros solvable, such as that of clients with one row each
_MIN_SHARED_QUERIES = 16  # with fewer queries, finding those that share a set takes longer than solving each
_MAX_ELEMENTS = 1_000_000  # numbers gathered at a time, about 8 MB


def concatenate_columns(spans: Mapping[str, Indices], names: Iterable[str]) -> Indices:
    """Return the columns of these variables, in the order of their names."""
    return np.concatenate([np.zeros(0, dtype=np.intp), *(spans[name] for name in sorted(names))])


def gather_blocks(matrix: Matrices, rows: Indices, columns: Indices) -> Array:
    """Return matrix[..., rows_b, columns_b] for every b: (..., q, q), (B, r), (B, c) → (..., B, r, c)."""
    if not isinstance(matrix, np.ndarray):
        return _stack((gather_blocks(one, rows, columns) for one in matrix), len(matrix), *rows.shape, columns.shape[1])
    places = rows[:, :, None] * matrix.shape[-1] + columns[:, None, :]
    return np.asarray(matrix.reshape(*matrix.shape[:-2], -1).take(places, axis=-1))


def partial_covariance(matrix: Matrices, targets: Indices, given: Indices) -> Array:
    """Return C_{UU|Z} = C_UU − C_UZ C_ZZ⁻¹ C_ZU for every query b and leading index; C_UU without Z."""
    if given.shape[1] == 0:
        return gather_blocks(matrix, targets, targets)
    if not isinstance(matrix, np.ndarray):
        return _stack(
            (partial_covariance(one, targets, given) for one in matrix), len(matrix), *targets.shape, targets.shape[1]
        )
    sets, which = _unique_sets(given)
    size = np.trace(matrix, axis1=-2, axis2=-1)[..., None, None, None] / matrix.shape[-1]
    inverse = np.linalg.inv(add_jitter(gather_blocks(matrix, sets, sets), size))
    cross = gather_blocks(matrix, given, targets)
    explained = np.swapaxes(cross, -1, -2) @ (inverse[..., which, :, :] @ cross)
    return np.asarray(gather_blocks(matrix, targets, targets) - explained)


def _unique_sets(given: Indices) -> tuple[Indices, Indices | slice]:
    """Return every set once, and the set of each query; with few queries, the sets as they are."""
    if len(given) < _MIN_SHARED_QUERIES:
        return given, slice(None)
    sets, which = np.unique(given, axis=0, return_inverse=True)
    return sets, which.ravel()


def _stack(parts: Iterable[Array], *shape: int) -> Array:
    found = np.empty(shape)
    for out, part in zip(found, parts, strict=True):
        out[:] = part
    return found


def sum_in_order(stack: Array) -> Array:
    """Return the sum over the first axis, added in its order.

    numpy adds numbers that lie side by side in memory several at a time. The last digit of an answer would then depend
    on the presence of other queries.
    """
    alone = stack.size == len(stack) > 0
    return np.asarray(np.add.accumulate(stack, axis=0)[-1] if alone else np.ascontiguousarray(stack).sum(axis=0))


class ResidualScatter:
    """The scatter of each query's columns in several strata, after regression on the given columns.

    If something is given, it comes in parts: positions of queries, and the given columns of each, equally many within a
    part. Blocks are computed when they are asked for, by the positions of columns. Without conditions they are read
    from the strata directly, so that the rest of a large matrix is never touched.
    """

    def __init__(self, strata: Matrices, columns: Indices, given: Sequence[tuple[Indices, Indices]] = ()) -> None:
        self._strata, self._columns = strata, columns
        self._all: Array | None = None
        if given:
            self._all = np.empty((len(strata), *columns.shape, columns.shape[1]))
            for positions, conditions in given:
                self._all[:, positions] = partial_covariance(strata, columns[positions], conditions)

    def __call__(self, rows: Indices, columns: Indices) -> Array:
        """Return the blocks (strata, queries, rows, columns)."""
        if self._all is None:
            return gather_blocks(self._strata, self._columns[:, rows], self._columns[:, columns])
        return self._all[..., rows[:, None], columns]


def add_jitter(inner: Array, size: Array | float) -> Array:
    """Return a symmetric matrix, or a number, with its diagonal raised just enough to be solvable."""
    more = JITTER * (size + _TINY_SCATTER)
    return np.asarray(inner + (more * np.eye(inner.shape[-1]) if inner.ndim else more))


def solve_regularized(inner: Array, cross: Array) -> Array:
    """Return inner⁻¹ cross, also if columns are collinear."""
    size = np.trace(inner, axis1=-2, axis2=-1)[..., None, None] / max(inner.shape[-1], 1)
    kept = add_jitter(inner, size)
    return np.asarray(cross / kept if inner.shape[-1] == 1 else np.linalg.solve(kept, cross))


def explained_scatter(joint: Array, targets: int) -> Array:
    """Return the scatter of the first columns that the other columns explain: S_TY S_YY⁻¹ S_YT."""
    cross, inner = joint[..., targets:, :targets], joint[..., targets:, targets:]
    if not inner.shape[-1]:
        return np.zeros_like(joint[..., :targets, :targets])
    return np.asarray(np.swapaxes(cross, -1, -2) @ solve_regularized(inner, cross))


def residual_scatter(joint: Array, kept: int) -> Array:
    """Return the scatter of the first columns that the other columns leave unexplained."""
    return np.asarray(joint[..., :kept, :kept] - explained_scatter(joint, kept))


def common_residual_scatter(joint: Array, kept: int) -> Array:
    """Return the scatter of the first columns in every stratum that the other columns leave unexplained.

    The other columns have the same weights in all strata (the first axis).
    """
    if joint.shape[-1] == kept:
        return joint
    pooled = sum_in_order(joint)
    weights = solve_regularized(pooled[..., kept:, kept:], pooled[..., kept:, :kept])
    out = np.concatenate([np.broadcast_to(np.eye(kept), (*weights.shape[:-2], kept, kept)), -weights], axis=-2)
    return np.asarray(np.swapaxes(out, -1, -2) @ joint @ out)


def pillai_test(explained: Array, total: Array, predictors: Array | float, left: Array | float) -> tuple[Array, Array]:
    """Return F statistic and p-value of Pillai's trace V = tr(explained · total⁻¹); for one target, the usual F test.

    `left` are the residual degrees of freedom of the larger model. Targets without variance give F = 0 and p = 1.
    """
    width = total.shape[-1]
    if width == 1:
        trace = explained[..., 0, 0] / (total[..., 0, 0] + _TINY_SCATTER)
    else:
        size = np.trace(total, axis1=-2, axis2=-1) / width + _TINY_SCATTER
        regular = total + 1e-12 * size[..., None, None] * np.eye(width)
        trace = np.trace(np.linalg.solve(regular, explained), axis1=-2, axis2=-1)
    rank = np.minimum(width, predictors)
    trace = np.minimum(np.maximum(trace, 0.0), rank * (1 - 1e-12))
    above = np.abs(width - np.asarray(predictors)) + rank
    below = np.asarray(left, dtype=np.float64) - width + rank
    statistic = trace / np.maximum(rank - trace, _TINY_SCATTER) * below / above
    usable = (below > 0) & (rank > 0)
    p_value = np.where(usable, special.fdtrc(rank * above, rank * np.maximum(below, 1), statistic), 1.0)
    return np.where(usable, statistic, 0.0), p_value


def combine_p_values(p_values: Iterable[Array]) -> Array:
    """Return the Cauchy combination of p-values of one hypothesis, which holds its level for dependent tests too.

    p = ½ − arctan(mean cot(π p_i))/π. Values in [½, 1] are first mapped to [½, 0.9]: a test that is far from rejecting,
    or conservative, must not outvote another that rejects.
    """
    stacked = np.maximum(np.stack(list(p_values)), 1e-300)
    stacked = np.where(stacked > 0.5, 0.1 + 0.8 * stacked, stacked)
    return np.asarray(np.arctan2(1.0, np.mean(1 / np.tan(np.pi * stacked), axis=0)) / np.pi)


def group_by_shape(shapes: Indices, elements: Callable[[list[int]], int]) -> list[Indices]:
    """Return the positions of items of equal shape (rows of numbers), a bounded number at a time.

    A shape never depends on the other items, and so neither does an answer, to its last digit.
    """
    if not len(shapes):
        return []
    one_number = np.ravel_multi_index(tuple(shapes.T), tuple(shapes.max(axis=0) + 1))
    _, first, counts = np.unique(one_number, return_index=True, return_counts=True)
    together = np.split(np.argsort(one_number, kind="stable"), np.cumsum(counts)[:-1])
    steps = (max(1, _MAX_ELEMENTS // max(1, elements(shapes[one].tolist()))) for one in first)
    return [
        positions[start : start + step]
        for positions, step in zip(together, steps, strict=True)
        for start in range(0, len(positions), step)
    ]


def solve_in_groups(
    items: Sequence[Item],
    key: Callable[[Item], Hashable],
    elements: Callable[[Item], int],
    solve: Callable[[list[Item]], Sequence[tuple[float, float]]],
) -> list[tuple[float, float]]:
    """Solve items of equal shape together, a bounded number at a time, and return the results in the items' order.

    A shape never depends on the other items, and so neither does an answer, to its last digit.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for position, item in enumerate(items):
        groups[key(item)].append(position)
    results: list[tuple[float, float]] = [(0.0, 1.0)] * len(items)
    for positions in groups.values():
        step = max(1, _MAX_ELEMENTS // max(1, elements(items[positions[0]])))
        for start in range(0, len(positions), step):
            part = positions[start : start + step]
            for position, result in zip(part, solve([items[p] for p in part]), strict=True):
                results[position] = result
    return results
