"""Noise for summaries: whole numbers from a discrete Gaussian, exactly, from the bits of the operating system.

Samplers in floating point leave traces of the number they were added to in its last digits. Here all numbers are
whole, and every decision "is this uniform number below that probability?" is the exact one: 53 bits of the uniform
number are drawn, which decide unless it is too close to call in float64, and then more bits are drawn, and the
probability computed to more digits, until they do (`_is_below_exp`). The method is that of Canonne, Kamath and Steinke
(2020).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import PlanError, PlanMismatchError, SummaryError
from fedcdh.summaries.dp_parameters import CONSTANT_VARIANCE_RATIO, DPParameters, ceil_sqrt, compose_releases
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Integers, Summary

__all__ = [
    "DPParameters",
    "RandomBytes",
    "add_noise",
    "add_noise_share",
    "clip_noisy_rows",
    "compose_releases",
    "discrete_gaussian",
]

RandomBytes: TypeAlias = Callable[[int], bytes]
"""So many random bytes."""

BoolArray = npt.NDArray[np.bool_]

MIN_ROWS_DEVIATION = 2
"""At least, of the noise in the number of rows, in rows: then rounding it to whole ones is as good as not to."""
_UNIFORM_BITS = 53
_DECISION_TOLERANCE = (
    2.0**-44
)  # of a probability in float64, generously: exponents below 800 are off by 2⁻⁵⁰ of themselves


def add_noise(summary: Summary, plan: StudyPlan, bits: RandomBytes = secrets.token_bytes) -> Summary:
    """The summary with all of the noise that the plan asks for: the only one that may leave.

    Of one client, where each adds its own noise; or of the sum of several, by whoever is trusted with that sum. Rows
    that were read but not used, and missing values, are not told: counts would need noise of their own.

    >>> from fedcdh import Continuous, summarize
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",), clip=6, noise=DPParameters(1, 1e-6))
    >>> message = add_noise(summarize({"age": [50, 61, 72]}, plan, "north"), plan)
    >>> message.noise == plan.noise.deviation ** 2
    True
    """
    noise = _require_noise(summary, plan)
    if noise.shared == "together" and len(summary.clients) == 1:
        raise PlanError(
            "in this plan sites add noise together, so that no site's summary has enough of it by itself; add share() "
            "to it and let only masked sums leave, or plan for shared='each'"
        )
    return clip_noisy_rows(_add_discrete_noise(summary, noise.deviation, bits))


def add_noise_share(summary: Summary, plan: StudyPlan, bits: RandomBytes = secrets.token_bytes) -> Summary:
    """A client's summary with its part of a noise that sites add together: for masked sums, never to be seen."""
    noise = _require_noise(summary, plan)
    if noise.shared != "together" or len(summary.clients) != 1:
        raise PlanError("parts of noise are for the summary of one client, in a plan with shared='together'")
    return _add_discrete_noise(summary, noise.share, bits)


def clip_noisy_rows(summary: Summary) -> Summary:
    """A noisy summary as it is used: of one row at least, and no more rows read than used.

    This looks at nothing but what is released anyway, and so tells nothing more.
    """
    moments = np.array(summary.moments)
    moments[0, 0] = max(int(moments[0, 0]), GRID**2)
    rows = int(moments[0, 0]) // GRID**2
    return replace(summary, moments=moments, rows_read=rows, missing=dict.fromkeys(summary.missing, 0))


def _require_noise(summary: Summary, plan: StudyPlan) -> DPParameters:
    if summary.plan != plan.fingerprint:
        raise PlanMismatchError(
            f"this summary follows plan {summary.plan[:12]}, not {plan.fingerprint[:12]}; make it again"
        )
    if plan.noise is None:
        raise PlanError("this plan asks for no noise; make one with noise=Noise(epsilon=1, delta=1e-6)")
    if summary.noise or summary.copy:
        what = "has its noise already" if summary.noise else "is a bootstrap copy, which a plan with noise has none of"
        raise SummaryError(f"the summary of {', '.join(summary.clients)} {what}; pass what summarize() made")
    return plan.noise


def _add_discrete_noise(summary: Summary, deviation: int, bits: RandomBytes) -> Summary:
    """Sums stay whole steps, and rows whole rows, as they are without noise: so theirs is rounded."""
    size = len(summary.moments)
    upper = np.triu_indices(size)
    drawn = np.zeros((size, size), dtype=np.int64)
    drawn[upper] = discrete_gaussian(noise_deviations(size, deviation)[upper], bits)
    drawn[0] = _round_to_multiple(drawn[0], GRID)
    drawn[0, 0] = _round_to_multiple(drawn[0, :1], GRID**2)[0]
    drawn += np.triu(drawn, 1).T
    moments = summary.moments + drawn
    return replace(
        summary,
        moments=moments,
        rows_read=int(moments[0, 0]) // GRID**2,
        missing=dict.fromkeys(summary.missing, 0),
        noise=deviation**2,
    )


def noise_deviations(columns: int, deviation: int) -> Integers:
    """Of the noise in every entry of the moments, whole numbers, rounded up: σ, on the diagonal √2 σ, in sums √3 σ."""
    found = np.full((columns, columns), deviation, dtype=np.int64)
    first = round(CONSTANT_VARIANCE_RATIO)
    np.fill_diagonal(found, ceil_sqrt(2 * deviation**2))
    found[0] = found[:, 0] = ceil_sqrt(first * deviation**2)
    found[0, 0] = max(ceil_sqrt(2 * first**2 * deviation**2), MIN_ROWS_DEVIATION * GRID**2)
    return found


def _round_to_multiple(drawn: Integers, unit: int) -> Integers:
    """Rounded to multiples of the unit, halves upwards."""
    return (drawn + unit // 2) // unit * unit


def discrete_gaussian(deviation: Integers, bits: RandomBytes = secrets.token_bytes) -> Integers:
    """One whole number x for every σ, with probability ∝ exp(−x²/2σ²).

    x is drawn from the discrete Laplace distribution of scale t = σ + 1 and kept with probability
    exp(−(|x| − σ²/t)²/2σ²), or else drawn again.
    """
    sigma = np.asarray(deviation, dtype=np.int64)
    if sigma.size and (sigma.min() < 1 or sigma.max() > 1 << 53):
        raise PlanError(f"deviations run from {sigma.min()} to {sigma.max()}; expected whole numbers from 1 to 2^53")
    found = np.zeros(sigma.size, dtype=np.int64)
    left = np.arange(sigma.size)
    while len(left):
        s = sigma.ravel()[left]
        x = _discrete_laplace(s + 1, bits)
        # (|x| t − σ²)²/(2 σ² t²); the difference |x| − σ²/t = |x| − (σ − 1) − 1/t is exact but for the last part
        beyond = (np.abs(x) - (s - 1)) - 1.0 / (s + 1)
        kept = _is_below_exp(0.5 * (beyond / s) ** 2, partial(_gaussian_exponent, x, s), bits)
        found[left[kept]] = x[kept]
        left = left[~kept]
    return found.reshape(sigma.shape)


def _gaussian_exponent(x: Integers, s: Integers, i: int) -> Fraction:
    sigma = int(s[i])
    return (abs(int(x[i])) - Fraction(sigma**2, sigma + 1)) ** 2 / (2 * sigma**2)


def _laplace_exponent(above: Integers, below: Integers, i: int) -> Fraction:
    return Fraction(int(above[i]), int(below[i]))


def _unit_exponent(i: int) -> Fraction:
    return Fraction(1)


def _discrete_laplace(scale: Integers, bits: RandomBytes) -> Integers:
    """Whole numbers with probability ∝ exp(−|x|/t): u + t v with u below t, v geometric, a sign, and one zero only."""
    rest = np.zeros(len(scale), dtype=np.int64)
    left = np.arange(len(scale))
    while len(left):
        t = scale[left]
        u = _uniform_below(t, bits)
        kept = _is_below_exp(u / t, partial(_laplace_exponent, u, t), bits)
        rest[left[kept]] = u[kept]
        left = left[~kept]
    size = rest + scale * _geometric(len(scale), bits)
    negative = np.frombuffer(bits(len(scale)), dtype=np.uint8) & 1 == 1
    found = np.where(negative, -size, size)
    if (again := np.flatnonzero(negative & (size == 0))).size:
        found[again] = _discrete_laplace(scale[again], bits)
    return found


def _uniform_below(limit: Integers, bits: RandomBytes) -> Integers:
    """Uniform whole numbers from 0 to below each limit (up to 2⁵⁴)."""
    found = np.zeros(len(limit), dtype=np.int64)
    left = np.arange(len(limit))
    mask = (1 << np.ceil(np.log2(limit + 1)).astype(np.int64)) - 1  # at least limit − 1: a bit too many does no harm
    while len(left):
        drawn = np.frombuffer(bits(8 * len(left)), dtype="<i8") & mask[left]
        good = drawn < limit[left]
        found[left[good]] = drawn[good]
        left = left[~good]
    return found


def _geometric(count: int, bits: RandomBytes) -> Integers:
    """How many times in a row an event of probability 1/e happens."""
    found = np.zeros(count, dtype=np.int64)
    left = np.arange(count)
    while len(left):
        again = _is_below_exp(np.ones(len(left)), _unit_exponent, bits)
        left = left[again]
        found[left] += 1
    return found


def _is_below_exp(exponent: Array, exactly: Callable[[int], Fraction], bits: RandomBytes) -> BoolArray:
    """Whether uniform numbers in [0, 1) are below exp(−exponent); `exactly` gives one exponent as a fraction.

    With 53 bits u of a uniform number, it lies in [u, u + 2⁻⁵³].
    """
    drawn = (np.frombuffer(bits(8 * len(exponent)), dtype="<u8") >> np.uint64(64 - _UNIFORM_BITS)).astype(np.int64)
    apart = np.exp(-exponent) - drawn * 2.0**-_UNIFORM_BITS
    found = np.asarray(apart > 0)
    for i in np.flatnonzero(np.abs(apart) < _DECISION_TOLERANCE).tolist():
        found[i] = _is_exactly_below(int(drawn[i]), exactly(i), bits)
    return found


def _is_exactly_below(drawn: int, exponent: Fraction, bits: RandomBytes) -> bool:
    """The same for one number of which 53 bits are drawn, with 64 more bits at a time."""
    known = _UNIFORM_BITS
    while True:
        drawn, known = (drawn << 64) | int.from_bytes(bits(8), "little"), known + 64
        with localcontext() as context:
            context.prec = 40 + known
            limit = (-Decimal(exponent.numerator) / exponent.denominator).exp() * (1 << known)
            error = limit * Decimal(10) ** (10 - context.prec) + Decimal(10) ** -20
        if drawn + 1 <= limit - error:
            return True
        if drawn >= limit + error:
            return False
