"""Tests that know the noise hold their significance level."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from noisy_studies import CLIENTS, a_plan, bits, chain, noisy_chains

from fedcdh.inference.independence.noisy_moments_test import (
    POWER_90_DISTANCE,
    NoisyMomentsTest,
    detectable_correlation,
)
from fedcdh.privacy.differential.mechanism import (
    add_noise,
)
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.dp_parameters import (
    PRODUCT_STEPS,
    DPParameters,
)
from fedcdh.summaries.noisy_moments import NoisyMoments
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous


def test_without_noise_the_statistic_is_n_times_the_squared_partial_correlation():
    plan = a_plan(DPParameters(10, 1e-2, degree=1, expected_rows=10**8), clients=("north",))
    rows = chain(3000)
    moments = NoisyMoments.of(Aggregate.from_total(add_noise(summarize(rows, plan, "north"), plan, bits()), plan))
    silent = replace(
        moments, moments=_exact_moments(plan, rows), deviations=np.full(1, 1e-12)
    )  # the same coordinates, and no noise in them
    values = np.array([rows[name] for name in "abc"])
    inverse = np.linalg.inv(np.cov(values))
    partial = -inverse[0, 2] / math.sqrt(inverse[0, 0] * inverse[2, 2])
    (plain, given_b) = NoisyMomentsTest(silent)([Query("a", "c"), Query("a", "c", frozenset("b"))])
    assert plain.statistic == pytest.approx(3000 * np.corrcoef(values)[0, 2] ** 2, rel=1e-3)
    assert given_b.statistic == pytest.approx(3000 * partial**2, rel=1e-2, abs=1e-3)


def _exact_moments(plan: StudyPlan, rows: dict[str, np.ndarray]) -> np.ndarray:
    found = summarize(rows, plan, "north").moments[None] / float(PRODUCT_STEPS)
    found[:, 0] /= math.sqrt(3)
    found[:, :, 0] /= math.sqrt(3)
    return found


def test_answers_do_not_depend_on_the_order_of_variables_or_levels():
    rng, rows = np.random.default_rng(3), chain(3000)
    label = np.where(rows["a"] + rng.standard_normal(3000) > 0, "yes", np.where(rows["b"] > 1, "maybe", "no"))
    table = {**rows, "d": label}
    names = ("a", "b", "c", "d")
    asked = [Query("a", "d"), Query("c", "d", frozenset("b")), Query("a", "c", frozenset("bd"))]
    found = []
    for order, levels in ((names, ("maybe", "no", "yes")), (names[::-1], ("yes", "maybe", "no"))):
        variables = tuple(Categorical(n, levels) if n == "d" else Continuous(n) for n in order)
        plan = StudyPlan(variables, ("north",), clip=6, noise=DPParameters(1, 1e-6))
        exact = summarize(table, plan, "north")
        total = Aggregate.from_total(replace(exact, noise=plan.noise.deviation**2), plan)  # type: ignore[union-attr]
        found.append([answer.p_value for answer in NoisyMomentsTest.of(total)(asked)])
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    assert found[0][0] < 1e-3


def test_more_noise_and_more_conditions_leave_less_to_be_found():
    known = NoisyMoments.of(add_up(noisy_chains(plan := a_plan(DPParameters(4, 1e-6)), 4000), plan))
    louder = replace(known, deviations=4 * known.deviations)
    quiet = replace(known, deviations=1e-9 * known.deviations)
    assert detectable_correlation(known, 0) < detectable_correlation(known, 1) < 0.3
    assert detectable_correlation(known, 0) < detectable_correlation(louder, 0)
    assert detectable_correlation(quiet, 0) == pytest.approx(POWER_90_DISTANCE / math.sqrt(12_000), rel=0.05)


def rejections(questions: list[Query], changed: float, seeds: range, epsilon: float, rows: int) -> np.ndarray:
    """Shares of seeds at which each question is rejected, and by a test that takes noise for rows."""
    found = []
    for seed in seeds:
        plan = a_plan(DPParameters(epsilon, 1e-5, expected_rows=3 * rows), names="abcdef")
        rng = np.random.default_rng(seed)
        sent = []
        for k, client in enumerate(CLIENTS):
            a, b, c, d, e, f = rng.standard_normal((6, rows))
            d, e = 0.7 * d + 0.7 * a, 0.7 * e + 0.7 * a + changed * k
            values = {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}
            sent.append(add_noise(summarize(values, plan, client), plan, rng.bytes))
        known = NoisyMoments.of(add_up(sent, plan))
        blind = replace(known, deviations=np.full(3, 1e-9))
        found.append([[answer.p_value < 0.05 for answer in NoisyMomentsTest(one)(questions)] for one in (known, blind)])
    return np.mean(found, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_tests_that_know_the_noise_hold_their_level(epsilon):
    within = frozenset({DOMAIN})
    true = [
        Query("b", "c", within),
        Query("d", "e", within | {"a"}),
        Query("d", "e", within | {"a", "b"}),
        Query(DOMAIN, "b"),
        Query(DOMAIN, "d", frozenset("a")),
    ]
    knowing, blind = rejections(true, 0.0, range(1000, 1200), epsilon, 1000)
    assert knowing.max() <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 200)
    assert blind.max() > 0.9


@pytest.mark.slow
def test_tests_that_know_the_noise_see_what_is_there():
    within = frozenset({DOMAIN})
    false = [Query("a", "d", within), Query("d", "e", within), Query(DOMAIN, "e", frozenset("a"))]
    knowing, _ = rejections(false, 0.5, range(1000, 1040), 2.0, 2000)
    assert knowing.min() > 0.9
