"""The study plan: one text, one fingerprint, and refusals of damaged ones."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import plans
from time_series import unrelated

from fedcdh.errors import PlanError
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import MAX_COLUMNS, StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous


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


def test_shares_of_one_leave_no_trace_and_others_are_kept():
    plain = StudyPlan((Continuous("x", 0, 1), Categorical("g", ("a", "b"))), ("north",))
    stated = StudyPlan((Continuous("x", 0, 1, 0, 1, 1, 1.0), Categorical("g", ("a", "b"), 1.0, 1)), ("north",))
    assert "share" not in plain.to_json()
    assert stated.fingerprint == plain.fingerprint
    some = StudyPlan((Continuous("x", 0, 1, product_share=0.25), Categorical("g", ("a", "b"), 1.0, 0.5)), ("north",))
    assert StudyPlan.from_json(some.to_json()) == some
    assert some.fingerprint != plain.fingerprint


def test_the_plan_of_tables_takes_the_order_of_a_column():
    tables = unrelated(3)
    in_order = {client: {"t": np.arange(200), **table} for client, table in tables.items()}
    backwards = {client: {name: column[::-1] for name, column in table.items()} for client, table in in_order.items()}
    plan = StudyPlan.from_tables(tables)
    assert all(one.mean_share < 0.5 for one in plan.variables)
    assert StudyPlan.from_tables(backwards, order_by="t") == plan
    chosen = StudyPlan.from_tables(backwards, variables=["t", "v1"], order_by="t")
    assert chosen.names == ("t", "v1")


@pytest.mark.parametrize("alike", ["n\u043erth", "North", "north ", "nor\u200cth"])
def test_clients_whose_names_look_alike_are_refused(alike):
    """Both are shown with their escapes, so that people see what differs."""
    with pytest.raises(PlanError, match="look alike") as refused:
        StudyPlan((Continuous("x"),), ("north", "south", alike))
    assert ascii("north") in str(refused.value)
    assert ascii(alike) in str(refused.value)
