"""The plan's scale beside the standard deviation at the site."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.scale_bounds import MAX_SCALE_RATIO, check_scales, scale_ratios
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous


def plan_with(variable: Continuous, **changes) -> StudyPlan:
    return replace(StudyPlan((variable, Continuous("b")), ("north", "south")), **changes)


def table(n: int = 300) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"a": rng.standard_normal(n), "b": rng.standard_normal(n)}


def refusal(rows: dict[str, np.ndarray], plan: StudyPlan, policy: Policy = Policy()) -> str:  # noqa: B008
    try:
        release_summary(rows, plan, ReleaseContext("north", policy))
    except DisclosureError as refused:
        return str(refused)
    return ""


@settings(deadline=None, max_examples=40)
@given(st.floats(-5, 5), st.floats(0.1, 100), st.floats(-2, 2), st.integers(0, 1000))
def test_the_ratio_is_that_of_scale_and_standard_deviation(location, scale, shift, seed):
    values = location + shift * scale + np.random.default_rng(seed).standard_normal(200)
    plan = StudyPlan((Continuous("a", location, scale),), ("north",))
    ratio = scale_ratios(summarize({"a": values}, plan, "north"), plan)["a"]
    assert ratio == pytest.approx(scale / values.std(), rel=0.01)


def test_a_larger_spread_or_clip_counts_as_a_larger_scale():
    for variable, changes, factor in (
        (Continuous("a", 0.0, 1.0, 0.0, 40.0), {}, 40.0),
        (Continuous("a"), {"clip": 60.0}, 2.0),
        (Continuous("a", 0.0, 1.0, 0.0, 0.2), {"clip": 15.0}, 1.0),
    ):
        plan = plan_with(variable, **changes)
        rows = table()
        found = scale_ratios(summarize(rows, plan, "north"), plan)["a"]
        assert found == pytest.approx(factor / rows["a"].std(), rel=1e-3)


def test_the_limit_is_the_limit():
    above = float(np.nextafter(MAX_SCALE_RATIO, 1e9))
    assert not list(check_scales({"a": MAX_SCALE_RATIO, "b": 0.0}, MAX_SCALE_RATIO))
    (sentence,) = check_scales({"a": above, "b": 0.0, "c": 1e9}, MAX_SCALE_RATIO)
    assert "'a' (300 times), 'c' (1e+09 times), expected at most 300 times" in sentence


@pytest.mark.parametrize("ratio", [500.0, 5000.0, 30_000.0])
@pytest.mark.parametrize("shift", [0.0, 0.3, 1.0])
def test_a_plan_with_a_far_too_large_scale_is_refused(ratio, shift):
    message = refusal(table(), plan_with(Continuous("a", shift * ratio, ratio)))
    assert "the plan's scale is much larger than the standard deviation here, of 'a'" in message
    assert "can be separated" not in message, "one cause, one sentence"


def test_a_variable_that_rounds_to_a_constant_passes_unless_its_features_differ():
    assert not refusal(table(), plan_with(Continuous("a", 0.0, 1e9)))
    resolved = plan_with(Continuous("a", 0.0, 1e5, 0.0, 5e3))  # the features are finer than the value
    assert "'a' (all values round to one)" in refusal(table(), resolved)


@pytest.mark.parametrize("ratio", [1.0, 10.0, 40.0, 200.0])
@pytest.mark.parametrize("shift", [0.0, 0.5, 3.0])
def test_honest_sites_that_vary_less_than_others_pass(ratio, shift):
    assert not refusal(table(), plan_with(Continuous("a", shift * ratio, ratio)))


def test_a_constant_passes():
    rows = table() | {"a": np.full(300, 7.0)}
    assert not refusal(rows, plan_with(Continuous("a", 5.0, 2.0)))


def test_a_policy_may_have_another_limit():
    plan = plan_with(Continuous("a", 0.0, 200.0))
    assert "scale is much larger" in refusal(table(), plan, Policy(max_scale_ratio=100.0))
    assert not refusal(table(), plan, Policy(max_scale_ratio=1000.0))
