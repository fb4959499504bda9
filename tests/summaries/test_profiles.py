"""Profiles of clients, and how they are pooled."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from time_series import series

from fedcdh.discovery.api import discover
from fedcdh.errors import DataError, PlanError
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import QUANTILES, merge_profiles, pool_shares, profile
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares
from fedcdh.summaries.variables import Categorical


def test_a_table_with_a_hidden_letter_is_refused_by_name():
    with pytest.raises(PlanError, match=r"name of a variable.*'age\\x00' holds the character U\+0000"):
        discover({"north": {"age\0": [1.0, 2.0, 3.0], "g": ["a", "b", "a"]}})
    with pytest.raises(PlanError, match=r"level of variable 'g'.*'b\\n' holds the character U\+000A"):
        discover({"north": {"age": [1.0, 2.0, 3.0], "g": ["a", "b\n", "a"]}})


values = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=12)


@given(st.lists(values, min_size=1, max_size=5), st.floats(-1e9, 1e9), st.randoms(use_true_random=False))
def test_pooled_location_and_scale_are_those_of_the_pooled_rows(parts, offset, rng):
    tables = {f"c{k}": {"x": np.array(part) + offset} for k, part in enumerate(parts)}
    profiles = [profile(table, client) for client, table in tables.items()]
    rng.shuffle(profiles)
    plan = StudyPlan.from_profiles(profiles)
    pooled = np.concatenate([table["x"] for table in tables.values()]).astype(np.longdouble)
    mean, spread = float(pooled.mean()), float(pooled.std())
    (variable,) = plan.variables
    q1, q3 = merge_profiles(profiles)["x"].quantiles[1:4:2]
    if 0 < 10 * (q3 - q1) / 1.349 < spread:  # single values distort the moments: see below
        return
    largest = float(np.abs(pooled).max())
    assert variable.location == pytest.approx(mean, rel=1e-12, abs=1e-15 * largest)
    if spread > max(1e-6 * largest, 1e-100):  # squares below 1e-300 are no numbers any more
        assert variable.scale == pytest.approx(spread, rel=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([8, 16, 40]))
@settings(max_examples=40, deadline=None)
def test_pooled_quantiles_do_not_hang_on_how_many_values_are_looked_at_at_once(seed, clients, at_once):
    """Ties, constants and clients far from all others included; to the last digit."""
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(clients):
        x = np.round(rng.normal(rng.choice([0, 0, 9]), rng.choice([0, 1, 5]), 30), int(rng.integers(0, 3)))
        parts.append(profile({"x": x}, f"c{k}"))
    whole = merge_profiles(parts)["x"].quantiles
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["fedcdh.summaries.profiles"], "MAX_VALUES_PER_PASS", at_once)
        assert merge_profiles(parts)["x"].quantiles == whole


def test_pooled_location_and_scale_to_the_last_digits():
    rng = np.random.default_rng(5)
    tables = {f"c{k}": {"x": 1e6 * k + 10.0**k * rng.standard_normal(50 * (k + 1))} for k in range(4)}
    (variable,) = StudyPlan.from_profiles(profile(table, client) for client, table in tables.items()).variables
    pooled = np.concatenate([table["x"] for table in tables.values()])
    assert variable.location == pytest.approx(pooled.mean(), rel=1e-12)
    assert variable.scale == pytest.approx(pooled.std(), rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.lists(st.tuples(st.floats(-1e9, 1e9), st.sampled_from("abcd")), min_size=1, max_size=8),
        min_size=1,
        max_size=5,
    ),
    st.randoms(use_true_random=False),
)
def test_the_plan_does_not_depend_on_the_order_of_clients_or_rows(parts, rng):
    def plan(shuffle: bool) -> StudyPlan:
        profiles = []
        for k, part in enumerate(parts):
            rows = rng.sample(part, len(part)) if shuffle else part
            profiles.append(profile({"x": [x for x, _ in rows], "g": [g for _, g in rows]}, f"c{k}"))
        return StudyPlan.from_profiles(rng.sample(profiles, len(profiles)) if shuffle else profiles)

    assert plan(True).to_json() == plan(False).to_json()


def test_a_profile_says_no_more_than_it_needs():
    found = profile({"x": [1.0, 2.0, 3.0, None], "g": ["a", "b", "a", None]}, "north")
    x, g = found.columns["x"], found.columns["g"]
    assert (x.count, x.missing, x.mean, x.squares) == (3, 1, 2.0, 2.0)
    assert len(x.quantiles) == 5
    assert min(x.quantiles) > 1.0  # neither the smallest nor the largest value is told
    assert max(x.quantiles) < 3.0
    assert (g.levels, g.counts, g.missing) == (("a", "b"), (2, 1), 1)


def test_merged_levels_are_the_union_with_their_counts():
    parts = [profile({"g": list(labels)}, client) for client, labels in (("s", "ab"), ("n", "bcc"))]
    merged = merge_profiles(parts)["g"]
    assert dict(zip(merged.levels, merged.counts, strict=True)) == {"a": 1, "b": 2, "c": 2}
    assert merged.count == 5


def test_kinds_overrule_what_a_column_looks_like():
    table = {"grade": [1, 2, 2, 3], "x": [0.5, 1.5, 2.5, 3.5]}
    plan = StudyPlan.from_profiles([profile(table, "a", kinds={"grade": "categorical"})])
    assert plan.variables[0] == Categorical("grade", ("1", "2", "3"))


@pytest.mark.parametrize(
    ("settings_", "complaint"),
    [
        ({"kinds": {"y": "categorical"}}, r"'y'.*client 'north' has no such column"),
        ({"kinds": {"x": "ordinal"}}, "'x' is declared 'ordinal'; choose one of continuous, categorical"),
        ({"kinds": {"g": "continuous"}}, r"'g' at client 'north' should be continuous but holds text; turn it"),
        ({"variables": ["x", "z"]}, "client 'north': there is no column 'z'"),
    ],
)
def test_a_profile_that_cannot_be_made_says_why(settings_, complaint):
    with pytest.raises(DataError, match=complaint):
        profile({"x": [1, 2], "g": ["a", "b"]}, "north", **settings_)


def test_no_profiles_no_plan():
    with pytest.raises(PlanError, match="at least one client"):
        StudyPlan.from_profiles([])
    twice = [profile({"x": [1, 2]}, "north"), profile({"x": [1, 2]}, "north")]
    with pytest.raises(PlanError, match="different names that are not empty"):
        StudyPlan.from_profiles(twice)


def test_one_absurd_value_does_not_hide_a_variable():
    rng = np.random.default_rng(0)
    tables = {f"c{k}": {"x": rng.normal(50, 10, 200)} for k in range(3)}
    plain = StudyPlan.from_tables(tables).variables[0]
    tables["c1"]["x"][7] = -1e9
    robust = StudyPlan.from_tables(tables).variables[0]
    assert plain.location == pytest.approx(50, abs=2)
    assert plain.scale == pytest.approx(10, rel=0.1)
    assert robust.location == pytest.approx(50, abs=2)
    assert robust.scale == pytest.approx(10 * 10, rel=0.15)  # as large a standard deviation as is believed
    for variable in (plain, robust):
        assert variable.centre == pytest.approx(50, abs=2)
        assert variable.spread == pytest.approx(10, rel=0.15)
    assert robust.location == robust.centre
    assert robust.scale == pytest.approx(10 * robust.spread, rel=1e-12)


@given(values, st.floats(-1e6, 1e6))
def test_centre_and_spread_are_the_median_and_the_quartiles_of_a_normal_variable(part, offset):
    x = np.array(part) + offset
    (variable,) = StudyPlan.from_profiles([profile({"x": x}, "north")]).variables
    low, median, high = np.quantile(x, [0.25, 0.5, 0.75])
    largest = float(np.abs(x).max())
    assert variable.centre == pytest.approx(median, rel=1e-12, abs=1e-14 * largest)
    if low == high:
        assert variable.spread == variable.scale
    else:
        assert variable.spread == pytest.approx((high - low) / 1.349, rel=1e-12, abs=1e-14 * largest)


def test_the_spread_of_a_normal_variable_is_its_standard_deviation():
    x = 50 + 10 * stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    (variable,) = StudyPlan.from_tables({"north": {"x": x}}).variables
    assert (variable.centre, variable.spread) == (pytest.approx(50, abs=1e-9), pytest.approx(10, rel=1e-4))


def test_centre_and_spread_of_several_clients_are_those_of_all_rows():
    rng = np.random.default_rng(2)
    tables = {f"c{k}": {"x": np.exp(rng.normal(k / 3, 1, 300 + 100 * k))} for k in range(4)}
    (variable,) = StudyPlan.from_tables(tables).variables
    pooled = np.concatenate([table["x"] for table in tables.values()])
    low, median, high = np.quantile(pooled, [0.25, 0.5, 0.75])
    assert variable.location == pytest.approx(pooled.mean(), rel=1e-12)
    assert variable.scale == pytest.approx(pooled.std(), rel=1e-12)
    assert variable.centre == pytest.approx(median, rel=0.05)
    assert variable.spread == pytest.approx((high - low) / 1.349, rel=0.15)  # of five quantiles per client
    assert variable.centre < 0.8 * variable.location  # skewed: the bulk is elsewhere, and narrower
    assert variable.spread < 0.8 * variable.scale


@pytest.mark.parametrize("clients", [1, 3])
@pytest.mark.parametrize("column", [[7.0] * 9, [0.0] * 8 + [1.0], [1.0] * 8 + [0.0], [-1.0, *[2.5] * 11, 4.0]])
def test_quartiles_that_are_one_value_leave_the_scale(column, clients):
    (variable,) = StudyPlan.from_tables({f"c{k}": {"x": column} for k in range(clients)}).variables
    assert variable.centre == np.median(column)
    assert variable.spread == variable.scale == pytest.approx(np.std(column) or 1.0, rel=1e-12)


@given(st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=12), min_size=1, max_size=4))
@example([[0, 0, 0, 0, 0, 1, 2], [-1, -1, 2], [0, 0, 0, 2, 2, 2, 2]])
def test_counted_from_the_other_end_the_bulk_is_the_same(parts):
    """Values that many rows share included: it must not matter which of two codes is 0 and which is 1."""
    (forth,), (back,) = (
        StudyPlan.from_tables({f"c{k}": {"x": sign * np.array(part)} for k, part in enumerate(parts)}).variables
        for sign in (1.0, -1.0)
    )
    assert back.centre == pytest.approx(-forth.centre, abs=1e-9)
    assert back.spread == pytest.approx(forth.spread, rel=1e-9)


def test_pooled_quantiles_are_near_those_of_the_pooled_rows():
    rng = np.random.default_rng(1)
    parts = [rng.normal(k, 1 + k / 3, 300 + 100 * k) for k in range(4)]
    found = merge_profiles([profile({"x": part}, f"c{k}") for k, part in enumerate(parts)])["x"].quantiles
    pooled = np.concatenate(parts)
    assert found == pytest.approx(np.quantile(pooled, QUANTILES), abs=0.25 * pooled.std())


def test_rows_in_the_order_of_a_column_are_those_in_that_order():
    rng = np.random.default_rng(1)
    rows = {"time": np.arange(400.0), "x": series(rng, 400, 0.8), "y": series(rng, 400, 0.8)}
    order = rng.permutation(400)
    mixed = {name: column[order] for name, column in rows.items()}
    found = profile(mixed, "a", order_by="time")
    assert list(found.columns) == ["x", "y"]
    assert found == profile({"x": rows["x"], "y": rows["y"]}, "a")
    assert found.columns["x"].product_share < 0.5
    assert profile(mixed, "a", variables=["x", "y"]).columns["x"].mean_share == 1.0
    named = profile(mixed, "a", variables=["time", "x"], order_by="time")
    assert list(named.columns) == ["time", "x"]
    assert named.columns["x"].mean_share < 0.5  # the order is that of time, although a column of the table has it


def test_times_that_are_missing_or_not_there_are_refused():
    with pytest.raises(DataError, match="no column 'day'"):
        profile({"x": [1.0, 2.0]}, "a", order_by="day")
    with pytest.raises(DataError, match="empty in 1 of 2 rows"):
        profile({"x": [1.0, 2.0], "day": ["2024-01-01", None]}, "a", order_by="day")


def test_pooled_shares_are_means_weighted_by_rows():
    some = ColumnProfile("continuous", 300, 0, product_share=0.2, mean_share=0.1)
    none = ColumnProfile("continuous", 0, 5, product_share=0.5)
    assert pool_shares([some, ColumnProfile("continuous", 100, 0), none]) == RowShares(0.4, 0.325)
    assert pool_shares([]) == ALL_ROWS
