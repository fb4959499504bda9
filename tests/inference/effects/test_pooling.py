"""Random effects, against their definition and against repeated samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.inference.effects.pooling import PooledEffect, estimate_tau_squared, measure_heterogeneity, pool_random

ESTIMATES = st.lists(st.tuples(st.floats(-5, 5), st.floats(0.01, 4)), min_size=2, max_size=12)


@given(ESTIMATES)
def test_tau_squared_makes_q_equal_to_its_degrees_of_freedom(pairs):
    values, variances = (np.array(column) for column in zip(*pairs, strict=True))
    tau = estimate_tau_squared(values, variances)
    weights = 1 / (variances + tau)
    q = float(weights @ (values - weights @ values / weights.sum()) ** 2)
    assert q == pytest.approx(len(pairs) - 1, rel=1e-6) if tau > 0 else q <= (len(pairs) - 1) * (1 + 1e-9)


@given(ESTIMATES, st.floats(-3, 3), st.floats(0.1, 10), st.randoms())
def test_shift_scale_and_order_do_what_they_should(pairs, shift, scale, rng):
    values, variances = (np.array(column) for column in zip(*pairs, strict=True))
    found = pool_random(values, variances)
    order = rng.sample(range(len(pairs)), len(pairs))
    moved = pool_random(scale * (values + shift)[order], scale**2 * variances[order])
    assert moved.value == pytest.approx(scale * (found.value + shift), abs=1e-6)
    assert moved.standard_error == pytest.approx(scale * found.standard_error, rel=1e-5, abs=1e-8)


def test_heterogeneity_of_equal_estimates_is_none():
    found = measure_heterogeneity(np.ones(4), np.full(4, 0.1))
    assert (found.q, found.i_squared, found.tau_squared, found.degrees_of_freedom) == (0.0, 0.0, 0.0, 3)
    assert found.p_value == 1.0


@pytest.mark.parametrize(("tau", "clients"), [(0.0, 5), (0.5, 5), (0.5, 15)])
def test_intervals_cover(tau, clients):
    rng = np.random.default_rng([clients, int(10 * tau)])
    variances = np.linspace(0.05, 0.2, clients)
    covered = 0
    for _ in range(2000):
        values = 1 + np.sqrt(variances + tau**2) * rng.standard_normal(clients)
        low, high = pool_random(values, variances).interval
        covered += low <= 1 <= high
    assert 0.93 <= covered / 2000 <= 0.97


def test_student_s_interval():
    low, high = PooledEffect.of(1.0, 0.04, 8.0).interval
    assert (low, high) == pytest.approx((1 - 2.306 * 0.2, 1 + 2.306 * 0.2), abs=1e-3)
