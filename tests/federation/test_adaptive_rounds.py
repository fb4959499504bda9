"""Adaptive rounds: the result of the clients that answer, and nothing is requested twice."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import get_args

import pytest
from federations import (
    ADAPTIVE,
    HARMLESS,
    UNCONTROLLED,
    Breaking,
    ask,
    make_nodes,
    requested_sets,
    result_without,
    written,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from studies import mixed, numbers

import fedcdh
from fedcdh.cli import main
from fedcdh.discovery.api import discover
from fedcdh.errors import ExitCode, QuorumError, SettingsError
from fedcdh.federation import (
    ClientNode,
    InProcessTransport,
    StudyTerms,
    conduct_study,
    simulate_federation,
)
from fedcdh.federation.in_process import Fault
from fedcdh.messages.envelope import (
    ANSWER,
    Envelope,
    RoundRequest,
)
from fedcdh.messages.round_files import read_requests, request_to_json
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.privacy.ledger.gate import ReleaseGate, spent_round_budget
from fedcdh.privacy.ledger.ledger_file import LEDGER_FILE_NAME, ReleaseLedger
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.joint import JointRequest


@pytest.mark.parametrize("tables", [numbers(seed=2), mixed(sizes=(200, 180, 160))], ids=["numbers", "mixed"])
def test_adaptive_rounds_by_messages_change_no_byte(tables, tmp_path):
    outcome = simulate_federation(tables, folder=tmp_path, **ADAPTIVE)
    expected = discover(tables, **ADAPTIVE)
    assert expected.search_result.spent.rounds == 2
    assert render_result_json(outcome.result) == render_result_json(expected) == result_without(tables)
    assert written(tmp_path) == render_result_json(expected, without_disclosure_control=tables)
    answers = [event for event in outcome.participation.events if event.round.startswith(ANSWER)]
    assert [event.what for event in answers].count("accepted") == 2 * len(tables)
    received = sum(event.bytes for event in answers if event.what == "accepted")
    assert expected.search_result.spent.bytes < received < 1.5 * expected.search_result.spent.bytes + 4000 * len(tables)


@pytest.mark.parametrize(
    ("fault", "number"), [("silent", 1), ("garbled", 1), *((fault, 2) for fault in get_args(Fault))]
)
def test_a_study_continues_without_a_client_that_fails_in_an_adaptive_round(fault, number, tmp_path):
    """Without site0 the search takes another way: what the others have answered is not asked for again."""
    tables = numbers(seed=2)
    outcome = simulate_federation(tables, faults={("site0", f"answer {number}"): fault}, folder=tmp_path, **ADAPTIVE)
    if fault in HARMLESS:
        assert not outcome.missing
        assert render_result_json(outcome.result) == result_without(tables)
        return
    assert list(outcome.missing) == ["site0"]
    assert outcome.missing["site0"].startswith(f"answer {number}: ")
    assert json.loads((tmp_path / "participation.json").read_text())["missing"] == dict(outcome.missing)
    assert render_result_json(outcome.result) == result_without(tables, "site0")
    assert written(tmp_path) == render_result_json(outcome.result, without_disclosure_control=["site1", "site2"])
    assert not (tmp_path / "journal" / "rounds" / f"site0.answer-{number:03d}").exists()
    assert len(requested_sets(tmp_path)) == len(set(requested_sets(tmp_path)))
    sent = [(event.site, event.round) for event in outcome.participation.events if event.what == "sent"]
    assert len(sent) == len(set(sent))
    assert {site for site, round_ in sent if round_ == "answer 3"} <= {"site1", "site2"}


def test_clients_may_fail_one_after_the_other_until_the_quorum_is_lost(tmp_path):
    tables = numbers(seed=5, sizes=(60, 50, 40, 45))
    faults = {("site0", "answer 1"): "crashed", ("site3", "answer 2"): "garbled"}
    outcome = simulate_federation(tables, faults=faults, folder=tmp_path / "enough", minimum=2, **ADAPTIVE)
    assert outcome.missing.keys() == {"site0", "site3"}
    assert render_result_json(outcome.result) == result_without(tables, "site0", "site3")
    faults = {(client, ANSWER): "failed" for client in ("site0", "site1", "site3")}
    given = {"folder": tmp_path / "too few", "minimum": 2}
    with pytest.raises(
        QuorumError, match=r"1 clients answered request 1 .* at least 2(.|\n)*site3: answer 1: .*refuses"
    ):
        simulate_federation(tables, faults=faults, **given, **ADAPTIVE)
    again = simulate_federation(tables, **given, **ADAPTIVE)
    assert render_result_json(again.result) == result_without(tables)
    one = simulate_federation(tables, **given, method="constraint", rounds="one")
    assert not [event for event in one.participation.events if event.what == "sent"]
    assert one.result.settings.rounds == "one"


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["site0", "site1", "site2", "site3"]), st.sampled_from(["answer 1", "answer 2"])),
        st.sampled_from(get_args(Fault)),
        max_size=3,
    )
)
@settings(max_examples=5, deadline=None)
def test_under_any_faults_the_result_is_that_of_the_remaining_clients(faults):
    tables = numbers(seed=3, sizes=(60, 50, 40, 45))
    outcome = simulate_federation(tables, faults=faults, **ADAPTIVE)
    harmful = {client for (client, _), fault in faults.items() if fault not in HARMLESS}
    assert outcome.missing.keys() <= harmful
    assert render_result_json(outcome.result) == result_without(tables, *outcome.missing)


@pytest.mark.parametrize("faults", [{}, {("site0", "answer 1"): "failed"}], ids=["all there", "one fails"])
def test_an_interrupted_adaptive_round_is_continued(faults, tmp_path):
    tables, terms = numbers(seed=2), StudyTerms(**ADAPTIVE)
    whole = Breaking(make_nodes(tables), faults, replies=99)
    expected = render_result_json(conduct_study(whole, terms, tmp_path / "whole").result)
    assert expected == result_without(tables, *(site for site, _ in faults))
    for replies in range(6, len(whole.asked)):
        folder = tmp_path / str(replies)
        with pytest.raises(KeyboardInterrupt):
            conduct_study(Breaking(make_nodes(tables), faults, replies=replies), terms, folder)
        transport = Breaking(make_nodes(tables), faults, replies=99)
        assert render_result_json(conduct_study(transport, terms, folder).result) == expected
        once = [one for one in transport.asked if one not in faults]  # who has not answered is asked again
        assert once == [one for one in whole.asked[replies:] if one not in faults]
        assert requested_sets(folder) == requested_sets(tmp_path / "whole")


def test_a_client_that_missed_an_adaptive_round_may_answer_later(tmp_path):
    tables = numbers(seed=2)
    for faults, gone in (({("site0", "answer 2"): "silent"}, ["site0"]), ({}, [])):
        outcome = simulate_federation(tables, faults=faults, folder=tmp_path, **ADAPTIVE)
        assert list(outcome.missing) == gone
        assert render_result_json(outcome.result) == result_without(tables, *gone)
    sent = {(event.site, event.round) for event in outcome.participation.events if event.what == "sent"}
    assert sent == {("site0", "answer 2")}


def test_the_budget_of_a_client_holds_over_restarts_of_the_search(tmp_path):
    """By the plan, one round: site0 fails in it, and the others' way would take two more."""
    tables = numbers(seed=2)
    sites = {
        client: replace(site, gate=ReleaseGate(ReleaseLedger(tmp_path / client / LEDGER_FILE_NAME)))
        for client, site in make_nodes(tables).items()
    }
    transport = InProcessTransport(sites, {("site0", ANSWER): "silent"})
    outcome = conduct_study(transport, StudyTerms(max_rounds=1, **ADAPTIVE), tmp_path / "study")
    assert list(outcome.missing) == ["site0"]
    assert outcome.result.search_result.spent.not_asked > 0
    for client in ("site1", "site2"):
        entries = sites[client].gate.ledger.entries()
        assert spent_round_budget(entries, outcome.study.plan).rounds == 1
    again = conduct_study(InProcessTransport(sites), StudyTerms(max_rounds=1, **ADAPTIVE), tmp_path / "study")
    assert render_result_json(again.result) != render_result_json(outcome.result)
    assert again.result.cohort.clients == ("site0", "site1", "site2")


def test_stored_rounds_open_as_a_study_by_file(tmp_path, capsys):
    outcome = simulate_federation(numbers(seed=2), folder=tmp_path, **ADAPTIVE)
    journal = tmp_path / "journal"
    files = [str(path) for path in sorted(journal.glob("*.summary"))]
    search = ["discover", str(journal / "study.plan.json"), *files, "--method", "constraint", "--rounds", "adaptive"]
    assert main([*search, "--answers", str(journal / "rounds"), "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "result.json").read_bytes() == (tmp_path / "result.json").read_bytes()
    stored = journal / "rounds" / "site1.answer-002"
    content = stored.read_bytes()
    stored.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(fedcdh.FedCDHError, match=r"site1\.answer-002 cannot be used.*Remove"):
        simulate_federation(numbers(seed=2), folder=tmp_path, **ADAPTIVE)
    stored.unlink()
    again = simulate_federation(numbers(seed=2), folder=tmp_path, **ADAPTIVE)
    assert render_result_json(again.result) == render_result_json(outcome.result)


def test_a_plan_without_adaptive_rounds_stays_one(tmp_path):
    simulate_federation(numbers(), folder=tmp_path, method="constraint", rounds="one")
    with pytest.raises(SettingsError, match=r"clients answer no further rounds. Choose another folder"):
        simulate_federation(numbers(), folder=tmp_path, **ADAPTIVE)


@dataclass(frozen=True)
class Lying(ClientNode):
    """In further rounds, answers in another's name, or about other rows than those of its summary."""

    lie: ClientNode | None = None

    def answer(self, request):
        return (self.lie if Envelope.from_bytes(request).kind == ANSWER else super()).answer(request)


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (lambda tables: ("site0", tables["site0"]), "sent an answer of 'site0'"),
        (lambda tables: ("site1", tables["site0"]), "the table has changed"),
        (lambda tables: ("site1", {n: 30 * v for n, v in tables["site1"].items()}), "same rows as the summary"),
    ],
    ids=["for another", "other rows", "as many other rows"],
)
def test_an_answer_is_checked_against_the_summary(lie, said, tmp_path):
    tables = numbers(seed=2)
    client, rows = lie(tables)
    odd = Lying("site1", lambda: tables["site1"], UNCONTROLLED, lie=ClientNode(client, lambda: rows, UNCONTROLLED))
    outcome = conduct_study(InProcessTransport(make_nodes(tables) | {"site1": odd}), StudyTerms(**ADAPTIVE), tmp_path)
    assert said in outcome.missing["site1"]
    assert render_result_json(outcome.result) == result_without(tables, "site1")


def test_requests_of_adaptive_rounds_are_signed(tmp_path):
    tables, coordinator, stranger = numbers(seed=2), SigningKey.generate(), SigningKey.generate()
    demanding = replace(UNCONTROLLED, coordinator_keys=frozenset({coordinator.public}))
    sites = {client: replace(site, policy=demanding) for client, site in make_nodes(tables).items()}
    outcome = conduct_study(InProcessTransport(sites), StudyTerms(key=coordinator, **ADAPTIVE), tmp_path)
    assert not outcome.missing
    plan, folder = outcome.study.plan, tmp_path / "journal"
    texts = [(folder / name).read_bytes() for name in ("study.plan.json", "study.plan.json.sig")]
    content = request_to_json(read_requests(folder / "rounds", plan)[0]).encode()
    further = RoundRequest(content, *texts)
    signature = (folder / "rounds" / "request-001.json.sig").read_bytes()
    assert ask(sites["site0"], ANSWER, further.to_bytes(), signature).code == 0
    assert ask(sites["site0"], ANSWER, further.to_bytes()).code == ExitCode.POLICY
    assert (
        ask(sites["site0"], ANSWER, further.to_bytes(), sign(stranger, "request", content).encode()).code
        == ExitCode.POLICY
    )
    assert (
        ask(sites["site0"], ANSWER, replace(further, plan_signature=b"").to_bytes(), signature).code == ExitCode.POLICY
    )
    other = request_to_json(JointRequest(plan.fingerprint, 1, (("v1", "v4"),))).encode()
    assert ask(sites["site0"], ANSWER, replace(further, request=other).to_bytes(), signature).code == ExitCode.SIGNATURE
