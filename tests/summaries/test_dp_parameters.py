"""Parameters of differential privacy, and plans that have them."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noisy_studies import a_plan
from scipy import integrate, stats

from fedcdh.errors import (
    PlanError,
)
from fedcdh.summaries.dp_parameters import (
    MAX_DELTA,
    MAX_EPSILON,
    MAX_NOISY_COLUMNS,
    MIN_DELTA,
    MIN_EPSILON,
    PRODUCT_STEPS,
    SENSITIVITY,
    DPParameters,
    calibrate_deviation,
    ceil_sqrt,
    compose_releases,
    gaussian_delta,
)
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous


@cache
def _pi() -> Decimal:
    """Machin's formula."""

    def arctan(inverse: int) -> Decimal:
        power, total = Decimal(1) / inverse, Decimal(0)
        for k in range(400):
            total += (-1) ** k * power / (2 * k + 1)
            power /= inverse**2
        return total

    with localcontext() as context:
        context.prec = 220
        return 4 * (4 * arctan(5) - arctan(239))


def exact_delta(epsilon: float, deviation: float) -> Decimal:
    """Φ(1/2σ − εσ) − exp(ε) Φ(−1/2σ − εσ) to some hundred digits, by the series of the error function."""

    def normal(x: Decimal) -> Decimal:
        z = x / Decimal(2).sqrt()
        term, total, n = z, z, 0
        while abs(term) > Decimal(10) ** -150:
            n += 1
            term = -term * z * z / n
            total += term / (2 * n + 1)
        return (1 + 2 * total / _pi().sqrt()) / 2

    with localcontext() as context:
        context.prec = 200
        e, s = Decimal(epsilon), Decimal(deviation)
        return normal(1 / (2 * s) - e * s) - e.exp() * normal(-1 / (2 * s) - e * s)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
def test_the_deviation_is_right_to_nine_digits(epsilon, delta):
    found = calibrate_deviation(epsilon, delta)
    assert exact_delta(epsilon, found * (1 + 1e-9)) < Decimal(delta) < exact_delta(epsilon, found * (1 - 1e-9))


def test_delta_is_the_mass_by_which_one_curve_exceeds_the_other():
    epsilon, deviation = 1.0, 2.0

    def excess(x: float) -> float:
        return max(stats.norm.pdf(x, 1, deviation) - math.exp(epsilon) * stats.norm.pdf(x, 0, deviation), 0.0)

    start = epsilon * deviation**2 + 0.5  # where the two are equal
    assert gaussian_delta(epsilon, deviation) == pytest.approx(integrate.quad(excess, start, 60)[0], rel=1e-8)


def test_steps_are_those_of_the_grid():
    assert PRODUCT_STEPS == GRID**2
    noise = DPParameters(1, 1e-5)
    exact = calibrate_deviation(1, 1e-5) * SENSITIVITY * PRODUCT_STEPS
    assert exact < noise.deviation < exact * 1.001


@given(st.integers(1, 10**40))
def test_roots_are_rounded_up(square):
    assert (ceil_sqrt(square) - 1) ** 2 < square <= ceil_sqrt(square) ** 2


def test_whole_steps_are_as_good_as_a_bell_curve():
    """Their total variation is at most 1/(8σ²) an entry (`docs/noise.md`): together a thousandth of delta at most."""
    for epsilon, delta in ((10.0, 1e-10), (0.01, 1e-10), (10.0, 1e-2)):
        entries = MAX_NOISY_COLUMNS * (MAX_NOISY_COLUMNS + 1) // 2
        apart = entries / (8 * DPParameters(epsilon, delta).deviation ** 2)
        assert (1 + math.exp(epsilon)) * apart < 1e-3 * delta
    sigma, places = 2.0, np.arange(-60, 61)
    whole = np.exp(-(places**2) / (2 * sigma**2))
    rounded = stats.norm.cdf((places + 0.5) / sigma) - stats.norm.cdf((places - 0.5) / sigma)
    assert 0 < np.abs(whole / whole.sum() - rounded).sum() / 2 < 1 / (8 * sigma**2)


def test_parts_of_the_honest_add_up_to_all_of_it():
    for honest in (1, 3, 7):
        noise = DPParameters(0.7, 1e-6, distributed=True, honest=honest)
        assert noise.deviation**2 <= honest * noise.client_deviation**2 <= noise.deviation**2 * (1 + 1e-9)
    assert DPParameters(0.7, 1e-6).client_deviation == DPParameters(0.7, 1e-6).deviation


def test_releases_add_up():
    assert compose_releases([DPParameters(0.25, 1e-6), DPParameters(0.5, 1e-7)]) == (0.75, pytest.approx(1.1e-6))


def test_plans_without_noise_are_what_they_were():
    plan = StudyPlan((Continuous("age", 60, 15), Categorical("smoker", ("no", "yes"))), ("north", "south"))
    other = StudyPlan(
        (Continuous("x"),), ("a",), Fourier(width=7, seed=3), clip=12, study="s", max_rounds=2, max_bytes=99
    )
    assert plan.fingerprint == "205035d344f517e2203039fbaabbb849c2c5813929171201b10ec0daba49666e"
    assert other.fingerprint == "d1185c34245b395e6203840385d1e6a1b81e3dfe011bd545a5b293c7e8973eaa"


@given(st.floats(0.01, 10), st.floats(1e-10, 1e-2), st.integers(1, 3), st.integers(100, 10**8))
def test_plans_with_noise_come_back_as_they_were_written(epsilon, delta, degree, rows):
    for noise in (
        DPParameters(epsilon, delta, expected_rows=rows, degree=degree),
        DPParameters(epsilon, delta, distributed=True, honest=degree, expected_rows=rows),
    ):
        plan = a_plan(noise)
        assert StudyPlan.from_json(plan.to_json()) == plan
        assert plan.fingerprint != replace(plan, noise=None).fingerprint


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"epsilon": 0}, "epsilon is 0; expected a number from 0.01 to 10"),
        ({"epsilon": math.nan}, "from 0.01 to 10"),
        ({"epsilon": True}, "expected a number"),
        ({"epsilon": 1, "delta": 0.5}, "delta is 0.5; expected a number from 1e-10 to 0.01"),
        ({"epsilon": 1, "distributed": "nobody"}, "expected True"),
        ({"epsilon": 1, "honest": 2}, "leave their number out"),
        ({"epsilon": 1, "degree": 4}, "from 1 to 3"),
        ({"epsilon": 1, "expected_rows": 1.5}, "whole number from 100"),
    ],
)
def test_noise_that_is_none_is_refused(fields, says):
    with pytest.raises(PlanError, match=says):
        DPParameters(**fields)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"clip": 30}, "set the clip to 6"),
        ({"family": Hermite(width=6)}, "leave the family out"),
        ({"max_rounds": 1}, "leave the rounds out"),
        (
            {"noise": DPParameters(1, 1e-6, distributed=True, honest=9)},
            "9 honest clients; expected at most its 3 clients",
        ),
    ],
)
def test_plans_that_noise_does_not_cover_are_refused(change, says):
    with pytest.raises(PlanError, match=says):
        replace(a_plan(), **change)


def test_a_plan_file_with_another_word_about_noise_is_refused():
    text = a_plan().to_json()
    with pytest.raises(PlanError):
        StudyPlan.from_json(text.replace('"degree":3', '"degree":3,"strength":1'))
    with pytest.raises(PlanError):
        StudyPlan.from_json(text.replace('"epsilon":1.0', '"epsilon":"1.0"'))


def test_every_epsilon_has_its_noise():
    """Far out, delta is the difference of two numbers that rounding may leave below nothing."""
    for epsilon in [4.8125, *(k / 16 for k in range(1, 160))]:
        assert gaussian_delta(epsilon, calibrate_deviation(epsilon, 1e-6)) == pytest.approx(1e-6, rel=1e-6), epsilon


@given(st.floats(MIN_EPSILON, MAX_EPSILON), st.floats(MIN_DELTA, MAX_DELTA))
def test_the_calibrated_deviation_is_the_least_one(epsilon, delta):
    deviation = calibrate_deviation(epsilon, delta)
    assert gaussian_delta(epsilon, deviation) == pytest.approx(delta, rel=1e-6)
    assert gaussian_delta(epsilon, 0.99 * deviation) > delta


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
