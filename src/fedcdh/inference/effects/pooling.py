"""The mean effect over clients whose effects differ (random effects), and how much they differ.

Estimates b_k with variances v_k are taken as b_k ~ N(μ, v_k + τ²). τ² is estimated by Paule and Mandel: it makes
Q(τ²) = Σ w (b_k − μ̂)² with w = 1/(v_k + τ²) equal to its degrees of freedom K − 1. The interval of μ is that of
Hartung, Knapp, Sidik and Jonkman: the variance is Q(τ²) / ((K − 1) Σ w), with Student's t of K − 1 degrees of freedom.
`benchmarks.bench_effects` shows the coverage of its intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from fedcdh._runtime.array_types import Array

CONFIDENCE = 0.95
"""Nominal coverage of all intervals of effects."""
_STEPS = 200  # Newton steps at most; a few are enough
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class PooledEffect:
    """An effect over all clients.

    Attributes
    ----------
    value : float
        The estimate.
    interval : tuple of float
        Lower and upper end of the 95 % confidence interval.
    standard_error : float
        Its standard error.
    degrees_of_freedom : float
        Degrees of freedom of Student's t distribution in the interval.

    Examples
    --------
    >>> PooledEffect(1.0, (0.5, 1.5), 0.2, 8.0).value
    1.0
    """

    value: float
    interval: tuple[float, float]
    standard_error: float
    degrees_of_freedom: float

    @classmethod
    def of(cls, value: float, variance: float, freedom: float) -> PooledEffect:
        """Return an estimate with Student's interval.

        Parameters
        ----------
        value : float
            The estimate.
        variance : float
            Its variance.
        freedom : float
            Degrees of freedom of the variance.

        Returns
        -------
        PooledEffect
            The effect.
        """
        error = float(np.sqrt(max(variance, 0.0)))
        reach = float(special.stdtrit(max(freedom, 1.0), (1 + CONFIDENCE) / 2)) * error
        return cls(float(value), (float(value - reach), float(value + reach)), error, float(freedom))


@dataclass(frozen=True)
class Heterogeneity:
    """How much the effects of clients differ.

    Attributes
    ----------
    q : float
        Cochran's Q.
    degrees_of_freedom : int
        One less than the number of clients.
    p_value : float
        P-value of Q, if all effects are the same.
    i_squared : float
        The share of the variation that is not chance, from 0 to 1.
    tau_squared : float
        The variance of the effects over clients, in squared units of the effect.

    Examples
    --------
    >>> measure_heterogeneity(np.array([1.0, 3.0]), np.array([0.1, 0.1])).degrees_of_freedom
    1
    """

    q: float
    degrees_of_freedom: int
    p_value: float
    i_squared: float
    tau_squared: float


def measure_heterogeneity(values: Array, variances: Array) -> Heterogeneity:
    """Return how much estimates differ beyond chance.

    Parameters
    ----------
    values : array
        Estimates of clients.
    variances : array
        Their variances.

    Returns
    -------
    Heterogeneity
        Q, I² and τ².

    Examples
    --------
    >>> round(measure_heterogeneity(np.array([1.0, 3.0]), np.array([0.5, 0.5])).q, 6)
    4.0
    """
    freedom = len(values) - 1
    q = _weighted_squares(values, variances, 0.0)[0]
    return Heterogeneity(
        q=q,
        degrees_of_freedom=freedom,
        p_value=float(special.chdtrc(freedom, q)),
        i_squared=max(0.0, 1 - freedom / q) if q > 0 else 0.0,
        tau_squared=estimate_tau_squared(values, variances),
    )


def estimate_tau_squared(values: Array, variances: Array) -> float:
    """Return the variance of effects over clients by the method of Paule and Mandel; 0 if chance explains all.

    Parameters
    ----------
    values : array
        Estimates of clients.
    variances : array
        Their variances.

    Returns
    -------
    float
        τ².

    Examples
    --------
    >>> round(estimate_tau_squared(np.array([1.0, 3.0]), np.array([0.5, 0.5])), 6)
    1.5
    """
    freedom, tau = len(values) - 1, 0.0
    for _ in range(_STEPS):
        q, slope, _, _ = _weighted_squares(values, variances, tau)
        if q - freedom <= _TOLERANCE * freedom or slope <= 0:
            break
        tau += (q - freedom) / slope  # Q(τ²) is convex and falling: Newton's steps never pass the root
    return tau


def pool_random(values: Array, variances: Array) -> PooledEffect:
    """Return the mean effect over clients, whose effects may differ.

    Parameters
    ----------
    values : array
        Estimates of two or more clients.
    variances : array
        Their variances.

    Returns
    -------
    PooledEffect
        The mean, with the interval of Hartung, Knapp, Sidik and Jonkman.

    Examples
    --------
    >>> pool_random(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.1, 0.1])).value
    2.0
    """
    freedom = len(values) - 1
    q, _, mean, weight = _weighted_squares(values, variances, estimate_tau_squared(values, variances))
    return PooledEffect.of(mean, q / freedom / weight, freedom)


def _weighted_squares(values: Array, variances: Array, tau: float) -> tuple[float, float, float, float]:
    """Return Q(τ²), minus its derivative, the weighted mean and the sum of weights."""
    weights = 1 / (variances + tau)
    total = float(weights.sum())
    mean = float(weights @ values) / total
    squares = (values - mean) ** 2
    return float(weights @ squares), float(weights**2 @ squares), mean, total
