"""Parameters of differential privacy in a plan: epsilon, delta, and the noise they require.

A row adds φφᵀ to the moments, φ = [1, features], and with noise its features lie in a ball, |features| ≤ 1
(`features.bounded`). Products of two features get noise of standard deviation σ, squares √2 σ, sums √3 σ, the number of
rows 3√2 σ. In units of its noise, one row then changes the moments by

    √(Σ_i<j (φ_i φ_j)² + Σ φ_i⁴/2) / σ = |φ|²/(√2 σ) ≤ (1/3 + 1)/(√2 σ),  with the constant counted as 1/√3,

for any number of variables. `docs/noise.md` has the proof, and explains (epsilon, delta).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from scipy import optimize, special

from fedcdh.errors import PlanError

CONSTANT_VARIANCE_RATIO = 3.0
"""Variance of the noise in sums, relative to that in products of two features: gives the constant a weight of 1/√3."""
SENSITIVITY = (1 + 1 / CONSTANT_VARIANCE_RATIO) / math.sqrt(2)
"""Largest change of the moments by one row, in units of their noise where σ = 1."""
PRODUCT_STEPS = 1 << 36
"""Steps of the grid in a product of two features that are 1: the square of `encoder.GRID`."""
MIN_EPSILON, MAX_EPSILON, MIN_DELTA, MAX_DELTA = 0.01, 10.0, 1e-10, 1e-2
MAX_NOISY_COLUMNS = 300
"""Columns of features. Up to this number, and within the limits of epsilon and delta, discrete noise differs from
Gaussian noise by less than a thousandth of delta: `docs/noise.md`, The mechanism."""
DEFAULT_EXPECTED_ROWS = 10_000
_DELTA_MARGIN = 1e-3


@dataclass(frozen=True)
class DPParameters:
    """Differential privacy of a study's summaries, as agreed on in its plan.

    Attributes
    ----------
    epsilon : float
        Privacy parameter ε, from 0.01 to 10.
    delta : float, default 1e-6
        Privacy parameter δ, from 1e-10 to 0.01.
    distributed : bool, default False
        False: every client adds all of the noise to its own summary, so that a single summary is private. True: every
        client adds a part, and only the sum over clients has all of it; secure aggregation has to hide the single ones.
    honest : int, default 1
        With distributed noise, the number of clients whose noise is relied on, whatever the others do.
    expected_rows : int, default 10000
        Rough number of rows of all clients. With more rows, tails may reach further (`features.bounded`).
    degree : int, default 3
        Highest power of a continuous value among the features: 1, 2 or 3.

    Examples
    --------
    >>> round(DPParameters(epsilon=1, delta=1e-5).deviation / 2**36, 2)
    3.52
    """

    epsilon: float
    delta: float = 1e-6
    distributed: bool = False
    honest: int = 1
    expected_rows: int = DEFAULT_EXPECTED_ROWS
    degree: int = 3

    def __post_init__(self) -> None:
        for what, number in (("epsilon", self.epsilon), ("delta", self.delta)):
            if not isinstance(number, (int, float)) or isinstance(number, bool):
                raise PlanError(
                    f"{what} is {str(number)[:80]!r}; expected a number; a usual choice is epsilon 1 and delta 1e-6",
                    parameter=what,
                )
        if not MIN_EPSILON <= self.epsilon <= MAX_EPSILON:
            raise PlanError(
                f"epsilon is {self.epsilon}; expected a number from {MIN_EPSILON:g} to {MAX_EPSILON:g}; a usual choice "
                "is 1",
                parameter="epsilon",
            )
        if not MIN_DELTA <= self.delta <= MAX_DELTA:
            raise PlanError(
                f"delta is {self.delta}; expected a number from {MIN_DELTA:g} to {MAX_DELTA:g}; a usual choice is 1e-6",
                parameter="delta",
            )
        if not isinstance(self.distributed, bool):
            raise PlanError(
                f"distributed is {str(self.distributed)[:80]!r}; expected True (every client adds a part of the noise) "
                "or False (every client adds all of it)",
                parameter="distributed",
            )
        for what, found, least, most in (
            ("honest", self.honest, 1, 1_000_000),
            ("expected_rows", self.expected_rows, 100, (1 << 27) - 1),
            ("degree", self.degree, 1, 3),
        ):
            if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
                raise PlanError(
                    f"{what} of the noise is {str(found)[:80]}; expected a whole number from {least} to {most}",
                    parameter=what,
                )
        if self.honest > 1 and not self.distributed:
            raise PlanError(
                f"{self.honest} honest clients are named, but every client adds all of the noise itself; honest "
                "clients are counted with distributed noise only; leave their number out, or distribute the noise",
                parameter="honest",
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))

    @cached_property
    def deviation(self) -> int:
        """Return σ of the noise in a released product of two features, in steps of the grid of products."""
        return math.ceil(
            calibrate_deviation(self.epsilon, self.delta * (1 - _DELTA_MARGIN))
            * SENSITIVITY
            * (1 + 1e-9)
            * PRODUCT_STEPS
        )

    @property
    def client_deviation(self) -> int:
        """Return σ of the noise that one client adds.

        It is all of the noise, or the part with which the honest clients together reach the variance σ².
        """
        return ceil_sqrt(-(-(self.deviation**2) // self.honest)) if self.distributed else self.deviation


def calibrate_deviation(epsilon: float, delta: float) -> float:
    """Return the least σ with which a sum that one row changes by at most 1 is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon : float
        Privacy parameter ε.
    delta : float
        Privacy parameter δ.

    Returns
    -------
    float
        Standard deviation σ of the Gaussian noise.

    References
    ----------
    Balle and Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8.

    Examples
    --------
    >>> round(calibrate_deviation(1.0, 1e-5), 4)
    3.7306
    """
    start, end = 1e-3, 1e7
    found = optimize.brentq(
        lambda log: math.log(max(gaussian_delta(epsilon, math.exp(log)), 1e-300)) - math.log(delta),
        math.log(start),
        math.log(end),
        xtol=1e-14,
        rtol=1e-14,
    )
    return math.exp(found)


def gaussian_delta(epsilon: float, deviation: float) -> float:
    """Return the least delta of Gaussian noise for a sum that one row changes by 1.

    Parameters
    ----------
    epsilon : float
        Privacy parameter ε.
    deviation : float
        Standard deviation σ of the noise.

    Returns
    -------
    float
        Φ(1/2σ − εσ) − exp(ε) Φ(−1/2σ − εσ).

    Examples
    --------
    >>> round(gaussian_delta(1.0, 3.7306), 7)
    1e-05
    """
    near, far = 0.5 / deviation - epsilon * deviation, -0.5 / deviation - epsilon * deviation
    return float(special.ndtr(near) - math.exp(epsilon + special.log_ndtr(far)))


def compose_releases(releases: Iterable[DPParameters]) -> tuple[float, float]:
    """Return the epsilon and the delta that several releases of the same rows cost together: both add up.

    Parameters
    ----------
    releases : iterable of DPParameters
        Parameters of each release.

    Returns
    -------
    tuple of float
        Total epsilon and total delta.

    Examples
    --------
    >>> compose_releases([DPParameters(1, 1e-6), DPParameters(0.5, 1e-6)])
    (1.5, 2e-06)
    """
    listed = list(releases)
    return math.fsum(noise.epsilon for noise in listed), math.fsum(noise.delta for noise in listed)


def ceil_sqrt(square: int) -> int:
    """Return the least whole number whose square is at least the given one."""
    return math.isqrt(square - 1) + 1 if square > 0 else 0
