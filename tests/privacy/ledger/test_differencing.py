"""No release leaves that discloses single people together with earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_studies import CLIENTS, NEEDED, PLAN, ROWS, Columns, at, count, gate_in, other, sent, table

from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import information_loads, required_cell_count
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.releases import ReleaseContext, release_profile
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous


def joined(*parts: Mapping[str, np.ndarray]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.fixture(scope="module")
def once(tmp_path_factory) -> ReleaseGate:
    """A site that has sent one summary; tests that only are refused share it."""
    gate = gate_in(tmp_path_factory.mktemp("site"))
    assert not sent(table(), gate)
    return gate


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 30),
    st.booleans(),
)
def test_a_second_release_of_nearly_the_same_rows_is_refused(once, seed, gone, come, corrected, reorder):
    rng = np.random.default_rng(seed)
    changed = joined(at(table(), slice(gone, None)), table(come, seed=seed + 1))
    for row in rng.choice(ROWS - gone, corrected, replace=False):
        changed[str(rng.choice(["a", "b"]))][row] += 0.25
    if reorder:
        changed = at(changed, rng.permutation(len(changed["a"])))
    message = sent(changed, once)
    assert bool(message) == bool(gone + come + corrected)
    if message:
        assert "since release 1 (summary" in message
        assert f"expected none or at least {NEEDED}" in message
    assert count(once) == 1


@pytest.mark.parametrize("column", ["a", "g", "age"])
def test_a_single_cell_is_seen_in_any_column(once, column):
    changed = at(table(), slice(None))
    changed[column][7] = {"a": 0.5, "g": "y" if changed["g"][7] == "x" else "x", "age": changed["age"][7] + 1}[column]
    assert "changed since release 1" in sent(changed, once)


def test_values_that_trade_places_are_seen(once):
    swapped = at(table(), slice(None))
    swapped["a"][[3, 4]] = swapped["a"][[4, 3]]
    assert "changed since release 1" in sent(swapped, once)


def test_a_renamed_column_is_the_same_column(once):
    changed = at(table(), slice(1, None))
    renamed = {{"a": "alpha", "b": "beta", "age": "years", "g": "group"}[name]: col for name, col in changed.items()}
    variables = tuple(replace(v, name=new) for v, new in zip(PLAN.variables, renamed, strict=True))
    assert "changed since release 1" in sent(renamed, once, StudyPlan(variables, CLIENTS))


def test_a_variable_that_is_missing_in_a_row_takes_that_row_out_of_all_others(once):
    """Another plan, with a variable more: what it leaves out can be read off the difference."""
    more = {**table(), "c": np.random.default_rng(5).standard_normal(ROWS)}
    more["c"][11] = np.nan
    plan = replace(PLAN, variables=(*PLAN.variables, Continuous("c")))
    assert "changed since release 1" in sent(more, once, plan)


def test_other_rows_are_another_matter(tmp_path):
    gate = gate_in(tmp_path)
    for seed in range(4):
        assert not sent(table(seed=seed), gate)
    assert count(gate) == 4


def test_tables_that_have_only_a_label_in_common_are_not_confused(tmp_path):
    """Another table of the site, of other people, with nearly as many of each sex."""
    gate, other_people = gate_in(tmp_path), table(seed=7)
    assert not sent(table(), gate)
    x, y = (table()["g"] == "x").sum() - 3, (table()["g"] == "y").sum() + 3
    columns = {"g": np.repeat(["x", "y"], [x, y]), "creatinine": other_people["a"], "age at visit": other_people["b"]}
    plan = StudyPlan((Categorical("g", ("x", "y")), Continuous("creatinine"), Continuous("age at visit")), CLIENTS)
    assert not sent(columns, gate, plan)
    assert "changed since release 2" in sent(at(columns, slice(1, None)), gate, plan)


def test_labels_alone_are_compared_where_all_columns_are_the_same(tmp_path):
    gate, rng = gate_in(tmp_path), np.random.default_rng(0)
    rows = {name: rng.choice(["x", "y", "z"], ROWS) for name in "gh"}
    plan = StudyPlan(tuple(Categorical(name, ("x", "y", "z")) for name in "gh"), CLIENTS)
    assert not sent(rows, gate, plan)
    assert "changed since release 1" in sent(at(rows, slice(1, None)), gate, plan)
    assert not sent(at(rows, rng.permutation(ROWS)), gate, plan)


@pytest.mark.parametrize("gone", [0, 400])
def test_enough_new_rows_may_be_released(tmp_path, gone):
    gate = gate_in(tmp_path)
    assert not sent(table(), gate)
    assert not sent(joined(at(table(), slice(gone, None)), table(600, seed=9)), gate)


def test_a_small_cell_among_many_new_rows_is_refused(tmp_path):
    gate, new = gate_in(tmp_path), table(600, seed=9)
    assert not sent(table(), gate)
    new["g"][:] = "x"
    new["g"][: required_cell_count(PLAN) - 1] = "y"
    message = sent(joined(table(), new), gate)
    assert f"people with a value of 'g' changed by {required_cell_count(PLAN) - 1}," in message
    new["g"][: required_cell_count(PLAN)] = "y"
    assert not sent(joined(table(), new), gate)


def test_a_small_pair_of_levels_among_many_new_rows_is_refused(tmp_path):
    plan = replace(PLAN, variables=(*PLAN.variables, Categorical("h", ("u", "v"))))
    least, rng = required_cell_count(plan), np.random.default_rng(8)
    for off in (-1, 0):
        gate, (old, new) = gate_in(tmp_path / str(off)), (table(), table(600, seed=9))
        old["h"], new["h"] = rng.choice(["u", "v"], ROWS), np.where(new["g"] == "x", "u", "v")
        new["h"][np.flatnonzero(new["g"] == "x")[: least + off]] = "v"
        assert not sent(old, gate, plan)
        message = sent(joined(old, new), gate, plan)
        assert bool(message) == (off < 0)
        assert not message or f"people with a value of 'g' and 'h' changed by {least - 1}," in message


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True), (60, True), (200, False)])
def test_rows_in_only_one_of_three_releases_are_none_or_many(tmp_path, order, more, refused):
    gate, rows = gate_in(tmp_path), table(2 * ROWS + more)
    years = [slice(0, ROWS), slice(ROWS, 2 * ROWS), slice(None)]
    *before, last = (sent(at(rows, years[place]), gate) for place in order)
    assert not any(before)
    assert bool(last) == refused
    assert not refused or "together" in last
    assert count(gate) == 3 - refused


def test_numbers_released_by_all_plans_about_the_same_rows_add_up(tmp_path):
    """As many plans as the rows hold, by the rule of one: n ≥ 2 ΣF/d."""
    gate, each = gate_in(tmp_path), information_loads(PLAN, ROWS)["a"]
    for turn in range(int(1 / each)):
        assert not sent(table(), gate, other(turn))
    message = sent(table(), gate, other(90))
    assert "the releases about 'a' would hold" in message
    assert f"there are {ROWS}" in message
    assert count(gate) == int(1 / each)
    assert not sent(table(seed=1), gate, other(90))


def test_rows_that_both_releases_have_still_count(tmp_path):
    gate, each = gate_in(tmp_path), information_loads(PLAN, ROWS)["a"]
    for turn in range(int(1 / each)):
        assert not sent(table(), gate, other(turn))
    assert "shared rows with this one" in sent(joined(table(), table(300, seed=2)), gate)


def test_a_policy_that_asks_for_more_rows_asks_for_more_of_all_releases(tmp_path):
    gate, strict = gate_in(tmp_path), Policy(min_rows=ROWS // 2 + 1)
    assert not sent(table(), gate, policy=strict)
    assert f"there are {ROWS}" in sent(table(), gate, other(90), strict)


@pytest.mark.parametrize("gaps", [0, 1, 7, 8, 40])
def test_rows_that_only_the_profile_told_of_are_none_or_many(tmp_path, gaps):
    gate, rows = gate_in(tmp_path), table()
    release_profile(rows, ReleaseContext("north", gate=gate))
    rows["a"][:gaps] = np.nan
    message = sent(rows, gate)
    assert bool(message) == (0 < gaps < 8)
    if message:
        assert "since release 1 (profile" in message
        assert "expected none or at least 8" in message
