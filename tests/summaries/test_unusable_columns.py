"""Identifiers, dates and free text are named all at once, and get into no profile."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedcdh
from fedcdh.errors import DataError
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.unusable_columns import describe_labels, find_steps

ROWS = 250
RNG = np.random.default_rng(2)
GOOD = {"age": np.round(RNG.normal(50, 12, ROWS)), "sex": RNG.choice(["f", "m"], ROWS)}
BAD = {
    "patient": RNG.permutation(ROWS) + 1000,
    "visit": np.arange(ROWS) * 5,
    "insurance number": [str(10**24 + 7 * int(one)) for one in RNG.integers(0, 10**9, ROWS)],
    "note": [f"came at {one}, went home" for one in range(ROWS)],
    "born": [str(datetime.date(1950, 1, 1) + datetime.timedelta(days=31 * one)) for one in range(ROWS)],
}


def stats_of(values: np.ndarray) -> tuple:
    return len(values), values.min(), values.max(), values.mean(), ((values - values.mean()) ** 2).sum()


@given(st.integers(3, 300), st.integers(-1000, 1000), st.integers(1, 50), st.randoms())
def test_values_in_steps_are_found_in_any_order(count, start, step, random):
    values = np.arange(count) * step + start
    assert find_steps(*stats_of(np.array(random.sample([*values], count), dtype=float))) == pytest.approx(step)


@given(st.lists(st.integers(-30, 30), min_size=100, max_size=200))
def test_values_that_repeat_are_none(values):
    assert find_steps(*stats_of(np.array(values, dtype=float))) is None


def test_all_columns_that_are_no_variables_are_named_at_once():
    with pytest.raises(DataError) as refused:
        profile({**GOOD, **BAD}, "north")
    said = str(refused.value)
    assert "5 columns cannot be a variable" in said
    for name in BAD:
        assert repr(name) in said
    for part in ("steps of 1,", "steps of 5", "dates", "--exclude patient", "exclude=["):
        assert part in said
    assert "'age'" not in said


@pytest.mark.parametrize("name", BAD)
def test_each_is_refused_by_itself_and_excluded_by_name(name):
    table = {**GOOD, name: BAD[name]}
    with pytest.raises(DataError, match=name):
        fedcdh.StudyPlan.from_tables({"north": table})
    assert fedcdh.StudyPlan.from_tables({"north": table}, exclude=[name]).names == ("age", "sex")


def test_a_declared_kind_makes_it_a_variable():
    assert "visit" in profile({**GOOD, "visit": BAD["visit"]}, "north", kinds={"visit": "continuous"}).columns


def test_excluded_columns_may_hold_anything_in_every_way():
    tables = {c: {**GOOD, "when": [datetime.datetime(2026, 1, 1)] * ROWS, "blob": [b"x"] * ROWS} for c in ("a", "b")}
    gone = ["when", "blob"]
    found = [
        fedcdh.discover(tables, exclude=gone, rounds="one").graph,
        fedcdh.FedCDH(exclude=gone).fit(tables).graph_,
        fedcdh.simulate_federation(tables, exclude=gone, rounds="one").result.graph,
    ]
    assert all(one == found[0] and set(one.nodes) == {"age", "sex"} for one in found)
    with pytest.raises(DataError, match=r"(?s)2 columns cannot be read.*'when'.*'blob'"):
        fedcdh.discover(tables)


def test_a_misspelt_column_to_exclude_is_suggested():
    for way in (lambda: fedcdh.discover({"a": GOOD}, exclude=["agee"]), lambda: profile(GOOD, "a", exclude=["agee"])):
        with pytest.raises(DataError, match="did you mean 'age'"):
            way()


def test_a_column_of_one_client_can_be_excluded():
    tables = {"a": GOOD, "b": {**GOOD, "ward": ["x"] * ROWS}}
    assert fedcdh.discover(tables, exclude=["ward"], rounds="one").graph.nodes


def test_few_rows_prove_nothing():
    assert profile({"x": np.arange(50.0), "g": [f"g{k}" for k in range(50)]}, "north").rows == 50


def test_texts_of_many_digits_are_identifiers_also_beside_others():
    numbers = [f"{10**24 + 7919 * n}" for n in range(150)]
    with pytest.raises(DataError, match=r"'id'.*16 digits or more, as identifiers do"):
        profile({"id": ["x", *numbers]}, "north")
    assert describe_labels(150, numbers) == "its whole numbers have 16 digits or more, as identifiers do"


def test_numbers_with_thousands_separators_that_are_texts_get_advice():
    costs = [f"{1000 + 7 * (n % 40):,}" for n in range(150)]
    with pytest.raises(DataError, match=r"'cost'.*thousands separators as texts; convert it to numbers"):
        profile({"cost": costs}, "north")
    assert profile({"cost": costs}, "north", kinds={"cost": "categorical"}).columns["cost"].kind == "categorical"
