"""Every limit of disclosure control, at the limit: admitted there, refused one step beyond."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from fedcdh.data.table import to_table
from fedcdh.errors import DisclosureError, SettingsError
from fedcdh.privacy.disclosure import rules
from fedcdh.privacy.disclosure._findings import group_findings
from fedcdh.privacy.disclosure.joint_risk import JointRisk
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.small_cells import CellCounter
from fedcdh.privacy.disclosure.thresholds import required_cell_count, required_rows
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.joint import RoundBudget
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import Profile
from fedcdh.summaries.variables import Categorical, Continuous


def count(findings: Iterable[str]) -> int:
    return len(list(findings))


def beyond(limit: float) -> float:
    return float(np.nextafter(limit, np.inf))


def below(limit: float) -> float:
    return float(np.nextafter(limit, -np.inf))


def resolution(variable: Continuous, family: object = None, columns: int = 16) -> int:
    plan = StudyPlan((variable,), ("north",), family or Hermite())
    return count(rules.check_feature_resolution(plan, columns))


def test_spread_and_centre_of_a_plan():
    spread = 1 / rules.MAX_SCALE_TO_SPREAD
    assert resolution(Continuous("x", scale=1.0, spread=spread)) == 0
    assert resolution(Continuous("x", scale=1.0, spread=below(spread))) == 1
    assert resolution(Continuous("x", scale=1.0, centre=rules.MAX_CENTRE_DISTANCE)) == 0
    assert resolution(Continuous("x", scale=1.0, centre=beyond(rules.MAX_CENTRE_DISTANCE))) == 1


def test_bandwidth_width_and_seed_of_features():
    assert resolution(Continuous("x"), Hermite(bandwidth=rules.MIN_BANDWIDTH)) == 0
    assert resolution(Continuous("x"), Hermite(bandwidth=below(rules.MIN_BANDWIDTH))) == 1
    assert resolution(Continuous("x"), Hermite(bandwidth=rules.MAX_BANDWIDTH)) == 0
    assert resolution(Continuous("x"), Hermite(bandwidth=beyond(rules.MAX_BANDWIDTH))) == 1
    assert resolution(Continuous("x"), Hermite(width=8), columns=8) == 0
    assert resolution(Continuous("x"), Hermite(width=8), columns=7) == 1
    assert resolution(Continuous("x"), Fourier(seed=rules.MAX_FEATURE_SEED - 1)) == 0
    assert resolution(Continuous("x"), Fourier(seed=rules.MAX_FEATURE_SEED)) == 1


def profile_findings(rows: int, values: int, people: int) -> int:
    columns = {
        "x": ColumnProfile("continuous", values, rows - values),
        "g": ColumnProfile("categorical", rows, 0, levels=("a", "b"), counts=(rows - people, people)),
    }
    return count(rules.check_profile_counts(Profile("north", rows, columns), 100, 8))


@pytest.mark.parametrize(
    ("rows", "values", "people", "found"),
    [
        (100, 100, 8, 0),
        (99, 99, 8, 1),
        (200, 99, 8, 1),
        (200, 100, 8, 0),
        (200, 0, 8, 0),
        (200, 200, 7, 1),
        (200, 200, 0, 0),
    ],
)
def test_rows_values_and_levels_of_a_profile(rows, values, people, found):
    assert profile_findings(rows, values, people) == found


def test_cells_of_discrete_variables():
    assert count(rules.check_discrete_values({"a": 0, "b": 8}, 8)) == 0
    found = list(rules.check_discrete_values({"a": 1, "b": 7}, 8))
    assert len(found) == 2
    assert len(list(group_findings(found))) == 1  # one sentence for one cause


def test_leverage():
    assert count(rules.check_leverage({"x": 0.9}, 0.9, 1)) == 0
    assert count(rules.check_leverage({"x": beyond(0.9)}, 0.9, 1)) == 1
    policy = Policy(max_leverage=0.9)
    for replicates in (0, 8):
        limit = policy.leverage_limit(replicates)
        policy.check_row_leverage(limit, replicates)
        with pytest.raises(DisclosureError):
            policy.check_row_leverage(beyond(limit), replicates)
    policy.check_replicates({"x": 0.9})
    with pytest.raises(DisclosureError):
        policy.check_replicates({"x": beyond(0.9)})


def test_distance_from_the_location():
    plan = StudyPlan((Continuous("x"),), ("north",), clip=16.0)
    summary = summarize({"x": np.full(200, 4.0)}, plan, "north")
    limit = next(d for d in (4.0, beyond(4.0)) if not count(rules.check_location(summary, plan, d)))
    assert limit == pytest.approx(4.0)
    assert count(rules.check_location(summary, plan, below(below(limit)))) == 1
    far = summarize({"x": np.full(200, 8.0)}, plan, "north")
    assert count(rules.check_location(far, plan, 100.0)) == 0, "half the clip is allowed"
    assert count(rules.check_location(summarize({"x": np.full(200, 8.01)}, plan, "north"), plan, 100.0)) == 1


def test_values_in_partial_rows():
    Policy().check_partial_rows({"x": 0, "y": 8})
    with pytest.raises(DisclosureError, match="'x' has 7 values in rows that lack another value, expected"):
        Policy().check_partial_rows({"x": 7, "y": 8})
    with pytest.raises(
        DisclosureError, match=r"'x' has 3 values .* \(and 1 other variables have few as well\), expected"
    ):
        Policy().check_partial_rows({"x": 3, "y": 7})


PLAN = StudyPlan((Continuous("x"), Continuous("y"), Categorical("g", ("a", "b"))), ("north",))


@pytest.mark.parametrize("min_rows", [None, 1000])
def test_rows_for_an_answer(min_rows):
    budget, policy = RoundBudget(sets=frozenset({("x", "y")})), Policy(min_rows=min_rows)
    needed = required_rows(PLAN, budget.sets)
    if min_rows is not None:
        needed = int(np.ceil(min_rows * needed / required_rows(PLAN)))
    policy.check_answer(PLAN, needed, budget, {})
    with pytest.raises(DisclosureError, match=f"expected at least {needed} rows"):
        policy.check_answer(PLAN, needed - 1, budget, {})


def test_people_and_leverage_of_an_answer():
    policy, people = Policy(max_leverage=0.9), required_cell_count(PLAN)
    for risk in (JointRisk(0.9, "cell", people), JointRisk(0.9, "", 0)):
        policy.check_answer(PLAN, 10**6, RoundBudget(), {("x", "y"): risk})
    for risk in (JointRisk(beyond(0.9), "cell", people), JointRisk(0.0, "cell", people - 1)):
        with pytest.raises(DisclosureError):
            policy.check_answer(PLAN, 10**6, RoundBudget(), {("x", "y"): risk})


def test_cells_are_listed_from_the_smallest_number_of_rows_on():
    """Below it all cells are small, and a refusal that lists them would disclose them."""
    plan = StudyPlan((Categorical("g", ("a", "b")),), ("north",))
    for rows, listed in ((100, True), (99, False)):
        summary = summarize({"g": ["a", "b"] * 50} if rows == 100 else {"g": (["a", "b"] * 50)[:99]}, plan, "north")
        with pytest.raises(DisclosureError) as refused:
            Policy().check_summary(summary, plan, cells={"value 1 of 'x'": 3})
        assert ("value 1 of 'x'" in str(refused.value)) == listed, rows


def test_noise_waives_counts_up_to_the_epsilon_of_the_policy():
    policy, leverage = Policy(waive_counts_below_epsilon=1.0, max_leverage=0.5), 0.9
    policy.check_row_leverage(leverage, noise=DPParameters(1.0, 1e-6))
    for noise in (DPParameters(1.0625, 1e-6), DPParameters(1.0, 1e-6, distributed=True, honest=2), None):
        with pytest.raises(DisclosureError):
            policy.check_row_leverage(leverage, noise=noise)


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("max_leverage", 1.0, beyond(1.0)),
        ("max_leverage", beyond(0.0), 0.0),
        ("waive_counts_below_epsilon", 2.0, beyond(2.0)),
        ("waive_counts_below_epsilon", 0.0, below(0.0)),
        ("epsilon_budget", beyond(0.0), 0.0),
        ("max_delta", beyond(0.0), 0.0),
        ("delta_budget", beyond(0.0), 0.0),
        ("max_rms_distance", beyond(0.0), 0.0),
    ],
)
def test_values_of_a_policy(key, good, bad):
    Policy(**{key: good})
    with pytest.raises(SettingsError, match=key):
        Policy(**{key: bad})


@pytest.mark.parametrize("parts", [1, 2])
def test_a_variable_is_discrete_up_to_the_limit(parts):
    plan = StudyPlan((Continuous("x"),), ("north",))

    def cells(values: list[float]) -> dict[str, int]:
        counters = [CellCounter(plan, 3) for _ in range(parts)]
        for place, counter in enumerate(counters):
            counter(to_table({"x": values[place::parts]}))
        return dict(sum(counters[1:], counters[0]).cells)

    assert len(cells([1.0, 2.0, 3.0, 1.0])) == 3
    assert cells([1.0, 2.0, 3.0, 4.0]) == {}


@pytest.mark.parametrize(("common", "found"), [(15, True), (14, False)])
def test_a_value_is_common_from_15_percent_of_the_rows_on(common, found):
    plan = StudyPlan((Continuous("x", 50, 30), Categorical("g", ("a", "b"))), ("north",))
    counter = CellCounter(plan, 3)
    values = [0.0] * common + [float(k) for k in range(1, 101 - common)]
    counter(to_table({"x": values, "g": ["a", "b"] * 50}))
    assert bool(counter.cells) == found


def test_with_a_limit_of_zero_no_variable_is_discrete_or_has_a_common_value():
    plan = StudyPlan((Continuous("x"), Categorical("g", ("a", "b"))), ("north",))
    table = to_table({"x": [0.0] * 50 + [float(k) for k in range(1, 51)], "g": ["a", "b"] * 50})
    for limit, found in ((0, False), (1, True)):
        counter = CellCounter(plan, limit)
        counter(table)
        assert bool(counter.cells) == found, limit


def test_values_beyond_the_first_rows_count():
    """The first 512 new values of a batch are previewed; here the limit is passed only after them."""
    plan = StudyPlan((Continuous("x"),), ("north",))
    values = [float(k % 3) for k in range(600)]
    for more, found in (([], 3), ([3.0], 0)):
        counter = CellCounter(plan, 3)
        counter(to_table({"x": [*values, *more]}))
        assert len(counter.cells) == found, more
