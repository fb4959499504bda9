"""The coordinator: the result of the clients that answer, whatever the others do."""

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
    make_nodes,
)
from studies import numbers

from fedcdh.discovery.api import discover, discover_from
from fedcdh.errors import ExitCode, QuorumError, SettingsError
from fedcdh.federation import (
    ClientNode,
    InProcessTransport,
    StudyTerms,
    conduct_study,
    simulate_federation,
)
from fedcdh.federation.in_process import Fault
from fedcdh.federation.planning.declaration import Declaration
from fedcdh.messages.envelope import (
    ANSWER,
    PROFILE,
    SUMMARY,
    Envelope,
)
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.plan import StudyPlan

FAULTS = [(fault, kind) for fault in get_args(Fault) for kind in (PROFILE, SUMMARY)]


@pytest.mark.parametrize(("fault", "kind"), FAULTS)
def test_a_study_continues_without_a_client_that_fails_and_names_it(fault, kind, tmp_path):
    tables = numbers()
    outcome = simulate_federation(tables, faults={("site1", kind): fault}, folder=tmp_path, rounds="one")
    if fault in HARMLESS:
        assert not outcome.missing
        assert render_result_json(outcome.result) == render_result_json(discover(tables, rounds="one"))
        return
    assert list(outcome.missing) == ["site1"]
    assert outcome.missing["site1"].startswith(f"{kind}: ")
    assert json.loads((tmp_path / "participation.json").read_text())["missing"] == dict(outcome.missing)
    rest = {client: table for client, table in tables.items() if client != "site1"}
    if kind == PROFILE:
        expected = discover(rest, rounds="one")
    else:
        plan = StudyPlan.from_tables(tables)
        summaries = [summarize(table, plan, client) for client, table in rest.items()]
        expected = discover_from(add_up(summaries, plan, without=["site1"]), plan)
        assert any("site1" in note for note in outcome.result.notes)
    assert render_result_json(outcome.result) == render_result_json(expected)


@pytest.mark.parametrize("kind", [PROFILE, SUMMARY])
def test_below_the_quorum_there_is_no_result_and_missing_clients_may_answer_later(kind, tmp_path):
    tables = numbers()
    with pytest.raises(QuorumError, match=r"2 clients .* at least 3(.|\n)*site2: .*did not answer"):
        simulate_federation(tables, faults={("site2", kind): "silent"}, minimum=3, folder=tmp_path, rounds="one")
    assert list(json.loads((tmp_path / "participation.json").read_text())["missing"]) == ["site2"]
    assert not (tmp_path / "result.json").exists()
    again = simulate_federation(tables, minimum=3, folder=tmp_path, rounds="one")
    asked = [event.site for event in again.participation.events if (event.round, event.what) == (kind, "sent")]
    assert asked == ["site2"]
    assert render_result_json(again.result) == render_result_json(discover(tables, rounds="one"))


def test_a_coordinator_interrupted_at_any_reply_continues(tmp_path):
    tables = numbers()
    whole, plans = render_result_json(discover(tables, rounds="one")), set()
    for replies in range(6):
        folder = tmp_path / str(replies)
        with pytest.raises(KeyboardInterrupt):
            conduct_study(Breaking(make_nodes(tables), replies=replies), StudyTerms(rounds="one"), folder)
        transport = Breaking(make_nodes(tables), replies=99)
        outcome = conduct_study(transport, StudyTerms(rounds="one"), folder)
        assert render_result_json(outcome.result) == whole
        assert len(transport.asked) == 6 - replies
        plans.add((folder / "journal" / "study.plan.json").read_bytes())
    assert len(plans) == 1


def test_a_client_outside_the_plan_is_named_after_a_restart(tmp_path):
    for faults in ({("site1", PROFILE): "silent"}, {}):
        outcome = simulate_federation(numbers(), faults=faults, folder=tmp_path)
        assert list(outcome.missing) == ["site1"]
        assert outcome.result.cohort.clients == ("site0", "site2")


def test_the_record_says_whether_this_run_has_a_result(tmp_path):
    """A result of an earlier run stays in the folder; the record is always of the last run."""

    def record() -> dict:
        return json.loads((tmp_path / "participation.json").read_text())

    conduct_study(InProcessTransport(make_nodes(numbers())), StudyTerms(study="first"), tmp_path)
    assert record()["has_result"] is True
    with pytest.raises(SettingsError):
        conduct_study(InProcessTransport(make_nodes(numbers())), StudyTerms(study="second"), tmp_path)
    assert record()["has_result"] is False
    assert (tmp_path / "result.json").exists()


def test_the_journal_of_another_study_is_not_continued(tmp_path):
    conduct_study(InProcessTransport(make_nodes(numbers())), StudyTerms(study="first"), tmp_path)
    with pytest.raises(SettingsError, match=r"holds the study 'first'\. Expected 'second'"):
        conduct_study(InProcessTransport(make_nodes(numbers())), StudyTerms(study="second"), tmp_path)


def test_of_two_coordinators_in_one_folder_one_is_refused(tmp_path):
    tables = numbers()

    class Intruding(InProcessTransport):
        def exchange(self, requests, timeout):
            with pytest.raises(SettingsError, match="Another program conducts"):
                conduct_study(InProcessTransport(make_nodes(tables)), StudyTerms(rounds="one"), tmp_path)
            assert not (tmp_path / "participation.json").exists()
            yield from super().exchange(requests, timeout)

    outcome = conduct_study(Intruding(make_nodes(tables)), StudyTerms(rounds="one"), tmp_path)
    assert render_result_json(outcome.result) == render_result_json(discover(tables, rounds="one"))
    assert render_result_json(
        conduct_study(InProcessTransport(make_nodes(tables)), StudyTerms(rounds="one"), tmp_path).result
    ) == render_result_json(outcome.result)


def test_two_sites_with_one_name_are_both_refused(tmp_path):
    tables = numbers(sizes=(60, 50, 40, 45))
    sites = make_nodes(tables)
    sites["site3"] = replace(sites["site3"], client="site2")
    outcome = conduct_study(InProcessTransport(sites), StudyTerms(rounds="one"), tmp_path)
    assert outcome.result.cohort.clients == ("site0", "site1")
    refused = {event.site for event in outcome.participation.events if event.what == "refused"}
    assert refused == {"site2", "site3"}
    assert "more than one" in outcome.missing["site2"]


def test_a_client_cannot_answer_for_another(tmp_path):
    tables = numbers()
    plan = StudyPlan.from_tables(tables)

    @dataclass(frozen=True)
    class Impostor(ClientNode):
        def answer(self, request):
            asked = Envelope.from_bytes(request)
            return (self if asked.kind == PROFILE else replace(self, client="site0")).answer_honestly(request)

        def answer_honestly(self, request):
            return ClientNode.answer(self, request)

    sites = make_nodes(tables) | {"site2": Impostor("site2", lambda: tables["site2"], UNCONTROLLED)}
    outcome = conduct_study(InProcessTransport(sites), StudyTerms(rounds="one"), tmp_path)
    assert "'site2' sent the summary of 'site0'" in outcome.missing["site2"]
    assert outcome.study.plan == plan


def test_equal_sums_under_two_names_count_for_neither(tmp_path):
    tables = numbers(sizes=(80, 70, 60))
    outcome = conduct_study(
        InProcessTransport(make_nodes({**tables, "site9": tables["site0"]})), StudyTerms(rounds="one"), tmp_path
    )
    assert set(outcome.missing) == {"site0", "site9"}
    assert outcome.result.cohort.clients == ("site1", "site2")
    assert sorted(path.name for path in (tmp_path / "journal").glob("*.summary")) == ["site1.summary", "site2.summary"]


def test_only_declared_clients_are_admitted(tmp_path):
    declaration = Declaration(clients=("site0", "site1", "site7"))
    outcome = conduct_study(InProcessTransport(make_nodes(numbers())), StudyTerms(declaration=declaration), tmp_path)
    assert outcome.missing["site7"] == "profile: never connected"
    assert "the declaration names" in outcome.missing["site2"]
    assert outcome.study.plan.clients == ("site0", "site1")


def test_the_key_of_the_profile_holds_for_the_study(tmp_path):
    tables, keys = numbers(), {f"site{k}": SigningKey.generate() for k in range(3)}
    coordinator, stranger = SigningKey.generate(), SigningKey.generate()
    demanding = replace(UNCONTROLLED, coordinator_keys=frozenset({coordinator.public}))
    sites = {c: replace(site, key=keys[c], policy=demanding) for c, site in make_nodes(tables).items()}
    terms = StudyTerms(key=coordinator, site_keys={"site0": keys["site0"].public, "site1": stranger.public})
    outcome = conduct_study(InProcessTransport(sites), terms, tmp_path / "signed")
    assert list(outcome.missing) == ["site1"]
    assert "does not name the key" in outcome.missing["site1"]
    assert outcome.study.keys == {client: keys[client].public for client in ("site0", "site2")}
    for wrong in (None, stranger):
        with pytest.raises(QuorumError, match=f"code {ExitCode.POLICY}"):
            conduct_study(InProcessTransport(sites), StudyTerms(key=wrong), tmp_path / f"by {wrong and 'a stranger'}")


@dataclass(frozen=True)
class OtherKey(ClientNode):
    """Signs what it sends with one key, but messages of one kind with another."""

    other: SigningKey | None = None
    kind: str = SUMMARY

    def answer(self, request):
        if Envelope.from_bytes(request).kind != self.kind:
            return ClientNode.answer(self, request)
        reply = Envelope.from_bytes(ClientNode.answer(self, request))
        signature = sign(self.other, self.kind, reply.content).encode() if self.other else b""
        return replace(reply, signature=signature).to_bytes()


@pytest.mark.parametrize("kind", [SUMMARY, ANSWER])
@pytest.mark.parametrize("other", [None, SigningKey.generate()], ids=["none", "another"])
def test_a_message_without_the_signature_of_its_client_is_refused(other, kind, tmp_path):
    tables = numbers(seed=2)
    odd = OtherKey("site1", lambda: tables["site1"], UNCONTROLLED, key=SigningKey.generate(), other=other, kind=kind)
    outcome = conduct_study(InProcessTransport(make_nodes(tables) | {"site1": odd}), StudyTerms(**ADAPTIVE), tmp_path)
    assert outcome.missing["site1"].startswith(kind)
    assert "signed" in outcome.missing["site1"]
