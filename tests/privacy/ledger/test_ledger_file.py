"""What left a site: a ledger that cannot be bent unnoticed, and no second release that tells about single people."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from killed_ledger import released

import fedcdh
from fedcdh._io.strict_json import to_canonical_json
from fedcdh.cli import main
from fedcdh.data.sources import to_source
from fedcdh.data.table import Table, to_table
from fedcdh.errors import DisclosureError, ExitCode, LedgerError
from fedcdh.federation import ClientNode, read_site_config
from fedcdh.messages.envelope import ANSWER, PROFILE, REFUSAL, SUMMARY, Envelope, ProfileRequest, RoundRequest
from fedcdh.messages.round_files import request_to_json
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.small_cells import CellCounter
from fedcdh.privacy.disclosure.thresholds import information_loads, required_cell_count, required_rows
from fedcdh.privacy.ledger import (
    Release,
    ReleasedColumn,
    ReleaseLedger,
    RowSketcher,
    ValueSketch,
    default_ledger,
    spent_epsilon,
)
from fedcdh.privacy.ledger.gate import ReleaseGate, spent_round_budget
from fedcdh.privacy.ledger.row_sketches import EMPTY_SKETCH, N_BUCKETS
from fedcdh.privacy.releases import ReleaseContext, release_answer, release_profile, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.joint import JointRequest, RoundBudget
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan

ROWS = 900
CLIENTS = ("north", "south")
PLAN = StudyPlan((Continuous("a"), Continuous("b"), Continuous("age", 50, 12), Categorical("g", ("x", "y"))), CLIENTS)
NEEDED = required_rows(PLAN)
Columns = dict[str, np.ndarray]


def table(rows: int = ROWS, seed: int = 0) -> Columns:
    rng = np.random.default_rng(seed)
    return {
        "a": rng.standard_normal(rows),
        "b": rng.standard_normal(rows),
        "age": np.round(rng.normal(50, 12, rows)),
        "g": rng.choice(["x", "y"], rows),
    }


def joined(*parts: Mapping[str, np.ndarray]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def at(rows: Mapping[str, np.ndarray], places: object) -> Columns:
    return {name: column[places] for name, column in rows.items()}


def gate_in(folder: Path) -> ReleaseGate:
    return ReleaseGate(ReleaseLedger(folder / "releases.jsonl"))


def sent(rows: object, gate: ReleaseGate, plan: StudyPlan = PLAN, policy: Policy | None = None, **more: object) -> str:
    """What the refusal says; nothing if the summary may leave."""
    try:
        release_summary(rows, plan, ReleaseContext("north", policy or Policy(), gate=gate), **more)
    except DisclosureError as refused:
        return str(refused)
    return ""


def other(turn: int) -> StudyPlan:
    """The same variables seen in another way."""
    return replace(PLAN, variables=(Continuous("a", scale=1 + turn / 50), *PLAN.variables[1:]))


def count(gate: ReleaseGate) -> int:
    return len(gate.ledger.entries())


@pytest.fixture(scope="module")
def once(tmp_path_factory) -> ReleaseGate:
    """A site that has sent one summary; tests that only are refused share it."""
    gate = gate_in(tmp_path_factory.mktemp("site"))
    assert not sent(table(), gate)
    return gate


# Sketches


@st.composite
def rows_in_parts(draw: st.DrawFn) -> tuple[Columns, list[int], np.ndarray]:
    rows = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = {"n": rng.integers(-3, 3, rows) * 0.5, "t": rng.choice(["0", "1", "a", "ä"], rows)}
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=4)))
    return columns, cuts, rng.permutation(rows)


@settings(max_examples=40, deadline=None)
@given(rows_in_parts())
def test_order_batches_and_names_make_no_difference(given_):
    columns, cuts, order = given_
    rows, whole, parts = len(columns["n"]), RowSketcher(b"secret"), RowSketcher(b"secret")
    whole(to_table(columns))
    moved = {"t": columns["t"][order], "renamed": columns["n"][order]}
    for start, end in zip([0, *cuts], [*cuts, rows], strict=True):
        parts(to_table(at(moved, slice(start, end))))
    assert parts.rows == whole.rows
    assert parts.columns["renamed"] == whole.columns["n"]
    assert parts.columns["t"] == whole.columns["t"]
    assert ValueSketch.from_document(json.loads(json.dumps(whole.rows.to_document()))) == whole.rows


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 400), st.integers(0, 400), st.integers(1, 500))
def test_no_fewer_values_changed_than_a_sketch_says(seed, gone, come, kinds):
    """A sure bound, whatever the values and however often each occurs."""
    rng = np.random.default_rng(seed)
    before = rng.integers(0, kinds, 500) * 1.0
    after = np.concatenate([before[gone:], rng.integers(0, kinds, come)])
    values, counts = np.unique(np.concatenate([before, after]), return_counts=True)
    of = [np.array([(side == value).sum() for value in values]) for side in (before, after)]
    true = int(np.abs(of[0] - of[1]).sum())
    one, two = sketch(before), sketch(after)
    assert one.changed(two) == two.changed(one) <= true
    assert (one.changed(two) > 0) == (true > 0)
    if true <= 20:  # few enough to lie in buckets of their own, nearly always
        assert one.changed(two) >= true - 4
    assert counts.sum() == one.values + two.values


def sketch(values: np.ndarray) -> ValueSketch:
    sketcher = RowSketcher(b"secret")
    sketcher(to_table({"x": values}))
    return sketcher.columns.get("x", EMPTY_SKETCH)


def test_numbers_read_as_labels_are_the_same_column():
    as_numbers, as_labels = RowSketcher(b"secret"), RowSketcher(b"secret")
    as_numbers(to_table({"x": np.array([0.0, 1.0, 1.0, -0.0, 2.5])}))
    as_labels(to_table({"x": ["0", "1", "1", "0", "2.5"]}))
    assert as_numbers.columns["x"] == as_labels.columns["x"]
    other = RowSketcher(b"another secret")
    other(to_table({"x": np.array([0.0, 1.0, 1.0, -0.0, 2.5])}))
    assert other.columns["x"] != as_numbers.columns["x"]


@pytest.mark.parametrize("seed", range(20))
def test_rows_in_common_are_seen_and_others_are_not(seed):
    rng = np.random.default_rng(seed)
    for draw in (rng.standard_normal, lambda n: np.round(rng.normal(50, 15, n)), lambda n: rng.integers(0, 2, n) * 1.0):
        one, other = draw(2000), draw(2000)
        assert not sketch(one).shares(sketch(other))
        assert not sketch(one).shares(sketch(draw(700)))
    numbers = rng.standard_normal(2000)
    assert sketch(numbers).shares(sketch(np.concatenate([numbers[:600], rng.standard_normal(1400)])))
    years = np.round(rng.normal(50, 15, 2000))
    assert sketch(years).shares(sketch(years[:-30]))


# One release after another


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


def test_the_same_message_is_free(tmp_path):
    gate = gate_in(tmp_path)
    for order in (slice(None), slice(None, None, -1), np.random.default_rng(3).permutation(ROWS)):
        assert not sent(at(table(), order), gate)
    assert count(gate) == 1


def test_the_same_sums_for_another_study_are_free_and_noted(tmp_path):
    """As when a site joins later and scales are declared: the new plan asks nothing new of the others."""
    gate = gate_in(tmp_path)
    for number in range(10):
        assert not sent(table(), gate, replace(PLAN, study=f"study {number}", clients=(*CLIENTS, f"site {number}")))
    assert count(gate) == 10
    assert sum(bool(entry.release.columns["a"].load) for entry in gate.ledger.entries()) == 1


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
def test_enough_new_rows_may_be_told_about(tmp_path, gone):
    gate = gate_in(tmp_path)
    assert not sent(table(), gate)
    assert not sent(joined(at(table(), slice(gone, None)), table(600, seed=9)), gate)


def test_a_few_people_with_a_label_among_many_new_rows_are_not_told_about(tmp_path):
    gate, new = gate_in(tmp_path), table(600, seed=9)
    assert not sent(table(), gate)
    new["g"][:] = "x"
    new["g"][: required_cell_count(PLAN) - 1] = "y"
    message = sent(joined(table(), new), gate)
    assert f"people with a value of 'g' changed by {required_cell_count(PLAN) - 1}," in message
    new["g"][: required_cell_count(PLAN)] = "y"
    assert not sent(joined(table(), new), gate)


def test_a_few_people_with_a_pair_of_labels_among_many_new_rows_are_not_told_about(tmp_path):
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
def test_rows_that_three_releases_tell_about_are_none_or_many(tmp_path, order, more, refused):
    gate, rows = gate_in(tmp_path), table(2 * ROWS + more)
    years = [slice(0, ROWS), slice(ROWS, 2 * ROWS), slice(None)]
    *before, last = (sent(at(rows, years[place]), gate) for place in order)
    assert not any(before)
    assert bool(last) == refused
    assert not refused or "together" in last
    assert count(gate) == 3 - refused


def test_numbers_told_by_all_plans_about_the_same_rows_add_up(tmp_path):
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


def test_bootstrap_copies_count_and_are_never_the_same_again(tmp_path):
    gate, rows = gate_in(tmp_path), table(5 * NEEDED)
    assert not sent(rows, gate, replicates=2)
    assert not sent(rows, gate)  # the summary itself was told
    assert count(gate) == 1
    assert "shared rows with this one" in sent(rows, gate, replicates=2)
    assert not sent(rows, gate, replicates=1)


def test_answers_in_further_rounds_count_on_top_of_copies(tmp_path):
    plan = StudyPlan((Continuous("a"), Continuous("b")), CLIENTS, max_rounds=1, max_bytes=10**6)
    request = JointRequest(plan.fingerprint, 1, (("a", "b"),))
    needed = required_rows(plan, request.sets)
    rows = {name: table(needed + 50)[name] for name in "ab"}
    copies = needed // required_rows(plan) - 1
    for number, refused in ((0, False), (copies, True)):
        gate = gate_in(tmp_path / str(number))
        assert not sent(rows, gate, plan, replicates=number)
        if refused:
            with pytest.raises(DisclosureError, match="shared rows with this one"):
                release_answer(rows, plan, ReleaseContext("north", gate=gate), request, RoundBudget())
        else:
            release_answer(rows, plan, ReleaseContext("north", gate=gate), request, RoundBudget())
            release_answer(rows, plan, ReleaseContext("north", gate=gate), request, told_by(gate, plan))
            assert count(gate) == 2


def told_by(gate: ReleaseGate, plan: StudyPlan) -> RoundBudget:
    return spent_round_budget(gate.ledger.entries(), plan)


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


@pytest.mark.parametrize("batches", [1, 4])
@pytest.mark.parametrize("gaps", [0, 1, 7, 8])
def test_a_profile_says_at_once_that_a_summary_would_leave_few_rows_out(tmp_path, gaps, batches):
    gate, rows = gate_in(tmp_path), table()
    rows["a"][5 : 5 + gaps] = np.nan
    parts = [at(rows, part) for part in np.array_split(np.arange(ROWS), batches)]
    if not 0 < gaps < 8:
        release_profile(parts, ReleaseContext("north", gate=gate))
        assert not sent(parts, gate)
        return
    with pytest.raises(DisclosureError, match=f"has {gaps} values in rows that lack another value.*--complete"):
        release_profile(parts, ReleaseContext("north", gate=gate))
    assert not count(gate)
    release_profile(parts, ReleaseContext("north", gate=gate), complete=True)
    assert not sent(parts, gate)


def test_whoever_only_asks_is_told_the_same_and_nothing_is_noted(tmp_path):
    gate = gate_in(tmp_path)
    asking = ReleaseGate(gate.ledger, dry_run=True)
    assert not sent(table(), asking)
    assert not count(gate)
    assert not sent(table(), gate)
    assert sent(at(table(), slice(1, None)), asking) == sent(at(table(), slice(1, None)), gate) != ""
    assert not sent(table(), asking)
    assert count(gate) == 1


def test_what_never_left_is_withdrawn_and_counts_no_more(tmp_path):
    gate = gate_in(tmp_path)
    assert not sent(table(), gate)
    corrected = at(table(), slice(1, None))
    assert sent(corrected, gate)
    assert gate.ledger.withdraw(1, "the export was wrong") == 2
    assert not sent(corrected, gate)
    assert sent(table(), gate), "what was withdrawn is no way back to the rows of then"
    assert [entry.release.kind for entry in gate.ledger.entries()] == ["summary", "withdrawn", "summary"]


@pytest.mark.parametrize(("number", "reason"), [(0, "why"), (2, "why"), (9, "why"), (1, " "), (1, "y" * 501)])
def test_only_what_is_there_is_withdrawn_and_with_a_reason(tmp_path, number, reason):
    gate = gate_in(tmp_path)
    assert not sent(table(), gate)
    with pytest.raises(LedgerError):
        gate.ledger.withdraw(number, reason)
    assert count(gate) == 1
    gate.ledger.withdraw(1, "it was not sent")
    with pytest.raises(LedgerError, match="cannot be withdrawn"):
        gate.ledger.withdraw(1, "twice")


@pytest.mark.parametrize("batches", [1, 4])
def test_a_profile_of_complete_rows_is_of_those_of_the_summary(tmp_path, batches):
    gate, rows = gate_in(tmp_path), table()
    rows["a"][:3] = rows["b"][2:5] = np.nan
    parts = [at(rows, part) for part in np.array_split(np.arange(ROWS), batches)]
    described = release_profile(parts, ReleaseContext("north", gate=gate), complete=True).profile
    assert described == release_profile(at(rows, slice(5, None)), ReleaseContext("north")).profile
    assert not sent(parts, gate)


def test_a_second_profile_of_nearly_the_same_rows_is_refused(tmp_path):
    gate = gate_in(tmp_path)
    release_profile(table(), ReleaseContext("north", gate=gate))
    release_profile(at(table(), slice(None, None, -1)), ReleaseContext("north", gate=gate))
    assert count(gate) == 1
    with pytest.raises(DisclosureError, match="since release 1"):
        release_profile(at(table(), slice(3, None)), ReleaseContext("north", gate=gate))
    release_profile({"b": table()["b"]}, ReleaseContext("north", gate=gate))  # fewer columns, the same values


def test_releases_without_disclosure_control_are_recorded_and_not_refused(tmp_path):
    gate, research = gate_in(tmp_path), Policy(disclosure_control=False)
    for rows in (table(), at(table(), slice(1, None))):
        assert not sent(rows, gate, policy=research)
    assert [entry.release.disclosure_control for entry in gate.ledger.entries()] == [False, False]
    assert "since release 1" in sent(at(table(), slice(2, None)), gate)


def test_noise_is_not_held_to_changed_rows_and_its_budget_adds_up(tmp_path):
    gate = gate_in(tmp_path)

    def noisy(rows: Columns, epsilon: float) -> Release:
        seen = gate.new_sketcher()
        seen(to_table(rows))
        told = Release(
            "noisy", "north", "", f"{epsilon:064.2f}", len(rows["a"]), 0, complete_rows=seen.rows, epsilon=epsilon
        )
        return replace(told, columns={name: ReleasedColumn(one) for name, one in seen.columns.items()})

    for rows, epsilon in ((table(), 0.5), (at(table(), slice(1, None)), 0.25), (table(seed=4), 4.0)):
        gate.record(noisy(rows, epsilon), Policy().differencing_limits(PLAN))
    assert spent_epsilon(noisy(table(), 1.0), gate.ledger.entries()) == 0.75
    assert not sent(at(table(), slice(2, None)), gate)


# Numbers of few values


@pytest.mark.parametrize("off", [-1, 0])
@pytest.mark.parametrize("batches", [1, 7])
def test_values_of_a_number_are_counted_like_labels(tmp_path, off, batches):
    least = required_cell_count(PLAN)
    for which in ("value", "pair", "label"):
        rows = table()
        rows["age"], rows["g"] = np.zeros(ROWS), np.repeat(["x", "y"], [ROWS // 2, ROWS - ROWS // 2])
        places = {"value": slice(0, least + off), "pair": slice(0, 300), "label": slice(0, ROWS // 2 + least + off)}
        rows["age"][places[which]] = 1.0
        plan = PLAN
        if which == "pair":
            rows["b"] = np.zeros(ROWS)
            rows["b"][300 - least - off : 600] = 1.0
        cuts = np.array_split(np.random.default_rng(0).permutation(ROWS), batches)
        message = sent([at(rows, cut) for cut in cuts], gate_in(tmp_path / which), plan, Policy(max_leverage=1.0))
        expected = {
            "value": "value 1 of 'age' has",
            "pair": "value 1 of 'b' with 1 of 'age' has",
            "label": "value 1 of 'age' with 'y' of 'g' has",
        }
        assert bool(message) == (off < 0), (which, message)
        if message:
            assert f"{expected[which]} {least - 1} people, expected none or at least {least}" in message
        assert not sent(rows, gate_in(tmp_path / f"{which} off"), plan, Policy(max_leverage=1.0, max_discrete_values=0))


def test_many_values_are_not_counted_and_memory_stays_small():
    few = CellCounter(StudyPlan((Continuous("many"), Continuous("late")), CLIENTS), max_values=20)
    for start in range(0, 100, 10):
        few(to_table({"many": np.arange(100.0), "late": np.repeat(np.arange(start, start + 10.0), 10)}))
    assert few.cells == {}


def test_rows_with_gaps_do_not_count_as_people(tmp_path):
    rows, least = table(), required_cell_count(PLAN)
    rows["age"], rows["g"] = np.zeros(ROWS), np.repeat(["x", "y"], [ROWS // 2, ROWS - ROWS // 2])
    rows["age"][:least] = 1.0
    assert not sent(rows, gate_in(tmp_path / "complete"), policy=Policy(max_leverage=1.0))
    rows["a"][0] = np.nan
    assert f"has {least - 1} people" in sent(rows, gate_in(tmp_path / "a gap"), policy=Policy(max_leverage=1.0))


# The ledger as a file


def book(folder: Path, releases: int = 4, key: SigningKey | None = None) -> ReleaseLedger:
    ledger = ReleaseLedger(folder / "releases.jsonl")
    for number in range(1, releases + 1):
        assert ledger.record(released(number), key=key) == number
    return ledger


def test_a_ledger_is_private_and_says_when_and_what(tmp_path):
    key = SigningKey.generate()
    ledger = book(tmp_path, key=key)
    for path in (ledger.path, ledger.head):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for number, entry in enumerate(ledger.entries(), start=1):
        assert (entry.number, entry.key, entry.release) == (number, key.public, released(number))
        assert entry.time.endswith("+00:00")


@pytest.mark.parametrize("signed", [False, True])
def test_any_byte_that_is_changed_is_noticed(tmp_path, signed):
    ledger = book(tmp_path, 2, SigningKey.generate() if signed else None)
    content, head = ledger.path.read_bytes(), ledger.head.read_bytes()
    for path, good in ((ledger.path, content), (ledger.head, head)):
        for place in range(0, len(good), 1 if path == ledger.head else 7):
            path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
            with pytest.raises(LedgerError, match="nothing leaves"):
                ledger.record(released(9))
        path.write_bytes(good)
    assert ledger.record(released(3)) == 3


def test_bytes_of_sketches_are_noticed_as_well(tmp_path):
    gate = gate_in(tmp_path)
    assert not sent(table(), gate)
    content, rng = gate.ledger.path.read_bytes(), np.random.default_rng(0)
    for place in rng.choice(len(content), 60, replace=False):
        gate.ledger.path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(LedgerError, match="nothing leaves"):
            gate.ledger.entries()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"{"])
@pytest.mark.parametrize("which", ["path", "head"])
def test_nobody_is_told_to_name_another_ledger_where_this_one_was_damaged(tmp_path, which, content):
    ledger = book(tmp_path)
    getattr(ledger, which).write_bytes(content)
    with pytest.raises(LedgerError, match="restore a backup of both files") as refused:
        ledger.record(released(9))
    assert "--ledger" not in str(refused.value)


@pytest.mark.parametrize("head", ['"releases":-1', '"releases":99999', '"releases":true', '"releases":[]'])
def test_a_head_that_is_none_is_noticed(tmp_path, head):
    ledger = book(tmp_path)
    ledger.head.write_text(ledger.head.read_text().replace('"releases":4', head))
    with pytest.raises(LedgerError, match="nothing leaves"):
        ledger.entries()


def test_lines_that_are_dropped_moved_doubled_or_cut_are_noticed(tmp_path):
    ledger = book(tmp_path)
    first, *lines = ledger.path.read_bytes().splitlines(keepends=True)
    bent = [
        [first, *lines[:3]],
        [first, *lines[1:]],
        [first, lines[1], lines[0], *lines[2:]],
        [first, *lines, lines[3]],
        [first, *lines, lines[3], lines[3]],
        lines,
        [first],
        [],
        [first, *lines, b"\n"],
        [first, *lines[:3], lines[3][:-1]],
        [first, *lines[:3], lines[3][: len(lines[3]) // 2]],
        [first, *lines, lines[3], b"{"],
    ]
    for content in bent:
        ledger.path.write_bytes(b"".join(content))
        with pytest.raises(LedgerError, match="nothing leaves"):
            ledger.entries()
    ledger.path.write_bytes(b"".join([first, *lines]))
    assert len(ledger.entries()) == 4


def test_a_chain_forged_without_the_key_is_noticed(tmp_path):
    """Whoever can write lines that follow each other still cannot sign them."""
    key, other = SigningKey.generate(), SigningKey.generate()
    ledger = book(tmp_path, 1, key)
    forged = book(tmp_path / "forged", 1, other)
    line = json.loads(forged.path.read_bytes().splitlines()[1])
    line.update(key=key.public, previous=json.loads(ledger.path.read_bytes().splitlines()[1])["previous"])
    first = ledger.path.read_bytes().splitlines(keepends=True)[0]
    ledger.path.write_bytes(first + to_canonical_json(line).encode() + b"\n")
    with pytest.raises(LedgerError, match="its signature is false"):
        ledger.entries()


def test_one_file_without_the_other_is_noticed(tmp_path):
    ledger = book(tmp_path)
    ledger.head.rename(tmp_path / "head")
    with pytest.raises(LedgerError, match="is missing"):
        ledger.entries()
    (tmp_path / "head").rename(ledger.head)
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="It is missing, but its head is still there"):
        ledger.record(released(5))


@pytest.mark.parametrize("rest", [b"{", b'{"about":{},"before":"', b"\0" * 100])
def test_half_a_line_was_never_sent_and_is_taken_away(tmp_path, rest):
    ledger = book(tmp_path)
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole + rest)
    assert len(ledger.entries()) == 4
    assert ledger.path.read_bytes() == whole


def test_a_line_that_the_head_does_not_know_yet_counts(tmp_path):
    ledger = book(tmp_path)
    head = ledger.head.read_bytes()
    assert ledger.record(released(5)) == 5
    ledger.head.write_bytes(head)
    assert len(ledger.entries()) == 5
    assert ledger.record(released(6)) == 6


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked there")
def test_a_process_killed_at_any_line_leaves_a_ledger_that_knows_what_was_sent(tmp_path, monkeypatch):
    program = [sys.executable, str(Path(__file__).parents[2] / "support" / "killed_ledger.py"), str(tmp_path)]
    run = subprocess.run(program, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert run.returncode == 0, run.stderr
    steps = int(run.stdout)
    assert steps > 100
    noted = set()
    monkeypatch.setattr("os.fsync", lambda handle: None)  # several hundred of them take their time
    for step in range(1, steps + 2):
        ledger = ReleaseLedger(tmp_path / str(step) / "releases.jsonl")
        told = [entry.release.digest for entry in ledger.entries()]
        before = [released(1).digest] if step % 2 else []
        assert told in (before, [*before, released(2).digest])
        assert not (tmp_path / str(step) / "sent").exists() or told[-1:] == [released(2).digest]
        noted.add(len(told) - len(before))
        assert ledger.record(released(2)) == len(before) + 1
    assert noted == {0, 1}
    assert (tmp_path / str(steps + 1) / "sent").exists()


def test_two_at_once_are_both_noted_or_one_is_refused(tmp_path):
    def note(number: int) -> int:
        return ReleaseLedger(tmp_path / "releases.jsonl").record(released(number))

    with ThreadPoolExecutor(8) as workers:
        assert sorted(workers.map(note, range(24))) == list(range(1, 25))
    ledger = ReleaseLedger(tmp_path / "releases.jsonl")
    assert {entry.release.digest for entry in ledger.entries()} == {released(number).digest for number in range(24)}


def test_what_is_in_the_way_lets_nothing_leave(tmp_path, monkeypatch):
    foreign = {"text": b"my notes\n", "json": b'{"a": 1}\n', "nothing": b"", "a summary": b"\0\1\2"}
    for name, content in foreign.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(LedgerError, match="not a ledger"):
            ReleaseLedger(path).record(released(1))
        assert path.read_bytes() == content
    (tmp_path / "folder").mkdir()
    with pytest.raises(LedgerError, match="is a folder"):
        ReleaseLedger(tmp_path / "folder").record(released(1))
    with pytest.raises(LedgerError, match="cannot be read or written"):
        ReleaseLedger(tmp_path / "text" / "below a file").record(released(1))
    huge = book(tmp_path / "huge", 1)
    monkeypatch.setattr("fedcdh.privacy.ledger.ledger_file.MAX_LEDGER_BYTES", huge.path.stat().st_size + 10)
    with pytest.raises(LedgerError, match="archive"):
        huge.record(released(2))
    monkeypatch.setattr("fedcdh.privacy.ledger.ledger_file.MAX_LEDGER_BYTES", 10)
    with pytest.raises(LedgerError, match="at most 10"):
        huge.entries()


@pytest.mark.parametrize("failing", ["fsync", "write", "replace"])
def test_a_disk_that_fails_lets_nothing_leave(tmp_path, monkeypatch, failing):
    ledger = book(tmp_path, 1)

    def fail(*given: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"os.{failing}", fail)
        with pytest.raises(LedgerError, match="No space left on device"):
            ledger.record(released(2))
    assert ledger.record(released(3)) in (2, 3)
    assert ledger.entries()[-1].release == released(3)


def test_the_ledger_holds_no_value_of_any_row(tmp_path):
    """A canary in a label and in a number: neither is in the files, as text or as bytes."""
    rows = table()
    rows["g"] = np.where(rows["g"] == "x", "canary-label", "y")
    plan = replace(PLAN, variables=(*PLAN.variables[:3], Categorical("g", ("canary-label", "y"))))
    gate = gate_in(tmp_path)
    assert not sent(rows, gate, plan)
    content = gate.ledger.path.read_bytes() + gate.ledger.head.read_bytes()
    assert b"canary" not in content
    for value in rows["a"][:50]:
        assert repr(float(value))[:10].encode() not in content
    assert len(content) < 2 * N_BUCKETS * (len(PLAN.names) + 1)


# Command line and Python


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("data.csv", table())
    write("fewer.csv", at(table(), slice(1, None)))
    Path("study.plan.json").write_text(Study(PLAN).to_json())
    return tmp_path


def write(name: str, rows: Columns) -> None:
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


SUMMARIZE = ["summarize", "study.plan.json"]


def test_the_command_line_notes_and_refuses(files, capsys, own_ledger):
    assert main(["profile", "data.csv", "--client", "north", "-q"]) == 0
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "-q"]) == 0
    before = Path("north.summary").read_bytes()
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "-q"]) == 0
    assert main([*SUMMARIZE, "fewer.csv", "--client", "north", "-q"]) == 7
    assert "since release 2 (summary" in capsys.readouterr().err
    assert Path("north.summary").read_bytes() == before
    assert main(["ledger", "show", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [entry["kind"] for entry in found["releases"]] == ["profile", "summary"]
    assert found["ledger"] == str(own_ledger)
    assert "secret" not in json.dumps(found)
    assert main(["ledger", "verify"]) == 0
    assert "is complete: 2 releases, 0 of them signed" in capsys.readouterr().out
    assert main(["ledger", "show"]) == 0
    assert "summary" in capsys.readouterr().out


def test_a_ledger_can_be_named_and_is_signed(files, capsys):
    assert main(["keys", "new", "-q"]) == 0
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "--ledger", "my.jsonl", "-q"]) == 0
    assert main(["ledger", "verify", "--ledger", "my.jsonl", "--key", "site.pub"]) == 0
    assert "1 of them signed by" in capsys.readouterr().out
    Path("site.key").unlink()
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "--bootstrap", "1", "--ledger", "my.jsonl", "-q"]) == 0
    assert main(["ledger", "verify", "--ledger", "my.jsonl", "--key", "site.pub"]) == 6
    assert "release 2 is not signed" in capsys.readouterr().err
    content = Path("my.jsonl").read_bytes()
    Path("my.jsonl").write_bytes(content.replace(b'"replicates":1', b'"replicates":0'))
    assert main(["ledger", "verify", "--ledger", "my.jsonl"]) == 7
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "--ledger", "my.jsonl", "-q"]) == 7
    assert "Its lines do not agree with its head" in capsys.readouterr().err


def test_a_site_with_gaps_profiles_its_complete_rows(files, capsys):
    rows = table()
    rows["a"][:3] = np.nan
    write("gaps.csv", rows)
    assert main(["profile", "gaps.csv", "--client", "north"]) == 7
    assert "profile with --complete" in capsys.readouterr().err
    assert not Path("north.profile.json").exists()
    assert main(["profile", "gaps.csv", "--client", "north", "--complete"]) == 0
    assert main([*SUMMARIZE, "gaps.csv", "--client", "north"]) == 0


def test_a_site_asks_first_and_withdraws_what_it_did_not_send(files, capsys, own_ledger):
    rows = table()
    write("data.csv", rows)
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "--dry-run"]) == 0
    assert "admit this summary" in capsys.readouterr().out
    assert not Path("north.summary").exists()
    assert not default_ledger().entries()
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "-q"]) == 0
    rows["a"][0] += 1
    write("data.csv", rows)
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "--dry-run"]) == 7
    assert "fedcdh ledger withdraw" in capsys.readouterr().err
    assert main(["ledger", "withdraw", "1", "--reason", "a wrong cell; never sent", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["noted"] == 2
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "-q"]) == 0
    assert main(["ledger", "show"]) == 0
    assert "withdrawn: 1" in capsys.readouterr().out
    assert main(["ledger", "withdraw", "1", "--reason", "again"]) == 7


def test_nothing_left_is_shown_as_nothing(files, capsys, own_ledger):
    assert main(["ledger", "show"]) == 0
    assert "0 releases" in capsys.readouterr().out
    assert main(["ledger", "verify"]) == 0
    said = capsys.readouterr().out
    assert "no ledger" in said
    assert "whole" not in said
    assert not own_ledger.exists()


def test_other_names_of_columns_are_no_way_around(files, capsys):
    """The plan calls the site's column otherwise: the ledger goes by the site's own names."""
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "-q"]) == 0
    variables = (replace(PLAN.variables[0], name="blood pressure"), *PLAN.variables[1:])
    Path("other.plan.json").write_text(Study(StudyPlan(variables, CLIENTS)).to_json())
    Path("names.toml").write_text('a = "blood pressure"\n')
    named = ["summarize", "other.plan.json", "--client", "north", "--column-map", "names.toml", "-q"]
    assert main([*named, "fewer.csv"]) == 7
    assert "since release 1" in capsys.readouterr().err
    assert main([*named, "data.csv"]) == 0


def test_the_result_and_its_report_name_clients_without_disclosure_control(files):
    research = [*SUMMARIZE, "data.csv", "--no-disclosure-control", "-q", "--client"]
    assert main([*research, "north"]) == 0
    write("south.csv", table(seed=1))
    assert main([*SUMMARIZE, "south.csv", "-q", "--client", "south"]) == 0
    assert main(["discover", "study.plan.json", "north.summary", "south.summary", "-o", "result", "-q"]) == 0
    assert json.loads(Path("result/result.json").read_text())["without_disclosure_control"] == ["north"]
    assert main(["report", "result", "-o", "study.html", "-q"]) == 0
    assert "No disclosure control" in Path("study.html").read_text()
    assert "switched off at north" in Path("study.html").read_text()


def test_what_python_sends_goes_through_the_same_gate(tmp_path, own_ledger):
    message = fedcdh.release(table(), PLAN, "north")
    assert fedcdh.release(at(table(), slice(None, None, -1)), PLAN, "north") == message
    with pytest.raises(DisclosureError, match="since release 1"):
        fedcdh.release(at(table(), slice(1, None)), PLAN, "north")
    assert len(ReleaseLedger(own_ledger).entries()) == 1
    (tmp_path / "policy.toml").write_text('excluded_variables = ["a"]\n')
    with pytest.raises(DisclosureError, match="excluded_variables"):
        fedcdh.release(table(seed=2), PLAN, "north", policy=tmp_path / "policy.toml")
    with pytest.raises(DisclosureError, match="rows, expected at least"):
        fedcdh.release(table(NEEDED - 1), PLAN, "north", ledger=tmp_path / "other.jsonl")
    assert fedcdh.release(
        table(NEEDED), PLAN, "north", ledger=tmp_path / "other.jsonl", policy=Policy(max_leverage=1.0)
    )


def test_a_table_in_batches_makes_the_same_entry(tmp_path):
    gate = gate_in(tmp_path)
    assert not sent(table(), gate)
    batches: list[Table] = [to_table(at(table(), part)) for part in np.array_split(np.arange(ROWS), 5)]
    assert not sent(to_source(batches, "north"), gate)
    assert not sent(iter(batches), gate)
    assert count(gate) == 1
    assert summarize(batches, PLAN, "north").rows == ROWS


# Online


def test_a_site_that_is_online_goes_through_the_same_gate(tmp_path):
    gate, rows = gate_in(tmp_path), table()
    site = ClientNode("north", lambda: rows, gate=gate)
    plan = Envelope(SUMMARY, Study(PLAN).to_json().encode()).to_bytes()
    described = Envelope.from_bytes(site.answer(Envelope(PROFILE, ProfileRequest().to_bytes()).to_bytes()))
    first = site.answer(plan)
    assert (described.kind, Envelope.from_bytes(first).kind) == (PROFILE, SUMMARY)
    assert site.answer(plan) == first
    assert [entry.release.kind for entry in gate.ledger.entries()] == ["profile", "summary"]
    rows = at(table(), slice(1, None))
    refused = Envelope.from_bytes(site.answer(plan))
    assert (refused.kind, refused.code) == (REFUSAL, ExitCode.POLICY)
    with pytest.raises(DisclosureError, match="since release 2"):  # by file neither
        fedcdh.release(rows, PLAN, "north", ledger=gate.ledger.path)


def test_further_questions_online_are_counted_in_the_same_ledger(tmp_path):
    plan = StudyPlan((Continuous("a"), Continuous("b")), CLIENTS, max_rounds=1, max_bytes=10**6)
    rows = {name: table(1500)[name] for name in "ab"}
    gate = gate_in(tmp_path)
    site = ClientNode("north", lambda: rows, gate=gate)
    request = JointRequest(plan.fingerprint, 1, (("a", "b"),))
    study = Study(plan).to_json().encode()
    asked = Envelope(ANSWER, RoundRequest(request_to_json(request).encode(), study, b"").to_bytes()).to_bytes()
    assert Envelope.from_bytes(site.answer(asked)).code == ExitCode.POLICY  # no summary by this plan
    assert Envelope.from_bytes(site.answer(Envelope(SUMMARY, study).to_bytes())).kind == SUMMARY
    first = site.answer(asked)
    assert Envelope.from_bytes(first).kind == ANSWER
    assert site.answer(asked) == first
    assert told_by(gate, plan).rounds == 1
    assert count(gate) == 2


def test_the_ledger_of_a_site_that_is_online_is_beside_its_settings(tmp_path, monkeypatch, own_ledger):
    (tmp_path / "site.toml").write_text('client = "north"\ndata = "data.csv"\n')
    assert gate_of(tmp_path) == own_ledger
    monkeypatch.delenv("FEDCDH_LEDGER")
    assert gate_of(tmp_path) == tmp_path / "releases.jsonl"
    (tmp_path / "site.toml").write_text('client = "north"\ndata = "data.csv"\nledger = "all/mine.jsonl"\n')
    assert gate_of(tmp_path) == tmp_path / "all" / "mine.jsonl"


def gate_of(folder: Path) -> Path:
    gate = read_site_config(folder / "site.toml").gate
    assert gate is not None
    return gate.ledger.path
