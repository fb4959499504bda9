"""The policy of a site: its file, its lists, and what it refuses."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pytest
from policy_studies import PLAN, refusal, table

from fedcdh.errors import DisclosureError, PlanMismatchError, SettingsError
from fedcdh.evaluation.demo import hospital_study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import (
    required_cell_count,
    required_rows,
)
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.variables import Categorical, Continuous

KEY, OTHER = ("ed25519:" + base64.b64encode(bytes([k]) * 32).decode() for k in (1, 2))


def test_the_sites_own_figures_win():
    rows = table(50, g=5, h=20, both=5)
    assert refusal(Policy(min_rows=50, min_cell_count=5), rows) == ""
    assert "50 rows, expected at least 51" in refusal(Policy(min_rows=51, min_cell_count=5), rows)
    small = refusal(Policy(min_rows=50, min_cell_count=6), rows)
    assert "level 'b' of 'g' has 5 people" in small
    assert "expected none or at least 6" in small


def test_all_that_is_broken_is_said_at_once():
    message = refusal(
        Policy(excluded_variables=frozenset({"x"}), allowed_variables=frozenset({"x", "G"})),
        table(30, g=3, h=9, both=2),
    )
    for rule in (
        "'x' is among the excluded_variables",
        "did you mean 'G'",
        "'h' is not among",
        "30 rows",
        "level 'b'",
        "level 'd'",
        "with",
    ):
        assert rule in message
    assert message.count("\n- ") == 6  # all rare levels have one line, and all rare pairs another
    plan = StudyPlan((Continuous("x"), *(Categorical(f"v{k}", ("a", "b")) for k in range(12))), ("north",))
    many = {"x": np.arange(99.0) / 99, **{f"v{k}": np.array(["a"] * 98 + ["b"]) for k in range(12)}}
    assert "more, most of them of" in refusal(Policy(), many, plan).splitlines()[-1]


def test_without_disclosure_control_lists_and_units_still_hold():
    research = Policy(disclosure_control=False)
    assert refusal(research, table(10, g=1, h=1, both=1)) == ""
    research.check_profile(profile(table(10, g=1, h=1, both=1), "north"))
    assert "excluded_variables" in refusal(
        replace(research, excluded_variables=frozenset({"g"})), table(10, g=1, h=1, both=1)
    )
    assert "units" in refusal(research, {**table(400, 40, 40, 20), "x": np.full(400, 1000.0)})
    with pytest.raises(DisclosureError, match="not signed"):
        replace(research, coordinator_keys=frozenset({KEY})).check_plan(PLAN)


def test_a_summary_of_another_plan_is_refused():
    with pytest.raises(PlanMismatchError, match="Make it again"):
        Policy().check_summary(summarize(table(400, 40, 40, 20), PLAN, "north"), replace(PLAN, clip=6.0))


def test_plans_are_accepted_by_fingerprint():
    for start in (PLAN.fingerprint, PLAN.fingerprint[:12]):
        Policy(plans=frozenset({start, "0" * 12})).check_plan(PLAN)
    with pytest.raises(DisclosureError, match=f"fingerprint is {PLAN.fingerprint[:12]}.*policy.toml"):
        Policy(plans=frozenset({"0" * 12})).check_plan(PLAN)
    with pytest.raises(DisclosureError, match="fingerprint"):
        Policy(plans=frozenset()).check_plan(PLAN)


def test_signatures_count_if_a_coordinator_is_named():
    Policy().check_plan(PLAN, None)
    Policy().check_plan(PLAN, OTHER)
    named = Policy(coordinator_keys=frozenset({KEY}))
    named.check_plan(PLAN, KEY)
    with pytest.raises(DisclosureError, match="not signed"):
        named.check_plan(PLAN, None)
    with pytest.raises(DisclosureError, match="signed by the key"):
        named.check_plan(PLAN, OTHER)
    replace(named, unsigned_plans="accept").check_plan(PLAN, None)


def test_lists_hold_for_plans_before_any_data_are_read():
    Policy(allowed_variables=frozenset("xgh")).check_plan(PLAN)
    with pytest.raises(DisclosureError, match="'h' is not among"):
        Policy(allowed_variables=frozenset("xg")).check_plan(PLAN)
    with pytest.raises(DisclosureError, match="'h' is among the excluded_variables"):
        Policy(excluded_variables=frozenset("h")).check_plan(PLAN)


def test_profiles_are_held_to_rows_values_levels_and_lists():
    Policy().check_profile(profile(table(100, 8, 20, 8), "north"))
    for rows, reason in (
        (table(99, 8, 20, 8), "there are 99 rows, expected at least 100"),
        (table(100, 7, 20, 7), "level 'b' of 'g' has 7 people"),
        (table(99, 8, 20, 8, missing=1), "'x' has 99 values"),
    ):
        with pytest.raises(DisclosureError, match=reason):
            Policy().check_profile(profile(rows, "north"))
    with pytest.raises(DisclosureError, match="'g' is among the excluded_variables"):
        Policy(excluded_variables=frozenset("g")).check_profile(profile(table(100, 8, 20, 8), "north"))
    Policy(min_rows=5, min_cell_count=2).check_profile(profile(table(10, 2, 2, 1), "north"))


def test_a_policy_is_read_from_toml():
    text = f"""
min_rows = 200
min_cell_count = 10
allowed_variables = ["x", "g"]
excluded_variables = ["name"]
plans = ["{"a" * 12}"]
coordinator_keys = ["{KEY}"]
unsigned_plans = "accept"
max_rms_distance = 8
max_leverage = 0.95
disclosure_control = false
"""
    lists = frozenset("xg"), frozenset({"name"}), frozenset({"a" * 12}), frozenset({KEY})
    assert Policy.from_toml(text) == Policy(200, 10, *lists, "accept", 8.0, 0.95, False)
    assert Policy.from_toml("") == Policy()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("min_row = 5", "did you mean 'min_rows'?"),
        ("excluded_variable = ['a']", "did you mean 'excluded_variables'?"),
        ("min_rows = '5'", "whole number"),
        ("min_rows = -5", "whole number"),
        ("min_cell_count = true", "whole number"),
        ("excluded_variables = 'name'", "list of texts"),
        ("plans = ['abc']", "at least 12 digits"),
        (f"plans = ['{'A' * 12}']", "at least 12 digits"),
        ("coordinator_keys = ['key']", "base64"),
        ("unsigned_plans = 'maybe'", '"accept" or "refuse"'),
        ("unsigned_plans = 'refuse'", "no coordinator_keys"),
        ("unsigned_plans = ['accept']", '"accept" or "refuse"'),
        ("max_rms_distance = 0", "positive"),
        ("max_rms_distance = inf", "finite"),
        ("disclosure_control = 1", "true or false"),
        ("[disclosure_control]", "true or false"),
        ("x", "not TOML"),
    ],
)
def test_a_rule_that_is_misspelt_is_not_a_rule_that_is_not_there(text, reason):
    with pytest.raises(SettingsError, match=reason) as refused:
        Policy.from_toml(text)
    assert "Correct policy.toml" in str(refused.value)


def test_the_demo_is_held_to_the_policy_like_any_study():
    study = hospital_study(0)
    plan = StudyPlan.from_tables(study.tables)
    assert (required_rows(plan), required_cell_count(plan)) == (268, 12)
    Policy().check_plan(plan)
    for client, rows in study.tables.items():
        Policy().check_profile(profile(rows, client))
        Policy(min_rows=200, min_cell_count=3).check_summary(summarize(rows, plan, client), plan)
    Policy().check_summary(summarize(study.tables["city"], plan, "city"), plan)
    with pytest.raises(DisclosureError, match="rows, expected at least 268"):
        Policy().check_summary(summarize(study.tables["coast"], plan, "coast"), plan)
