"""Profiles and plans: pooled numbers from a few sums, one canonical text, and nothing damaged gets through."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import plans

from fedcdh._io.text import MAX_NAME_LENGTH
from fedcdh.discovery.api import discover
from fedcdh.errors import DataError, PlanError
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.column_profiles import MAX_LEVELS
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import MAX_COLUMNS, Categorical, Continuous, StudyPlan
from fedcdh.summaries.profiles import QUANTILES, merge_profiles, profile


@settings(deadline=None, max_examples=60)
@given(plans())
def test_what_is_written_is_read_back(plan):
    text = plan.to_json()
    read = StudyPlan.from_json(text)
    assert read == plan
    assert read.to_json() == text
    assert read.fingerprint == plan.fingerprint


@settings(deadline=None, max_examples=40)
@given(plans(), st.randoms(use_true_random=False))
def test_the_text_does_not_depend_on_order_of_keys_or_clients(plan, rng: random.Random):
    def shuffled(value):
        if isinstance(value, dict):
            return {key: shuffled(value[key]) for key in rng.sample(sorted(value), len(value))}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    document = shuffled(json.loads(plan.to_json()))
    rng.shuffle(document["clients"])
    assert StudyPlan.from_json(json.dumps(document, indent=3)).to_json() == plan.to_json()
    assert replace(plan, clients=tuple(rng.sample(plan.clients, len(plan.clients)))).fingerprint == plan.fingerprint


PLAN = StudyPlan(
    (Continuous("age", 60.0, 15.0), Categorical("sex", ("f", "m"))), ("north", "south"), Fourier(5, 1.0, 7), 6.0
)


@pytest.mark.parametrize(
    "other",
    [
        replace(PLAN, clients=("north", "west")),
        replace(PLAN, clients=("north",)),
        replace(PLAN, clip=5.0),
        replace(PLAN, family=Fourier(6, 1.0, 7)),
        replace(PLAN, family=Fourier(5, 1.5, 7)),
        replace(PLAN, family=Fourier(5, 1.0, 8)),
        replace(PLAN, family=Hermite(5, 1.0)),
        replace(PLAN, variables=PLAN.variables[::-1]),
        replace(PLAN, variables=(Continuous("Age", 60.0, 15.0), PLAN.variables[1])),
        replace(PLAN, variables=(Continuous("age", np.nextafter(60.0, 61), 15.0), PLAN.variables[1])),
        replace(PLAN, variables=(Continuous("age", 60.0, 15.1), PLAN.variables[1])),
        replace(PLAN, variables=(Continuous("age", 60.0, 15.0, np.nextafter(60.0, 61)), PLAN.variables[1])),
        replace(PLAN, variables=(Continuous("age", 60.0, 15.0, 60.0, 15.1), PLAN.variables[1])),
        replace(PLAN, variables=(Continuous("age", 60.0, 15.0, spread=14.9), PLAN.variables[1])),
        replace(PLAN, variables=(PLAN.variables[0], Categorical("sex", ("m", "f")))),
        replace(PLAN, variables=(PLAN.variables[0], Categorical("sex", ("f", "m", "x")))),
        replace(PLAN, variables=(PLAN.variables[0], Continuous("sex"))),
    ],
)
def test_the_fingerprint_changes_with_everything(other):
    assert other != PLAN
    assert other.fingerprint != PLAN.fingerprint


@pytest.mark.parametrize(
    "same",
    [
        (60, 15),
        (60.0, 15),
        (np.float64(60), np.int64(15)),
        (60, 15, None, None),
        (60, 15, 60, None),
        (60, 15, None, 15),
        (60.0, 15.0, 60.0, 15.0),
        (60, 15, np.int64(60), np.float64(15)),
    ],
)
def test_equal_numbers_have_one_fingerprint(same):
    other = replace(PLAN, variables=(Continuous("age", *same), PLAN.variables[1]), clip=6, family=Fourier(5, 1, 7))
    assert other == PLAN
    assert other.fingerprint == PLAN.fingerprint
    assert Continuous("x", -0.0) == Continuous("x", 0.0)
    zeros = [StudyPlan((Continuous("x", zero),), ("a",)).fingerprint for zero in (0.0, -0.0, 0)]
    assert len(set(zeros)) == 1
    zeros = [StudyPlan((Continuous("x", 1.0, 1.0, zero),), ("a",)).fingerprint for zero in (0.0, -0.0, 0)]
    assert len(set(zeros)) == 1


def test_centre_and_spread_are_location_and_scale_unless_given():
    assert (Continuous("x").centre, Continuous("x").spread) == (0.0, 1.0)
    assert (Continuous("x", 60, 15).centre, Continuous("x", 60, 15).spread) == (60.0, 15.0)
    assert (Continuous("x", 60, 15, 58).centre, Continuous("x", 60, 15, 58).spread) == (58.0, 15.0)
    assert (Continuous("x", 60, 15, spread=9).centre, Continuous("x", 60, 15, spread=9).spread) == (60.0, 9.0)
    given_ = Continuous("x", 60, 15, np.int64(58), np.float64(9))
    assert (given_.location, given_.scale, given_.centre, given_.spread) == (60.0, 15.0, 58.0, 9.0)
    assert {type(number) for number in (given_.centre, given_.spread)} == {float}


def test_centre_and_spread_are_written_down():
    plan = StudyPlan((Continuous("x", 60, 15, 58.5, 9.25), Continuous("y", 60, 15)), ("north",))
    x, y = json.loads(plan.to_json())["variables"]
    assert (x["location"], x["scale"], x["centre"], x["spread"]) == (60.0, 15.0, 58.5, 9.25)
    assert (y["location"], y["scale"], y["centre"], y["spread"]) == (60.0, 15.0, 60.0, 15.0)
    read = StudyPlan.from_json(plan.to_json())
    assert read == plan
    assert read.fingerprint == plan.fingerprint
    assert read.variables[0] == Continuous("x", 60, 15, 58.5, 9.25)


@pytest.mark.parametrize(
    "numbers",
    [
        {"spread": 0},
        {"spread": -0.0},
        {"spread": -1.0},
        {"spread": float("nan")},
        {"spread": float("inf")},
        {"centre": float("nan")},
        {"centre": float("inf")},
        {"centre": -float("inf")},
        {"scale": 0, "spread": 1.0},
        {"scale": float("nan"), "spread": 1.0},
        {"location": float("nan"), "centre": 0.0},
    ],
)
def test_numbers_that_cannot_be_are_refused_by_name(numbers):
    with pytest.raises(PlanError, match=r"'dose' has location .*expected finite numbers, with a positive scale and spread"):
        Continuous("dose", **numbers)


def damaged(path: str, value: object) -> str:
    document = json.loads(PLAN.to_json())
    *way, last = path.split(".")
    place = document
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    place[int(last) if last.isdigit() else last] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "null",
        "[]",
        '"plan"',
        "7",
        PLAN.to_json()[:-1],
        PLAN.to_json()[1:],
        PLAN.to_json() + "}",
        "[" * 100_000,
        "1" * 5000,
        b"\xff\xfe",
        None,
        damaged("format", "fedcdh-plan-0"),
        damaged("clients", "north"),
        damaged("clients", []),
        damaged("clients", ["north", "north"]),
        damaged("clients", ["north", ""]),
        damaged("clients", [1, "north"]),
        damaged("clip", "6"),
        damaged("clip", float("nan")),
        damaged("clip", 0),
        damaged("more", 1),
        damaged("family.name", "wavelet"),
        damaged("family.name", ["fourier"]),
        damaged("family.width", 1),
        damaged("family.width", 3.5),
        damaged("family.width", 10**9),
        damaged("family.bandwidth", 0),
        damaged("family.bandwidth", float("inf")),
        damaged("family.seed", -1),
        damaged("family.seed", 0.5),
        damaged("family.more", 1),
        damaged("variables", []),
        damaged("variables", {}),
        damaged("variables", "age"),
        damaged("variables.0", 7),
        damaged("variables.0.name", 7),
        damaged("variables.0.name", "sex"),
        damaged("variables.0.name", DOMAIN),
        damaged("variables.0.name", "\ud800"),
        damaged("variables.0.kind", "ordinal"),
        damaged("variables.0.location", float("inf")),
        damaged("variables.0.location", 10**400),
        damaged("variables.0.location", "60"),
        damaged("variables.0.scale", 0),
        damaged("variables.0.scale", -1),
        damaged("variables.0.scale", None),
        damaged("variables.0.centre", float("nan")),
        damaged("variables.0.centre", float("-inf")),
        damaged("variables.0.centre", 10**400),
        damaged("variables.0.centre", "60"),
        damaged("variables.0.centre", [60]),
        damaged("variables.0.spread", 0),
        damaged("variables.0.spread", -1),
        damaged("variables.0.spread", float("nan")),
        damaged("variables.0.spread", float("inf")),
        damaged("variables.0.spread", "15"),
        damaged("variables.1.spread", 1.0),
        damaged("variables.1.levels", "fm"),
        damaged("variables.1.levels", []),
        damaged("variables.1.levels", ["f", "f"]),
        damaged("variables.1.levels", [0, 1]),
        damaged("variables.1.levels", None),
        damaged("variables.1.levels", ["\ud800"]),
    ],
)
def test_a_damaged_plan_is_refused(text):
    with pytest.raises(PlanError):
        StudyPlan.from_json(text)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_whatever_happens_to_a_plan_is_refused_or_harmless(data):
    text = PLAN.to_json()
    at = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 5))
    broken = text[:at] + data.draw(st.text(max_size=3)) + text[at + length :]
    try:
        plan = StudyPlan.from_json(broken)
    except PlanError:
        return
    assert StudyPlan.from_json(plan.to_json()) == plan
    assert plan.fingerprint == PLAN.fingerprint or plan != PLAN


# Names and sizes

READABLE = [
    "می\u200cروم",
    "a" * MAX_NAME_LENGTH,
    "größe ☃",
    '"y" \\',
    "גובה",
    "no\u00a0break",
    "\u3000",
    "😀",
    "e\u0301",
    "%s {x}",
]
UNREADABLE = [
    "a" * (MAX_NAME_LENGTH + 1),
    "a\n",
    "\t",
    "\0",
    "\x1b[2J",
    "\x7f",
    "\x9b",
    "a\u200bb",
    "\u2028",
    "a\u202e",
    "\ud800",
]


@pytest.mark.parametrize("text", READABLE)
def test_names_and_levels_may_be_whatever_can_be_read_in_a_line(text):
    plan = StudyPlan((Continuous(text), Categorical(text + "2" if len(text) < 99 else "g", (text, ""))), (text,))
    assert StudyPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("text", UNREADABLE)
@pytest.mark.parametrize(
    ("made", "whose"),
    [
        (lambda text: Continuous(text), "the name of a variable"),
        (lambda text: Categorical(text, ("a", "b")), "the name of a variable"),
        (lambda text: Categorical("g", ("a", text)), "a level of variable 'g'"),
        (lambda text: StudyPlan((Continuous("x"),), ("north", text)), "the name of a client"),
    ],
)
def test_names_and_levels_that_cannot_be_read_in_a_line_are_refused(made, whose, text):
    with pytest.raises(PlanError, match=f"^{whose} cannot be used: .*(printed|at most 200); rename it$") as refused:
        made(text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


def test_a_table_with_a_hidden_letter_is_refused_by_name():
    with pytest.raises(PlanError, match=r"name of a variable.*'age\\x00' holds the character U\+0000"):
        discover({"north": {"age\0": [1.0, 2.0, 3.0], "g": ["a", "b", "a"]}})
    with pytest.raises(PlanError, match=r"level of variable 'g'.*'b\\n' holds the character U\+000A"):
        discover({"north": {"age": [1.0, 2.0, 3.0], "g": ["a", "b\n", "a"]}})


def test_levels_are_as_few_as_in_profiles():
    assert len(Categorical("g", tuple(map(str, range(MAX_LEVELS)))).levels) == MAX_LEVELS
    with pytest.raises(PlanError, match="'g' has 100000 levels; expected at most 100; group the levels"):
        Categorical("g", tuple(map(str, range(100_000))))


def test_a_plan_fits_into_memory():
    columns = [Continuous(f"v{k}") for k in range((MAX_COLUMNS - 1) // 4)]
    plan = StudyPlan(tuple(columns), ("north",), Hermite(2))
    assert plan.layout.n_columns <= MAX_COLUMNS
    with pytest.raises(PlanError, match="columns of features; expected at most 20000; leave variables out"):
        replace(plan, family=Hermite(3))


@pytest.mark.parametrize(
    "text",
    [
        damaged("clients", ["north"] * 10_000),
        damaged("clients", "n" * 100_000),
        damaged("family.name", "w" * 100_000),
        damaged("variables.0.name", "v" * 100_000),
        damaged("variables.1.levels", ["f"] * 100),
        damaged("variables.0.kind", "k" * 100_000),
    ],
)
def test_refusals_fit_into_a_few_lines(text):
    with pytest.raises(PlanError) as refused:
        StudyPlan.from_json(text)
    assert len(str(refused.value)) < 500


def test_spans_cover_all_columns_once():
    covered = [column for span in PLAN.layout.spans.values() for column in range(span.start, span.stop)]
    assert covered == list(range(1, PLAN.layout.n_columns))


# Profiles

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
