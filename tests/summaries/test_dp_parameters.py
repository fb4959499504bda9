"""Parameters of differential privacy: the calibration of the noise, and what is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.errors import PlanError
from fedcdh.summaries.dp_parameters import (
    MAX_DELTA,
    MAX_EPSILON,
    MIN_DELTA,
    MIN_EPSILON,
    DPParameters,
    calibrate_deviation,
    ceil_sqrt,
    compose_releases,
    gaussian_delta,
)


@given(st.floats(MIN_EPSILON, MAX_EPSILON), st.floats(MIN_DELTA, MAX_DELTA))
def test_the_calibrated_deviation_is_the_least_one(epsilon, delta):
    deviation = calibrate_deviation(epsilon, delta)
    assert gaussian_delta(epsilon, deviation) == pytest.approx(delta, rel=1e-6)
    assert gaussian_delta(epsilon, 0.99 * deviation) > delta


@given(st.integers(0, 10**40))
def test_the_root_is_the_least_whole_number_above(square):
    root = ceil_sqrt(square)
    assert root**2 >= square
    assert root == 0 or (root - 1) ** 2 < square


def test_epsilon_and_delta_are_admitted_at_their_limits_and_refused_beyond():
    for epsilon in (MIN_EPSILON, MAX_EPSILON):
        assert DPParameters(epsilon).epsilon == epsilon
    for delta in (MIN_DELTA, MAX_DELTA):
        assert DPParameters(1.0, delta).delta == delta
    for epsilon in (math.nextafter(MIN_EPSILON, 0), math.nextafter(MAX_EPSILON, 11)):
        with pytest.raises(PlanError, match="epsilon is") as refused:
            DPParameters(epsilon)
        assert refused.value.parameter == "epsilon"
    for delta in (math.nextafter(MIN_DELTA, 0), math.nextafter(MAX_DELTA, 1)):
        with pytest.raises(PlanError, match="delta is") as refused:
            DPParameters(1.0, delta)
        assert refused.value.parameter == "delta"


def test_distributed_noise_of_the_honest_clients_reaches_the_variance():
    for honest in (1, 2, 5, 100):
        noise = DPParameters(1.0, 1e-6, distributed=True, honest=honest)
        assert honest * noise.client_deviation**2 >= noise.deviation**2
        assert honest * (noise.client_deviation - 1) ** 2 < noise.deviation**2


def test_releases_of_the_same_rows_add_up():
    assert compose_releases([DPParameters(0.25, 1e-6), DPParameters(0.5, 1e-7)]) == (0.75, pytest.approx(1.1e-6))
    assert compose_releases([]) == (0.0, 0.0)
