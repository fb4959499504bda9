"""Online studies: the same result as in process, whatever becomes of single sites; and nothing leaves but messages."""

from __future__ import annotations

import json
import logging
import threading
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from studies import mixed, numbers

import fedcdh
from fedcdh._runtime.cpu_count import available_cpus, default_workers
from fedcdh.cli import main
from fedcdh.discovery.api import discover, discover_from
from fedcdh.errors import DisclosureError, ExitCode, MessageFormatError, QuorumError, SettingsError
from fedcdh.federation import (
    Answered,
    ClientNode,
    InProcessTransport,
    StudyTerms,
    conduct_study,
    read_site_config,
    simulate_federation,
)
from fedcdh.federation.flower.app_folder import DEFAULTS, write_app
from fedcdh.federation.in_process import Fault
from fedcdh.federation.journal import Journal
from fedcdh.federation.site import _column_digests
from fedcdh.messages.envelope import (
    ANSWER,
    PROFILE,
    REFUSAL,
    SUMMARY,
    Envelope,
    ProfileRequest,
    RoundRequest,
    describe_round,
    sha256_hex,
)
from fedcdh.messages.profile_file import profile_from_json
from fedcdh.messages.round_files import read_requests, request_to_json, round_budget_from_json, unpack_answer
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import unpack_summary
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.joint import JointRequest, LocalAnswerSource
from fedcdh.summaries.plan import Continuous, StudyPlan
from fedcdh.summaries.profiles import Profile, profile

RESEARCH = Policy(disclosure_control=False)
HARMLESS = ("repeated",)
FAULTS = [(fault, kind) for fault in get_args(Fault) for kind in (PROFILE, SUMMARY)]


def members(tables, **given) -> dict[str, ClientNode]:
    return {
        client: ClientNode(client, lambda table=table: table, RESEARCH, **given) for client, table in tables.items()
    }


def ask(site: ClientNode, kind: str, content: bytes, signature: bytes = b"") -> Envelope:
    return Envelope.from_bytes(site.answer(Envelope(kind, content, signature).to_bytes()))


def written(folder: Path) -> str:
    return (folder / "result.json").read_text(encoding="utf-8")


def study_bytes(tables, **given) -> bytes:
    return Study(StudyPlan.from_tables(tables), **given).to_json().encode()


# The same result


@pytest.mark.parametrize("method", ["evidence", "constraint", "paper"])
@pytest.mark.parametrize("tables", [numbers(), mixed(sizes=(90, 70, 50))], ids=["numbers", "mixed"])
def test_messages_change_no_byte_of_the_result(tables, method, tmp_path):
    given = {"method": method, "seed": 4, "alpha": 0.03, "max_conditioning_size": 2}
    outcome = simulate_federation(tables, folder=tmp_path, **given)
    found = discover(tables, **given)
    assert render_result_json(outcome.result) == render_result_json(found)
    assert written(tmp_path) == render_result_json(found, uncontrolled_clients=tables), "research, as the messages say"
    assert not outcome.missing


def test_settings_of_discover_mean_the_same():
    tables = numbers()
    known = fedcdh.Knowledge(forbidden=[("v1", "v2")])
    given = {"variables": ["v2", "v1", "v4"], "kinds": {"v4": "continuous"}, "knowledge": known}
    assert render_result_json(simulate_federation(tables, **given).result) == render_result_json(
        discover(tables, **given)
    )


def test_the_record_counts_every_message():
    outcome = simulate_federation(numbers())
    events = outcome.participation.events
    assert [event.what for event in events].count("sent") == [event.what for event in events].count("accepted") == 6
    summaries = [event for event in events if (event.round, event.what) == (SUMMARY, "accepted")]
    for event in summaries:
        content = simulate_summary(numbers()[event.client], outcome.study.plan, event.client)
        assert event.bytes == len(content)
    assert outcome.participation.bytes_received > outcome.participation.bytes_sent > 0


def simulate_summary(table, plan, client) -> bytes:
    request = Envelope(SUMMARY, Study(plan).to_json().encode()).to_bytes()
    return ClientNode(client, lambda: table, RESEARCH).answer(request)


# Sites that fail


@pytest.mark.parametrize(("fault", "kind"), FAULTS)
def test_a_study_goes_on_without_a_site_that_fails_and_names_it(fault, kind, tmp_path):
    tables = numbers()
    outcome = simulate_federation(tables, faults={("site1", kind): fault}, folder=tmp_path)
    if fault in HARMLESS:
        assert not outcome.missing
        assert render_result_json(outcome.result) == render_result_json(discover(tables))
        return
    assert list(outcome.missing) == ["site1"]
    assert outcome.missing["site1"].startswith(f"{kind}: ")
    assert json.loads((tmp_path / "participation.json").read_text())["missing"] == dict(outcome.missing)
    rest = {client: table for client, table in tables.items() if client != "site1"}
    if kind == PROFILE:
        expected = discover(rest)
    else:
        plan = StudyPlan.from_tables(tables)
        summaries = [summarize(table, plan, client) for client, table in rest.items()]
        expected = discover_from(add_up(summaries, plan, without=["site1"]), plan)
        assert any("site1" in note for note in outcome.result.notes)
    assert render_result_json(outcome.result) == render_result_json(expected)


@pytest.mark.parametrize("kind", [PROFILE, SUMMARY])
def test_too_few_sites_are_no_study_and_the_missing_may_come_later(kind, tmp_path):
    tables = numbers()
    with pytest.raises(QuorumError, match=r"2 sites .* at least 3(.|\n)*site2: .*did not answer"):
        simulate_federation(tables, faults={("site2", kind): "silent"}, minimum=3, folder=tmp_path)
    assert list(json.loads((tmp_path / "participation.json").read_text())["missing"]) == ["site2"]
    assert not (tmp_path / "result.json").exists()
    again = simulate_federation(tables, minimum=3, folder=tmp_path)
    asked = [event.site for event in again.participation.events if (event.round, event.what) == (kind, "sent")]
    assert asked == ["site2"]
    assert render_result_json(again.result) == render_result_json(discover(tables))


@dataclass
class Breaking(InProcessTransport):
    """A server that is gone when so many replies have come."""

    replies: int = 0
    asked: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, requests, timeout):
        self.asked += [(site, describe_round(Envelope.from_bytes(request))) for site, request in requests.items()]
        for answer in super().ask(requests, timeout):
            if self.replies == 0:
                raise KeyboardInterrupt
            self.replies -= 1
            yield answer


def test_a_server_that_stops_at_any_moment_goes_on_where_it_was(tmp_path):
    tables = numbers()
    whole, plans = render_result_json(discover(tables)), set()
    for replies in range(6):
        folder = tmp_path / str(replies)
        with pytest.raises(KeyboardInterrupt):
            conduct_study(Breaking(members(tables), replies=replies), StudyTerms(), folder)
        transport = Breaking(members(tables), replies=99)
        outcome = conduct_study(transport, StudyTerms(), folder)
        assert render_result_json(outcome.result) == whole
        assert len(transport.asked) == 6 - replies
        plans.add((folder / "journal" / "study.plan.json").read_bytes())
    assert len(plans) == 1


def test_who_is_not_in_the_plan_is_named_after_a_restart_as_well(tmp_path):
    for faults in ({("site1", PROFILE): "silent"}, {}):
        outcome = simulate_federation(numbers(), faults=faults, folder=tmp_path)
        assert list(outcome.missing) == ["site1"]
        assert outcome.result.cohort.clients == ("site0", "site2")


def test_what_is_stored_are_the_files_of_a_study_by_file(tmp_path, capsys):
    tables = numbers()
    outcome = simulate_federation(tables, folder=tmp_path)
    journal = tmp_path / "journal"
    files = [str(path) for path in sorted(journal.glob("*.summary"))]
    assert main(["discover", str(journal / "study.plan.json"), *files, "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "result.json").read_bytes() == (tmp_path / "result.json").read_bytes()
    assert Study.from_json((journal / "study.plan.json").read_bytes()) == outcome.study


def test_a_journal_that_was_tampered_with_is_no_way_in(tmp_path):
    simulate_federation(numbers(), folder=tmp_path)
    stored = tmp_path / "journal" / "site0.summary"
    content = stored.read_bytes()
    stored.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(fedcdh.FedCDHError, match=r"site0\.summary.*remove it"):
        simulate_federation(numbers(), folder=tmp_path)


def test_a_full_disk_is_not_blamed_on_a_site(tmp_path, monkeypatch):
    monkeypatch.setattr(Journal, "keep", lambda *given: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space"):
        simulate_federation(numbers(), folder=tmp_path)


def test_the_journal_of_another_study_is_not_continued(tmp_path):
    conduct_study(InProcessTransport(members(numbers())), StudyTerms(study="first"), tmp_path)
    with pytest.raises(SettingsError, match="holds the study 'first', not 'second'"):
        conduct_study(InProcessTransport(members(numbers())), StudyTerms(study="second"), tmp_path)


def test_of_two_coordinators_in_one_folder_one_works(tmp_path):
    tables = numbers()

    class Intruding(InProcessTransport):
        def ask(self, requests, timeout):
            with pytest.raises(SettingsError, match="another program conducts"):
                conduct_study(InProcessTransport(members(tables)), StudyTerms(), tmp_path)
            assert not (tmp_path / "participation.json").exists()
            yield from super().ask(requests, timeout)

    outcome = conduct_study(Intruding(members(tables)), StudyTerms(), tmp_path)
    assert render_result_json(outcome.result) == render_result_json(discover(tables))
    assert render_result_json(
        conduct_study(InProcessTransport(members(tables)), StudyTerms(), tmp_path).result
    ) == render_result_json(outcome.result)


# Further rounds

AGAIN = {"method": "constraint", "rounds": "adaptive"}


def without(tables, *gone: str) -> str:
    """What tests that ask again find in process, by the plan of all sites, without some of them."""
    plan = replace(StudyPlan.from_tables(tables), max_rounds=20, max_bytes=10_000_000)
    rest = {client: table for client, table in tables.items() if client not in gone}
    cohort = add_up([summarize(table, plan, client) for client, table in rest.items()], plan, without=gone)
    return render_result_json(
        discover_from(cohort, plan, method="constraint", source=LocalAnswerSource(rest, plan, cohort))
    )


def asked_in(folder: Path) -> list[tuple[str, ...]]:
    """Every set that was asked about, as often as it was."""
    plan = Study.from_json((folder / "journal" / "study.plan.json").read_bytes()).plan
    return [names for request in read_requests(folder / "journal" / "rounds", plan) for names in request.sets]


@pytest.mark.parametrize("tables", [numbers(seed=2), mixed(sizes=(200, 180, 160))], ids=["numbers", "mixed"])
def test_further_rounds_by_messages_change_no_byte(tables, tmp_path):
    outcome = simulate_federation(tables, folder=tmp_path, **AGAIN)
    expected = discover(tables, **AGAIN)
    assert expected.search_result.spent.rounds == 2
    assert render_result_json(outcome.result) == render_result_json(expected) == without(tables)
    assert written(tmp_path) == render_result_json(expected, uncontrolled_clients=tables)
    answers = [event for event in outcome.participation.events if event.round.startswith(ANSWER)]
    assert [event.what for event in answers].count("accepted") == 2 * len(tables)
    received = sum(event.bytes for event in answers if event.what == "accepted")
    assert expected.search_result.spent.bytes < received < 1.5 * expected.search_result.spent.bytes + 4000 * len(tables)


@pytest.mark.parametrize(
    ("fault", "number"), [("silent", 1), ("garbled", 1), *((fault, 2) for fault in get_args(Fault))]
)
def test_a_study_goes_on_without_a_site_that_fails_in_a_further_round(fault, number, tmp_path):
    """Without site0 the search takes another way: what the others have answered is not asked for again."""
    tables = numbers(seed=2)
    outcome = simulate_federation(tables, faults={("site0", f"answer {number}"): fault}, folder=tmp_path, **AGAIN)
    if fault in HARMLESS:
        assert not outcome.missing
        assert render_result_json(outcome.result) == without(tables)
        return
    assert list(outcome.missing) == ["site0"]
    assert outcome.missing["site0"].startswith(f"answer {number}: ")
    assert json.loads((tmp_path / "participation.json").read_text())["missing"] == dict(outcome.missing)
    assert render_result_json(outcome.result) == without(tables, "site0")
    assert written(tmp_path) == render_result_json(outcome.result, uncontrolled_clients=["site1", "site2"])
    assert not (tmp_path / "journal" / "rounds" / f"site0.answer-{number:03d}").exists()
    assert len(asked_in(tmp_path)) == len(set(asked_in(tmp_path)))
    sent = [(event.site, event.round) for event in outcome.participation.events if event.what == "sent"]
    assert len(sent) == len(set(sent))
    assert {site for site, round_ in sent if round_ == "answer 3"} <= {"site1", "site2"}


def test_sites_may_fail_one_after_the_other_until_they_are_too_few(tmp_path):
    tables = numbers(seed=5, sizes=(60, 50, 40, 45))
    faults = {("site0", "answer 1"): "crashed", ("site3", "answer 2"): "garbled"}
    outcome = simulate_federation(tables, faults=faults, folder=tmp_path / "enough", minimum=2, **AGAIN)
    assert outcome.missing.keys() == {"site0", "site3"}
    assert render_result_json(outcome.result) == without(tables, "site0", "site3")
    faults = {(client, ANSWER): "failed" for client in ("site0", "site1", "site3")}
    given = {"folder": tmp_path / "too few", "minimum": 2}
    with pytest.raises(QuorumError, match=r"1 sites answered request 1 .* at least 2(.|\n)*site3: answer 1: .*refuses"):
        simulate_federation(tables, faults=faults, **given, **AGAIN)
    again = simulate_federation(tables, **given, **AGAIN)
    assert render_result_json(again.result) == without(tables)
    one = simulate_federation(tables, **given, method="constraint")
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
def test_whoever_fails_in_whatever_way_the_result_is_that_of_the_others(faults):
    tables = numbers(seed=3, sizes=(60, 50, 40, 45))
    outcome = simulate_federation(tables, faults=faults, **AGAIN)
    harmful = {client for (client, _), fault in faults.items() if fault not in HARMLESS}
    assert outcome.missing.keys() <= harmful
    assert render_result_json(outcome.result) == without(tables, *outcome.missing)


@pytest.mark.parametrize("faults", [{}, {("site0", "answer 1"): "failed"}], ids=["all there", "one fails"])
def test_a_server_that_stops_in_a_further_round_goes_on_where_it_was(faults, tmp_path):
    tables, terms = numbers(seed=2), StudyTerms(**AGAIN)
    whole = Breaking(members(tables), faults, replies=99)
    expected = render_result_json(conduct_study(whole, terms, tmp_path / "whole").result)
    assert expected == without(tables, *(site for site, _ in faults))
    for replies in range(6, len(whole.asked)):
        folder = tmp_path / str(replies)
        with pytest.raises(KeyboardInterrupt):
            conduct_study(Breaking(members(tables), faults, replies=replies), terms, folder)
        transport = Breaking(members(tables), faults, replies=99)
        assert render_result_json(conduct_study(transport, terms, folder).result) == expected
        once = [one for one in transport.asked if one not in faults]  # who has not answered is asked again
        assert once == [one for one in whole.asked[replies:] if one not in faults]
        assert asked_in(folder) == asked_in(tmp_path / "whole")


def test_a_site_that_was_missing_in_a_further_round_may_come_later(tmp_path):
    tables = numbers(seed=2)
    for faults, gone in (({("site0", "answer 2"): "silent"}, ["site0"]), ({}, [])):
        outcome = simulate_federation(tables, faults=faults, folder=tmp_path, **AGAIN)
        assert list(outcome.missing) == gone
        assert render_result_json(outcome.result) == without(tables, *gone)
    sent = {(event.site, event.round) for event in outcome.participation.events if event.what == "sent"}
    assert sent == {("site0", "answer 2")}


def test_what_a_site_answers_is_bounded_however_often_the_search_starts_over(tmp_path):
    """By the plan, one round: site0 fails in it, and the others' way would take two more."""
    tables = numbers(seed=2)
    sites = {
        client: replace(site, answered=Answered(tmp_path / client / "answered.json"))
        for client, site in members(tables).items()
    }
    transport = InProcessTransport(sites, {("site0", ANSWER): "silent"})
    outcome = conduct_study(transport, StudyTerms(max_rounds=1, **AGAIN), tmp_path / "study")
    assert list(outcome.missing) == ["site0"]
    assert outcome.result.search_result.spent.not_asked > 0
    for client in ("site1", "site2"):
        (ledger,) = (tmp_path / client).glob("*.ledger.json")
        assert round_budget_from_json(ledger.read_bytes(), outcome.study.plan).rounds == 1
    again = conduct_study(InProcessTransport(sites), StudyTerms(max_rounds=1, **AGAIN), tmp_path / "study")
    assert render_result_json(again.result) != render_result_json(outcome.result)
    assert again.result.cohort.clients == ("site0", "site1", "site2")


def test_what_is_stored_of_further_rounds_opens_as_a_study_by_file(tmp_path, capsys):
    outcome = simulate_federation(numbers(seed=2), folder=tmp_path, **AGAIN)
    journal = tmp_path / "journal"
    files = [str(path) for path in sorted(journal.glob("*.summary"))]
    search = ["discover", str(journal / "study.plan.json"), *files, "--method", "constraint"]
    assert main([*search, "--answers", str(journal / "rounds"), "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "result.json").read_bytes() == (tmp_path / "result.json").read_bytes()
    stored = journal / "rounds" / "site1.answer-002"
    content = stored.read_bytes()
    stored.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(fedcdh.FedCDHError, match=r"site1\.answer-002.*remove it"):
        simulate_federation(numbers(seed=2), folder=tmp_path, **AGAIN)
    stored.unlink()
    again = simulate_federation(numbers(seed=2), folder=tmp_path, **AGAIN)
    assert render_result_json(again.result) == render_result_json(outcome.result)


def test_a_plan_without_further_rounds_stays_one(tmp_path):
    simulate_federation(numbers(), folder=tmp_path, method="constraint")
    with pytest.raises(SettingsError, match="sites answer no further rounds; choose another folder"):
        simulate_federation(numbers(), folder=tmp_path, **AGAIN)


# Who is who


def test_two_sites_with_one_name_are_both_refused(tmp_path):
    tables = numbers(sizes=(60, 50, 40, 45))
    sites = members(tables)
    sites["site3"] = replace(sites["site3"], client="site2")
    outcome = conduct_study(InProcessTransport(sites), StudyTerms(), tmp_path)
    assert outcome.result.cohort.clients == ("site0", "site1")
    refused = {event.site for event in outcome.participation.events if event.what == "refused"}
    assert refused == {"site2", "site3"}
    assert "more than one" in outcome.missing["site2"]


def test_a_site_cannot_speak_for_another(tmp_path):
    tables = numbers()
    plan = StudyPlan.from_tables(tables)

    @dataclass(frozen=True)
    class Impostor(ClientNode):
        def answer(self, request):
            asked = Envelope.from_bytes(request)
            return (self if asked.kind == PROFILE else replace(self, client="site0")).answer_honestly(request)

        def answer_honestly(self, request):
            return ClientNode.answer(self, request)

    sites = members(tables) | {"site2": Impostor("site2", lambda: tables["site2"], RESEARCH)}
    outcome = conduct_study(InProcessTransport(sites), StudyTerms(), tmp_path)
    assert "'site2' sent the summary of 'site0'" in outcome.missing["site2"]
    assert outcome.study.plan == plan


def test_rows_of_one_client_under_two_names_count_for_neither(tmp_path):
    tables = numbers(sizes=(80, 70, 60))
    outcome = conduct_study(InProcessTransport(members({**tables, "site9": tables["site0"]})), StudyTerms(), tmp_path)
    assert set(outcome.missing) == {"site0", "site9"}
    assert outcome.result.cohort.clients == ("site1", "site2")
    assert sorted(path.name for path in (tmp_path / "journal").glob("*.summary")) == ["site1.summary", "site2.summary"]


def test_declared_clients_are_waited_for_and_strangers_are_refused(tmp_path):
    declaration = fedcdh.federation.coordinator.Declaration(clients=("site0", "site1", "site7"))
    outcome = conduct_study(InProcessTransport(members(numbers())), StudyTerms(declaration=declaration), tmp_path)
    assert outcome.missing["site7"] == "profile: was never there"
    assert "the declaration names" in outcome.missing["site2"]
    assert outcome.study.plan.clients == ("site0", "site1")


def test_keys_are_pinned_from_the_profile_on(tmp_path):
    tables, keys = numbers(), {f"site{k}": SigningKey.generate() for k in range(3)}
    coordinator, stranger = SigningKey.generate(), SigningKey.generate()
    demanding = replace(RESEARCH, coordinator_keys=frozenset({coordinator.public}))
    sites = {c: replace(site, key=keys[c], policy=demanding) for c, site in members(tables).items()}
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
def test_what_comes_without_the_signature_of_its_site_is_refused(other, kind, tmp_path):
    tables = numbers(seed=2)
    odd = OtherKey("site1", lambda: tables["site1"], RESEARCH, key=SigningKey.generate(), other=other, kind=kind)
    outcome = conduct_study(InProcessTransport(members(tables) | {"site1": odd}), StudyTerms(**AGAIN), tmp_path)
    assert outcome.missing["site1"].startswith(kind)
    assert "signed" in outcome.missing["site1"]


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
def test_an_answer_is_held_against_the_summary(lie, said, tmp_path):
    tables = numbers(seed=2)
    client, rows = lie(tables)
    odd = Lying("site1", lambda: tables["site1"], RESEARCH, lie=ClientNode(client, lambda: rows, RESEARCH))
    outcome = conduct_study(InProcessTransport(members(tables) | {"site1": odd}), StudyTerms(**AGAIN), tmp_path)
    assert said in outcome.missing["site1"]
    assert render_result_json(outcome.result) == without(tables, "site1")


def test_requests_of_further_rounds_are_signed(tmp_path):
    tables, coordinator, stranger = numbers(seed=2), SigningKey.generate(), SigningKey.generate()
    demanding = replace(RESEARCH, coordinator_keys=frozenset({coordinator.public}))
    sites = {client: replace(site, policy=demanding) for client, site in members(tables).items()}
    outcome = conduct_study(InProcessTransport(sites), StudyTerms(key=coordinator, **AGAIN), tmp_path)
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


# What a site says


CANARY = "canary-7f3a"


def canary_site(
    tmp_path: Path, cells: str = "1", policy: str = "disclosure_control = false", **more: str
) -> ClientNode:
    """A site whose folder, column names, labels and settings hold what must not leave."""
    folder = tmp_path / f"{CANARY} folder"
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    rows = "\n".join(f"{a},{b},{cells},{CANARY}" for a, b in rng.standard_normal((120, 2)))
    (folder / f"{CANARY}.csv").write_text(f"{CANARY} a,b,c,{CANARY} d\n{rows}\n", encoding="utf-8")
    (folder / "names.toml").write_text(f'"{CANARY} a" = "a"\n', encoding="utf-8")
    (folder / "policy.toml").write_text(policy, encoding="utf-8")
    lines = {"client": '"north"', "data": f'"{CANARY}.csv"', "map": '"names.toml"', "policy": '"policy.toml"', **more}
    (folder / "site.toml").write_text("\n".join(f"{k} = {v}" for k, v in lines.items()), encoding="utf-8")
    return read_site_config(folder / "site.toml")


def plan_ab(**given) -> bytes:
    return Study(StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"), **given)).to_json().encode()


def requests(names: list[str]) -> list[tuple[str, bytes]]:
    return [(PROFILE, ProfileRequest(tuple(names)).to_bytes()), (SUMMARY, plan_ab())]


def test_a_healthy_site_says_what_it_is_asked_and_not_what_it_calls_it(tmp_path):
    site = canary_site(tmp_path)
    for kind, content in requests(["a", "b"]):
        reply = site.answer(Envelope(kind, content).to_bytes())
        assert Envelope.from_bytes(reply).kind == kind
        assert CANARY.encode() not in reply


TROUBLES = {
    "withheld": ({"policy": f'excluded_variables = ["{CANARY} a"]'}, ExitCode.POLICY),
    "too few rows": ({"policy": "min_rows = 5000"}, ExitCode.POLICY),
    "labels for numbers": ({"cells": CANARY}, ExitCode.DATA),
    "plan not accepted": ({"policy": 'plans = ["000000000000"]'}, ExitCode.POLICY),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_troubles_cross_as_codes_and_stay_in_the_log_as_sentences(trouble, tmp_path, caplog):
    given, code = TROUBLES[trouble]
    site = canary_site(tmp_path, **given)
    names = ["a", "b", "c"] if trouble == "labels for numbers" else ["a", "b"]
    plan = Study(StudyPlan(tuple(map(Continuous, names)), ("north",))).to_json().encode()
    reply = site.answer(Envelope(SUMMARY, plan).to_bytes())
    found = Envelope.from_bytes(reply)
    assert (found.kind, found.code, found.content, found.signature) == (REFUSAL, code, b"", b"")
    assert CANARY.encode() not in reply
    (logged,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert f"code {code}" in logged.getMessage()


def test_files_that_are_gone_are_a_code(tmp_path):
    site = canary_site(tmp_path)
    for path in (tmp_path / f"{CANARY} folder").glob("*.csv"):
        path.unlink()
    for kind, content in requests(["a", "b"]):
        reply = site.answer(Envelope(kind, content).to_bytes())
        assert Envelope.from_bytes(reply).code in (ExitCode.DATA, ExitCode.FILES)
        assert CANARY.encode() not in reply
    broken = replace(site, rows=lambda: 1 / 0)
    assert ask(broken, *requests(["a"])[0]).code == ExitCode.INTERNAL


def test_a_coordinator_names_the_code_and_learns_no_more():
    policy = {"site2": Policy(excluded_variables=frozenset({"v3"}))}
    outcome = simulate_federation(numbers(count=3), policy=policy)
    assert f"code {ExitCode.POLICY} ({ExitCode.POLICY.meaning})" in outcome.missing["site2"]
    assert "v3" not in outcome.missing["site2"]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_site_answers_anything_with_a_message(data):
    tables = numbers(sizes=(30,))
    site = ClientNode("site0", lambda: tables["site0"], Policy())
    plan = study_bytes(tables)
    asked = data.draw(st.sampled_from([(SUMMARY, plan), (ANSWER, further(plan, sets=(("v1", "v2"),)))]))
    good = Envelope(*asked).to_bytes()
    place = data.draw(st.integers(0, len(good) - 1))
    changed = [good[:place], good[:place] + b"\xff" + good[place + 1 :], good + b"x", good.replace(b"0", b"")]
    request = data.draw(
        st.sampled_from(changed)
        | st.binary(max_size=200)
        | st.builds(lambda kind, content: Envelope(kind, content).to_bytes(), st.text(max_size=20), st.binary())
    )
    reply = Envelope.from_bytes(site.answer(request))
    assert reply.in_reply_to == sha256_hex(request)
    assert (reply.kind == REFUSAL) == (reply.code != 0)
    assert reply.code != ExitCode.INTERNAL


@given(st.binary(max_size=300), st.binary(max_size=50), st.integers(0, 10**6), st.integers(1, 255))
def test_an_envelope_that_was_changed_is_none(content, signature, place, change):
    envelope = Envelope(SUMMARY, content, signature, "ab")
    blob = envelope.to_bytes()
    assert Envelope.from_bytes(blob) == envelope
    place %= len(blob)
    with pytest.raises(MessageFormatError):
        Envelope.from_bytes(blob[:place] + bytes([blob[place] ^ change]) + blob[place + 1 :])
    with pytest.raises(MessageFormatError):
        Envelope.from_bytes(blob + b"\0")


def test_the_request_for_a_profile_is_the_coordinators_and_the_columns_are_the_sites(tmp_path):
    site = canary_site(tmp_path, variables='["a", "b"]')
    own = profile_from_json(ask(site, PROFILE, ProfileRequest().to_bytes()).content).profile
    assert list(own.columns) == ["a", "b"]
    wanted = ProfileRequest(("c", "a"), {"c": "categorical"})
    asked = profile_from_json(ask(site, PROFILE, wanted.to_bytes()).content).profile
    assert {name: column.kind for name, column in asked.columns.items()} == {"c": "categorical", "a": "continuous"}


# What a site has said before


def answering(tmp_path: Path, **given) -> ClientNode:
    rows = numbers(sizes=(400,), count=2)["site0"]
    said = Answered(tmp_path / "answered.json", **given)
    return ClientNode("north", lambda: {"a": rows["v1"], "b": rows["v2"]}, Policy(min_rows=50), answered=said)


def test_a_site_answers_one_plan_as_often_as_it_is_asked_and_no_other(tmp_path):
    first, second = plan_ab(), plan_ab(study="another")
    site = answering(tmp_path)
    said = ask(site, SUMMARY, first)
    assert unpack_summary(said.content, Study.from_json(first).plan).summary.clients == ("north",)
    assert ask(answering(tmp_path), SUMMARY, first).content == said.content
    assert ask(site, SUMMARY, second).code == ExitCode.POLICY
    assert ask(answering(tmp_path, max_plans=2), SUMMARY, second).code == 0
    assert ask(site, SUMMARY, second).code == 0, "what has left may leave again"


@pytest.mark.parametrize("kind", [PROFILE, SUMMARY])
def test_rows_that_changed_since_are_not_told_about(kind, tmp_path):
    site, content = answering(tmp_path), dict(requests(["a", "b"]))[kind]
    assert ask(site, kind, content).code == 0
    rows = {name: column[:-1] for name, column in site.rows().items()}
    assert ask(replace(site, rows=lambda: rows), kind, content).code == ExitCode.POLICY
    assert ask(site, kind, content).code == 0
    free = replace(site, policy=RESEARCH, rows=lambda: rows)
    assert ask(free, kind, content).code == 0


def test_of_two_plans_at_once_one_is_answered(tmp_path):
    codes: list[int] = []
    plans = [plan_ab(study=str(k)) for k in range(4)]
    sites = [answering(tmp_path) for _ in plans]
    threads = [
        threading.Thread(target=lambda site=site, plan=plan: codes.append(ask(site, SUMMARY, plan).code))
        for site, plan in zip(sites, plans, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [0, ExitCode.POLICY, ExitCode.POLICY, ExitCode.POLICY]


def test_a_list_that_cannot_be_read_lets_nothing_leave(tmp_path):
    (tmp_path / "answered.json").write_text("{}")
    assert ask(answering(tmp_path), SUMMARY, plan_ab()).code == ExitCode.POLICY
    with pytest.raises(DisclosureError, match="cannot be read"):
        Answered(tmp_path / "answered.json").plan("0" * 64, "1" * 64)


def test_a_description_has_one_digest_whatever_kind_of_number_it_is_made_of():
    found = profile({"a": [1.5, 2.25, 4.0], "b": ["x", "y", "x"]}, "north", kinds={"b": "categorical"})
    column = found.columns["a"]
    other = replace(
        column,
        mean=np.float64(column.mean),
        quantiles=tuple(np.array(column.quantiles)),
        squares=np.float64(column.squares),
    )
    again = Profile("north", found.rows, {**found.columns, "a": other})
    told = [_column_digests(one) for one in (found, again)]
    assert told[0] == told[1]
    text = (
        '{"count":3,"counts":[2,1],"kind":"categorical","levels":["x","y"],"mean":0.0,"missing":0,"quantiles":[],'
        '"squares":0.0}'
    )
    assert told[0]["b as categorical"] == sha256_hex(text.encode())


BUDGET = {"max_rounds": 1, "max_bytes": 10**6}


def further(plan: bytes, number: int = 1, sets=(("a", "b"),)) -> bytes:
    request = JointRequest(Study.from_json(plan).plan.fingerprint, number, sets)
    return RoundRequest(request_to_json(request).encode(), plan).to_bytes()


def telling(tmp_path: Path, rows: int = 3000, **given) -> ClientNode:
    table = numbers(sizes=(rows,), count=3)["site0"]
    said = Answered(tmp_path / "answered.json", **given)
    return ClientNode("north", lambda: dict(zip("abc", table.values(), strict=True)), answered=said)


def plan_abc(**given) -> bytes:
    return Study(StudyPlan(tuple(map(Continuous, "abc")), ("north", "south"), **given)).to_json().encode()


def test_a_site_answers_further_rounds_of_a_plan_that_it_has_answered_within_the_budget(tmp_path):
    plan, other = plan_abc(**BUDGET), plan_abc(**BUDGET, study="another")
    site = telling(tmp_path)
    assert ask(site, ANSWER, further(plan)).code == ExitCode.POLICY, "no summary yet"
    assert ask(site, SUMMARY, plan).code == 0
    said = ask(site, ANSWER, further(plan))
    agreed, request = Study.from_json(plan).plan, JointRequest(Study.from_json(plan).plan.fingerprint, 1, (("a", "b"),))
    assert unpack_answer(said.content, agreed, request).client == "north"
    (ledger,) = tmp_path.glob("*.ledger.json")
    told = ledger.read_bytes()
    assert round_budget_from_json(told, agreed).sets == {("a", "b")}
    assert ask(telling(tmp_path), ANSWER, further(plan, number=7)).content == said.content, "told before"
    assert ask(site, ANSWER, further(plan, sets=(("a", "c"),))).code == ExitCode.POLICY, "a second round"
    assert ledger.read_bytes() == told
    assert ask(site, ANSWER, further(other)).code == ExitCode.POLICY, "another plan"
    none = plan_abc(study="none")
    assert ask(telling(tmp_path, max_plans=2), SUMMARY, none).code == 0
    assert ask(site, ANSWER, further(none)).code == ExitCode.POLICY, "no budget"


def test_in_further_rounds_the_policy_and_the_rows_are_looked_at_again(tmp_path):
    plan = plan_abc(**BUDGET)
    site = telling(tmp_path)
    assert ask(site, SUMMARY, plan).code == 0
    rows = {name: column[:-1] for name, column in site.rows().items()}
    assert ask(replace(site, rows=lambda: rows), ANSWER, further(plan)).code == ExitCode.POLICY
    assert (
        ask(replace(site, policy=Policy(excluded_variables=frozenset("c"))), ANSWER, further(plan)).code
        == ExitCode.POLICY
    )
    assert ask(replace(site, policy=Policy(min_rows=5000)), ANSWER, further(plan)).code == ExitCode.POLICY
    assert ask(replace(site, answered=None), ANSWER, further(plan)).code == ExitCode.POLICY
    few = telling(tmp_path / "few", rows=300)
    assert ask(few, SUMMARY, plan).code == 0
    assert ask(few, ANSWER, further(plan)).code == ExitCode.POLICY, "too many numbers for so few rows"
    assert not list(tmp_path.rglob("*.ledger.json")), "nothing was told"
    assert ask(replace(few, policy=RESEARCH), ANSWER, further(plan)).code == 0


def test_what_has_left_in_a_further_round_is_in_the_ledger(tmp_path, monkeypatch):
    plan = plan_abc(**BUDGET)
    site = telling(tmp_path)
    assert ask(site, SUMMARY, plan).code == 0
    with monkeypatch.context() as patch:
        patch.setattr("fedcdh.federation.site.pack_answer", lambda *given: (_ for _ in ()).throw(OSError("gone")))
        assert ask(site, ANSWER, further(plan)).code == ExitCode.FILES
    assert ask(site, ANSWER, further(plan, sets=(("a", "c"),))).code == ExitCode.POLICY
    assert ask(site, ANSWER, further(plan)).code == 0
    (ledger,) = tmp_path.glob("*.ledger.json")
    ledger.write_bytes(ledger.read_bytes().replace(b'"b"', b'"c"'))
    assert ask(site, ANSWER, further(plan)).code == ExitCode.POLICY


def test_of_two_further_questions_at_once_one_is_answered(tmp_path):
    plan, codes = plan_abc(**BUDGET), []
    assert ask(telling(tmp_path), SUMMARY, plan).code == 0
    asked = [further(plan, sets=(pair,)) for pair in (("a", "b"), ("a", "c"), ("b", "c"))]
    threads = [
        threading.Thread(target=lambda one=one: codes.append(ask(telling(tmp_path), ANSWER, one).code)) for one in asked
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [0, ExitCode.POLICY, ExitCode.POLICY]


# Settings, files


def test_settings_of_a_site_are_read_strictly(tmp_path):
    with pytest.raises(SettingsError, match="did you mean 'policy'"):
        canary_site(tmp_path, polcy='"x"')
    with pytest.raises(SettingsError, match="needs client"):
        canary_site(tmp_path, client='""')
    with pytest.raises(SettingsError, match="delimiter should be a text"):
        canary_site(tmp_path, delimiter="3")
    for workers in ("0", "257", "true", '"two"'):
        with pytest.raises(SettingsError, match=r"workers.* found"):
            canary_site(tmp_path, workers=workers)


def test_the_workers_of_a_site_are_its_own_affair(tmp_path):
    assert canary_site(tmp_path).workers is None
    assert canary_site(tmp_path, workers="3").workers == 3


def test_a_site_may_have_more_processors_than_there_may_be_workers(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(384), raising=False)
    assert available_cpus() == 256
    assert default_workers(10) == 256


@pytest.mark.parametrize("client", ["../north", "a/b", "..", ".", "ü" * 200, "a\\b", "con", "study.plan.json"])
def test_no_name_leads_out_of_the_journal(client, tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.keep(PROFILE, client, b"content", b"signature")
    assert journal.stored(PROFILE, client, 100).content == b"content"
    assert all(path.parent == tmp_path / "journal" for path in tmp_path.rglob("*") if path.is_file())
    journal.forget(PROFILE, client)
    assert journal.stored(PROFILE, client, 100) is None


def test_the_app_of_a_study_is_written_whole(tmp_path, capsys):
    assert main(["flower", "init", str(tmp_path / "app")]) == 0
    project = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["flwr"]["app"]
    assert project["config"].keys() == DEFAULTS.keys()
    assert {**project["config"], "output": ""} == DEFAULTS
    assert project["config"]["output"] == str(tmp_path / "app-result")
    for reference in project["components"].values():
        module, name = reference.split(":")
        code = (tmp_path / "app" / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        assert f"\n{name} = " in code
    with pytest.raises(SettingsError, match="not empty"):
        write_app(tmp_path / "app")
    assert main(["flower", "--help"]) == 0
    for command in ("init", "trial"):
        assert main(["flower", command, "--help"]) == 0
        assert f"fedcdh flower {command}" in capsys.readouterr().out.split("Example")[-1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"minimum": 0},
        {"timeout": 0.0},
        {"alpha": 2.0},
        {"method": "guess"},
        {"rounds": "many"},
        {"rounds": "adaptive"},
        {**AGAIN, "max_rounds": 0},
        {**AGAIN, "max_bytes": 0},
    ],
)
def test_terms_that_cannot_be_kept_are_refused_at_once(wrong):
    with pytest.raises(SettingsError):
        StudyTerms(**wrong)


def test_faults_that_do_not_exist_are_refused():
    for wrong in (("nobody", "summary"), ("site0", "answer 0"), ("site0", "request")):
        with pytest.raises(SettingsError, match="expected one of site0"):
            simulate_federation(numbers(), faults={wrong: "silent"})


def test_codes_of_sites_are_the_exit_codes():
    plan = plan_ab()
    site = ClientNode("north", lambda: numbers(sizes=(200,), count=2)["site0"], RESEARCH)
    assert ask(site, SUMMARY, plan[:-2]).code == ExitCode.PLAN
    assert ask(site, SUMMARY, plan, sign(SigningKey.generate(), "summary", plan).encode()).code == ExitCode.SIGNATURE
    assert ask(site, "moments", b"").code == ExitCode.REFUSED
