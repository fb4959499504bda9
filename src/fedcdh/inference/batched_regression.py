"""Linear algebra on many small blocks at once: the one place where questions become arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from scipy import special

from fedcdh._runtime.array_types import Array, Indices

Matrices: TypeAlias = Array | Sequence[Array]
"""One matrix, a stack of them, or several that are wherever they are, so that none has to be copied."""
Item = TypeVar("Item")

JITTER = 1e-9
"""Keeps duplicate columns solvable. In orthonormal coordinates it is 1e-9 of a column's variance: not a penalty."""
MIN_RESIDUAL_SHARE = 1e-7
"""A variable with less than this share of its variance left is a function of the others: independent of the rest."""
_TINY_SCATTER = 1e-100  # keeps a scatter of zeros solvable, as of clients with one row each
_MIN_SHARED_QUERIES = 16  # questions: finding out which of them share a set would take longer than to solve each
_MAX_ELEMENTS = 1_000_000  # numbers gathered at a time, about 8 MB


def concatenate_columns(spans: Mapping[str, Indices], names: Iterable[str]) -> Indices:
    """The columns of these variables, in the order of their names."""
    return np.concatenate([np.zeros(0, dtype=np.intp), *(spans[name] for name in sorted(names))])


def gather_blocks(matrix: Matrices, rows: Indices, columns: Indices) -> Array:
    """matrix[..., rows_b, columns_b] for every b: (..., q, q), (B, r), (B, c) → (..., B, r, c)."""
    if not isinstance(matrix, np.ndarray):
        return _stack((gather_blocks(one, rows, columns) for one in matrix), len(matrix), *rows.shape, columns.shape[1])
    places = rows[:, :, None] * matrix.shape[-1] + columns[:, None, :]
    return np.asarray(matrix.reshape(*matrix.shape[:-2], -1).take(places, axis=-1))


def partial_covariance(matrix: Matrices, targets: Indices, given: Indices) -> Array:
    """C_{UU|Z} = C_UU − C_UZ C_ZZ⁻¹ C_ZU for every question b and leading index; plain C_UU without Z."""
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
    """Every set once, and which of them each question has: many share their conditions, but a few are soon done."""
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
    """The sum over the first axis, in its order: of numbers side by side in memory numpy takes several at a time, and
    the last digit of an answer would depend on whether there are others."""
    alone = stack.size == len(stack) > 0
    return np.asarray(np.add.accumulate(stack, axis=0)[-1] if alone else np.ascontiguousarray(stack).sum(axis=0))


class ResidualScatter:
    """What is left of each question's columns in several strata, once what is given is regressed out.

    Where something is given, that is told in parts: positions of questions, and the given columns of each, as many in
    all of a part. What is left is asked for in blocks, by the columns' positions: without conditions these are read
    where they are, and what nobody asks for is never touched. The blocks between a variable and another are most of a
    large matrix.
    """

    def __init__(self, strata: Matrices, columns: Indices, given: Sequence[tuple[Indices, Indices]] = ()) -> None:
        self._strata, self._columns = strata, columns
        self._all: Array | None = None
        if given:
            self._all = np.empty((len(strata), *columns.shape, columns.shape[1]))
            for positions, conditions in given:
                self._all[:, positions] = partial_covariance(strata, columns[positions], conditions)

    def __call__(self, rows: Indices, columns: Indices) -> Array:
        """(strata, questions, rows, columns)."""
        if self._all is None:
            return gather_blocks(self._strata, self._columns[:, rows], self._columns[:, columns])
        return self._all[..., rows[:, None], columns]


def add_jitter(inner: Array, size: Array | float) -> Array:
    """A symmetric matrix, or a number, with as much more on its diagonal as keeps it solvable."""
    more = JITTER * (size + _TINY_SCATTER)
    return np.asarray(inner + (more * np.eye(inner.shape[-1]) if inner.ndim else more))


def solve_regularized(inner: Array, cross: Array) -> Array:
    """inner⁻¹ cross, also where columns say the same."""
    size = np.trace(inner, axis1=-2, axis2=-1)[..., None, None] / max(inner.shape[-1], 1)
    kept = add_jitter(inner, size)
    return np.asarray(cross / kept if inner.shape[-1] == 1 else np.linalg.solve(kept, cross))


def explained_scatter(joint: Array, targets: int) -> Array:
    """Scatter of the first columns that the other columns explain: S_TY S_YY⁻¹ S_YT."""
    cross, inner = joint[..., targets:, :targets], joint[..., targets:, targets:]
    if not inner.shape[-1]:
        return np.zeros_like(joint[..., :targets, :targets])
    return np.asarray(np.swapaxes(cross, -1, -2) @ solve_regularized(inner, cross))


def residual_scatter(joint: Array, kept: int) -> Array:
    """Scatter of the first columns that is left once the other columns are regressed out; as it is without others."""
    return np.asarray(joint[..., :kept, :kept] - explained_scatter(joint, kept))


def common_residual_scatter(joint: Array, kept: int) -> Array:
    """Scatter of the first columns, in every stratum, less what the other columns explain with the *same* weights in
    all strata (the first axis)."""
    if joint.shape[-1] == kept:
        return joint
    pooled = sum_in_order(joint)
    weights = solve_regularized(pooled[..., kept:, kept:], pooled[..., kept:, :kept])
    out = np.concatenate([np.broadcast_to(np.eye(kept), (*weights.shape[:-2], kept, kept)), -weights], axis=-2)
    return np.asarray(np.swapaxes(out, -1, -2) @ joint @ out)


def pillai_test(explained: Array, total: Array, predictors: Array | float, left: Array | float) -> tuple[Array, Array]:
    """F statistic and p-value of Pillai's trace V = tr(explained · total⁻¹); for one target the plain F test.

    `left` are the residual degrees of freedom of the larger model. Targets without variance give F = 0, p = 1.
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
    """The Cauchy combination of p-values of one hypothesis, which holds its level for dependent tests too.

    p = ½ − arctan(mean cot(π p_i))/π. Values in [½, 1] are first squeezed into [½, 0.9]: a test that is far from
    rejecting, or conservative, must not outvote another that does reject.
    """
    stacked = np.maximum(np.stack(list(p_values)), 1e-300)
    stacked = np.where(stacked > 0.5, 0.1 + 0.8 * stacked, stacked)
    return np.asarray(np.arctan2(1.0, np.mean(1 / np.tan(np.pi * stacked), axis=0)) / np.pi)


def group_by_shape(shapes: Indices, elements: Callable[[list[int]], int]) -> list[Indices]:
    """The positions of items of equal shape (rows of numbers), a bounded number at a time.

    A shape never depends on what else was asked, and so, to its last digit, neither does an answer.
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
    """Solves items of equal shape together, a bounded number at a time, and returns results in the items' order.

    A shape never depends on what else was asked, and so, to its last digit, neither does an answer.
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
