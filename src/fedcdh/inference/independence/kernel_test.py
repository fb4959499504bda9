"""Kernel tests from moments: FCIT and FUIT of the paper (Theorems 4 and 5, and its appendix), and variants of them.

T = n ‖C_{ẌY|Z}‖²_F with Ẍ = (X, Z), compared with a gamma distribution of mean tr C_{Ẍ|Z} · tr C_{Y|Z} and variance
2 ‖C_{Ẍ|Z}‖²_F ‖C_{Y|Z}‖²_F. The variants differ in how they merge several variables into one feature vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.batched_regression import concatenate_columns, gather_blocks, solve_in_groups
from fedcdh.protocols import DOMAIN, Answer, Query
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.domain_mixtures import DomainMixtures, select_signs
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.feature_layout import POWER_COLUMNS
from fedcdh.summaries.variables import Categorical

DomainFeatures = Callable[[Cohort | Aggregate], Array]
"""Features of the client index, one row per client, or per group of clients where only sums are known."""

PAPER_RIDGE = 1e-10
"""The ridge γ of "paper". The paper calls it small and names no value; this is the value in the authors' program."""


def one_hot_domain(known: Cohort | Aggregate) -> Array:
    """Return the features of the exact delta kernel of the client index."""
    return np.eye(len(known.clients))


def random_domain_features(known: Cohort | Aggregate, seed: int = 0) -> Array:
    """Return √(2/h) cos θ with a random phase per client and feature, which approximates the delta kernel.

    There are as many features as a variable has, so that Eq. 41 can add them up. The client's name keys the phases, not
    its position.
    """
    width = known.plan.family.width
    phases = [
        np.random.default_rng([seed, *hashlib.sha256(client.encode()).digest()]).uniform(0.0, 2 * np.pi, width)
        for client in known.clients
    ]
    return np.asarray(np.sqrt(2 / width) * np.cos(np.array(phases)))


def mixture_domain_features(known: Cohort | Aggregate, mixtures: int) -> Array:
    """Return the signs of each client in the mixtures of a secure sum, over √m: they too approximate the delta kernel.

    A sum with mixtures has its products with the other features already. This is for a cohort, to compare with.
    """
    return np.asarray(select_signs(known.plan, mixtures, known.clients).T / np.sqrt(mixtures))


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """Covariances of the kernels' features of all variables and of the domain.

    They follow from Σ φφᵀ over all rows and from the clients' first moments, which a sum over clients has: a cohort and
    its `Aggregate` give the same numbers, bit for bit. The blocks of the domain are never sent, except in a sum with
    mixtures of the clients: it has the products of all features with those of the domain, and no first moments of
    single clients.
    """

    rows: int
    covariance: Array
    spans: dict[str, Indices]

    @classmethod
    def of(cls, known: Cohort | Aggregate, domain: DomainFeatures) -> FeatureSpace:
        """Make the covariances of a study, with these features of the domain."""
        columns, weights, spans = _kernel_columns(known)
        total = known.total.moments[np.ix_(columns, columns)] / float(GRID**2) * np.outer(weights, weights)
        if isinstance(known, Aggregate) and known.mixtures is not None:
            cross, inner = _mixture_products(known.mixtures, columns, weights)
        else:
            firsts = known.first_moments[:, columns] / float(GRID**2) * weights
            index = domain(known)
            cross, inner = firsts.T @ index, (index.T * firsts[:, 0]) @ index
        spans[DOMAIN] = np.arange(len(columns) - 1, len(columns) - 1 + len(inner))
        return cls(known.total.rows, _append_domain(total, cross, inner), spans)


def _kernel_columns(known: Cohort | Aggregate) -> tuple[Indices, Array, dict[str, Indices]]:
    """Return the columns of [1, φ] in the plan, the kernels' weights of them, and each variable's columns in φ."""
    layout, family = known.plan.layout, known.plan.family
    columns, weights, spans = [0], [1.0], {}
    for variable in known.plan.variables:
        categorical = isinstance(variable, Categorical)
        span = np.arange(layout.n_columns)[layout.spans[variable.name]][0 if categorical else POWER_COLUMNS :]
        spans[variable.name] = np.arange(len(columns) - 1, len(columns) - 1 + len(span))
        columns += span.tolist()
        weights += [1.0] * len(span) if categorical else family.weights.tolist()
    return np.array(columns, dtype=np.intp), np.array(weights), spans


def _mixture_products(mixtures: DomainMixtures, columns: Indices, weights: Array) -> tuple[Array, Array]:
    """Return Σ [1, φ(V)] φ(℧)ᵀ and Σ φ(℧) φ(℧)ᵀ over all rows, from a sum with mixtures."""
    scale = np.sqrt(len(mixtures.signs))
    cross = (mixtures.sums[:, columns] / float(GRID**2) * weights).T / scale
    return np.asarray(cross), np.asarray(mixtures.products / scale**2)


def _append_domain(total: Array, cross: Array, inner: Array) -> Array:
    """Return the covariance of [φ(V), φ(℧)] over all rows, from the blocks of Σ [1, φ(V), φ(℧)][1, φ(V), φ(℧)]ᵀ."""
    joint = np.block([[total, cross], [cross.T, inner]])
    rows = joint[0, 0]
    return np.asarray(joint[1:, 1:] / rows - np.outer(joint[0, 1:], joint[0, 1:]) / rows**2)


@dataclass(frozen=True, eq=False)
class CovarianceBlocks:
    """The covariances of Ẍ, Y and Z that one test needs, for a stack of queries."""

    xy: Array  # C_{ẌY}
    xz: Array  # C_{ẌZ}
    xx: Array  # C_{ẌẌ}
    zz: Array
    zy: Array
    yy: Array


MergeRule = Callable[[FeatureSpace, Sequence[Query]], CovarianceBlocks]


def add_features(space: FeatureSpace, queries: Sequence[Query]) -> CovarianceBlocks:
    """Merge variables as in Eqs. 40-42, by addition of features: φ(Z) = Σ_i φ(Z_i) and φ(Ẍ) = φ(X) + φ(Z).

    C_ZY = Σ_i C_{Z_i Y}, C_ZZ = Σ_ij C_{Z_i Z_j}, C_{ẌY} = C_XY + C_ZY. Narrower blocks are padded with zeros.
    """
    width = max(len(span) for span in space.spans.values())
    end = len(space.covariance)
    padded = np.pad(space.covariance, ((0, 1), (0, 1)))  # index `end` is a column of zeros
    place = {name: np.pad(span, (0, width - len(span)), constant_values=end) for name, span in space.spans.items()}
    sides = [[[q.x] for q in queries], [[q.y] for q in queries], [sorted(q.given) for q in queries]]
    x, y, z = (np.array([[place[name] for name in names] for names in side]) for side in sides)

    def add(rows: Indices, columns: Indices) -> Array:
        if not rows.size or not columns.size:
            return np.zeros((len(queries), width, width))
        blocks = padded[rows[:, :, None, :, None], columns[:, None, :, None, :]]
        return np.asarray(blocks.sum(axis=(1, 2)))

    xz, zz, zy = add(x, z), add(z, z), add(z, y)
    both = add(x, x) + xz + np.swapaxes(xz, 1, 2) + zz
    return CovarianceBlocks(xy=add(x, y) + zy, xz=xz + zz, xx=both, zz=zz, zy=zy, yy=add(y, y))


def concatenate_features(space: FeatureSpace, queries: Sequence[Query]) -> CovarianceBlocks:
    """Merge variables by concatenation, φ(Z) = [φ(Z_1), φ(Z_2), ...]: additive functions of Z."""
    z = np.array([concatenate_columns(space.spans, q.given) for q in queries])
    x = np.concatenate([np.array([space.spans[q.x] for q in queries]), z], axis=1)
    y = np.array([space.spans[q.y] for q in queries])
    of = partial(gather_blocks, space.covariance)
    return CovarianceBlocks(xy=of(x, y), xz=of(x, z), xx=of(x, x), zz=of(z, z), zy=of(z, y), yy=of(y, y))


@dataclass(frozen=True, eq=False)
class KernelTest:
    """The test statistic T = n ‖C_{ẌY|Z}‖²_F with C_{ẌY|Z} = C_{ẌY} − C_{ẌZ} (C_ZZ + γI)⁻¹ C_ZY, and its gamma null.

    As printed in the paper, the roles of X and Y differ: the first variable of a query is X.

    Attributes
    ----------
    space : FeatureSpace
        Covariances of the features.
    merge : callable
        Makes one feature vector of several variables.
    ridge : float
        The ridge γ.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.protocols import Query
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital", method="paper")
    >>> (answer,) = KernelTest.of_paper(result.cohort)([Query("smoker", "cholesterol")])
    >>> answer.p_value < 0.01
    True
    """

    space: FeatureSpace
    merge: MergeRule
    ridge: float

    @classmethod
    def of_paper(cls, known: Cohort | Aggregate, ridge: float = PAPER_RIDGE, seed: int = 0) -> KernelTest:
        """Make FCIT and FUIT as printed; docs/statistics.md shows the level that this test does not hold.

        Parameters
        ----------
        known : Cohort or Aggregate
            The summaries with Fourier features, or their sum: both give the same answers. A sum with mixtures of the
            clients has its own features of the domain.
        ridge : float, default 1e-10
            The ridge γ.
        seed : int, default 0
            Seed of the random features of the domain.

        Returns
        -------
        KernelTest
            The test of the paper.
        """
        return cls(FeatureSpace.of(known, lambda k: random_domain_features(k, seed)), add_features, ridge)

    @classmethod
    def concatenated(cls, known: Cohort | Aggregate) -> KernelTest:
        """Make the variant with concatenated features, and a ridge that shrinks with n: a fixed one rejects true nulls.

        Parameters
        ----------
        known : Cohort or Aggregate
            The summaries, or their sum.

        Returns
        -------
        KernelTest
            The variant.
        """
        # 0.1/n holds the level from 1000 to 100,000 rows with one conditioning variable (bench_calibration, table 5)
        return cls(FeatureSpace.of(known, one_hot_domain), concatenate_features, 0.1 / known.total.rows)

    def __call__(self, queries: Sequence[Query], /) -> list[Answer]:
        """Answer the queries, in their order."""
        results = solve_in_groups(queries, self._shape, lambda q: sum(self._shape(q)) ** 2, self._solve)
        return [Answer(q, *result, self.space.rows) for q, result in zip(queries, results, strict=True)]

    def _shape(self, query: Query) -> tuple[int, ...]:
        wide = {name: len(span) for name, span in self.space.spans.items()}
        given = sorted(wide[name] for name in query.given)
        return (wide[query.x], wide[query.y], len(given), sum(given))

    def _solve(self, queries: list[Query]) -> list[tuple[float, float]]:
        blocks = self.merge(self.space, queries)
        inner = blocks.zz + self.ridge * np.eye(blocks.zz.shape[-1])
        by_y, by_x = np.linalg.solve(inner, blocks.zy), np.linalg.solve(inner, np.swapaxes(blocks.xz, 1, 2))
        cross = blocks.xy - blocks.xz @ by_y
        of_x, of_y = blocks.xx - blocks.xz @ by_x, blocks.yy - np.swapaxes(blocks.zy, 1, 2) @ by_y
        statistic = self.space.rows * (cross**2).sum(axis=(1, 2))
        p_value = gamma_tail(
            statistic,
            mean=np.trace(of_x, axis1=1, axis2=2) * np.trace(of_y, axis1=1, axis2=2),
            variance=2 * (of_x**2).sum(axis=(1, 2)) * (of_y**2).sum(axis=(1, 2)),
        )
        return list(zip(statistic.tolist(), p_value.tolist(), strict=True))


def gamma_tail(statistic: Array, mean: Array, variance: Array) -> Array:
    """Return P(Γ(k, θ) > t) with k = mean²/variance and θ = variance/mean; 1 if there is no variance at all."""
    tiny = 1e-14
    safe_mean, safe_variance = np.maximum(mean, tiny), np.maximum(variance, tiny**2)
    tail = special.gammaincc(safe_mean**2 / safe_variance, statistic * safe_mean / safe_variance)
    return np.where(mean > tiny, tail, 1.0)
