"""The deviation of each client from the others: intervals, a pooled estimate, and standardised differences.

A client is compared with the other clients that do not differ themselves: one client with a large deviation would
otherwise make all others look unusual. The most deviating client is set aside (among many clients, one in
`CLIENTS_PER_EXCLUSION` at a time), as long as its deviation is significant and a majority is left. Then every client is
compared with the remaining ones, itself not counted. Where nothing differs, these are all other clients. Deviations are
on the scale of a standard normal variable for any number of rows: the normal quantile of the test's p-value, with the
sign of the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from fedcdh._runtime.array_types import Array

Mask = npt.NDArray[np.bool_]

HOLM_ALPHA = 0.05
"""Level of Holm's procedure over all clients and quantities of a mechanism; intervals cover with one minus this."""
CLIENTS_PER_EXCLUSION = 50
"""One client in this many is set aside before all are compared again, so the number of passes is bounded."""
_MIN_TAIL = 1e-290


class Estimates(Protocol):
    """One quantity of a mechanism at every client."""

    @property
    def quantity(self) -> str:
        """Return the name of the quantity."""

    @property
    def values(self) -> Array:
        """Return the estimates; NaN if the client's rows do not determine them."""

    @property
    def comparable(self) -> Mask:
        """Return which clients have a value with the same meaning as those of the others."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return why a value is missing or not comparable, per client; an empty text otherwise."""

    def interval(self) -> tuple[Array, Array]:
        """Return lower and upper ends of the confidence intervals."""

    def pooled(self, among: Mask) -> float:
        """Return the common value of these clients; NaN without clients."""

    def compare_with(self, among: Mask) -> tuple[Array, Array]:
        """Return, for every client against the others among these, the sign of the difference and the log p-value."""


@dataclass(frozen=True, eq=False)
class WeightedEstimates:
    """A level or an effect, with variance `noise · design`.

    Clients are weighted by 1 / design, as if their noise were the same. The pooled effect of a single parent is then
    that of one regression with an intercept for every client, and the pooled level without parents is the mean of all
    rows. The weights do not depend on the estimated noise, so the estimate is unbiased. Its variance Σ w² noise design
    / (Σ w)² allows noise to differ, with Satterthwaite's degrees of freedom. For two clients of equal size without
    parents this is Welch's t test. Degrees of freedom are no more than with equal noise: of many clients with a few
    rows, some have hardly any noise by chance, and that must not count as knowledge about the others.
    """

    quantity: str
    values: Array
    design: Array
    noise: Array
    freedom: Array
    comparable: Mask
    notes: tuple[str, ...]
    share: bool = False  # whether the quantity is a share, in [0, 1]

    @property
    def variance(self) -> Array:
        """Return the variance of each estimate."""
        return self.noise * self.design

    def interval(self) -> tuple[Array, Array]:
        """Return Student's confidence intervals."""
        reach = stats.t.isf(HOLM_ALPHA / 2, np.maximum(self.freedom, 1)) * np.sqrt(self.variance)
        low, high = self.values - reach, self.values + reach
        if self.share:  # a regression may leave [0, 1], but its interval is limited to it
            low, high = np.maximum(low, np.minimum(self.values, 0)), np.minimum(high, np.maximum(self.values, 1))
        return low, high

    def pooled(self, among: Mask) -> float:
        """Return the weighted mean of these clients."""
        use = among & self.comparable
        return float(np.average(self.values[use], weights=1 / self.design[use])) if use.any() else np.nan

    def compare_with(self, among: Mask) -> tuple[Array, Array]:
        """Return sign and log p-value of each client's difference from the weighted mean of the others."""
        use = among & self.comparable
        with np.errstate(invalid="ignore", divide="ignore"):
            weights = np.where(use, np.where(use, self.design, np.inf).min(initial=np.inf) / self.design, 0.0)
            total = _sum_of_others(weights)
            difference = self.values - _sum_of_others(weights * np.where(use, self.values, 0.0)) / total
            shares = np.where(use, weights**2, 0.0), total**2
            variance, freedom = self._difference_variance(self.variance, *shares)
            _, at_most = self._difference_variance(self.design, *shares)
            square = difference**2 / variance
            logs = log_f_tail(square, 1.0, np.minimum(freedom, at_most))
        return np.sign(difference), np.where(self.comparable, logs, np.nan)

    def _difference_variance(self, own: Array, weights: Array, total: Array) -> tuple[Array, Array]:
        """Return the variance of a difference from the weighted others, and its degrees of freedom."""
        parts = np.where(weights > 0, weights * own, 0.0)
        variance = own + _sum_of_others(parts) / total
        rough = own**2 / self.freedom + _sum_of_others(parts**2 / np.maximum(self.freedom, 1)) / total**2
        return variance, variance**2 / rough


@dataclass(frozen=True, eq=False)
class ResidualVariance:
    """A standard deviation of residuals, with `freedom · values² / σ²` approximately chi-square."""

    quantity: str
    values: Array
    freedom: Array
    notes: tuple[str, ...]

    @property
    def comparable(self) -> Mask:
        """Return which clients have an estimate."""
        return ~np.isnan(self.values)

    def interval(self) -> tuple[Array, Array]:
        """Return chi-square confidence intervals."""
        freedom = np.maximum(self.freedom, 1)
        low, high = (np.sqrt(freedom / stats.chi2.isf(tail, freedom)) for tail in (HOLM_ALPHA / 2, 1 - HOLM_ALPHA / 2))
        return self.values * low, self.values * high

    def pooled(self, among: Mask) -> float:
        """Return the root of the mean variance, weighted by degrees of freedom."""
        use = among & self.comparable
        if not use.any():
            return np.nan
        size = float(self.values[use].max())
        return size * float(np.sqrt(np.average((self.values[use] / size) ** 2, weights=self.freedom[use])))

    def compare_with(self, among: Mask) -> tuple[Array, Array]:
        """Return sign and log p-value of the F test of a client's variance against the pooled one of the others."""
        use = among & self.comparable
        with np.errstate(invalid="ignore", divide="ignore"):
            size = np.where(use, self.values, 0.0).max(initial=0.0)
            weights = np.where(use, self.freedom, 0.0)
            freedom = _sum_of_others(weights)
            squares = _sum_of_others(weights * np.where(use, self.values / size, 0.0) ** 2) / freedom
            ratio = (self.values / size) ** 2 / squares
            above, below = log_f_tail(ratio, self.freedom, freedom), log_f_tail(1 / ratio, freedom, self.freedom)
        return np.where(above < below, 1.0, -1.0), np.minimum(np.minimum(above, below) + np.log(2), 0.0)


def _sum_of_others(numbers: Array) -> Array:
    """Return, for every client, the sum over all others, without subtracting from a total that it may dominate."""
    padded = np.concatenate([np.zeros(1), numbers, np.zeros(1)])
    return np.asarray(padded.cumsum()[:-2] + padded[::-1].cumsum()[-3::-1])


@dataclass(frozen=True, eq=False)
class ClientComparison:
    """One quantity of every client compared with the others; NaN if there is nothing to compare.

    Attributes
    ----------
    pooled : float
        The common value of the clients that do not differ.
    deviation : array
        The difference of each client from them, as a standard normal quantile.
    p_value : array
        Two-sided p-values.
    flagged : array of bool
        Which differences are significant after Holm's correction.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.inference.heterogeneity import ClientRegressions
    >>> cohort = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital").cohort
    >>> quantities = list(ClientRegressions.of(cohort).estimates("age", []))
    >>> len(compare_clients(quantities)[0].deviation) == len(cohort.clients)
    True
    """

    pooled: float
    deviation: Array
    p_value: Array
    flagged: Mask


def compare_clients(quantities: Sequence[Estimates]) -> list[ClientComparison]:
    """Compare every client with the others in all quantities of one mechanism.

    Parameters
    ----------
    quantities : sequence of Estimates
        The quantities, as `ClientRegressions.estimates` yields them.

    Returns
    -------
    list of ClientComparison
        One for each quantity; flags by Holm's procedure over all of them.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.inference.heterogeneity import ClientRegressions
    >>> cohort = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital").cohort
    >>> quantities = list(ClientRegressions.of(cohort).estimates("systolic_pressure", []))
    >>> bool(compare_clients(quantities)[0].flagged.any())
    True
    """
    whole = [quantity.compare_with(np.ones(len(quantity.values), dtype=np.bool_))[1] for quantity in quantities]
    comparisons = int(sum((~np.isnan(logs)).sum() for logs in whole))
    agreeing = [_agreeing_clients(quantity, comparisons) for quantity in quantities]
    found = [quantity.compare_with(among) for quantity, among in zip(quantities, agreeing, strict=True)]
    flags = reject_by_holm([logs for _, logs in found])
    return [
        ClientComparison(quantity.pooled(among), sign * _normal_quantile(logs), np.exp(logs), flagged)
        for quantity, among, (sign, logs), flagged in zip(quantities, agreeing, found, flags, strict=True)
    ]


def _agreeing_clients(quantity: Estimates, comparisons: int) -> Mask:
    """Return the clients that remain after those that differ significantly from the rest are set aside."""
    among, clients = np.ones(len(quantity.values), dtype=np.bool_), int(quantity.comparable.sum())
    aside = 0
    while 2 * (aside + 1) < clients:
        logs = np.where(among, quantity.compare_with(among)[1], np.nan)
        deviating = np.flatnonzero(logs < np.log(HOLM_ALPHA / comparisons))
        if not len(deviating):
            break
        deviating = deviating[logs[deviating] <= logs[deviating].min() / 2]  # others may only deviate because of these
        most = min(max(1, (clients - aside) // CLIENTS_PER_EXCLUSION), (clients - 1) // 2 - aside)
        deviating = deviating[np.argsort(logs[deviating], kind="stable")][:most]
        among[deviating], aside = False, aside + len(deviating)
    return among


def reject_by_holm(logs: Sequence[Array]) -> list[Mask]:
    """Return which hypotheses Holm's step-down procedure rejects; NaN stands for none."""
    flat = np.concatenate([*logs, np.zeros(0)])
    order = np.argsort(flat)[: int((~np.isnan(flat)).sum())]
    passed = flat[order] < np.log(HOLM_ALPHA) - np.log(np.arange(len(order), 0, -1))
    rejected = np.zeros(len(flat), dtype=np.bool_)
    rejected[order[: len(passed) if passed.all() else int(np.argmin(passed))]] = True
    return np.split(rejected, np.cumsum([len(part) for part in logs])[:-1])


def _normal_quantile(logs: Array) -> Array:
    """Return the absolute value of a standard normal variable with this two-sided log p-value."""
    return np.asarray(-special.ndtri_exp(logs - np.log(2)))


def log_f_tail(ratio: Array, above: Array | float, below: Array | float) -> Array:
    """Return log P(F > ratio), also if the probability underflows.

    P = I_x(a, b) with x = below / (below + above · ratio), a = below/2, b = above/2; and far out I_x(a, b) = xᵃ (1 −
    x)ᵇ ₂F₁(a + b, 1; a + 1; x) / (a B(a, b)). If ₂F₁ cannot be computed, the geometric series of its first ratio
    replaces it: an error of a few units in a logarithm of hundreds.
    """
    ratio, above, below = np.broadcast_arrays(*(np.asarray(n, dtype=np.float64) for n in (ratio, above, below)))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        a, b, x = below / 2, above / 2, below / (below + above * ratio)
        tail = special.betainc(a, b, x)
        found = np.asarray(np.log(tail))
        far = ~(tail > _MIN_TAIL)
        found[far] = _log_far_tail(a[far], b[far], x[far])
    return found


def _log_far_tail(a: Array, b: Array, x: Array) -> Array:
    series = special.hyp2f1(a + b, 1.0, a + 1, x)
    geometric = 1 / np.maximum(1 - x * (a + b) / (a + 1), 1e-12)
    factor = np.log(np.where(np.isfinite(series) & (series > 0), series, geometric))
    return np.asarray(a * np.log(x) + b * np.log1p(-x) - np.log(a) - special.betaln(a, b) + factor)
