"""The Bayesian information criterion of linear Gaussian families, computed from second moments.

With residual variance v = S_jj − S_jP S_PP⁻¹ S_Pj of node j given its parents P, and n rows,

    score(j, P) = −(n/2) log v − (log n)/2 · (|P| + 1),

without the terms that are the same for all parents. Higher is better. The score does not change within an equivalence
class. All families of one size are solved together, and each family is solved once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.protocols import Family

RIDGE = 1e-10
"""Added to the diagonal of correlations, so that duplicate columns do not stop a solver; far below any effect."""
_MAX_ELEMENTS = 1 << 20  # numbers in the matrices that are solved together


@dataclass(frozen=True, eq=False)
class GaussianMoments:
    """The number of rows of a table, its means, and its centred second moments, divided by the rows.

    >>> moments = GaussianMoments.of(np.array([[1.0, 2.0], [3.0, 6.0]]))
    >>> moments.rows, moments.means.tolist(), moments.covariance.tolist()
    (2, [2.0, 4.0], [[1.0, 2.0], [2.0, 4.0]])
    """

    rows: int
    means: Array
    covariance: Array

    @classmethod
    def of(cls, table: Array) -> GaussianMoments:
        """Return the moments of a table, rows × variables."""
        means = table.mean(axis=0)
        centred = table - means
        return cls(len(table), means, centred.T @ centred / len(table))

    @classmethod
    def from_message(cls, message: Array, variables: int) -> GaussianMoments:
        """Return the moments that `to_message` wrote."""
        covariance = np.zeros((variables, variables))
        upper = np.triu_indices(variables)
        covariance[upper] = message[1 + variables :]
        covariance.T[upper] = message[1 + variables :]
        return cls(int(message[0]), message[1 : 1 + variables], covariance)

    def to_message(self) -> Array:
        """Return all numbers as one array: the rows, the means, and the upper triangle of the second moments."""
        upper = self.covariance[np.triu_indices(len(self.means))]
        return np.concatenate([[self.rows], self.means, upper])


def pool_moments(clients: Iterable[GaussianMoments]) -> GaussianMoments:
    """Return the moments of all rows together.

    >>> rows = np.random.default_rng(1).standard_normal((9, 2))
    >>> pooled = pool_moments([GaussianMoments.of(rows[:3]), GaussianMoments.of(rows[3:])])
    >>> np.allclose(pooled.covariance, GaussianMoments.of(rows).covariance)
    True
    """
    found = list(clients)
    rows = sum(client.rows for client in found)
    means = np.asarray(sum(client.rows * client.means for client in found)) / rows
    between = sum(client.rows * np.outer(client.means - means, client.means - means) for client in found)
    return GaussianMoments(rows, means, pool_within_clients(found).covariance + np.asarray(between) / rows)


def pool_within_clients(clients: Iterable[GaussianMoments]) -> GaussianMoments:
    """Return the moments of all rows together after every client has subtracted its own means."""
    found = list(clients)
    rows = sum(client.rows for client in found)
    within = np.asarray(sum(client.rows * client.covariance for client in found)) / rows
    return GaussianMoments(rows, np.zeros(len(within)), within)


class GaussianBic:
    """The score of families, a `LocalScore`: callable on batches, with a memory.

    A constant column explains nothing and is explained by nothing. A family with more than n − 2 parents leaves no
    residual to judge, and scores as if its parents explained nothing.

    Parameters
    ----------
    moments : GaussianMoments
        Rows and second moments.
    names : sequence of str
        The variables, in the order of the moments.
    penalty : float, optional
        Deduction for each parameter; the default is (log n)/2.
    other_parameters : int, default 1
        Parameters of a family besides the weights of its parents. The intercept and the variance are 2. The number
        makes no difference to a search, unless it compares families with numbers of rows that differ.

    Examples
    --------
    >>> x, e = np.random.default_rng(1).standard_normal((2, 100))
    >>> score = GaussianBic(GaussianMoments.of(np.column_stack([x, x + e])), ("x", "y"))
    >>> alone, given = score([Family("y"), Family("y", frozenset("x"))])
    >>> given > alone
    True
    """

    def __init__(
        self,
        moments: GaussianMoments,
        names: Sequence[str],
        *,
        penalty: float | None = None,
        other_parameters: int = 1,
    ) -> None:
        self.rows = moments.rows
        self._penalty = math.log(moments.rows) / 2 if penalty is None else penalty
        self._other_parameters = other_parameters
        self._place = {name: place for place, name in enumerate(names)}
        self._log_variances, self._correlations = _standardise(moments.covariance)
        self._known: dict[Family, float] = {}

    @classmethod
    def of_table(cls, table: Array, names: Sequence[str]) -> GaussianBic:
        """Return the score from the rows of one table."""
        return cls(GaussianMoments.of(table), names)

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """Return one score per family, in order."""
        by_size: Mapping[int, list[Family]] = defaultdict(list)
        for family in dict.fromkeys(families):
            if family not in self._known:
                by_size[len(family.parents)].append(family)
        for size, some in by_size.items():
            step = max(1, _MAX_ELEMENTS // (size + 1) ** 2)
            for start in range(0, len(some), step):
                part = some[start : start + step]
                self._known.update(zip(part, self._solve(part, size), strict=True))
        return [self._known[family] for family in families]

    def _solve(self, families: Sequence[Family], size: int) -> list[float]:
        """Return the scores of families with the same number of parents."""
        place = self._place
        nodes = np.array([place[family.node] for family in families])
        log_share = np.zeros(len(families))  # logarithm of the share of variance that the parents leave
        if 0 < size <= self.rows - 2:
            parents = np.array([sorted(place[parent] for parent in family.parents) for family in families])
            log_share = self._log_unexplained(nodes, parents)
        log_variance = self._log_variances[nodes] + log_share
        deducted = self._penalty * (size + self._other_parameters)
        scores: list[float] = (-self.rows / 2 * log_variance - deducted).tolist()
        return scores

    def _log_unexplained(self, nodes: Array, parents: Array) -> Array:
        """Return log(1 − R²) of every node given its parents, with the ridge on both sides: classes keep one score."""
        towards = self._correlations[parents, nodes[:, None]]
        among = self._correlations[parents[:, :, None], parents[:, None, :]]
        weights = np.linalg.solve(among, towards[:, :, None])[:, :, 0]
        return np.asarray(np.log(np.maximum(1 + RIDGE - (weights * towards).sum(axis=1), RIDGE)))


def _standardise(covariance: Array) -> tuple[Array, Array]:
    """Return the logarithms of the variances and the correlations; a constant has variance 1 and correlations 0."""
    variances = np.diag(covariance).copy()
    constant = variances <= 0
    scale = np.sqrt(np.where(constant, 1.0, variances))
    correlations = np.clip(covariance / np.outer(scale, scale), -1.0, 1.0)
    correlations[constant, :] = correlations[:, constant] = 0.0
    np.fill_diagonal(correlations, 1.0 + RIDGE)
    return 2 * np.log(scale), correlations
