"""How far each client is from the others: intervals, a pooled estimate, and standardised deviations.

A client is compared with the other clients that are not themselves found to differ: one client that is far off would
otherwise make all others look odd. Whoever is most unlike the rest is set aside (of many clients, one in `CLIENTS_PER_EXCLUSION` at a
time), as long as that is significant and a majority is left; then every client is compared with what is left, itself
not counted. Where nothing differs, that is all other clients. Deviations are on the scale of a standard normal
variable, whatever the number of rows: the normal quantile of the test's p-value, with the sign of the difference.
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
"""Of Holm's procedure over all clients and quantities of a mechanism; intervals hold with one minus this."""
CLIENTS_PER_EXCLUSION = 50
"""Of so many clients that are left, one is set aside before all are compared again: rounds do not grow with clients."""
_MIN_TAIL = 1e-290


class Estimates(Protocol):
    """One quantity of a mechanism at every client."""

    @property
    def quantity(self) -> str: ...

    @property
    def values(self) -> Array:
        """NaN where the client's rows do not tell."""

    @property
    def comparable(self) -> Mask:
        """Which clients have a value that means the same as that of the others."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Why a value is missing or not comparable, per client; empty where nothing is to be said."""

    def interval(self) -> tuple[Array, Array]: ...

    def pooled(self, among: Mask) -> float:
        """The value that these clients have in common, if they have one; NaN without clients."""

    def apart(self, among: Mask) -> tuple[Array, Array]:
        """Of every client against those others: the sign of the difference, and the log of the p-value."""


@dataclass(frozen=True, eq=False)
class WeightedEstimates:
    """A level or an effect, with variance `noise · design`.

    Clients are weighed by 1 / design: as if their noise were the same, which makes the pooled effect of an only parent
    that of one regression with an intercept for every client, and the pooled level without parents the mean of all
    rows. The weights do not depend on the noise found, so the estimate is unbiased; its variance Σ w² noise design /
    (Σ w)² lets noise differ, and degrees of freedom are Satterthwaite's. Two clients with as many rows and no parents:
    Welch's t test. Degrees of freedom are no more than with the same noise everywhere: of many clients with a few rows,
    some have hardly any noise by chance, and what they know of it must not seem to come from the others.
    """

    quantity: str
    values: Array
    design: Array
    noise: Array
    freedom: Array
    comparable: Mask
    notes: tuple[str, ...]
    share: bool = False  # whether it lies in [0, 1]

    @property
    def variance(self) -> Array:
        return self.noise * self.design

    def interval(self) -> tuple[Array, Array]:
        """Student's."""
        reach = stats.t.isf(HOLM_ALPHA / 2, np.maximum(self.freedom, 1)) * np.sqrt(self.variance)
        low, high = self.values - reach, self.values + reach
        if self.share:  # a regression may leave [0, 1]; its interval need not
            low, high = np.maximum(low, np.minimum(self.values, 0)), np.minimum(high, np.maximum(self.values, 1))
        return low, high

    def pooled(self, among: Mask) -> float:
        use = among & self.comparable
        return float(np.average(self.values[use], weights=1 / self.design[use])) if use.any() else np.nan

    def apart(self, among: Mask) -> tuple[Array, Array]:
        use = among & self.comparable
        with np.errstate(invalid="ignore", divide="ignore"):
            weights = np.where(use, np.where(use, self.design, np.inf).min(initial=np.inf) / self.design, 0.0)
            total = _sum_of_others(weights)
            difference = self.values - _sum_of_others(weights * np.where(use, self.values, 0.0)) / total
            shares = np.where(use, weights**2, 0.0), total**2
            variance, freedom = self._beside(self.variance, *shares)
            _, at_most = self._beside(self.design, *shares)
            square = difference**2 / variance
            logs = log_f_tail(square, 1.0, np.minimum(freedom, at_most))
        return np.sign(difference), np.where(self.comparable, logs, np.nan)

    def _beside(self, own: Array, weights: Array, total: Array) -> tuple[Array, Array]:
        """The variance of a difference from the weighed others, of variances of their own, and degrees of freedom."""
        parts = np.where(weights > 0, weights * own, 0.0)
        variance = own + _sum_of_others(parts) / total
        rough = own**2 / self.freedom + _sum_of_others(parts**2 / np.maximum(self.freedom, 1)) / total**2
        return variance, variance**2 / rough


@dataclass(frozen=True, eq=False)
class ResidualVariance:
    """A standard deviation of residuals, `freedom · values² / σ²` being chi-square, or nearly so."""

    quantity: str
    values: Array
    freedom: Array
    notes: tuple[str, ...]

    @property
    def comparable(self) -> Mask:
        return ~np.isnan(self.values)

    def interval(self) -> tuple[Array, Array]:
        freedom = np.maximum(self.freedom, 1)
        low, high = (np.sqrt(freedom / stats.chi2.isf(tail, freedom)) for tail in (HOLM_ALPHA / 2, 1 - HOLM_ALPHA / 2))
        return self.values * low, self.values * high

    def pooled(self, among: Mask) -> float:
        """The root of the mean variance, weighed by degrees of freedom."""
        use = among & self.comparable
        if not use.any():
            return np.nan
        size = float(self.values[use].max())
        return size * float(np.sqrt(np.average((self.values[use] / size) ** 2, weights=self.freedom[use])))

    def apart(self, among: Mask) -> tuple[Array, Array]:
        """The F test of a client's variance against the pooled one of the others, both tails alike."""
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
    """Of every client the sum over all others; nothing is taken out of a sum again, of which it may be the most."""
    padded = np.concatenate([np.zeros(1), numbers, np.zeros(1)])
    return np.asarray(padded.cumsum()[:-2] + padded[::-1].cumsum()[-3::-1])


@dataclass(frozen=True, eq=False)
class ClientComparison:
    """One quantity at every client beside the others; NaN where there is nothing to compare."""

    pooled: float
    deviation: Array
    p_value: Array
    flagged: Mask


def compare_clients(quantities: Sequence[Estimates]) -> list[ClientComparison]:
    """Every client against the others in all quantities of one mechanism; flags by Holm's procedure over all."""
    whole = [quantity.apart(np.ones(len(quantity.values), dtype=np.bool_))[1] for quantity in quantities]
    comparisons = int(sum((~np.isnan(logs)).sum() for logs in whole))
    agreeing = [_agreeing_clients(quantity, comparisons) for quantity in quantities]
    found = [quantity.apart(among) for quantity, among in zip(quantities, agreeing, strict=True)]
    flags = reject_by_holm([logs for _, logs in found])
    return [
        ClientComparison(quantity.pooled(among), sign * _normal_quantile(logs), np.exp(logs), flagged)
        for quantity, among, (sign, logs), flagged in zip(quantities, agreeing, found, flags, strict=True)
    ]


def _agreeing_clients(quantity: Estimates, comparisons: int) -> Mask:
    """The clients that are left when those that differ significantly from the rest are set aside."""
    among, clients = np.ones(len(quantity.values), dtype=np.bool_), int(quantity.comparable.sum())
    aside = 0
    while 2 * (aside + 1) < clients:
        logs = np.where(among, quantity.apart(among)[1], np.nan)
        odd = np.flatnonzero(logs < np.log(HOLM_ALPHA / comparisons))
        if not len(odd):
            break
        odd = odd[logs[odd] <= logs[odd].min() / 2]  # others may look odd because of these
        most = min(max(1, (clients - aside) // CLIENTS_PER_EXCLUSION), (clients - 1) // 2 - aside)
        odd = odd[np.argsort(logs[odd], kind="stable")][:most]
        among[odd], aside = False, aside + len(odd)
    return among


def reject_by_holm(logs: Sequence[Array]) -> list[Mask]:
    """Which hypotheses Holm's step-down procedure rejects; NaN stands for none."""
    flat = np.concatenate([*logs, np.zeros(0)])
    order = np.argsort(flat)[: int((~np.isnan(flat)).sum())]
    passed = flat[order] < np.log(HOLM_ALPHA) - np.log(np.arange(len(order), 0, -1))
    rejected = np.zeros(len(flat), dtype=np.bool_)
    rejected[order[: len(passed) if passed.all() else int(np.argmin(passed))]] = True
    return np.split(rejected, np.cumsum([len(part) for part in logs])[:-1])


def _normal_quantile(logs: Array) -> Array:
    """How far out a standard normal variable has such a two-sided p-value."""
    return np.asarray(-special.ndtri_exp(logs - np.log(2)))


def log_f_tail(ratio: Array, above: Array | float, below: Array | float) -> Array:
    """log P(F > ratio), also where the probability itself is too small for a number.

    P = I_x(a, b) with x = below / (below + above · ratio), a = below/2, b = above/2; and far out
    I_x(a, b) = xᵃ (1 − x)ᵇ ₂F₁(a + b, 1; a + 1; x) / (a B(a, b)). Where ₂F₁ cannot be computed, the geometric series of
    its first ratio stands for it: a few units in a logarithm of hundreds.
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
