"""Rules of disclosure control, at their limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from policy_studies import PLAN, refusal, table

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import (
    required_rows,
)
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

LEVEL, PAIR = 12, 8


@pytest.mark.parametrize("missing", [0, 30])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_thresholds_hold_to_the_unit_after_rows_with_gaps_are_dropped(off, missing):
    rows, good = required_rows(PLAN), {"g": 40, "h": 40, "both": 20, "missing": missing}
    found = {
        "rows, expected": refusal(Policy(), table(rows + off, **good)),
        "level 'b' of 'g' has": refusal(Policy(), table(400, **{**good, "g": LEVEL + off, "both": 0})),
        "level 'd' of 'h' has": refusal(Policy(), table(400, **{**good, "h": LEVEL + off, "both": 0})),
        "'b' of 'g' with 'd' of 'h' has": refusal(Policy(), table(400, **{**good, "both": PAIR + off})),
    }
    for rule, message in found.items():
        assert bool(message) == (off < 0), rule
        if message:
            assert rule in message
            assert str((rows if "rows" in rule else PAIR if "with" in rule else LEVEL) - 1) in message
            assert "data protection" in message


def test_a_level_nobody_has_is_no_small_level():
    assert refusal(Policy(), table(400, g=0, h=40, both=0)) == ""


@pytest.mark.parametrize(("factor", "offset"), [(1.8, 32.0), (18.02, 0.0), (1000.0, 0.0)])
def test_other_units_are_doubted(factor, offset):
    values = 37 + 0.6 * np.random.default_rng(0).standard_normal(400)
    plan = StudyPlan((Continuous("t", 37, 0.6),), ("north",))
    assert refusal(Policy(), {"t": values}, plan) == ""
    message = refusal(Policy(), {"t": factor * values + offset}, plan)
    assert "'t' lies 30.0 scales from the plan's location 37" in message
    assert "expected at most 10" in message
    assert "Convert" in message
    assert refusal(Policy(max_rms_distance=40.0), {"t": factor * values + offset}, replace(plan, clip=100.0)) != ""


def test_the_distance_is_that_of_the_rows():
    values = np.random.default_rng(1).standard_normal(500) * 3 + 4
    plan = StudyPlan((Continuous("x"), Continuous("y")), ("north",))
    distance = float(np.sqrt(np.mean(values**2)))
    rows = {"x": values, "y": values / 10}
    assert refusal(Policy(max_rms_distance=distance * 1.0001), rows, plan) == ""
    assert "'x' lies 4.8" in refusal(Policy(max_rms_distance=distance * 0.9999), rows, plan)
    assert "expected at most 2.5" in refusal(Policy(), rows, replace(plan, clip=5.0)), "half the clip is far as well"


@pytest.mark.parametrize(
    "glass",
    [
        replace(PLAN, variables=(Continuous("x", 60, 15, 97.3, 1e-6),)),
        replace(PLAN, variables=(Continuous("x", 60, 15, 60, 0.7),)),
        replace(PLAN, variables=(Continuous("x", 60, 15, 120, 15),)),
        replace(PLAN, family=Hermite(4, 0.01)),
    ],
)
def test_a_plan_with_fine_resolution_is_refused(glass):
    with pytest.raises(DisclosureError, match="ask the coordinator why"):
        Policy().check_plan(glass)


def test_plans_of_profiles_have_a_coarse_resolution():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = {
            "t": rng.standard_t(1.5, 500),
            "e": np.exp(3 * rng.standard_normal(500)),
            "zero": rng.poisson(0.1, 500),
        }
        Policy().check_plan(StudyPlan.from_tables({"a": values, "b": {k: v * 5 + 1 for k, v in values.items()}}))


def test_random_features_have_one_of_few_seeds_and_no_plan_asks_for_too_many():
    numbers = (Continuous("x"), Continuous("y"))
    for family, problem in (
        (Fourier(seed=99), ""),
        (Fourier(seed=100), "seed 100, expected one below 100"),
        (Fourier(bandwidth=0.2), "bandwidth 0.2, expected at least 0.25"),
        (Hermite(width=16), ""),
        (Hermite(width=17), "17 feature columns, expected at most 16"),
    ):
        plan = StudyPlan(numbers, ("north",), family)
        Policy(disclosure_control=False).check_plan(plan)
        if not problem:
            Policy().check_plan(plan)
            continue
        with pytest.raises(DisclosureError, match=problem):
            Policy().check_plan(plan)
    Policy(max_feature_columns=17).check_plan(StudyPlan(numbers, ("north",), Hermite(width=17)))
    Policy().check_plan(StudyPlan((Categorical("g", ("a", "b")),), ("north",), Fourier(seed=10**6)))
