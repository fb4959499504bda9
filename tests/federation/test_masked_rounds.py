"""Further rounds under masks: clients that drop out, servers that stop or lie, and what a site remembers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import residual_studies
from residual_studies import SummedSource, skewed_chain

from fedcdh.discovery.api import discover_from
from fedcdh.errors import SettingsError, SummaryError
from fedcdh.federation import ClientNode, StudyOutcome, StudyTerms, conduct_study
from fedcdh.federation.masked_rounds import check_summed_rows, joint_features_error
from fedcdh.federation.secure_sum import SecureSumOptions
from fedcdh.messages.envelope import Envelope, RoundRequest
from fedcdh.messages.round_files import read_requests
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate, spent_round_budget
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.secure_aggregation.messages import SecAggTerms
from fedcdh.privacy.secure_aggregation.session import SummedAnswers
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.joint import JointRequest
from fedcdh.summaries.residuals import ResidualSums

TABLES = skewed_chain((900, 800, 700, 600))
OPEN = Policy(disclosure_control=False)


def nodes_in(folder: Path, policy: Policy = OPEN) -> dict[str, ClientNode]:
    """Return sites with keys, ledgers and memories that outlive a run of the server."""
    found = {}
    for client, table in TABLES.items():
        gate = ReleaseGate(ReleaseLedger(folder / client / "releases.jsonl")) if policy.disclosure_control else None
        rows = lambda table=table: table  # noqa: E731
        node = ClientNode(client, rows, policy, key=SigningKey.generate(), gate=gate, memory=folder / client)
        found[client] = node
    return found


@dataclass
class Sessions:
    """A transport to sites in this process; it counts the sums of answers, and may fail at a place."""

    nodes: Mapping[str, ClientNode]
    silent: Mapping[tuple[str, int, str], bool] = field(default_factory=dict)  # by client, request and round
    left: int = 10**9
    number: int = 0

    def addresses(self, expected: int, timeout: float) -> list[str]:
        return list(self.nodes)

    def exchange(self, requests: Mapping[str, bytes], timeout: float) -> Iterator[tuple[str, bytes | None]]:
        for client, request in requests.items():
            envelope = Envelope.from_bytes(request)
            round_ = ""
            if envelope.kind == "masking":
                asked = json.loads(RoundRequest.from_bytes(envelope.content).request.partition(b"\n")[0])
                round_ = asked["round"]
                if round_ == "terms" and "request" in asked:
                    self.number = json.loads(asked["request"])["number"]
            if self.silent.get((client, self.number, round_)):
                continue
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            yield client, self.nodes[client].answer(request)


def conduct(transport: Sessions, folder: Path, **given: object) -> StudyOutcome:
    return conduct_study(transport, StudyTerms(secure_sum=SecureSumOptions(), **given), folder)


def expected_result(plan, failed=10**9) -> str:
    known = Aggregate.of(residual_studies.cohort_of(TABLES, plan))
    return render_result_json(discover_from(known, plan, source=SummedSource(TABLES, plan, failed)))


@pytest.mark.parametrize("round_", ["terms", "roster", "delivery", "present", "confirmations"])
def test_there_is_no_sum_without_a_client_that_leaves_and_its_summary_stays_in_the_result(round_, tmp_path):
    nodes = nodes_in(tmp_path / "sites")
    outcome = conduct(Sessions(nodes, {("site2", 2, round_): True}), tmp_path / "out")
    failed = 2 if round_ in ("terms", "roster", "delivery") else 10**9
    assert not outcome.missing
    assert outcome.result.cohort.total.clients == ("site0", "site1", "site2", "site3")
    assert render_result_json(outcome.result) == expected_result(outcome.study.plan, failed)
    rows = {one["all clients"].rows for one in outcome.result.search_result.residuals.answers.values()}
    assert rows == {3000}
    requests = read_requests(tmp_path / "out" / "journal" / "rounds", outcome.study.plan)
    assert len(requests) == 2 if failed == 2 else len(requests) > 2
    reasons = [event.reason for event in outcome.participation.events if event.round == "masking 2"]
    assert sum("of site2. Expected those of all clients" in reason for reason in reasons) == (4 if failed == 2 else 0)
    again = conduct(Sessions(nodes), tmp_path / "out")  # asked once more, it answers
    assert render_result_json(again.result) == expected_result(outcome.study.plan)


def test_a_server_that_stops_in_any_round_goes_on_where_it_was(tmp_path):
    nodes, runs = nodes_in(tmp_path / "sites"), 0
    while True:
        runs += 1
        with contextlib.suppress(KeyboardInterrupt):
            outcome = conduct(Sessions(nodes, left=11), tmp_path / "out")
            break
    assert runs > 5
    assert render_result_json(outcome.result) == expected_result(outcome.study.plan)


def test_with_too_few_clients_the_result_has_the_answers_before(tmp_path):
    silent = {(client, number, "delivery"): True for client in ("site1", "site2") for number in (2, 3)}
    nodes = nodes_in(tmp_path / "sites")
    outcome = conduct(Sessions(nodes, silent), tmp_path / "out")
    requests = read_requests(tmp_path / "out" / "journal" / "rounds", outcome.study.plan)
    assert len(requests) == 2
    assert set(outcome.result.search_result.residuals.answers) == {*requests[0].queries}
    assert not outcome.missing
    again = conduct(Sessions(nodes), tmp_path / "out")  # asked once more, they answer
    assert render_result_json(again.result) == expected_result(outcome.study.plan)


def test_a_site_keeps_what_it_answered_under_masks_in_its_ledger(tmp_path):
    nodes = nodes_in(tmp_path / "sites", Policy())
    outcome = conduct(Sessions(nodes), tmp_path / "out")
    plan = outcome.study.plan
    assert not outcome.missing
    requests = read_requests(tmp_path / "out" / "journal" / "rounds", plan)
    for node in nodes.values():
        recorded = node.gate.ledger.entries()
        entries = [entry for entry in recorded if entry.release.kind != "round"]
        assert [entry.release.kind for entry in entries] == ["profile", "masked", *["answer"] * len(requests)]
        messages = [entry.release.details["message"] for entry in recorded if entry.release.kind == "round"]
        assert messages == ["masked", "confirmed", "opened"] * (1 + len(requests))
        assert all(entry.release.is_masked for entry in entries[1:])
        spent = spent_round_budget(entries, plan)
        assert spent.requests == tuple(request.digest for request in requests)
    states = sorted((tmp_path / "sites" / "site0").glob("*.masking-state*.json"))
    assert len(states) == 1 + len(requests)
    assert all('"secrets": null' in path.read_text() for path in states)


def ask(node: ClientNode, study: Study, message: SecAggTerms) -> Envelope:
    content = RoundRequest(message.to_bytes(), study.to_json().encode()).to_bytes()
    return Envelope.from_bytes(node.answer(Envelope("masking", content).to_bytes()))


def test_a_site_refuses_requests_that_would_take_masks_off(tmp_path):
    """Before the sum of summaries, with a lower threshold, the same query twice, or without its memory."""
    nodes = nodes_in(tmp_path / "sites", Policy())
    outcome = conduct(Sessions(nodes), tmp_path / "out")
    study, site = outcome.study, nodes["site0"]
    first = read_requests(tmp_path / "out" / "journal" / "rounds", study.plan)[0]
    terms = SecAggTerms.of(study, request=first)
    assert ask(site, study, terms).kind == "masking"  # the same again
    assert ask(site, study, replace(terms, attempt=2)).code  # it has opened that sum
    assert ask(site, study, SecAggTerms.of(study, request=replace(first, number=9))).code
    fewer = replace(first, queries=first.queries[1:])
    assert ask(site, study, SecAggTerms.of(study, request=fewer, attempt=2)).code
    new = residual_studies.request_for(
        residual_studies.cohort_of(TABLES, study.plan), replace(residual_studies.TIES, node="a"), number=9
    )
    assert ask(replace(site, memory=tmp_path / "new"), study, SecAggTerms.of(study, request=new)).code
    (state,) = (tmp_path / "sites" / "site0").glob("*.request-001.json")
    state.unlink()
    assert ask(site, study, terms).code
    open_request = Envelope("answer", RoundRequest(terms.request.encode(), study.to_json().encode()).to_bytes())
    assert Envelope.from_bytes(site.answer(open_request.to_bytes())).code == 7


def test_rows_of_a_sum_are_those_of_the_summaries():
    plan = residual_studies.plan_of(TABLES)
    cohort = residual_studies.cohort_of(TABLES, plan)
    query = replace(residual_studies.TIES, node="a")
    request = residual_studies.request_for(cohort, query)

    def summed(rows: int, *clients: str) -> SummedAnswers:
        return SummedAnswers((ResidualSums(query, rows, [0]),), clients, "0" * 64)

    alone, grouped = Aggregate.of(cohort), Aggregate.of(cohort, dict.fromkeys(TABLES, "all"))
    for known in (alone, grouped):
        check_summed_rows(summed(3000, *TABLES), known, request)
        for rows in (2300, 2999, 3001):
            with pytest.raises(SummaryError, match="expected the 3000"):
                check_summed_rows(summed(rows, *TABLES), known, request)


def test_joint_features_are_not_asked_under_masks():
    error = joint_features_error(JointRequest("0" * 64, 1, (("a", "b"),)))
    assert isinstance(error, SettingsError)
    assert "1 sets of variables" in str(error)
