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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import special

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.batched_regression import gather_blocks, solve_in_groups
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import Family

PRIOR_VARIANCES = (1e6, 1e4, 100.0, 1.0, 0.01)
"""Prior variances g of a weight, in units of the noise variance: from a faint trace to hardly any noise at all."""
ROUGHNESS_DECAY = 0.5
"""Prior variance of a variable's next nonlinear column beside the one before it."""
DEVIATION_VARIANCES = (0.1, 1.0)
"""Prior variances κ of a client's deviation, as a share of the squared weight."""
SHIFT_VARIANCES = (0.03, 1.0)
"""Prior variances κ of a client's own level, in units of the noise variance, where only the level changes."""
LARGE_SHIFT_VARIANCES = (100.0, 1e6)
"""The same where clients are far apart: what is measured once at each of them, as the altitude of a hospital."""
LARGE_SHIFT_PROBABILITY = 0.01
"""Prior probability of that. Without it, parents that say nothing would be there to let the level change further."""
MIN_SQUARED_WEIGHT = 0.01
"""Added to the squared weight: even what does not matter in all clients together may matter a little in one."""
NOISE_FREEDOM = 4.0
"""Degrees of freedom ν of the clients' noise variances: their logarithms spread by about √(2/ν) = 0.7."""
MIN_NOISE_SHARE = 1e-7
"""Noise is not thought to be below this share of a variable's variance: rounding to the grid leaves as much."""
_PADDING_MULTIPLE = 6
_MAX_PADDED_CLIENTS = (
    100  # clients: a family then has work enough by itself, and columns of zeros would be a third of it
)
_MAX_CACHED_ELEMENTS = (
    50_000  # numbers of a part of the clients' sums, about 400 kB: from memory, the same takes twice as long
)
_MIN_RELATIVE_PRECISION = 1e-14  # of the sums: what a prior adds is no less, or their rounding would take its place
_REWEIGHTING_STEPS = (
    4  # reweighted regressions; the evidence is flat at its maximum, so the last digits of the weights are free
)


@dataclass(frozen=True, eq=False)
class StackedMoments:
    """The clients' sums as regressions read them: of products of [1, coordinates, indicators of all labels, 0].

    They are the largest thing there is, so whoever asks about the same clients should share them.
    """

    basis: Basis

    @cached_property
    def apart(self) -> Array:
        """Per client, or for all in one where they are not known apart."""
        if self.basis.levels:
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
        """Of all clients together."""
        return np.asarray(self.apart.sum(axis=0))

    @cached_property
    def means(self) -> Array:
        return np.asarray(np.pad(self.basis.means, ((0, 0), (1, 0)), constant_values=1.0) @ self._places.T)

    @cached_property
    def targets(self) -> dict[str, Indices]:
        """The places of what is regressed: a number, or the indicators of a label."""
        places = {name: 1 + columns for name, columns in self.basis.targets.items()}
        start = 1 + self.basis.means.shape[1]
        for name, levels in self.basis.levels.items():
            places[name] = np.arange(start, start := start + len(levels))
        return places

    @cached_property
    def _places(self) -> Array:
        """[1, coordinates, indicators of all labels, 0] in terms of [1, coordinates]."""
        width = 1 + self.basis.means.shape[1]
        labels = [np.zeros((len(levels), width)) for levels in self.basis.levels.values()]
        for rows, (name, levels) in zip(labels, self.basis.levels.items(), strict=True):
            rows[:, 1 + self.basis.spans[name]] = levels
        return np.concatenate([np.eye(width), *labels, np.zeros((1, width))])


@dataclass(frozen=True, eq=False)
class GaussianScore:
    """Log evidence of families with a continuous node, if its mechanism is invariant and if it changes."""

    basis: Basis
    curved: bool = True  # whether parents may act nonlinearly
    noisy: bool = True  # whether noise may differ between clients; that of a label follows from its mean
    shared: StackedMoments | None = None  # of the same basis, where others read them too

    def __call__(self, families: Sequence[Family], /) -> list[tuple[float, float]]:
        """(log evidence if all clients share the mechanism, log evidence if it differs) of each family.

        The indicators of a categorical node are taken for numbers, one after the other, and their mean is counted
        once for each that is free: no likelihood of labels, but it tells what parents add.
        """
        return self._found(families, self._evidences)

    def same(self, families: Sequence[Family], /) -> list[float]:
        """The first of the two alone, digit for digit: it needs one regression where the other needs one per client."""
        return [same for same, _ in self._found(families, self._shared)]

    def _found(self, families: Sequence[Family], solve: _Solver) -> list[tuple[float, float]]:
        targets = self._moments.targets
        columns = [(family, column) for family in dict.fromkeys(families) for column in targets[family.node]]
        found = dict.fromkeys(families, (0.0, 0.0))  # of a constant: nothing is left to explain
        straight = self._solve([self._problem(*one, curved=False) for one in columns], solve)
        bending = [i for i, (family, _) in enumerate(columns) if self.curved and any(map(self._bends, family.parents))]
        bent = self._solve([self._problem(*columns[i], curved=True) for i in bending], solve)
        for i, both in zip(bending, bent, strict=True):
            straight[i] = (_log_average(straight[i][0], both[0]), _log_average(straight[i][1], both[1]))
        for (family, _), (same, differing) in zip(columns, straight, strict=True):
            share = _free_share(len(targets[family.node]))
            found[family] = (found[family][0] + share * same, found[family][1] + share * differing)
        return [found[family] for family in families]

    def _bends(self, name: str) -> bool:
        return len(self.basis.predictors[name]) > len(self.basis.targets[name])

    def _problem(self, family: Family, target: int, curved: bool) -> _Regression:
        pieces = self._pieces[curved]
        multiple = _PADDING_MULTIPLE if len(self.basis.scatter) <= _MAX_PADDED_CLIENTS else 1
        return _Regression.of(target, [pieces[parent] for parent in sorted(family.parents)], multiple)

    def _solve(self, problems: list[_Regression], solve: _Solver) -> list[tuple[float, float]]:
        return solve_in_groups(
            problems,
            key=lambda problem: len(problem.columns),
            elements=lambda problem: 4 * len(self.basis.scatter) * len(problem.columns) ** 2,
            solve=lambda part: solve(_RegressionStack.of(part)),
        )

    def _shared(self, stack: _RegressionStack) -> list[tuple[float, float]]:
        """The evidence of one mechanism for all clients, twice: the other is not wanted."""
        same = _log_mean(self._sizes(stack).evidence).tolist()
        return list(zip(same, same, strict=True))

    def _sizes(self, stack: _RegressionStack) -> _EvidenceFit:
        """The fits with a prior of every size, which are the first axis."""
        pooled = _RegressionSums.of(self._moments.pooled, stack.columns, stack.targets)
        return _exact_evidence(pooled, np.asarray(PRIOR_VARIANCES)[:, None, None] * stack.scale, self.basis.total_rows)

    def _evidences(self, stack: _RegressionStack) -> list[tuple[float, float]]:
        sizes = self._sizes(stack)
        best = np.argmax(sizes.evidence, axis=0)
        prior = np.asarray(PRIOR_VARIANCES)[best, None] * stack.scale
        changing, far = (
            list(self._shifted(stack, prior, shifts)) for shifts in (SHIFT_VARIANCES, LARGE_SHIFT_VARIANCES)
        )
        if self.basis.has_client_scatter:
            alone = _RegressionSums.of(self._moments.apart, stack.columns, stack.targets)
            changing += self._by_client(alone, prior, stack.owner, _select_fit(sizes, best))
        near, beyond = (
            _log_mean(np.stack(changing)) + np.log1p(-LARGE_SHIFT_PROBABILITY),
            _log_mean(np.stack(far)) + np.log(LARGE_SHIFT_PROBABILITY),
        )
        found = np.logaddexp(near, beyond) - np.log(
            len(PRIOR_VARIANCES)
        )  # one size of those the invariant one averages
        return list(zip(_log_mean(sizes.evidence).tolist(), found.tolist(), strict=True))

    def _shifted(self, stack: _RegressionStack, prior: Array, shifts: Sequence[float]) -> Iterator[Array]:
        """Levels differ between clients, weights and noise do not."""
        pooled = _RegressionSums.of(self._moments.pooled, stack.columns, stack.targets)
        x, y = self._moments.means[:, stack.columns], self._moments.means[:, stack.targets]
        for share in shifts:
            weight = (self.basis.rows**2 / (self.basis.rows + 1 / share))[:, None]
            less = pooled.less(
                np.einsum("kbp,kbq->bpq", weight[..., None] * x, x, optimize=True),
                np.einsum("kbp,kb->bp", x, weight * y),
                (weight * y**2).sum(axis=0),
                float(np.log1p(share * self.basis.rows).sum()),
            )
            yield _exact_evidence(less, prior, self.basis.total_rows).evidence

    def _by_client(self, alone: _RegressionSums, prior: Array, owner: Indices, start: _EvidenceFit) -> Iterator[Array]:
        """Noise differs between clients; or weights; or both."""
        rows = self.basis.rows
        common = _laplace_evidence(alone, prior, rows, start.variance) if self.noisy else start
        if self.noisy:
            yield common.evidence
        size = common.weights**2 / common.variance[:, None]
        together = owner[:, :, None] == owner[:, None, :]
        typical = (together @ size[..., None])[..., 0] / together.sum(axis=-1) + MIN_SQUARED_WEIGHT
        typical[:, 0] = 1 + size[:, 1:].sum(axis=1)  # a changed effect moves the level as well
        for share in DEVIATION_VARIANCES:
            own = alone.with_own_weights(share * typical)
            shared = _exact_evidence(own.pooled(), prior, rows.sum())
            yield shared.evidence
            if self.noisy:
                yield _laplace_evidence(own, prior, rows, shared.variance).evidence

    @cached_property
    def _moments(self) -> StackedMoments:
        return self.shared or StackedMoments(self.basis)

    @cached_property
    def _pieces(self) -> tuple[dict[str, _ParentColumns], dict[str, _ParentColumns]]:
        """Of every parent, if it acts linearly and if it may be curved."""
        straight, curved = (
            {name: _ParentColumns.of(columns, len(self.basis.targets[name])) for name, columns in kind.items()}
            for kind in (self.basis.targets, self.basis.predictors)
        )
        return straight, curved


class _ParentColumns(NamedTuple):
    """What a parent brings to a regression: its places among the moments, and their prior variances."""

    places: list[int]
    scale: list[float]

    @classmethod
    def of(cls, columns: Indices, straight: int) -> _ParentColumns:
        """Of these columns so many are straight."""
        return cls((1 + columns).tolist(), [ROUGHNESS_DECAY ** max(0, 1 + i - straight) for i in range(len(columns))])


class _Regression(NamedTuple):
    """One regression: the target's place, the places of constant and parents, and their prior variances.

    Columns of zeros fill up to a multiple of six, unless clients are many: they change no number, and regressions of
    many sizes become few shapes that are solved together.
    """

    target: int
    columns: list[int]
    scale: list[float]  # prior variances, up to their common size
    owner: list[int]  # which columns belong to the same parent

    @classmethod
    def of(cls, target: int, parents: list[_ParentColumns], multiple: int) -> _Regression:
        columns, scale, owner = [0], [1.0], [0]
        for number, piece in enumerate(parents, start=1):
            columns += piece.places
            scale += piece.scale
            owner += [number] * len(piece.places)
        idle = -len(columns) % multiple
        return cls(target, columns + [-1] * idle, scale + [1.0] * idle, owner + [len(parents) + 1] * idle)


class _RegressionStack(NamedTuple):
    """Problems of one width, one below the other."""

    targets: Indices
    columns: Indices
    scale: Array
    owner: Indices

    @classmethod
    def of(cls, problems: list[_Regression]) -> _RegressionStack:
        targets, columns, scale, owner = zip(*problems, strict=True)
        return cls(np.array(targets), np.array(columns), np.array(scale), np.array(owner))


_Solver: TypeAlias = Callable[[_RegressionStack], list[tuple[float, float]]]


@dataclass(frozen=True, eq=False)
class _RegressionSums:
    """What a regression needs, per family or per family and client: Σxxᵀ, Σxy, Σy².

    Where parameters were integrated out, these are sums in the metric that is left, and `cost` is log |that metric|.
    """

    gram: Array  # (..., p, p)
    cross: Array  # (..., p)
    square: Array  # (...)
    cost: Array | float = 0.0

    @classmethod
    def of(cls, moments: Array, columns: Indices, targets: Indices) -> _RegressionSums:
        """Blocks of the moments, families first: (q, q) gives (B, p, p), (K, q, q) gives (B, K, p, p)."""
        lead = moments.ndim - 2
        gram = np.moveaxis(gather_blocks(moments, columns, columns), lead, 0)
        cross = np.moveaxis(moments[..., columns, targets[:, None]], lead, 0)
        return cls(
            np.ascontiguousarray(gram),
            np.ascontiguousarray(cross),
            np.moveaxis(moments[..., targets, targets], lead, 0),
        )

    def less(self, gram: Array, cross: Array, square: Array, cost: float) -> _RegressionSums:
        return _RegressionSums(self.gram - gram, self.cross - cross, self.square - square, self.cost + cost)

    def with_own_weights(self, variances: Array) -> _RegressionSums:
        """Each client's deviations δ_k ~ N(0, σ_k² diag(variances)) integrated out, of a few clients at a time."""
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
        return _RegressionSums(*(numbers.reshape(*shape, *numbers.shape[1:]) for numbers in found))

    def pooled(self) -> _RegressionSums:
        """The clients' sums added up: noise is the same in all of them."""
        return _RegressionSums(self.gram.sum(1), self.cross.sum(1), self.square.sum(1), np.asarray(self.cost).sum(1))


def _integrate_deviations(
    gram: Array, cross: Array, square: Array, precision: Array
) -> tuple[Array, Array, Array, Array]:
    """What is left of the sums of some clients, and its cost, when deviations of this precision are integrated out."""
    precision = np.maximum(precision, _min_precision(gram))
    inner = gram + precision[..., None] * np.eye(precision.shape[-1])
    inverse = np.linalg.inv(inner)
    left = -precision[..., :, None] * inverse * precision[..., None, :]
    diagonal = np.arange(left.shape[-1])
    left[..., diagonal, diagonal] += precision
    explained = (inverse @ cross[..., None])[..., 0]
    cost = np.linalg.slogdet(inner)[1] - np.log(precision).sum(axis=-1)
    return left, precision * explained, square - (cross * explained).sum(axis=-1), cost


class _EvidenceFit(NamedTuple):
    evidence: Array
    weights: Array
    variance: Array


def _exact_evidence(sums: _RegressionSums, prior: Array, rows: float) -> _EvidenceFit:
    """Normal-Inverse-Gamma evidence with log σ² flat."""
    prior = _limit_prior(sums.gram, prior)
    inner, weights = _regress(sums.gram, sums.cross, prior)
    logdet = _log_det_growth(inner, prior)
    left = np.maximum(sums.square - (sums.cross * weights).sum(axis=-1), rows * MIN_NOISE_SHARE)
    evidence = special.gammaln(rows / 2) - rows / 2 * np.log(np.pi * left) - (logdet + sums.cost) / 2
    return _EvidenceFit(evidence, weights, left / rows)


def _laplace_evidence(sums: _RegressionSums, prior: Array, rows: Array, start: Array) -> _EvidenceFit:
    """Noise variances of the clients integrated out about their common scale s², the weights by Laplace's method.

    Given the weights, client k's residual sum of squares r_k has a Student density; its logarithm has the curvature of
    a regression with weights ω_k = (n_k + ν)/(ν s² + r_k). The scale itself is flat in its logarithm.
    """
    flat = sums.gram.reshape(*sums.gram.shape[:2], -1)
    scale, trust = start, np.repeat(1 / start[:, None], len(rows), axis=1)
    for _ in range(_REWEIGHTING_STEPS):
        gram = (trust[:, None, :] @ flat).reshape(len(flat), *sums.gram.shape[2:])
        cross = (trust[:, None, :] @ sums.cross)[:, 0]
        inner, weights = _regress(gram, cross, shrunk := _limit_prior(gram, scale[:, None] * prior))
        pairs = (weights[:, :, None] * weights[:, None, :]).reshape(len(flat), -1, 1)
        left = sums.square - 2 * (sums.cross @ weights[..., None])[..., 0] + (flat @ pairs)[..., 0]
        left = np.maximum(left, rows * MIN_NOISE_SHARE)
        for _ in range(2):
            trust = (rows + NOISE_FREEDOM) / (NOISE_FREEDOM * scale[:, None] + left)
            scale = len(rows) / trust.sum(axis=1)
    common = NOISE_FREEDOM * scale[:, None]
    student = (
        special.gammaln((rows + NOISE_FREEDOM) / 2)
        - special.gammaln(NOISE_FREEDOM / 2)
        + NOISE_FREEDOM / 2 * np.log(common)
        - rows / 2 * np.log(np.pi)
        - (rows + NOISE_FREEDOM) / 2 * np.log(common + left)
    ).sum(axis=1)
    curvature = ((rows + NOISE_FREEDOM) / 2 * common * left / (common + left) ** 2).sum(axis=1)
    shrinkage = (weights**2 / prior).sum(axis=-1) / scale
    cost = (
        _log_det_growth(inner, shrunk) + np.asarray(sums.cost).sum(axis=-1) + shrinkage - np.log(2 * np.pi / curvature)
    )
    return _EvidenceFit(student - cost / 2, weights, scale)


def _min_precision(gram: Array) -> Array:
    """What has to be added to these sums at least: of what is the same in all rows of a client they know nothing."""
    return np.asarray(_MIN_RELATIVE_PRECISION * np.trace(gram, axis1=-2, axis2=-1)[..., None])


def _limit_prior(gram: Array, prior: Array) -> Array:
    """Prior variances, none of them larger than sums of this size can tell from having no prior at all."""
    return np.asarray(np.minimum(prior, 1 / np.maximum(_min_precision(gram), np.finfo(float).tiny)))


def _regress(gram: Array, cross: Array, prior: Array) -> tuple[Array, Array]:
    """The precision of the weights, and their posterior mean."""
    inner = gram + (1 / prior)[..., None] * np.eye(gram.shape[-1])
    return inner, np.asarray(np.linalg.solve(inner, cross[..., None])[..., 0])


def _log_det_growth(inner: Array, prior: Array) -> Array:
    """log |I + prior · gram|: how much surer the rows make of the weights."""
    return np.asarray(np.linalg.slogdet(inner)[1] + np.log(prior).sum(axis=-1))


def _free_share(columns: int) -> float:
    """The share of indicators that are free: the last follows from the others."""
    return 1.0 if columns == 1 else (columns - 1) / columns


def _select_fit(fits: _EvidenceFit, best: Indices) -> _EvidenceFit:
    """Of several fits, the first axis, the one that is best for each family."""
    family = np.arange(len(best))
    return _EvidenceFit(*(values[best, family] for values in fits))


def _log_mean(values: Array) -> Array:
    """The log of the mean over the first axis of what has these logs."""
    top = values.max(axis=0)
    return np.asarray(top + np.log(np.exp(values - top).sum(axis=0)) - np.log(len(values)))


def _log_average(first: float, second: float) -> float:
    return float(np.logaddexp(first, second) - np.log(2))
