"""The evidence of a continuous variable given parents: closed-form or nearly so, from blocks of the clients' moments.

The linear column y of the variable is regressed on x = [1, columns of the parents]: y = wᵀx + noise. All coordinates
are those of `Basis`, where pooled variances are one, so that one prior suits every variable:

- w ~ N(0, σ² g diag(v)) with g from a wide grid (a coarse Zellner-Siow prior: an effect may be large or small beside
  the noise), v = 1 for the linear columns and ½, ¼, … for further ones (rough functions are less likely);
- log σ² is flat; it is there in every model of the variable, so its improper constant cancels.

What may differ between clients, and how strongly it is shrunk to what they share:

- nothing (`invariant`): Normal-Inverse-Gamma, exact;
- the level (`shifted`): intercepts N(0, σ² κ) about the common one, exact;
- the noise: σ_k² ~ Inverse-Gamma with ν degrees of freedom about a common scale;
- the weights: w_k = w + δ_k, δ_k ~ N(0, σ_k² κ · (size of w)²): a client's weights are off by a *share* of what they
  are in all clients together, so that a weak cause or a column that hardly matters costs nothing; with common noise
  (exact given the size) or with noise per client.

Noise per client leaves no closed form; the common weights are then integrated by Laplace's method at their posterior
mode, found by a few reweighted regressions. With the weights integrated out in each client (A_k = D − D(G_k + D)⁻¹D,
D the prior precision of δ_k), all variants are one regression with other sufficient statistics (A, b, c).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from fedcdh.basis import Basis
from fedcdh.partial import block, in_groups
from fedcdh.questions import Family

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

SIZES = (1e6, 1e4, 100.0, 1.0, 0.01)
"""Prior variances g of a weight, in units of the noise variance: from a faint trace to hardly any noise at all."""
ROUGHNESS = 0.5
"""Prior variance of a variable's next nonlinear column beside the one before it."""
SHARES = (0.1, 1.0)
"""Prior variances κ of a client's deviation, as a share of the squared weight."""
SHIFTS = (0.03, 1.0)
"""Prior variances κ of a client's own level, in units of the noise variance, where only the level changes."""
LEAST = 0.01
"""Added to the squared weight: even what does not matter in all clients together may matter a little in one."""
FREEDOM = 4.0
"""Degrees of freedom ν of the clients' noise variances: their logarithms spread by about √(2/ν) = 0.7."""
DETERMINED = 1e-7
"""Noise is not thought to be below this share of a variable's variance: rounding to the grid leaves as much."""
_MULTIPLE = 6
_STEPS = 4  # reweighted regressions; the evidence is flat at its maximum, so the last digits of the weights are free


@dataclass(frozen=True, eq=False)
class GaussianEvidence:
    """Log evidence of families with a continuous node, if its mechanism is invariant and if it changes."""

    basis: Basis
    curved: bool = True  # whether parents may act nonlinearly
    noisy: bool = True  # whether noise may differ between clients; that of a label follows from its mean

    def __call__(self, families: Sequence[Family], /) -> list[tuple[float, float]]:
        """(log evidence if all clients share the mechanism, log evidence if it differs) of each family.

        The indicators of a categorical node are taken for numbers, one after the other, and their mean is counted
        once for each that is free: no likelihood of labels, but it tells what parents add.
        """
        columns = [(family, column) for family in dict.fromkeys(families) for column in self._targets[family.node]]
        found = dict.fromkeys(families, (0.0, 0.0))  # of a constant: nothing is left to explain
        straight = self._solve([_Problem.of(*one, self.basis, curved=False) for one in columns])
        bending = [i for i, (family, _) in enumerate(columns) if self.curved and any(map(self._bends, family.parents))]
        bent = self._solve([_Problem.of(*columns[i], self.basis, curved=True) for i in bending])
        for i, both in zip(bending, bent, strict=True):
            straight[i] = (_mean(straight[i][0], both[0]), _mean(straight[i][1], both[1]))
        for (family, _), (same, differing) in zip(columns, straight, strict=True):
            share = _freedom(len(self._targets[family.node]))
            found[family] = (found[family][0] + share * same, found[family][1] + share * differing)
        return [found[family] for family in families]

    def _bends(self, name: str) -> bool:
        return len(self.basis.predictors[name]) > len(self.basis.targets[name])

    def _solve(self, problems: list[_Problem]) -> list[tuple[float, float]]:
        return in_groups(
            problems,
            key=lambda problem: len(problem.columns),
            elements=lambda problem: 4 * len(self._moments) * len(problem.columns) ** 2,
            solve=self._evidences,
        )

    def _evidences(self, problems: list[_Problem]) -> list[tuple[float, float]]:
        columns, scale, owner = (np.array([getattr(p, name) for p in problems]) for name in _Problem.ARRAYS)
        targets = np.array([problem.target for problem in problems])
        pooled = _Sums.of(self._moments.sum(axis=0), columns, targets)
        sizes = [_exact(pooled, size * scale, self.basis.total_rows) for size in SIZES]
        invariant = _log_mean([fit.evidence for fit in sizes])
        best = np.argmax([fit.evidence for fit in sizes], axis=0)
        prior = np.asarray(SIZES)[best, None] * scale
        changing = list(self._shifted(pooled, columns, targets, prior))
        if self.basis.knows_clients:
            alone = _Sums.of(self._moments, columns, targets)
            changing += self._by_client(alone, prior, owner, _chosen(sizes, best))
        found = _log_mean(changing) - np.log(len(SIZES))  # one size tried of those that the invariant one averages
        return list(zip(invariant.tolist(), found.tolist(), strict=True))

    def _shifted(self, pooled: _Sums, columns: Indices, targets: Indices, prior: Array) -> Iterator[Array]:
        """Levels differ between clients, weights and noise do not."""
        x, y = self._means[:, columns], self._means[:, targets]
        for share in SHIFTS:
            weight = (self.basis.rows**2 / (self.basis.rows + 1 / share))[:, None]
            less = pooled.less(
                np.einsum("kbp,kbq->bpq", weight[..., None] * x, x, optimize=True),
                np.einsum("kbp,kb->bp", x, weight * y),
                (weight * y**2).sum(axis=0),
                float(np.log1p(share * self.basis.rows).sum()),
            )
            yield _exact(less, prior, self.basis.total_rows).evidence

    def _by_client(self, alone: _Sums, prior: Array, owner: Indices, start: _Fit) -> Iterator[Array]:
        """Noise differs between clients; or weights; or both."""
        rows = self.basis.rows
        common = _reweighted(alone, prior, rows, start.variance) if self.noisy else start
        if self.noisy:
            yield common.evidence
        size = common.weights**2 / common.variance[:, None]
        together = owner[:, :, None] == owner[:, None, :]
        typical = (together @ size[..., None])[..., 0] / together.sum(axis=-1) + LEAST
        typical[:, 0] = 1 + size[:, 1:].sum(axis=1)  # a changed effect moves the level as well
        for share in SHARES:
            own = alone.with_own_weights(share * typical)
            shared = _exact(own.pooled(), prior, rows.sum())
            yield shared.evidence
            if self.noisy:
                yield _reweighted(own, prior, rows, shared.variance).evidence

    @cached_property
    def _moments(self) -> Array:
        """Σ of products of [1, coordinates, indicators, 0] per client, or for all where they are not known apart."""
        return np.asarray(self._places @ self.basis.moments @ self._places.T)

    @cached_property
    def _means(self) -> Array:
        return np.asarray(np.pad(self.basis.means, ((0, 0), (1, 0)), constant_values=1.0) @ self._places.T)

    @cached_property
    def _places(self) -> Array:
        """[1, coordinates, indicators of all labels, 0] in terms of [1, coordinates]."""
        width = 1 + self.basis.means.shape[1]
        labels = [np.zeros((len(levels), width)) for levels in self.basis.levels.values()]
        for rows, (name, levels) in zip(labels, self.basis.levels.items(), strict=True):
            rows[:, 1 + self.basis.spans[name]] = levels
        return np.concatenate([np.eye(width), *labels, np.zeros((1, width))])

    @cached_property
    def _targets(self) -> dict[str, Indices]:
        """The places of what is regressed: a number, or the indicators of a label."""
        places = {name: 1 + columns for name, columns in self.basis.targets.items()}
        start = 1 + self.basis.means.shape[1]
        for name, levels in self.basis.levels.items():
            places[name] = np.arange(start, start := start + len(levels))
        return places


@dataclass(frozen=True, eq=False)
class _Problem:
    """One regression: the target's column, the columns of constant and parents, and their prior variances.

    Columns of zeros fill up to a multiple of six: they change no number, and regressions of many sizes become few
    shapes that are solved together.
    """

    ARRAYS: ClassVar = ("columns", "scale", "owner")
    target: int
    columns: Indices
    scale: Array  # prior variances, up to their common size
    owner: Indices  # which columns belong to the same parent

    @classmethod
    def of(cls, family: Family, target: int, basis: Basis, curved: bool) -> _Problem:
        parents = sorted(family.parents)
        places = [(basis.predictors if curved else basis.targets)[parent] for parent in parents]
        scales = [
            ROUGHNESS ** np.maximum(0, 1 + np.arange(len(p)) - len(basis.targets[v]))
            for v, p in zip(parents, places, strict=True)
        ]
        idle = -(1 + sum(map(len, places))) % _MULTIPLE
        return cls(
            target,
            np.concatenate([[0], *(place + 1 for place in places), np.full(idle, -1)]).astype(np.intp),
            np.concatenate([[1.0], *scales, np.ones(idle)]),
            np.repeat(np.arange(len(places) + 2), [1, *map(len, places), idle]),
        )


@dataclass(frozen=True, eq=False)
class _Sums:
    """What a regression needs, per family or per family and client: Σxxᵀ, Σxy, Σy².

    Where parameters were integrated out, these are sums in the metric that is left, and `cost` is log |that metric|.
    """

    gram: Array  # (..., p, p)
    cross: Array  # (..., p)
    square: Array  # (...)
    cost: Array | float = 0.0

    @classmethod
    def of(cls, moments: Array, columns: Indices, targets: Indices) -> _Sums:
        """Blocks of the moments, families first: (q, q) gives (B, p, p), (K, q, q) gives (B, K, p, p)."""
        lead = moments.ndim - 2
        gram = np.moveaxis(block(moments, columns, columns), lead, 0)
        cross = np.moveaxis(moments[..., columns, targets[:, None]], lead, 0)
        return cls(
            np.ascontiguousarray(gram),
            np.ascontiguousarray(cross),
            np.moveaxis(moments[..., targets, targets], lead, 0),
        )

    def less(self, gram: Array, cross: Array, square: Array, cost: float) -> _Sums:
        return _Sums(self.gram - gram, self.cross - cross, self.square - square, self.cost + cost)

    def with_own_weights(self, variances: Array) -> _Sums:
        """Each client's deviations δ_k ~ N(0, σ_k² diag(variances)) integrated out."""
        precision = 1 / variances[:, None, :]
        inner = self.gram + precision[..., None] * np.eye(precision.shape[-1])
        inverse = np.linalg.inv(inner)
        gram = -precision[..., :, None] * inverse * precision[..., None, :]
        diagonal = np.arange(gram.shape[-1])
        gram[..., diagonal, diagonal] += precision
        explained = (inverse @ self.cross[..., None])[..., 0]
        cost = np.linalg.slogdet(inner)[1] - np.log(precision).sum(axis=-1)
        return _Sums(gram, precision * explained, self.square - (self.cross * explained).sum(axis=-1), cost)

    def pooled(self) -> _Sums:
        """The clients' sums added up: noise is the same in all of them."""
        return _Sums(self.gram.sum(1), self.cross.sum(1), self.square.sum(1), np.asarray(self.cost).sum(1))


class _Fit(NamedTuple):
    evidence: Array
    weights: Array
    variance: Array


def _exact(sums: _Sums, prior: Array, rows: float) -> _Fit:
    """Normal-Inverse-Gamma evidence with log σ² flat."""
    weights, logdet = _regress(sums.gram, sums.cross, prior)
    left = np.maximum(sums.square - (sums.cross * weights).sum(axis=-1), rows * DETERMINED)
    evidence = special.gammaln(rows / 2) - rows / 2 * np.log(np.pi * left) - (logdet + sums.cost) / 2
    return _Fit(evidence, weights, left / rows)


def _reweighted(sums: _Sums, prior: Array, rows: Array, start: Array) -> _Fit:
    """Noise variances of the clients integrated out about their common scale s², the weights by Laplace's method.

    Given the weights, client k's residual sum of squares r_k has a Student density; its logarithm has the curvature of
    a regression with weights ω_k = (n_k + ν)/(ν s² + r_k). The scale itself is flat in its logarithm.
    """
    flat = sums.gram.reshape(*sums.gram.shape[:2], -1)
    scale, trust = start, np.repeat(1 / start[:, None], len(rows), axis=1)
    for _ in range(_STEPS):
        gram = (trust[:, None, :] @ flat).reshape(len(flat), *sums.gram.shape[2:])
        cross = (trust[:, None, :] @ sums.cross)[:, 0]
        weights, logdet = _regress(gram, cross, scale[:, None] * prior)
        bent = (sums.gram @ weights[:, None, :, None])[..., 0]
        left = sums.square - 2 * (sums.cross @ weights[..., None])[..., 0] + (bent @ weights[..., None])[..., 0]
        left = np.maximum(left, rows * DETERMINED)
        for _ in range(2):
            trust = (rows + FREEDOM) / (FREEDOM * scale[:, None] + left)
            scale = len(rows) / trust.sum(axis=1)
    common = FREEDOM * scale[:, None]
    student = (
        special.gammaln((rows + FREEDOM) / 2)
        - special.gammaln(FREEDOM / 2)
        + FREEDOM / 2 * np.log(common)
        - rows / 2 * np.log(np.pi)
        - (rows + FREEDOM) / 2 * np.log(common + left)
    ).sum(axis=1)
    curvature = ((rows + FREEDOM) / 2 * common * left / (common + left) ** 2).sum(axis=1)
    shrinkage = (weights**2 / prior).sum(axis=-1) / scale
    cost = logdet + np.asarray(sums.cost).sum(axis=-1) + shrinkage - np.log(2 * np.pi / curvature)
    return _Fit(student - cost / 2, weights, scale)


def _regress(gram: Array, cross: Array, prior: Array) -> tuple[Array, Array]:
    """Posterior mean of the weights, and log |I + prior · gram|."""
    inner = gram + (1 / prior)[..., None] * np.eye(gram.shape[-1])
    weights = np.linalg.solve(inner, cross[..., None])[..., 0]
    return np.asarray(weights), np.asarray(np.linalg.slogdet(inner)[1] + np.log(prior).sum(axis=-1))


def _freedom(columns: int) -> float:
    """The share of indicators that are free: the last follows from the others."""
    return 1.0 if columns == 1 else (columns - 1) / columns


def _chosen(fits: Sequence[_Fit], best: Indices) -> _Fit:
    """Of several fits the one that is best for each family."""
    family = np.arange(len(best))
    return _Fit(*(np.stack(values)[best, family] for values in zip(*fits, strict=True)))


def _log_mean(values: Sequence[Array]) -> Array:
    return np.asarray(special.logsumexp(np.stack(values), axis=0) - np.log(len(values)))


def _mean(first: float, second: float) -> float:
    return float(np.logaddexp(first, second) - np.log(2))
