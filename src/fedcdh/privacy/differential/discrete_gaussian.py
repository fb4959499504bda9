"""An exact sampler of the discrete Gaussian distribution, from the random bytes of the operating system.

Samplers in floating point leave traces of the number they are added to in its last digits. Here all numbers are
integers, and each decision "is this uniform number below that probability?" is exact. The first 53 bits of the uniform
number decide, unless float64 cannot tell; then more bits are drawn, and the probability is computed to more digits,
until they decide (`_is_below_exp`).

References
----------
C. L. Canonne, G. Kamath, T. Steinke: The Discrete Gaussian for Differential Privacy. NeurIPS 2020.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import PlanError

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Returns the given number of random bytes."""

Integers = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

MAX_DEVIATION = 1 << 53
_UNIFORM_BITS = 53
_DECISION_TOLERANCE = 2.0**-44  # generous error of a probability in float64: exponents below 800 are off by 2⁻⁵⁰


def sample_discrete_gaussian(deviation: Integers, random: RandomBytes = secrets.token_bytes) -> Integers:
    """Draw one integer x for every σ, with probability proportional to exp(−x²/2σ²).

    Parameters
    ----------
    deviation : array of int
        The parameters σ, from 1 to 2⁵³.
    random : callable, optional
        Returns the given number of random bytes. Default: the operating system's generator.

    Returns
    -------
    array of int
        One draw for every σ.

    Raises
    ------
    PlanError
        If a σ is out of range.

    Notes
    -----
    x is drawn from the discrete Laplace distribution of scale t = σ + 1 and accepted with probability
    ``exp(−(|x| − σ²/t)²/2σ²)``; otherwise it is drawn again.

    Examples
    --------
    >>> sample_discrete_gaussian(np.array([5, 5, 5])).shape
    (3,)
    """
    sigma = np.asarray(deviation, dtype=np.int64)
    if sigma.size and (sigma.min() < 1 or sigma.max() > MAX_DEVIATION):
        raise PlanError(
            f"The deviations run from {sigma.min()} to {sigma.max()}. Expected integers from 1 to 2^53. Choose a "
            "larger epsilon, or fewer rows"
        )
    found = np.zeros(sigma.size, dtype=np.int64)
    left = np.arange(sigma.size)
    while len(left):
        s = sigma.ravel()[left]
        x = _sample_discrete_laplace(s + 1, random)
        # (|x| t − σ²)²/(2 σ² t²); the difference |x| − σ²/t = |x| − (σ − 1) − 1/t is exact except for its last term
        beyond = (np.abs(x) - (s - 1)) - 1.0 / (s + 1)
        kept = _is_below_exp(0.5 * (beyond / s) ** 2, partial(_gaussian_exponent, x, s), random)
        found[left[kept]] = x[kept]
        left = left[~kept]
    return found.reshape(sigma.shape)


def _gaussian_exponent(x: Integers, s: Integers, i: int) -> Fraction:
    sigma = int(s[i])
    return (abs(int(x[i])) - Fraction(sigma**2, sigma + 1)) ** 2 / (2 * sigma**2)


def _laplace_exponent(numerator: Integers, denominator: Integers, i: int) -> Fraction:
    return Fraction(int(numerator[i]), int(denominator[i]))


def _unit_exponent(i: int) -> Fraction:
    return Fraction(1)


def _sample_discrete_laplace(scale: Integers, random: RandomBytes) -> Integers:
    """Draw integers with probability proportional to exp(−|x|/t).

    |x| is u + t v with u below t and v geometric; it gets a random sign, and −0 is drawn again.
    """
    rest = np.zeros(len(scale), dtype=np.int64)
    left = np.arange(len(scale))
    while len(left):
        t = scale[left]
        u = _sample_below(t, random)
        kept = _is_below_exp(u / t, partial(_laplace_exponent, u, t), random)
        rest[left[kept]] = u[kept]
        left = left[~kept]
    size = rest + scale * _sample_geometric(len(scale), random)
    negative = np.frombuffer(random(len(scale)), dtype=np.uint8) & 1 == 1
    found = np.where(negative, -size, size)
    if (again := np.flatnonzero(negative & (size == 0))).size:
        found[again] = _sample_discrete_laplace(scale[again], random)
    return found


def _sample_below(limit: Integers, random: RandomBytes) -> Integers:
    """Draw uniform integers from 0 to below each limit (up to 2⁵⁴)."""
    found = np.zeros(len(limit), dtype=np.int64)
    left = np.arange(len(limit))
    mask = (1 << np.ceil(np.log2(limit + 1)).astype(np.int64)) - 1  # at least limit − 1; one bit more is harmless
    while len(left):
        drawn = np.frombuffer(random(8 * len(left)), dtype="<i8") & mask[left]
        good = drawn < limit[left]
        found[left[good]] = drawn[good]
        left = left[~good]
    return found


def _sample_geometric(count: int, random: RandomBytes) -> Integers:
    """Draw how many times in a row an event of probability 1/e happens."""
    found = np.zeros(count, dtype=np.int64)
    left = np.arange(count)
    while len(left):
        again = _is_below_exp(np.ones(len(left)), _unit_exponent, random)
        left = left[again]
        found[left] += 1
    return found


def _is_below_exp(exponent: Array, exactly: Callable[[int], Fraction], random: RandomBytes) -> BoolArray:
    """Return whether uniform numbers in [0, 1) are below exp(−exponent); `exactly` gives an exponent as a fraction.

    A uniform number whose first 53 bits are u lies in [u, u + 2⁻⁵³].
    """
    bits = np.frombuffer(random(8 * len(exponent)), dtype="<u8") >> np.uint64(64 - _UNIFORM_BITS)
    drawn = bits.astype(np.int64)
    difference = np.exp(-exponent) - drawn * 2.0**-_UNIFORM_BITS
    found = np.asarray(difference > 0)
    for i in np.flatnonzero(np.abs(difference) < _DECISION_TOLERANCE).tolist():
        found[i] = _is_exactly_below(int(drawn[i]), exactly(i), random)
    return found


def _is_exactly_below(drawn: int, exponent: Fraction, random: RandomBytes) -> bool:
    """Decide the same for one number whose first 53 bits are drawn, with 64 more bits at a time."""
    known = _UNIFORM_BITS
    while True:
        drawn, known = (drawn << 64) | int.from_bytes(random(8), "little"), known + 64
        with localcontext() as context:
            context.prec = 40 + known
            limit = (-Decimal(exponent.numerator) / exponent.denominator).exp() * (1 << known)
            error = limit * Decimal(10) ** (10 - context.prec) + Decimal(10) ** -20
        if drawn + 1 <= limit - error:
            return True
        if drawn >= limit + error:
            return False
