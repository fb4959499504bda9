"""Releases under policy and ledger."""

from __future__ import annotations

import numpy as np
import pytest
from ledger_studies import NEEDED, PLAN, ROWS, at, count, gate_in, sent, table

import fedcdh
from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import required_cell_count
from fedcdh.privacy.ledger import (
    ReleaseLedger,
)
from fedcdh.privacy.releases import ReleaseContext, release_profile


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


@pytest.mark.parametrize("batches", [1, 4])
def test_a_profile_of_complete_rows_is_of_those_of_the_summary(tmp_path, batches):
    gate, rows = gate_in(tmp_path), table()
    rows["a"][:3] = rows["b"][2:5] = np.nan
    parts = [at(rows, part) for part in np.array_split(np.arange(ROWS), batches)]
    described = release_profile(parts, ReleaseContext("north", gate=gate), complete=True).profile
    assert described == release_profile(at(rows, slice(5, None)), ReleaseContext("north")).profile
    assert not sent(parts, gate)


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
            assert f"{expected[which]} {least - 1} people" in message
            assert f"expected none or at least {least}" in message
        assert not sent(rows, gate_in(tmp_path / f"{which} off"), plan, Policy(max_leverage=1.0, max_discrete_values=0))


def test_rows_with_gaps_do_not_count_as_people(tmp_path):
    rows, least = table(), required_cell_count(PLAN)
    rows["age"], rows["g"] = np.zeros(ROWS), np.repeat(["x", "y"], [ROWS // 2, ROWS - ROWS // 2])
    rows["age"][:least] = 1.0
    assert not sent(rows, gate_in(tmp_path / "complete"), policy=Policy(max_leverage=1.0))
    rows["a"][0] = np.nan
    assert f"has {least - 1} people" in sent(rows, gate_in(tmp_path / "a gap"), policy=Policy(max_leverage=1.0))


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
