"""The evidence of clients' mean squares, where of single clients only the means of features are known.

After a secure sum, the covariances of single clients are hidden, but the mean square s_k of every variable at client k
is known: the square is one of its features. If all clients share the mechanism of y given its parents x, then
E[y² | x] = h(x) is one function, and s_k is the mean of h(x) over the rows of client k, up to chance. We take for h the
regression of y² on the parents' features within clients, from the pooled sums. The mean of its features at client k
gives the expected mean square p_k. Changed effects, changed noise and changed levels all move s_k away from p_k.

The logarithm of s_k / p_k has two models. With a shared mechanism, its variance is v_k / (n_k p_k²), where v_k is the
variance of y² about h at client k. For normal noise of variance u, v_k = 2u (2p_k − u), so v_k is taken to grow as
2p_k − u; its mean is the variance that the pooled regression leaves. With a mechanism that differs, each client adds a
deviation of variance κ of its own. Errors of h, and of the common level, enter both to first order. Both densities are
of the same numbers, so graphs can be compared: a wrong direction has to explain the changes of one mechanism by changes
of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.batched_regression import solve_in_groups
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import Family

SPREAD_VARIANCES = (0.02, 0.2, 1.0)
"""Prior variances κ of the logarithm of a client's mean square, where mechanisms differ."""
LEVEL_VARIANCE = 1.0
"""Prior variance of the common level of these logarithms."""
MIN_EXPECTED = 0.05
"""Smallest expected mean square, as a share of the pooled one, where the parents leave less noise than this."""
EXPECTED_ERROR = 0.03
"""Error of the regression h, as a share of the pooled mean square: its features fit h only nearly, and products of two
parents are not among them. With 0.03, 0.6 % of constant mechanisms seem to change given their true causes, on seeds 0
to 39 of the paper's generators, linear and general (a trial; no command prints it). Without it, and with an earlier
form of v_k, 4 % and 6 % did."""
_RIDGE = 0.01  # rows of a prior without effects, in coordinates of variance one
_MIN_SQUARE = 1e-6
_MIN_VARIANCE = 1e-6


class SpreadFactors(NamedTuple):
    """Log densities of the clients' mean squares.

    Attributes
    ----------
    same : float
        With a mechanism that all clients share.
    differing : float
        With one that differs, averaged over the sizes of the differences.
    """

    same: float
    differing: float


@dataclass(frozen=True, eq=False)
class ClientSpreads:
    """Compares the mean squares of clients with those that a shared mechanism would give.

    Attributes
    ----------
    basis : Basis
        The moments in orthonormal coordinates. Of single clients, the means are enough.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.summaries.aggregation import Aggregate
    >>> study = fedcdh.simulate(seed=1)
    >>> cohort = fedcdh.discover(study.columns("site"), domain="site").cohort
    >>> spreads = ClientSpreads(Basis.of(Aggregate.of(cohort)))
    >>> (found,) = spreads([Family(min(study.changing))], curved=False)
    >>> found.differing > found.same
    True
    """

    basis: Basis

    def __call__(self, families: Sequence[Family], *, curved: bool) -> list[SpreadFactors]:
        """Return the log densities of families; zeros where a variable has no square of its own."""
        found = [SpreadFactors(0.0, 0.0)] * len(families)
        places = [place for place, family in enumerate(families) if self.has_square(family.node)]
        problems = [self._problem(families[place], curved) for place in places]
        solved = solve_in_groups(
            problems,
            key=lambda problem: len(problem.columns),
            elements=lambda problem: len(self.basis.rows) * (2 + len(problem.columns)) ** 2,
            solve=self._solve,
        )
        for place, one in zip(places, solved, strict=True):
            found[place] = SpreadFactors(*one)
        return found

    def has_square(self, name: str) -> bool:
        """Return whether the mean square of a variable says more than its mean, and there is more than one client.

        Parameters
        ----------
        name : str
            Name of a variable.

        Returns
        -------
        bool
            False for categorical variables, and for numbers with two values.
        """
        return len(self.basis.rows) > 1 and self.basis.squares[name][1] != 0.0

    def _problem(self, family: Family, curved: bool) -> _SquareRegression:
        """Return the regression of a square; with linear effects, it depends on values and squares of the parents."""
        b, c = self.basis.squares[family.node]
        first, second = self.basis.spans[family.node][:2].tolist()
        columns: list[int] = []
        for name in sorted(family.parents):
            span = self.basis.spans[name].tolist()
            columns += span if curved or name in self.basis.levels else span[:2]
        return _SquareRegression((first, second), (b, c), columns)

    def _solve(self, problems: list[_SquareRegression]) -> list[tuple[float, float]]:
        """Return the log densities of regressions with the same number of columns."""
        places = np.array([problem.places for problem in problems])
        weights = np.array([problem.weights for problem in problems])
        columns = np.array([problem.columns for problem in problems], dtype=np.intp).reshape(len(problems), -1)
        fit = self._regress(places, weights, columns)
        same = _log_density(fit, 0.0)
        differing = np.stack([_log_density(fit, variance) for variance in SPREAD_VARIANCES])
        mean = np.logaddexp.reduce(differing, axis=0) - np.log(len(SPREAD_VARIANCES))
        return list(zip(same.tolist(), mean.tolist(), strict=True))

    def _regress(self, places: Indices, weights: Array, columns: Indices) -> _SpreadFit:
        """Regress squares on the parents' columns within clients, and compare the clients' means."""
        basis, within = self.basis, self.basis.within
        inner = within[columns[:, :, None], columns[:, None, :]] + _RIDGE * np.eye(columns.shape[1])
        cross = (within[columns[:, :, None], places[:, None, :]] * weights[:, None, :]).sum(axis=2)
        total = np.einsum("bi,bij,bj->b", weights, within[places[:, :, None], places[:, None, :]], weights)
        slopes = np.linalg.solve(inner, cross[..., None])[..., 0]
        freedom = max(basis.total_rows - len(basis.rows) - columns.shape[1], 1.0)
        variance = np.maximum((total - (slopes * cross).sum(axis=1)) / freedom, _MIN_VARIANCE)
        squares = 1.0 + np.einsum("kbi,bi->bk", basis.means[:, places], weights)
        means = np.swapaxes(basis.means[:, columns], 0, 1)
        noise = self._noise_variances(inner, places[:, 0], columns)
        expected = np.maximum(1.0 + (means @ slopes[..., None])[..., 0], noise)
        growth = 2 * expected - noise
        share = variance[:, None] * growth / (growth @ basis.rows / basis.total_rows)[:, None] / expected**2
        ones = np.ones((*expected.shape, 1))
        design = np.concatenate([ones, means / expected[..., None]], axis=2)
        precision = np.zeros((len(places), design.shape[2], design.shape[2]))
        precision[:, 0, 0] = 1 / LEVEL_VARIANCE
        precision[:, 1:, 1:] = inner / variance[:, None, None]
        variances = share / basis.rows
        if columns.shape[1]:
            variances = variances + (EXPECTED_ERROR * np.maximum(1.0, 1 / expected)) ** 2
        ratios = np.log(np.maximum(squares, _MIN_SQUARE) / expected)
        return _SpreadFit(ratios, variances, design, precision)

    def _noise_variances(self, inner: Array, targets: Indices, columns: Indices) -> Array:
        """Return the share of each variable's variance that the parents leave open: no mean square is below it."""
        within, rows = self.basis.within, self.basis.total_rows
        cross = within[columns, targets[:, None]]
        explained = (cross * np.linalg.solve(inner, cross[..., None])[..., 0]).sum(axis=1)
        return np.asarray(np.clip((within[targets, targets] - explained) / rows, MIN_EXPECTED, 1.0)[:, None])


class _SquareRegression(NamedTuple):
    """The regression of one variable's square: its coordinates with their weights, and the parents' columns."""

    places: tuple[int, int]
    weights: tuple[float, float]
    columns: list[int]


class _SpreadFit(NamedTuple):
    """Log ratios of mean squares to expected ones, with what their errors depend on."""

    ratios: Array  # (families, clients)
    variances: Array  # (families, clients): of the ratios, by chance and by errors of the regression
    design: Array  # (families, clients, 1 + columns): how common errors of level and slopes move the ratios
    precision: Array  # (families, 1 + columns, 1 + columns): of these errors


def _log_density(fit: _SpreadFit, deviation: float) -> Array:
    """Return the log density of the ratios, where each client adds a deviation of this variance."""
    variances = fit.variances + deviation
    weighted = fit.design / variances[..., None]
    inner = fit.precision + np.swapaxes(weighted, 1, 2) @ fit.design
    cross = (np.swapaxes(weighted, 1, 2) @ fit.ratios[..., None])[..., 0]
    explained = (cross * np.linalg.solve(inner, cross[..., None])[..., 0]).sum(axis=1)
    square = (fit.ratios**2 / variances).sum(axis=1) - explained
    growth = np.linalg.slogdet(inner)[1] - np.linalg.slogdet(fit.precision)[1]
    return np.asarray(-0.5 * (np.log(2 * np.pi * variances).sum(axis=1) + growth + square))
