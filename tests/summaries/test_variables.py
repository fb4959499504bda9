"""The variables of a plan: numbers and names that can be used."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from fedcdh._io.text import MAX_NAME_LENGTH
from fedcdh.errors import PlanError
from fedcdh.summaries.column_profiles import MAX_LEVELS
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous


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
    with pytest.raises(
        PlanError, match=r"'dose' has location .*expected finite numbers, with a positive scale and spread"
    ):
        Continuous("dose", **numbers)


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


def test_levels_are_as_few_as_in_profiles():
    assert len(Categorical("g", tuple(map(str, range(MAX_LEVELS)))).levels) == MAX_LEVELS
    with pytest.raises(PlanError, match="'g' has 100000 levels; expected at most 100; group the levels"):
        Categorical("g", tuple(map(str, range(100_000))))


@pytest.mark.parametrize("share", [0, -0.1, 1.1, "1", True, float("nan"), None])
@pytest.mark.parametrize("field", ["product_share", "mean_share"])
def test_a_share_of_rows_is_above_0_and_at_most_1(field, share):
    for make in (partial(Continuous, "x"), partial(Categorical, "x", ("a",))):
        with pytest.raises(PlanError, match=f"has the {field}.*above 0 and at most 1") as caught:
            make(**{field: share})
        assert caught.value.parameter == field
