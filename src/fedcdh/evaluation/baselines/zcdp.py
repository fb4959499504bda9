"""Zero-concentrated differential privacy (zCDP): what mechanisms cost, how costs add up, what they mean as (ε, δ).

A mechanism that is ρ-zCDP has a privacy loss no larger, in all Rényi divergences, than that of Gaussian noise with
sensitivity² / (2 variance) = ρ. Costs ρ of several releases of the same rows add up (Bun and Steinke 2016).
"""

from __future__ import annotations

import math

from scipy import optimize

from fedcdh.errors import SettingsError


def cost_of_gaussian_noise(sensitivity: float, deviation: float) -> float:
    """Return ρ of Gaussian noise in a sum that one row changes by at most `sensitivity` in Euclidean length.

    >>> cost_of_gaussian_noise(1.0, 5.0)
    0.02
    """
    return sensitivity**2 / (2.0 * deviation**2)


def cost_of_exponential_mechanism(epsilon: float) -> float:
    """Return ρ of one draw with chances ∝ exp(ε score / (2 sensitivity)): ε²/8 (Rogers and Steinke 2021).

    >>> cost_of_exponential_mechanism(2.0)
    0.5
    """
    return epsilon**2 / 8.0


def epsilon_of_cost(rho: float, delta: float) -> float:
    """Return the least ε with which ρ-zCDP is known to imply (ε, δ) (Canonne, Kamath and Steinke 2020).

    It is the minimum over α > 1 of αρ + (log 1/δ + (α − 1) log(1 − 1/α) − log α)/(α − 1), and never above the usual
    ρ + 2 √(ρ log 1/δ).

    >>> round(epsilon_of_cost(0.02, 1e-5), 3), round(0.02 + 2 * math.sqrt(0.02 * math.log(1e5)), 3)
    (0.794, 0.98)
    """
    if rho < 0 or not 0 < delta < 1:
        raise SettingsError(
            f"found rho {rho} and delta {delta}; expected rho of at least 0 and 0 < delta < 1; correct these"
        )
    if rho == 0:
        return 0.0

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)  # α − 1
        more = -math.log(delta) - excess * math.log1p(1.0 / excess) - math.log1p(excess)
        return (1.0 + excess) * rho + more / excess

    usual = 0.5 * math.log(max(-math.log(delta), 1e-12) / rho)  # the α − 1 of the usual bound
    found = optimize.minimize_scalar(
        bound, bounds=(usual - 8.0, usual + 8.0), method="bounded", options={"xatol": 1e-10}
    )
    return max(0.0, min(float(found.fun), rho + 2.0 * math.sqrt(-rho * math.log(delta))))


def cost_of_epsilon(epsilon: float, delta: float) -> float:
    """Return the largest ρ that (ε, δ) allows: the inverse of `epsilon_of_cost`.

    >>> round(cost_of_epsilon(1.0, 1e-5), 4)
    0.0306
    """
    if epsilon <= 0:
        raise SettingsError(f"found epsilon {epsilon}; expected a positive number; a usual choice is 1")
    low, high = 1e-12, epsilon + 1.0
    while epsilon_of_cost(high, delta) < epsilon:
        high *= 2.0
    found = optimize.brentq(lambda log: epsilon_of_cost(math.exp(log), delta) - epsilon, math.log(low), math.log(high))
    return math.exp(found) * (1.0 - 1e-9)  # the root is known to rounding only: stay on the safe side
