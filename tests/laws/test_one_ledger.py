"""By file, from Python or online: every release goes through the same ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_studies import CLIENTS, PLAN, at, count, gate_in, table, told_by

import fedcdh
from fedcdh.errors import DisclosureError, ExitCode
from fedcdh.federation import ClientNode, read_site_config
from fedcdh.messages.envelope import ANSWER, PROFILE, REFUSAL, SUMMARY, Envelope, ProfileRequest, RoundRequest
from fedcdh.messages.round_files import request_to_json
from fedcdh.messages.study_file import Study
from fedcdh.summaries.joint import JointRequest
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous


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
