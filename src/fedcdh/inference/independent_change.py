"""The independent change principle: causes and mechanisms change independently of each other (Theorem 6).

For a pair of variables that both change, P(cause) and P(effect | cause) change independently between clients, while in
the wrong direction P(effect) and P(cause | effect) change together. Both forms below measure that dependence for both
directions; the smaller value gives the direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist, squareform

from fedcdh._runtime.array_types import Array
from fedcdh.inference.independence.kernel_test import PAPER_RIDGE, FeatureSpace
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, ModuleDependence

MAX_CLIENTS_PER_KERNEL = 1000
"""Largest number of clients that are compared pair by pair."""


@dataclass(frozen=True, eq=False)
class PrintedChange:
    """Theorem 6 as printed: Δ_{X→Y} = ‖C*_{X,Ỹ}‖² / (tr C*_X · tr C*_Ỹ), with C_{℧,(Y,X)} = C_{℧Y} + C_{℧X}.

    C*_{AB} = C_{A℧} (C_℧℧ + γI)⁻¹ C_℧℧ (C_℧℧ + γI)⁻¹ C_{℧B}. The sum does not isolate P(Y | X), so this form is kept
    for comparison; `OperatorChange` does isolate it.

    Attributes
    ----------
    space : FeatureSpace
        Covariances of the kernels' features.
    ridge : float
        The ridge γ; by default that of the authors' program.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.inference import KernelTest
    >>> study = fedcdh.simulate(seed=1)
    >>> result = fedcdh.discover(study.columns("site"), domain="site", method="paper")
    >>> (value,) = PrintedChange(KernelTest.of_paper(result.cohort).space)([("v1", "v2")])
    >>> 0 <= value.forward <= 1
    True
    """

    space: FeatureSpace
    ridge: float = PAPER_RIDGE

    def __call__(self, pairs: Sequence[tuple[str, str]], /) -> list[ModuleDependence]:
        """Return Δ of both directions of every pair."""
        return [ModuleDependence(x, y, self._dependence(x, y), self._dependence(y, x)) for x, y in pairs]

    def _dependence(self, cause: str, effect: str) -> float:
        from_domain = self.space.covariance[self.space.spans[DOMAIN]]
        alone = from_domain[:, self.space.spans[cause]]
        joint = _sum_blocks(alone, from_domain[:, self.space.spans[effect]])
        root = self._root
        alone, joint = root @ alone, root @ joint
        sizes = (alone**2).sum() * (joint**2).sum()
        return float(((alone.T @ joint) ** 2).sum() / max(sizes, np.finfo(float).tiny))

    @cached_property
    def _root(self) -> Array:
        """Return R with RᵀR = (C_℧℧ + γI)⁻¹ C_℧℧ (C_℧℧ + γI)⁻¹.

        With fewer clients than features, C_℧℧ has eigenvalues of 0. Rounding makes them small numbers, which a small
        ridge would turn into large weights; they get the weight 0.
        """
        domain = self.space.covariance[np.ix_(self.space.spans[DOMAIN], self.space.spans[DOMAIN])]
        values, vectors = np.linalg.eigh(domain)
        kept = np.where(values > len(values) * np.finfo(float).eps * max(values[-1], 0.0), values, 0.0)
        return np.asarray((np.sqrt(kept) / (kept + self.ridge))[:, None] * vectors.T)


@dataclass(frozen=True, eq=False)
class OperatorChange:
    """Dependence, over clients, of the means μ_k of φ(X) and of the regression operators of φ(Y) on φ(X).

    A_k = C_{YX,k} (C_{XX,k} + γI)⁻¹ with the intercept at the pooled mean is client k's P(Y | X) under one reference
    distribution of X, the pooled one, in which our coordinates are orthonormal: the underlined joint of CD-NOD. Δ_{X→Y}
    is the normalised HSIC of the two with Gaussian kernels, tr(M N)/√(tr M² · tr N²) after centring.

    Kernels compare all pairs of clients, up to `MAX_CLIENTS_PER_KERNEL` of them. More clients are compared in random
    groups of about equal size, and the traces of all groups are added up: work and memory then grow with clients, not
    with pairs.

    Attributes
    ----------
    basis : Basis
        The moments in orthonormal coordinates.
    ridge : float
        The ridge γ as a share of a column's pooled variance. With three columns, 0.1 was the best on pairs of seeds 0
        to 149.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.inference import Basis
    >>> study = fedcdh.simulate(seed=1)
    >>> result = fedcdh.discover(study.columns("site"), domain="site")
    >>> (value,) = OperatorChange(Basis.of(result.cohort))([("v1", "v2")])
    >>> 0 <= value.forward <= 1
    True
    """

    basis: Basis
    ridge: float = 0.1

    def __call__(self, pairs: Sequence[tuple[str, str]], /) -> list[ModuleDependence]:
        """Return Δ of both directions of every pair."""
        return [ModuleDependence(x, y, self._dependence(x, y), self._dependence(y, x)) for x, y in pairs]

    def _dependence(self, cause: str, effect: str) -> float:
        x, y = self._leading(cause), self._leading(effect)
        rows = self.basis.rows[:, None, None]
        inner = self.basis.scatter[:, x[:, None], x] / rows + self.ridge * np.eye(len(x))
        operators = np.linalg.solve(inner, self.basis.scatter[:, x[:, None], y] / rows)
        means = self.basis.means[:, x]
        intercepts = self.basis.means[:, y] - (means[:, None, :] @ operators)[:, 0]
        mechanisms = np.concatenate([intercepts, operators.reshape(len(operators), -1)], axis=1)
        both, first, second = np.sum(
            [_kernel_traces(means[some], mechanisms[some]) for some in _client_groups(len(means))], axis=0
        )
        return float(both / max(np.sqrt(first * second), np.finfo(float).tiny))

    def _leading(self, name: str) -> npt.NDArray[np.intp]:
        """Return the first columns, which few rows still determine: location, spread and skewness."""
        return self.basis.spans[name][: max(3, len(self.basis.targets[name]))]


def _client_groups(clients: int) -> list[npt.NDArray[np.intp]]:
    """Return groups of clients, each client once, always by the same random draw.

    Clients are sorted by name, so that neighbours may alternate between two kinds; a draw mixes them.
    """
    lot, groups = (
        np.array(Random(0).sample(range(clients), clients), dtype=np.intp),
        -(-clients // MAX_CLIENTS_PER_KERNEL),
    )
    return [np.sort(lot[group::groups]) for group in range(groups)]


def _kernel_traces(first: Array, second: Array) -> Array:
    """Return tr M N, tr M² and tr N² of the centred kernels of these clients, for means and mechanisms."""
    m, n = _centred_kernel(first), _centred_kernel(second)
    return np.array([(m * n).sum(), (m**2).sum(), (n**2).sum()])


def _centred_kernel(points: Array) -> Array:
    """Return the centred Gaussian kernel matrix of the clients' points, with the median distance as bandwidth."""
    apart = pdist(points, "sqeuclidean")
    width = float(np.median(apart)) if len(apart) else 0.0
    kernel = np.exp(-squareform(apart, checks=False) / max(width, np.finfo(float).tiny))
    return np.asarray(kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean())


def _sum_blocks(first: Array, second: Array) -> Array:
    """Add features one by one, as in Eq. 41; the narrower block is padded with zeros."""
    total = np.zeros((len(first), max(first.shape[1], second.shape[1])))
    total[:, : first.shape[1]] += first
    total[:, : second.shape[1]] += second
    return total
