"""Moments of the clients as regressions read them, and the sums that one regression needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.batched_regression import gather_blocks
from fedcdh.inference.orthonormal_basis import Basis

_MAX_CACHED_ELEMENTS = (
    50_000  # numbers of clients' sums at a time, about 400 kB: beyond the cache it takes twice as long
)
_MIN_RELATIVE_PRECISION = 1e-14  # of the sums: a prior adds no less, or their rounding would take its place


@dataclass(frozen=True, eq=False)
class StackedMoments:
    """The clients' sums of products of [1, coordinates, indicators of categorical variables, normal scores, 0].

    They are the largest arrays of a study, so scores of the same clients should share them. `scores` are the normal
    scores that are explained instead of the values, each in terms of its variable's coordinates.
    """

    basis: Basis
    scores: Mapping[str, Array] = field(default_factory=dict)

    @cached_property
    def by_client(self) -> Array:
        """Return the sums per client, or of all clients together if they are not known apart."""
        if self.basis.levels or self.scores:
            return np.asarray(self._places @ self.basis.moments @ self._places.T)
        rows, means, scatter = self.basis.rows, self.basis.means, self.basis.scatter
        width = 1 + means.shape[1]
        found = np.zeros((len(scatter), width + 1, width + 1))
        found[:, 1:width, 1:width] = scatter
        members = [[client] for client in range(len(rows))] if self.basis.has_client_scatter else [range(len(rows))]
        for sums, clients in zip(found, members, strict=True):
            for client in clients:
                mean = np.append(1.0, means[client])
                sums[:width, :width] += rows[client] * np.outer(mean, mean)
        return found

    @cached_property
    def pooled(self) -> Array:
        """Return the sums of all clients together."""
        return np.asarray(self.by_client.sum(axis=0))

    @cached_property
    def means(self) -> Array:
        """Return the means per client."""
        return np.asarray(np.pad(self.basis.means, ((0, 0), (1, 0)), constant_values=1.0) @ self._places.T)

    @cached_property
    def targets(self) -> dict[str, Indices]:
        """Return the places of the targets: a continuous variable, or the indicators of a categorical one."""
        places = {name: 1 + columns for name, columns in self.basis.targets.items()}
        start = 1 + self.basis.means.shape[1]
        for name, levels in self.basis.levels.items():
            places[name] = np.arange(start, start := start + len(levels))
        for name in self.scores:
            places[name] = np.arange(start, start := start + 1)
        return places

    @cached_property
    def _places(self) -> Array:
        """Return [1, coordinates, indicators, normal scores, 0] in terms of [1, coordinates]."""
        width = 1 + self.basis.means.shape[1]
        derived = [*self.basis.levels.items(), *((name, weights[None]) for name, weights in self.scores.items())]
        places = [np.zeros((len(weights), width)) for _, weights in derived]
        for rows, (name, weights) in zip(places, derived, strict=True):
            rows[:, 1 + self.basis.spans[name]] = weights
        return np.concatenate([np.eye(width), *places, np.zeros((1, width))])


@dataclass(frozen=True, eq=False)
class RegressionSums:
    """The sums that a regression needs, per family or per family and client: Σxxᵀ, Σxy, Σy².

    If parameters were integrated out, these are sums in the remaining metric, and `cost` is its log determinant.
    """

    gram: Array  # (..., p, p)
    cross: Array  # (..., p)
    square: Array  # (...)
    cost: Array | float = 0.0

    @classmethod
    def of(cls, moments: Array, columns: Indices, targets: Indices) -> RegressionSums:
        """Take blocks of the moments, families first: (q, q) gives (B, p, p), (K, q, q) gives (B, K, p, p)."""
        lead = moments.ndim - 2
        gram = np.moveaxis(gather_blocks(moments, columns, columns), lead, 0)
        cross = np.moveaxis(moments[..., columns, targets[:, None]], lead, 0)
        return cls(
            np.ascontiguousarray(gram),
            np.ascontiguousarray(cross),
            np.moveaxis(moments[..., targets, targets], lead, 0),
        )

    def less(self, gram: Array, cross: Array, square: Array, cost: float) -> RegressionSums:
        """Return the sums less these, with this additional cost."""
        return RegressionSums(self.gram - gram, self.cross - cross, self.square - square, self.cost + cost)

    def with_own_weights(self, variances: Array) -> RegressionSums:
        """Integrate out each client's deviations δ_k ~ N(0, σ_k² diag(variances)), a few clients at a time."""
        shape, width = self.square.shape, self.gram.shape[-1]
        gram, cross, square = (
            self.gram.reshape(-1, width, width),
            self.cross.reshape(-1, width),
            self.square.reshape(-1),
        )
        found = np.empty(gram.shape), np.empty(cross.shape), np.empty(square.shape), np.empty(square.shape)
        family, step = np.repeat(np.arange(shape[0]), shape[1]), max(1, _MAX_CACHED_ELEMENTS // width**2)
        for part in (slice(start, start + step) for start in range(0, len(family), step)):
            some = _integrate_deviations(gram[part], cross[part], square[part], 1 / variances[family[part]])
            for place, numbers in zip(found, some, strict=True):
                place[part] = numbers
        return RegressionSums(*(numbers.reshape(*shape, *numbers.shape[1:]) for numbers in found))

    def pooled(self) -> RegressionSums:
        """Add up the clients' sums, for noise that is the same at all of them."""
        return RegressionSums(self.gram.sum(1), self.cross.sum(1), self.square.sum(1), np.asarray(self.cost).sum(1))


def _integrate_deviations(
    gram: Array, cross: Array, square: Array, precision: Array
) -> tuple[Array, Array, Array, Array]:
    """Return some clients' sums, and their cost, after deviations of this precision are integrated out."""
    precision = np.maximum(precision, min_precision(gram))
    inner = gram + precision[..., None] * np.eye(precision.shape[-1])
    inverse = np.linalg.inv(inner)
    left = -precision[..., :, None] * inverse * precision[..., None, :]
    diagonal = np.arange(left.shape[-1])
    left[..., diagonal, diagonal] += precision
    explained = (inverse @ cross[..., None])[..., 0]
    cost = np.linalg.slogdet(inner)[1] - np.log(precision).sum(axis=-1)
    return left, precision * explained, square - (cross * explained).sum(axis=-1), cost


def min_precision(gram: Array) -> Array:
    """Return the smallest precision that a prior may add, so that columns constant at a client stay solvable."""
    return np.asarray(_MIN_RELATIVE_PRECISION * np.trace(gram, axis1=-2, axis2=-1)[..., None])
