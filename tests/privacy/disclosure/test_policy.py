"""The site's policy: figures to the unit, lists to the letter, and all that is broken said at once."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.errors import DisclosureError, PlanMismatchError, SettingsError
from fedcdh.evaluation.demo import hospital_study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import (
    count_released_numbers,
    information_loads,
    required_cell_count,
    required_rows,
)
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan
from fedcdh.summaries.profiles import profile

KEY, OTHER = ("ed25519:" + base64.b64encode(bytes([k]) * 32).decode() for k in (1, 2))
PLAN = StudyPlan((Continuous("x"), Categorical("g", ("a", "b")), Categorical("h", ("c", "d"))), ("north", "south"))
LEVEL = 12


def table(rows: int, g: int, h: int, both: int, missing: int = 0) -> dict[str, np.ndarray]:
    """g people have "b", h have "d", some have both; some more rows with all of these lack their number."""
    x = np.random.default_rng(0).standard_normal(rows + missing)
    x[rows:] = np.nan
    one, two = np.zeros(rows + missing, bool), np.zeros(rows + missing, bool)
    one[:g] = one[rows:] = True
    two[g - both : g - both + h] = two[rows:] = True
    return {"x": x, "g": np.where(one, "b", "a"), "h": np.where(two, "d", "c")}


def refusal(policy: Policy, rows: dict[str, np.ndarray], plan: StudyPlan = PLAN) -> str:
    try:
        policy.check_summary(summarize(rows, plan, "north", max_missing_share=1.0), plan)
    except DisclosureError as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("missing", [0, 30])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_thresholds_hold_to_the_unit_after_rows_with_gaps_are_dropped(off, missing):
    rows, good = required_rows(PLAN), {"g": 40, "h": 40, "both": 20, "missing": missing}
    found = {
        "rows, expected": refusal(Policy(), table(rows + off, **good)),
        "level 'b' of 'g' has": refusal(Policy(), table(400, **{**good, "g": LEVEL + off, "both": 0})),
        "level 'd' of 'h' has": refusal(Policy(), table(400, **{**good, "h": LEVEL + off, "both": 0})),
        "'b' of 'g' with 'd' of 'h' has": refusal(Policy(), table(400, **{**good, "both": LEVEL + off})),
    }
    for rule, message in found.items():
        assert bool(message) == (off < 0), rule
        if message:
            assert rule in message
            assert str((rows if "rows" in rule else LEVEL) - 1) in message
            assert "data protection" in message


def test_a_level_nobody_has_is_no_small_level():
    assert refusal(Policy(), table(400, g=0, h=40, both=0)) == ""


def test_the_sites_own_figures_win():
    rows = table(50, g=5, h=20, both=5)
    assert refusal(Policy(min_rows=50, min_cell_count=5), rows) == ""
    assert "50 rows, expected at least 51" in refusal(Policy(min_rows=51, min_cell_count=5), rows)
    assert "5 people, expected none or at least 6" in refusal(Policy(min_rows=50, min_cell_count=6), rows)


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
    assert message.count("\n- ") >= 7
    plan = StudyPlan((Continuous("x"), *(Categorical(f"v{k}", ("a", "b")) for k in range(12))), ("north",))
    many = {"x": np.arange(99.0) / 99, **{f"v{k}": np.array(["a"] * 98 + ["b"]) for k in range(12)}}
    assert "more" in refusal(Policy(), many, plan).splitlines()[-1]


def test_research_turns_figures_off_and_nothing_else():
    research = Policy(disclosure_control=False)
    assert refusal(research, table(10, g=1, h=1, both=1)) == ""
    research.check_profile(profile(table(10, g=1, h=1, both=1), "north"))
    assert "excluded_variables" in refusal(
        replace(research, excluded_variables=frozenset({"g"})), table(10, g=1, h=1, both=1)
    )
    assert "units" in refusal(research, {**table(400, 40, 40, 20), "x": np.full(400, 1000.0)})
    with pytest.raises(DisclosureError, match="not signed"):
        replace(research, coordinator_keys=frozenset({KEY})).check_plan(PLAN)


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


def test_a_summary_of_another_plan_is_refused():
    with pytest.raises(PlanMismatchError, match="Make it again"):
        Policy().check_summary(summarize(table(400, 40, 40, 20), PLAN, "north"), replace(PLAN, clip=6.0))


# What is needed


def free_numbers(plan: StudyPlan, rows: int = 400) -> int:
    """How many of the numbers of a summary bear on continuous values: the rank of how they move with the values."""
    rng = np.random.default_rng(0)
    numbers = [v.name for v in plan.variables if isinstance(v, Continuous)]
    values = rng.standard_normal((rows, len(numbers)))
    spans, labels = plan.layout.spans, {}
    for v in plan.variables:
        if isinstance(v, Categorical):
            labels[v.name] = np.eye(len(v.levels))[rng.integers(0, len(v.levels), rows)]

    def features(values):
        block = np.ones((rows, plan.layout.n_columns))
        for j, name in enumerate(numbers):
            z = values[:, j] / plan.clip
            block[:, spans[name]] = np.column_stack([z, z**2, plan.family(np.arcsinh(values[:, j]))])
        for name, one_hot in labels.items():
            block[:, spans[name]] = one_hot
        return block

    base, upper, step = features(values), np.triu_indices(plan.layout.n_columns), 1e-6
    jacobian = []
    for j in range(len(numbers)):
        moved = values.copy()
        moved[:, j] += step
        slope = (features(moved) - base) / step
        for row in range(rows):
            jacobian.append((np.outer(slope[row], base[row]) + np.outer(base[row], slope[row]))[upper])
    matrix = np.array(jacobian)
    norms = np.linalg.norm(matrix, axis=0)
    scaled = matrix[:, norms > 1e-9] / norms[norms > 1e-9]
    return int(np.linalg.matrix_rank(scaled, tol=1e-5 * np.linalg.norm(scaled, 2)))


@pytest.mark.parametrize(
    ("variables", "free"),
    [
        ((Continuous("x"),), 4 + 10 - 1),
        ((Continuous("x"), Categorical("g", ("a", "b", "c"))), 13 + 4 * 2),
        ((Continuous("x"), Continuous("y"), Categorical("g", ("a", "b"))), 2 * 13 + 16 + 8),
    ],
)
def test_the_count_of_numbers_is_that_of_the_jacobian(variables, free):
    plan = StudyPlan(variables, ("north",), Hermite(2))
    assert free_numbers(plan) <= free
    assert free_numbers(plan) >= 0.7 * free  # a few are nearly dependent, and lost in rounding
    count = sum(isinstance(v, Continuous) for v in variables)
    wide = StudyPlan(tuple(replace(v, name=f"{v.name}{k}") for k in range(12) for v in variables), ("n",), Hermite(2))
    assert required_rows(wide) >= 2 * 12 * free / (12 * count)


def test_rows_needed_are_those_of_the_research():
    """Six variables of five columns: h(dh + 3) − 2 = 163 from counting (one sum per variable comes twice)."""
    plan = StudyPlan(tuple(Continuous(f"x{k}") for k in range(6)), ("north",), Fourier(3))
    assert required_rows(plan) == 5 * (6 * 5 + 3) - 2
    assert required_rows(StudyPlan((Categorical("g", ("a", "b")),), ("north",))) == 100
    labels = tuple(Categorical(f"g{k}", tuple("abcde")) for k in range(10))
    assert required_rows(StudyPlan(labels, ("north",))) == 152  # 50 columns / 0.33


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 8), st.integers(0, 4), st.integers(2, 20))
def test_more_to_tell_needs_more_rows(numbers, labels, width):
    def plan(numbers, labels, width):
        variables = [Continuous(f"x{k}") for k in range(numbers)] + [Categorical(f"g{k}", "abc") for k in range(labels)]
        return StudyPlan(tuple(variables), ("north",), Hermite(width))

    needed = required_rows(plan(numbers, labels, width))
    assert 100 <= needed <= required_rows(plan(numbers + 1, labels, width))
    assert needed <= required_rows(plan(numbers, labels + 1, width))
    assert needed <= required_rows(plan(numbers, labels, width + 1))
    assert required_cell_count(plan(numbers, labels, width)) == max(8, 2 * (2 + width))
    assert required_cell_count(plan(0, labels + 1, width)) == 8


# Plans and profiles


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


@pytest.mark.parametrize(
    "glass",
    [
        replace(PLAN, variables=(Continuous("x", 60, 15, 97.3, 1e-6),)),
        replace(PLAN, variables=(Continuous("x", 60, 15, 60, 0.7),)),
        replace(PLAN, variables=(Continuous("x", 60, 15, 120, 15),)),
        replace(PLAN, family=Hermite(4, 0.01)),
    ],
)
def test_a_plan_that_is_a_magnifying_glass_is_refused(glass):
    with pytest.raises(DisclosureError, match="ask the coordinator why"):
        Policy().check_plan(glass)


@pytest.mark.parametrize("seed", range(5))
def test_plans_of_profiles_magnify_nothing(seed):
    rng = np.random.default_rng(seed)
    values = {"t": rng.standard_t(1.5, 500), "e": np.exp(3 * rng.standard_normal(500)), "zero": rng.poisson(0.1, 500)}
    Policy().check_plan(StudyPlan.from_tables({"a": values, "b": {k: v * 5 + 1 for k, v in values.items()}}))


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


# The file


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


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(0, 3), st.integers(1, 4000))
def test_loads_are_the_rule_of_rows_in_another_form(numbers, labels, rows):
    """Up to 1 where there are as many rows as unknowns need; the other parts of the rule are about one message."""
    variables = [Continuous(f"x{k}") for k in range(numbers)] + [
        Categorical(f"g{k}", ("a", "b")) for k in range(labels)
    ]
    plan = StudyPlan(tuple(variables), ("north",))
    load = max(information_loads(plan, rows).values())
    assert (load <= 1) == (rows >= 2 * count_released_numbers(plan) / numbers)
    assert load <= 1 or rows < required_rows(plan)
    assert information_loads(plan, rows, replicates=4)["x0"] == pytest.approx(5 * load)
