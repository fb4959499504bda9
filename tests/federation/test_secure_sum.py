"""Secure aggregation online: clients that fail, servers that restart."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import studies
from masked_studies import Room, same

from fedcdh.discovery.api import discover_from
from fedcdh.errors import SecureAggregationError, SettingsError
from fedcdh.federation import ClientNode as OnlineSite
from fedcdh.federation import StudyOutcome, conduct_study, read_site_config, simulate_federation
from fedcdh.federation import StudyTerms as OnlineTerms
from fedcdh.federation.secure_sum import SecureSumOptions
from fedcdh.messages.aggregate_file import unpack_aggregate
from fedcdh.messages.envelope import Envelope, RoundRequest
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.secure_aggregation.messages import (
    REQUEST_TYPES,
)
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.domain_mixtures import DomainMixtures
from fedcdh.summaries.integer_vectors import encode_aggregate
from fedcdh.summaries.plan import StudyPlan

TABLES = studies.numbers(3, (60, 50, 40, 55), 2)


def online(folder: Path, faults: Mapping[tuple[str, str], str] | None = None, **given: Any) -> StudyOutcome:
    """Return the outcome of one message; further rounds under masks are in `test_masked_rounds`."""
    settings = {"secure_sum": SecureSumOptions(), "rounds": "one"} | given
    return simulate_federation(TABLES, folder=folder, faults=faults or {}, **settings)


def sum_in(folder: Path, study: Study) -> Aggregate:
    return unpack_aggregate((folder / "journal" / "study.aggregate").read_bytes(), study.plan).aggregate


def plain_sum(plan: StudyPlan, clients: Collection[str], groups: Mapping[str, str] | None = None) -> Aggregate:
    summaries = [summarize(TABLES[client], plan, client) for client in clients]
    return Aggregate.of(add_up(summaries, plan, without=set(plan.clients) - set(clients)), groups)


def test_online_the_sum_and_the_result_are_the_plain_ones(tmp_path):
    outcome = online(tmp_path)
    plain = plain_sum(outcome.study.plan, TABLES)
    assert same(sum_in(tmp_path, outcome.study), plain)
    assert outcome.result.cohort.first_moments.tobytes() == plain.first_moments.tobytes()
    expected = render_result_json(discover_from(plain, plain.plan), without_disclosure_control=TABLES)
    assert (tmp_path / "result.json").read_text() == expected
    assert not outcome.missing
    assert not list((tmp_path / "journal").glob("*.summary"))
    assert all('"secrets": null' in path.read_text() for path in (tmp_path / "sites").rglob("*.masking-state.json"))


@pytest.mark.parametrize(("method", "rounds"), [("paper", "one"), ("constraint", "one"), ("constraint", "residuals")])
def test_online_tests_run_on_the_sum(method, rounds, tmp_path):
    outcome = online(tmp_path, method=method, rounds=rounds)
    plain = plain_sum(outcome.study.plan, TABLES)
    found, expected = outcome.result, discover_from(plain, plain.plan, method=method)
    assert found.graph.skeleton == expected.graph.skeleton
    assert found.changing == expected.changing
    assert (found.search_result.residuals is not None) == (rounds == "residuals")
    if rounds == "one":
        assert found.augmented == expected.augmented


def test_online_groups_stand_together(tmp_path):
    groups = dict.fromkeys(TABLES, "all")
    outcome = online(tmp_path, secure_sum=SecureSumOptions(groups=groups))
    assert same(sum_in(tmp_path, outcome.study), plain_sum(outcome.study.plan, TABLES, groups))


@pytest.mark.parametrize(
    ("request_", "fault"),
    [
        *((one.kind, "silent") for one in REQUEST_TYPES),
        *(("delivery", fault) for fault in ("garbled", "repeated")),
    ],
)
def test_online_a_site_may_fail_in_every_round(request_, fault, tmp_path):
    """Four sites, of which three have to stay: whoever fails before its numbers came is not in the sum, and named."""
    outcome = online(tmp_path, {("site2", f"masking {request_}"): fault})
    out = fault != "repeated" and request_ in ("terms", "roster", "delivery")
    there = [client for client in TABLES if client != "site2" or not out]
    assert same(sum_in(tmp_path, outcome.study), plain_sum(outcome.study.plan, there))
    assert set(outcome.missing) == ({"site2"} if out else set())


def test_online_too_few_are_no_sum(tmp_path):
    silent = {(client, "masking confirmations"): "silent" for client in ("site1", "site2")}
    with pytest.raises(SecureAggregationError, match="Expected at least 3"):
        online(tmp_path, silent)
    assert not (tmp_path / "result.json").exists()


def test_online_a_server_that_stops_in_any_round_goes_on_where_it_was(tmp_path):
    keys = {client: SigningKey.generate() for client in TABLES}
    sites = {
        client: OnlineSite(
            client,
            lambda client=client: TABLES[client],
            Policy(disclosure_control=False),
            key=keys[client],
            memory=tmp_path / "sites" / client,
        )
        for client in TABLES
    }
    runs = 0
    while True:
        runs += 1
        with contextlib.suppress(KeyboardInterrupt):
            outcome = conduct_study(Stopping(sites, 1), OnlineTerms(secure_sum=SecureSumOptions()), tmp_path / "out")
            break
    assert runs > 20
    plain = plain_sum(outcome.study.plan, TABLES)
    assert same(sum_in(tmp_path / "out", outcome.study), plain)


@dataclass
class Stopping:
    """A transport to sites in this process; the server is stopped after so many answers."""

    sites_: Mapping[str, OnlineSite]
    left: int

    def addresses(self, expected: int, timeout: float) -> list[str]:
        return list(self.sites_)

    def exchange(self, requests: Mapping[str, bytes], timeout: float) -> Iterator[tuple[str, bytes | None]]:
        for site, request in requests.items():
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            yield site, self.sites_[site].answer(request)


def asked_online(site: OnlineSite, study: Study, message: Any) -> Envelope:
    content = RoundRequest(message.to_bytes(), study.to_json().encode()).to_bytes()
    return Envelope.from_bytes(site.answer(Envelope("masking", content).to_bytes()))


def test_online_a_site_that_masks_sends_no_plain_summary_of_the_same_plan(tmp_path):
    room = Room.of(3)
    table = {"v1": np.linspace(-1, 1, 50)}
    site = OnlineSite("site0", lambda: table, Policy(disclosure_control=False), key=room.keys["site0"], memory=tmp_path)
    plan = Envelope("summary", room.study.to_json().encode())
    assert Envelope.from_bytes(site.answer(plan.to_bytes())).kind == "summary"
    assert asked_online(site, room.study, room.terms()).kind == "masking"
    assert Envelope.from_bytes(site.answer(plan.to_bytes())).code == 7
    never = replace(site, memory=tmp_path / "other", masked_only=True)
    assert Envelope.from_bytes(never.answer(plan.to_bytes())).code == 7
    assert asked_online(never, room.study, room.terms()).kind == "masking"
    for lacking in (replace(site, memory=None), replace(site, key=None)):
        assert asked_online(lacking, room.study, room.terms()).code in (6, 7)


def test_online_keys_that_a_site_does_not_know_are_refused(tmp_path):
    room = Room.of(3)
    site = OnlineSite("site0", lambda: None, Policy(disclosure_control=False), key=room.keys["site0"], memory=tmp_path)
    known = dict(room.study.keys)
    assert asked_online(replace(site, peers=known), room.study, room.terms()).kind == "masking"
    for peers in ({**known, "site2": SigningKey.generate().public}, {"site0": known["site0"]}, {}):
        assert asked_online(replace(site, peers=peers), room.study, room.terms()).code == 6


def test_online_settings_of_a_site(tmp_path):
    key = SigningKey.generate()
    (tmp_path / "peers.toml").write_text(f'north = "{key.public}"\n')
    (tmp_path / "site.toml").write_text(
        'client = "north"\ndata = "x.csv"\nmasked_only = true\npeers = "peers.toml"\nmasking = "kept"\n'
    )
    site = read_site_config(tmp_path / "site.toml")
    assert (site.masked_only, site.peers, site.memory) == (True, {"north": key.public}, tmp_path / "kept")
    (tmp_path / "peers.toml").write_text('north = "none"\n')
    with pytest.raises(SettingsError, match="peers"):
        read_site_config(tmp_path / "site.toml")


def test_online_rounds_that_need_answers_of_single_clients_are_refused():
    with pytest.raises(SettingsError, match="asks single clients for joint features"):
        OnlineTerms(secure_sum=SecureSumOptions(), rounds="adaptive", method="constraint")


def test_online_mixtures_of_clients_are_the_plain_ones(tmp_path):
    tables = studies.numbers(3, (60, 50, 40, 55, 45, 52), 2)
    outcome = simulate_federation(
        tables, folder=tmp_path, secure_sum=SecureSumOptions(mixtures=1), rounds="one", method="paper"
    )
    plan = outcome.study.plan
    cohort = add_up([summarize(table, plan, client) for client, table in tables.items()], plan)
    expected = Aggregate.from_total(cohort.total, plan, DomainMixtures.of(cohort.summaries, plan, 1))
    assert np.array_equal(encode_aggregate(sum_in(tmp_path, outcome.study)), encode_aggregate(expected))
    assert render_result_json(outcome.result) == render_result_json(discover_from(expected, plan, method="paper"))
