"""Laws of the accountant: costs add up, conversions invert each other, and none promises more than is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.zcdp import (
    cost_of_epsilon,
    cost_of_exponential_mechanism,
    cost_of_gaussian_noise,
    epsilon_of_cost,
)
from fedcdh.summaries.dp_parameters import calibrate_deviation, gaussian_delta

DELTAS = (1e-3, 1e-5, 1e-8)


def test_calibration_inverts_the_conversion():
    for epsilon in (0.1, 0.5, 1.0, 4.0, 10.0):
        for delta in DELTAS:
            rho = cost_of_epsilon(epsilon, delta)
            assert epsilon_of_cost(rho, delta) == pytest.approx(epsilon, rel=1e-6)
            assert epsilon_of_cost(rho, delta) <= epsilon
            assert cost_of_epsilon(2 * epsilon, delta) > rho > cost_of_epsilon(epsilon, delta / 10)


def test_the_conversion_lies_between_the_exact_gaussian_and_the_usual_bound():
    """Gaussian noise of cost ρ has an exact ε (Balle and Wang): no conversion of ρ alone may be below it."""
    for rho in (1e-3, 0.02, 0.3, 2.0):
        for delta in DELTAS:
            found = epsilon_of_cost(rho, delta)
            assert found <= rho + 2 * math.sqrt(rho * math.log(1 / delta))
            deviation = 1 / math.sqrt(2 * rho)
            assert gaussian_delta(found, deviation) <= delta
            assert calibrate_deviation(found, delta) <= deviation * (1 + 1e-9)


def test_costs_of_gaussian_releases_add_up_like_one_with_less_noise():
    """Nine sums with deviation σ tell as much as one with σ/3: the account must agree exactly."""
    assert 9 * cost_of_gaussian_noise(2.0, 6.0) == pytest.approx(cost_of_gaussian_noise(2.0, 2.0))


def test_the_cost_of_a_choice_bounds_its_renyi_divergence():
    """For the worst two score vectors that one row allows, D_α ≤ α ε²/8 at all α."""
    draw = np.random.default_rng(4)
    for epsilon in (0.2, 1.0, 3.0):
        for _ in range(200):
            scores = draw.normal(0, 3, draw.integers(2, 8))
            other = scores + draw.uniform(-1, 1, len(scores))  # sensitivity 1
            if draw.random() < 0.5:
                other = scores + draw.choice([-1.0, 1.0], len(scores))
            p, q = (np.exp(0.5 * epsilon * (s - s.max())) for s in (scores, other))
            p, q = p / p.sum(), q / q.sum()
            for alpha in (1.1, 2.0, 5.0, 20.0):
                divergence = np.log((p**alpha * q ** (1 - alpha)).sum()) / (alpha - 1)
                assert divergence <= alpha * cost_of_exponential_mechanism(epsilon) + 1e-12


def test_no_release_costs_nothing_and_wrong_numbers_are_refused():
    assert epsilon_of_cost(0.0, 1e-5) == 0.0
    for rho, delta in ((-1.0, 1e-5), (1.0, 0.0), (1.0, 1.0)):
        with pytest.raises(SettingsError, match="found rho"):
            epsilon_of_cost(rho, delta)
    with pytest.raises(SettingsError, match="found epsilon"):
        cost_of_epsilon(0.0, 1e-5)
