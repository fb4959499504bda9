"""The marginal likelihood of a continuous variable given parents, from the clients' moments, nearly in closed form.

The linear column y of the variable is regressed on x = [1, columns of the parents]: y = wᵀx + noise. All coordinates
are those of `Basis`, where pooled variances are one, so that one prior suits every variable:

- w ~ N(0, σ² g diag(v)) with g from a wide grid (a coarse Zellner-Siow prior: an effect may be large or small compared
  with the noise), v = 1 for the linear columns and ½, ¼, … for further ones (rough functions are less likely);
- log σ² is flat; every model of the variable has it, so its improper constant cancels.

The models for mechanisms that differ between clients, and how strongly each is shrunk to the common mechanism:

- nothing differs (`invariant`): Normal-Inverse-Gamma, exact;
- the level differs (`shifted`): intercepts N(0, σ² κ) about the common one, exact;
- the noise differs: σ_k² ~ Inverse-Gamma with ν degrees of freedom about a common scale. Heavy tails temper this
  (`_tail_weight`), since they make the variances of clients spread without a difference;
- the weights differ: w_k = w + δ_k, δ_k ~ N(0, σ_k² κ · (size of w)²). A client's weights deviate by a *share* of the
  common weights, so that a weak cause or a column that hardly matters costs nothing. Noise is common (exact given the
  size) or differs too.

Noise per client leaves no closed form. The common weights are then integrated by Laplace's method at their posterior
mode, found by a few reweighted regressions. With the weights integrated out in each client (A_k = D − D(G_k + D)⁻¹D,
D the prior precision of δ_k), all variants are one regression with other sufficient statistics (A, b, c).

Where only a sum over clients is known, noise and weights of single clients are not. The mean squares of the clients
(`client_spreads`) then say whether a mechanism differs, beside their levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import special

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.batched_regression import solve_in_groups
from fedcdh.inference.evidence._gaussian_moments import RegressionSums, StackedMoments, min_precision
from fedcdh.inference.evidence._tail_weight import TailWeights, temper_noise_factor
from fedcdh.inference.evidence.client_spreads import ClientSpreads
from fedcdh.inference.orthonormal_basis import Basis, Chosen
from fedcdh.protocols import Family

PRIOR_VARIANCES = (1e6, 1e4, 100.0, 1.0, 0.01)
"""Prior variances g of a weight, in units of the noise variance: from weak effects to hardly any noise."""
ROUGHNESS_DECAY = 0.5
"""Prior variance of a nonlinear column relative to that of the column before it."""
DEVIATION_VARIANCES = (0.1, 1.0)
"""Prior variances κ of a client's deviation, as a share of the squared weight."""
SHIFT_VARIANCES = (0.03, 1.0)
"""Prior variances κ of a client's own level, in units of the noise variance, where only the level changes."""
LARGE_SHIFT_VARIANCES = (100.0, 1e6)
"""The same for large differences: values that are constant at each client, such as the altitude of a hospital."""
LARGE_SHIFT_PROBABILITY = 0.01
"""Prior probability of these. Without them, useless parents would be added to explain large shifts."""
MIN_SQUARED_WEIGHT = 0.01
"""Added to the squared weight: a column without effect on average may have a small effect at one client."""
MIXED_CURVATURE_PRICE = 0.05
"""Log prior odds against nonlinear effects, per row, where a mechanism differs and the scatter of single clients is
hidden: a mixture of linear mechanisms bends the regression over all rows. It bends as far as it has linear effects, so
the price is no more than the evidence that these gain. Sums of ten clients (`benchmarks.bench_masked_changes`, seeds 0
to 39): the direction F1 of DAGs is 0.817 for linear and 0.840 for general models without a price, 0.867 and 0.843 with
0.05, 0.870 and 0.837 with 0.1. Without the limit it is 0.867 and 0.828 with 0.05, and of quadratic effects (144 edges
of `benchmarks.bench_noise_shapes`, 10 x 300, seeds 100 to 102) 13 are missed instead of none."""
NOISE_FREEDOM = 4.0
"""Degrees of freedom ν of the clients' noise variances: their logarithms spread by about √(2/ν) = 0.7."""
MIN_NOISE_SHARE = 1e-7
"""Smallest noise, as a share of a variable's variance: rounding to the grid leaves as much."""
_PADDING_MULTIPLE = 6
_MAX_PADDED_CLIENTS = 100  # with more clients, each family is work enough, and columns of zeros would be a third of it
_REWEIGHTING_STEPS = 4  # reweighted regressions; the evidence is flat at its maximum, so the weights need not be exact


@dataclass(frozen=True, eq=False)
class GaussianScore:
    """Log marginal likelihood of families with a continuous node, for a shared mechanism and for one that differs.

    Attributes
    ----------
    basis : Basis
        The moments in orthonormal coordinates.
    curved : bool
        Whether parents may act nonlinearly.
    noisy : bool
        Whether noise may differ between clients. The noise of a categorical variable follows from its mean.
    shared : StackedMoments, optional
        Moments of the same basis, if other scores use them too.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.inference import Basis
    >>> from fedcdh.protocols import Family
    >>> cohort = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital").cohort
    >>> ((shared, differing),) = GaussianScore(Basis.of(cohort))([Family("systolic_pressure")])
    >>> differing > shared
    True
    """

    basis: Basis
    curved: bool = True
    noisy: bool = True
    shared: StackedMoments | None = None

    def __call__(self, families: Sequence[Family], /) -> list[tuple[float, float]]:
        """Return (log evidence of a shared mechanism, log evidence of one that differs) for each family.

        The indicators of a categorical node are treated as continuous, one after the other, and their mean is counted
        once for each that is free. That is no likelihood of levels, but it measures what parents add.
        """
        return self._found(families, self._evidences)

    def same(self, families: Sequence[Family], /) -> list[float]:
        """Return the first of the two only, equal in every digit: it needs one regression instead of one per client.

        Parameters
        ----------
        families : sequence of Family
            Nodes with their parents.

        Returns
        -------
        list of float
            The log evidence of a shared mechanism.
        """
        return [same for same, _ in self._found(families, self._shared)]

    def _found(self, families: Sequence[Family], solve: _Solver) -> list[tuple[float, float]]:
        targets = self._moments.targets
        columns = [(family, column) for family in dict.fromkeys(families) for column in targets[family.node]]
        found = dict.fromkeys(families, (0.0, 0.0))  # a constant leaves nothing to explain
        straight = self._solve([self._problem(*one, curved=False) for one in columns], solve)
        bending = [i for i, (family, _) in enumerate(columns) if self.curved and any(map(self._bends, family.parents))]
        bent = self._solve([self._problem(*columns[i], curved=True) for i in bending], solve)
        prices = self._mixture_prices([columns[i] for i in bending], [straight[i][1] for i in bending], solve)
        if self._spreads is not None:
            straight = self._with_spreads(straight, [family for family, _ in columns], curved=False)
            bent = self._with_spreads(bent, [columns[i][0] for i in bending], curved=True)
        for i, both, price in zip(bending, bent, prices, strict=True):
            same, differing = straight[i]
            straight[i] = (_log_average(same, both[0]), _log_average(differing, both[1] - price))
        for (family, _), (same, differing) in zip(columns, straight, strict=True):
            share = _free_share(len(targets[family.node]))
            found[family] = (found[family][0] + share * same, found[family][1] + share * differing)
        return [found[family] for family in families]

    def _with_spreads(
        self, evidences: list[tuple[float, float]], families: Sequence[Family], *, curved: bool
    ) -> list[tuple[float, float]]:
        """Add what the clients' mean squares say: level, spread or both differ, each with the same probability."""
        assert self._spreads is not None
        factors = self._spreads(families, curved=curved)
        return [
            (
                same + one.same,
                _log_mean(np.array([differing + one.same, same + one.differing, differing + one.differing])).item(),
            )
            for (same, differing), one in zip(evidences, factors, strict=True)
        ]

    @cached_property
    def _spreads(self) -> ClientSpreads | None:
        """Return the mean squares of clients, where their scatter is not known and noise may differ."""
        hidden = self.noisy and not self.basis.has_client_scatter
        return ClientSpreads(self.basis) if hidden else None

    def _mixture_prices(
        self, columns: Sequence[tuple[Family, int]], straight: Sequence[float], solve: _Solver
    ) -> list[float]:
        """Return the prices of nonlinear effects in mechanisms that differ, where clients are not known apart.

        A mixture of linear mechanisms bends only as far as it has linear effects: no price exceeds what these gain.
        """
        if self._spreads is None:
            return [0.0] * len(columns)
        places = {target: Family(family.node) for family, target in columns}
        found = self._solve([self._problem(family, target, curved=False) for target, family in places.items()], solve)
        alone = {target: differing for target, (_, differing) in zip(places, found, strict=True)}
        highest = MIXED_CURVATURE_PRICE * self.basis.total_rows
        return [
            min(highest, max(0.0, linear - alone[target]))
            for (_, target), linear in zip(columns, straight, strict=True)
        ]

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
        """Return the evidence of one mechanism for all clients, twice: the other is not wanted."""
        same = _log_mean(self._sizes(stack).evidence).tolist()
        return list(zip(same, same, strict=True))

    def _sizes(self, stack: _RegressionStack) -> _EvidenceFit:
        """Return the fits with priors of every size, along the first axis."""
        pooled = RegressionSums.of(self._moments.pooled, stack.columns, stack.targets)
        return _exact_evidence(pooled, np.asarray(PRIOR_VARIANCES)[:, None, None] * stack.scale, self.basis.total_rows)

    def _evidences(self, stack: _RegressionStack) -> list[tuple[float, float]]:
        sizes = self._sizes(stack)
        best = np.argmax(sizes.evidence, axis=0)
        prior = np.asarray(PRIOR_VARIANCES)[best, None] * stack.scale
        changing, far = (
            list(self._shifted(stack, prior, shifts)) for shifts in (SHIFT_VARIANCES, LARGE_SHIFT_VARIANCES)
        )
        if self.basis.has_client_scatter:
            alone = RegressionSums.of(self._moments.by_client, stack.columns, stack.targets)
            changing += self._by_client(alone, prior, stack, _select_fit(sizes, best))
        near, beyond = (
            _log_mean(np.stack(changing)) + np.log1p(-LARGE_SHIFT_PROBABILITY),
            _log_mean(np.stack(far)) + np.log(LARGE_SHIFT_PROBABILITY),
        )
        found = np.logaddexp(near, beyond) - np.log(
            len(PRIOR_VARIANCES)
        )  # one of the sizes over which the invariant model averages
        return list(zip(_log_mean(sizes.evidence).tolist(), found.tolist(), strict=True))

    def _shifted(self, stack: _RegressionStack, prior: Array, shifts: Sequence[float]) -> Iterator[Array]:
        """Yield the evidence of levels that differ between clients, with common weights and noise."""
        pooled = RegressionSums.of(self._moments.pooled, stack.columns, stack.targets)
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

    def _by_client(
        self, alone: RegressionSums, prior: Array, stack: _RegressionStack, start: _EvidenceFit
    ) -> Iterator[Array]:
        """Yield the evidence of noise that differs between clients; of weights; and of both."""
        rows, owner, common, counted = self.basis.rows, stack.owner, start, np.ones(len(prior))
        if self.noisy:
            counted = self._tails.effective_share(alone, stack.targets, stack.columns, stack.straight)
            common = _laplace_evidence(alone, prior, rows, start.variance, counted)
            yield common.evidence
        size = common.weights**2 / common.variance[:, None]
        together = owner[:, :, None] == owner[:, None, :]
        typical = (together @ size[..., None])[..., 0] / together.sum(axis=-1) + MIN_SQUARED_WEIGHT
        typical[:, 0] = 1 + size[:, 1:].sum(axis=1)  # a different effect shifts the level as well
        for share in DEVIATION_VARIANCES:
            own = alone.with_own_weights(share * typical)
            shared = _exact_evidence(own.pooled(), prior, rows.sum())
            yield shared.evidence
            if self.noisy:
                yield _laplace_evidence(own, prior, rows, shared.variance, counted).evidence

    @cached_property
    def _moments(self) -> StackedMoments:
        return self.shared or StackedMoments(self.basis)

    @cached_property
    def _tails(self) -> TailWeights:
        return TailWeights(self.basis)

    @cached_property
    def _pieces(self) -> tuple[dict[str, _ParentColumns], dict[str, _ParentColumns]]:
        """Return the columns of every parent, for linear and for nonlinear effects."""
        straight, curved = (
            {name: _ParentColumns.of(columns, len(self.basis.targets[name])) for name, columns in kind.items()}
            for kind in (self.basis.targets, self.basis.predictors)
        )
        return straight, curved


class _ParentColumns(NamedTuple):
    """The columns that a parent adds to a regression: their places among the moments, and their prior variances."""

    places: list[int]
    scale: list[float]

    @classmethod
    def of(cls, columns: Indices, straight: int) -> _ParentColumns:
        """Make the columns of a parent, of which the first `straight` are linear."""
        return cls((1 + columns).tolist(), [ROUGHNESS_DECAY ** max(0, 1 + i - straight) for i in range(len(columns))])


class _Regression(NamedTuple):
    """One regression: the place of the target, the places of constant and parents, and their prior variances.

    Columns of zeros fill up to a multiple of six, unless there are many clients. They change no result, and regressions
    of many sizes become few shapes that are solved together.
    """

    target: int
    columns: list[int]
    scale: list[float]  # prior variances, up to their common size
    owner: list[int]  # which columns belong to the same parent
    straight: list[bool]  # which columns belong to the linear form

    @classmethod
    def of(cls, target: int, parents: list[_ParentColumns], multiple: int) -> _Regression:
        columns, scale, owner, straight = [0], [1.0], [0], [False]
        for number, piece in enumerate(parents, start=1):
            columns += piece.places
            scale += piece.scale
            owner += [number] * len(piece.places)
            straight += [share == 1.0 for share in piece.scale]
        idle = -len(columns) % multiple
        owner, straight = owner + [len(parents) + 1] * idle, straight + [False] * idle
        return cls(target, columns + [-1] * idle, scale + [1.0] * idle, owner, straight)


class _RegressionStack(NamedTuple):
    """Regressions of one width, stacked."""

    targets: Indices
    columns: Indices
    scale: Array
    owner: Indices
    straight: Chosen

    @classmethod
    def of(cls, problems: list[_Regression]) -> _RegressionStack:
        targets, columns, scale, owner, straight = zip(*problems, strict=True)
        return cls(np.array(targets), np.array(columns), np.array(scale), np.array(owner), np.array(straight))


_Solver: TypeAlias = Callable[[_RegressionStack], list[tuple[float, float]]]


class _EvidenceFit(NamedTuple):
    """Log evidence, weights and noise variance of stacked regressions."""

    evidence: Array
    weights: Array
    variance: Array


def _exact_evidence(sums: RegressionSums, prior: Array, rows: float) -> _EvidenceFit:
    """Return the Normal-Inverse-Gamma evidence with log σ² flat."""
    prior = _limit_prior(sums.gram, prior)
    inner, weights = _regress(sums.gram, sums.cross, prior)
    logdet = _log_det_growth(inner, prior)
    left = np.maximum(sums.square - (sums.cross * weights).sum(axis=-1), rows * MIN_NOISE_SHARE)
    evidence = special.gammaln(rows / 2) - rows / 2 * np.log(np.pi * left) - (logdet + sums.cost) / 2
    return _EvidenceFit(evidence, weights, left / rows)


def _laplace_evidence(
    sums: RegressionSums, prior: Array, rows: Array, start: Array, counted: Array | None = None
) -> _EvidenceFit:
    """Integrate the clients' noise variances about their common scale s², and the weights by Laplace's method.

    Given the weights, client k's residual sum of squares r_k has a Student density; its logarithm has the curvature of
    a regression with weights ω_k = (n_k + ν)/(ν s² + r_k). The scale itself is flat in its logarithm. Of each family's
    rows, the share `counted` tells the noise of clients apart.
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
    if counted is not None:
        student = student + temper_noise_factor(left, rows, NOISE_FREEDOM, counted)
    return _EvidenceFit(student - cost / 2, weights, scale)


def _limit_prior(gram: Array, prior: Array) -> Array:
    """Return prior variances no larger than sums of this size can distinguish from no prior at all."""
    return np.asarray(np.minimum(prior, 1 / np.maximum(min_precision(gram), np.finfo(float).tiny)))


def _regress(gram: Array, cross: Array, prior: Array) -> tuple[Array, Array]:
    """Return the precision of the weights, and their posterior mean."""
    inner = gram + (1 / prior)[..., None] * np.eye(gram.shape[-1])
    return inner, np.asarray(np.linalg.solve(inner, cross[..., None])[..., 0])


def _log_det_growth(inner: Array, prior: Array) -> Array:
    """Return log |I + prior · gram|: how much the rows narrow the distribution of the weights."""
    return np.asarray(np.linalg.slogdet(inner)[1] + np.log(prior).sum(axis=-1))


def _free_share(columns: int) -> float:
    """Return the share of indicators that are free: the last follows from the others."""
    return 1.0 if columns == 1 else (columns - 1) / columns


def _select_fit(fits: _EvidenceFit, best: Indices) -> _EvidenceFit:
    """Return, of several fits along the first axis, the best one of each family."""
    family = np.arange(len(best))
    return _EvidenceFit(*(values[best, family] for values in fits))


def _log_mean(values: Array) -> Array:
    """Return the log of the mean over the first axis, given logs."""
    top = values.max(axis=0)
    return np.asarray(top + np.log(np.exp(values - top).sum(axis=0)) - np.log(len(values)))


def _log_average(first: float, second: float) -> float:
    """Return the log of the mean of two numbers, given their logs."""
    return float(np.logaddexp(first, second) - np.log(2))
