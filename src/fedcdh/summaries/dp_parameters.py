"""What a plan says about differential privacy: epsilon, delta, and how much noise that takes.

A row adds φφᵀ to the moments, φ = [1, features], and with noise its features lie in a ball, |features| ≤ 1
(`features.ball`). Products of two features get noise of standard deviation σ, squares √2 σ, sums √3 σ, the number of
rows 3√2 σ. In units of its noise, one row then moves the moments by

    √(Σ_i<j (φ_i φ_j)² + Σ φ_i⁴/2) / σ = |φ|²/(√2 σ) ≤ (1/3 + 1)/(√2 σ),  with the constant counted as 1/√3,

however many variables there are. `docs/noise.md` has the proof, and says what (epsilon, delta) means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from scipy import optimize, special

from fedcdh.errors import PlanError

CONSTANT_VARIANCE_RATIO = 3.0
"""The variance of noise in sums, beside that in products of two features: weighs the constant down to 1/√3."""
SENSITIVITY = (1 + 1 / CONSTANT_VARIANCE_RATIO) / math.sqrt(2)
"""What one row moves the moments by at most, in units of their noise where σ = 1."""
PRODUCT_STEPS = 1 << 36
"""Of the grid, in a product of two features that are 1: the square of `encoding.GRID`."""
MIN_EPSILON, MAX_EPSILON, MIN_DELTA, MAX_DELTA = 0.01, 10.0, 1e-10, 1e-2
MAX_NOISY_COLUMNS = 300
"""Up to so many columns of features, and with these epsilons and deltas, what separates whole steps from a bell curve
is below a thousandth of delta: `docs/noise.md`, The mechanism."""
DEFAULT_EXPECTED_ROWS = 10_000
_DELTA_MARGIN = 1e-3


@dataclass(frozen=True)
class DPParameters:
    """The noise of a study's summaries, agreed on in its plan.

    `shared` says who adds it. "each": every site adds all of it to its own summary, and whoever sees one sees that much
    noise. "together": every site adds a part, and only the sum over sites, which has to come about without anybody
    seeing the single ones, has all of it; `honest` sites have to add theirs for that, whatever the others do.

    `rows` is how many rows are expected in all, roughly: with more of them, tails may reach further (`features.ball`).
    With `degree` 1, only the values themselves are looked at; with 2 and 3 their squares and cubes as well.

    >>> round(DPParameters(epsilon=1, delta=1e-5).deviation / 2**36, 2)
    3.52
    """

    epsilon: float
    delta: float = 1e-6
    shared: Literal["each", "together"] = "each"
    honest: int = 1
    rows: int = DEFAULT_EXPECTED_ROWS
    degree: int = 3

    def __post_init__(self) -> None:
        for what, number in (("epsilon", self.epsilon), ("delta", self.delta)):
            if not isinstance(number, (int, float)) or isinstance(number, bool):
                raise PlanError(f"{what} is {str(number)[:80]!r}; expected a number")
        right = MIN_EPSILON <= self.epsilon <= MAX_EPSILON and MIN_DELTA <= self.delta <= MAX_DELTA
        if not right:
            raise PlanError(
                f"noise needs an epsilon from {MIN_EPSILON:g} to {MAX_EPSILON:g} and a delta from "
                f"{MIN_DELTA:g} to {MAX_DELTA:g}, found {self.epsilon} and {self.delta}; a usual choice is 1 "
                "and 1e-6"
            )
        if self.shared not in ("each", "together"):
            raise PlanError(f"noise is added by {str(self.shared)[:80]!r}; expected 'each' or 'together'")
        for what, found, least, most in (
            ("honest", self.honest, 1, 1_000_000),
            ("rows", self.rows, 100, (1 << 27) - 1),
            ("degree", self.degree, 1, 3),
        ):
            if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
                raise PlanError(
                    f"{what} of the noise is {str(found)[:80]}; expected a whole number from {least} to {most}"
                )
        if self.honest > 1 and self.shared == "each":
            raise PlanError(
                "honest sites are counted where noise is added together; leave their number out", parameter="honest"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))

    @cached_property
    def deviation(self) -> int:
        """σ of what is released, in steps of the grid of products."""
        return math.ceil(
            calibrate_deviation(self.epsilon, self.delta * (1 - _DELTA_MARGIN))
            * SENSITIVITY
            * (1 + 1e-9)
            * PRODUCT_STEPS
        )

    @property
    def share(self) -> int:
        """σ of what a site adds: all of it, or so much that the parts of the honest sites have the variance σ²."""
        return self.deviation if self.shared == "each" else ceil_sqrt(-(-(self.deviation**2) // self.honest))


def calibrate_deviation(epsilon: float, delta: float) -> float:
    """The least σ with which a sum that one row moves by at most 1 is (epsilon, delta)-private (Balle and Wang 2018).

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
    """The least delta of Gaussian noise for a sum that one row moves by 1: Φ(1/2σ − εσ) − exp(ε) Φ(−1/2σ − εσ)."""
    near, far = 0.5 / deviation - epsilon * deviation, -0.5 / deviation - epsilon * deviation
    return float(special.ndtr(near) - math.exp(epsilon + special.log_ndtr(far)))


def compose_releases(releases: Iterable[DPParameters]) -> tuple[float, float]:
    """What several releases of the same rows cost together: epsilons add up, and so do deltas.

    >>> compose_releases([DPParameters(1, 1e-6), DPParameters(0.5, 1e-6)])
    (1.5, 2e-06)
    """
    listed = list(releases)
    return math.fsum(noise.epsilon for noise in listed), math.fsum(noise.delta for noise in listed)


def ceil_sqrt(square: int) -> int:
    """The least whole number whose square is not below."""
    return math.isqrt(square - 1) + 1 if square > 0 else 0
