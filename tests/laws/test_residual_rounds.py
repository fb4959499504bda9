"""The same result, byte for byte, whichever way the sums of residuals travel: in process, by file, online, masked."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import residual_studies
from cli_study import run
from residual_studies import skewed_chain

import fedcdh
from fedcdh.cli import main
from fedcdh.errors import DisclosureError
from fedcdh.federation import simulate_federation
from fedcdh.federation.secure_sum import SecureSumOptions
from fedcdh.messages.round_files import read_requests
from fedcdh.messages.study_file import Study
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.gate import ReleaseGate, spent_round_budget
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.releases import ReleaseContext, release_answer, release_summary
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.joint import LocalAnswerSource, RoundBudget
from fedcdh.summaries.residuals import ResidualRequest


@pytest.mark.parametrize(("method", "max_rounds"), [("evidence", 20), ("evidence", 2), ("constraint", 20)])
def test_in_process_and_online_the_bytes_are_the_same(method, max_rounds, tmp_path):
    tables = skewed_chain()
    expected = fedcdh.discover(tables, method=method, max_rounds=max_rounds)
    assert expected.settings.rounds == "residuals"
    assert 0 < expected.search_result.residuals.rounds <= max_rounds
    assert {("a", "b"), ("b", "c")} <= expected.graph.arrows
    outcome = simulate_federation(tables, method=method, max_rounds=max_rounds, folder=tmp_path)
    assert render_result_json(outcome.result) == render_result_json(expected)
    stored = read_requests(tmp_path / "journal" / "rounds", outcome.study.plan)
    assert stored
    assert all(isinstance(request, ResidualRequest) for request in stored)
    again = simulate_federation(tables, method=method, max_rounds=max_rounds, folder=tmp_path)
    assert not [event for event in again.participation.events if event.what == "sent"]
    assert render_result_json(again.result) == render_result_json(expected)


def test_sites_under_disclosure_control_with_enough_rows_change_no_byte():
    tables = skewed_chain()
    outcome = simulate_federation(tables, policy=Policy())
    assert not outcome.missing
    assert render_result_json(outcome.result) == render_result_json(fedcdh.discover(tables))


@pytest.mark.parametrize("max_rounds", [12, 2])
def test_by_file_the_bytes_are_those_of_the_same_plan_in_process(max_rounds, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tables = skewed_chain()
    for client, table in tables.items():
        rows = np.column_stack([*table.values()])
        np.savetxt(f"{client}.csv", rows, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
        run("profile", f"{client}.csv", "--client", client, "-q")
    run("plan", *(f"{client}.profile.json" for client in tables), "--max-rounds", str(max_rounds), "-q")
    for client in tables:
        run("summarize", "study.plan.json", f"{client}.csv", "--client", client, "-q")
    search = ["discover", "study.plan.json", "*.summary", "--ask", "rounds"]
    number = 0
    while main([*search, "-q"]):
        number += 1
        request = f"rounds/request-{number:03d}.json"
        for client in tables:
            target = f"rounds/{client}.answer-{number:03d}"
            run("rounds", "answer", "study.plan.json", request, f"{client}.csv", "--client", client, "-o", target, "-q")
    assert 0 < number <= max_rounds
    plan = Study.from_json((tmp_path / "study.plan.json").read_bytes()).plan
    cohort = residual_studies.cohort_of(tables, plan)
    expected = fedcdh.discover_from(cohort, plan, source=LocalAnswerSource(tables, plan, cohort))
    assert (tmp_path / "result" / "result.json").read_text(encoding="utf-8") == render_result_json(expected)
    capsys.readouterr()
    run("rounds", "request", "study.plan.json", "*.summary", "--answers", "rounds", "--json")
    assert json.loads(capsys.readouterr().out)["more"] is False
    for file, word in (("rounds/request-001.json", "residuals of regressions"), (target, "about residuals")):
        run("inspect", file)
        assert word in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("fault", ["silent", "failed", "garbled"])
def test_a_site_that_does_not_answer_about_residuals_stays_with_its_summary(fault, tmp_path):
    tables = skewed_chain((900, 800, 700))
    outcome = simulate_federation(tables, faults={("site1", "answer 1"): fault}, folder=tmp_path)
    assert not outcome.missing
    assert outcome.result.cohort.clients == ("site0", "site1", "site2")
    answers = outcome.result.search_result.residuals.answers.values()
    assert {client for by_client in answers for client in by_client} == {"site0", "site2"}
    again = simulate_federation(tables, folder=tmp_path)  # asked once more, it answers
    answers = again.result.search_result.residuals.answers.values()
    assert {client for by_client in answers for client in by_client} == {*tables}
    assert again.result.graph == fedcdh.discover(tables).graph  # the others were asked once: last digits may differ


def test_sites_under_disclosure_control_never_refuse_an_honest_coordinator_that_starts_again(tmp_path):
    """A site is silent in the second request and answers later, although what was asked depends on its answers."""
    study = fedcdh.simulate("linear", variables=6, clients=3, rows=1000, seed=1)
    given = {"policy": Policy(), "folder": tmp_path}
    first = simulate_federation(study.tables, **given, faults={("client02", "answer 2"): "silent"})
    again = simulate_federation(study.tables, **given)
    assert first.result.search_result.residuals.rounds > 1
    for outcome in (first, again):
        assert not outcome.missing
        assert not [event for event in outcome.participation.events if event.what == "refused"]
        questions = [query.question for query in outcome.result.search_result.residuals.answers]
        assert len(questions) == len({*questions})


def test_a_site_answers_about_the_rows_of_its_summary_and_remembers_what_it_answered(tmp_path):
    data = residual_studies.tables()
    plan = residual_studies.plan_of(data)
    cohort = residual_studies.cohort_of(data, plan)
    request, rows = residual_studies.request_for(cohort), data["site0"]
    context = ReleaseContext("site0", gate=ReleaseGate(ReleaseLedger(tmp_path / "releases.jsonl")))
    with pytest.raises(DisclosureError, match="has released no summary by this plan"):
        release_answer(rows, plan, context, request, RoundBudget())
    release_summary(rows, plan, context)
    answers, budget = release_answer(rows, plan, context, request, RoundBudget())
    assert spent_round_budget(context.gate.ledger.entries(), plan) == budget
    entry = context.gate.ledger.entries()[-1].release
    assert (entry.kind, entry.numbers) == ("answer", sum(len(answer.sums) for answer in answers))
    assert release_answer(rows, plan, context, request, budget) == (answers, budget)  # told before: no new round
    assert len(context.gate.ledger.entries()) == 2
    fewer = {name: column[1:] for name, column in rows.items()}
    with pytest.raises(DisclosureError):
        release_answer(fewer, plan, context, request, budget)
    for weight, words in ((50.0, "these are not the residuals of a regression"), (0.71, "with 2 sets of weights")):
        hostile = residual_studies.request_for(cohort, replace(residual_studies.SHAPE, weights=(weight,)))
        with pytest.raises(DisclosureError, match=words):
            release_answer(rows, plan, context, hostile, spent_round_budget(context.gate.ledger.entries(), plan))


@pytest.mark.parametrize("max_rounds", [20, 2])
@pytest.mark.parametrize("groups", [None, dict.fromkeys(("site0", "site1", "site2", "site3"), "all")])
def test_under_masks_the_bytes_are_those_of_the_plain_sums(groups, max_rounds, tmp_path):
    tables = skewed_chain((900, 800, 700, 600))
    terms = {"secure_sum": SecureSumOptions(groups=groups or {}), "max_rounds": max_rounds, "folder": tmp_path}
    outcome = simulate_federation(tables, **terms)
    plan = outcome.study.plan
    known = Aggregate.of(residual_studies.cohort_of(tables, plan), groups)
    expected = fedcdh.discover_from(known, plan, source=residual_studies.SummedSource(tables, plan))
    assert 0 < expected.search_result.residuals.rounds <= max_rounds
    assert {("a", "b"), ("b", "c")} <= expected.graph.arrows
    assert not outcome.missing
    assert render_result_json(outcome.result) == render_result_json(expected)
    answers = outcome.result.search_result.residuals.answers.values()
    assert {client for by_client in answers for client in by_client} == {"all clients"}
    again = simulate_federation(tables, **terms)
    assert not [event for event in again.participation.events if event.what == "sent"]
    assert render_result_json(again.result) == render_result_json(expected)


def test_masked_sites_under_disclosure_control_with_enough_rows_change_no_byte():
    tables = skewed_chain((900, 800, 700, 600))
    outcome = simulate_federation(tables, secure_sum=SecureSumOptions(), policy=Policy())
    plan = outcome.study.plan
    known = Aggregate.of(residual_studies.cohort_of(tables, plan))
    expected = fedcdh.discover_from(known, plan, source=residual_studies.SummedSource(tables, plan))
    assert not outcome.missing
    assert render_result_json(outcome.result) == render_result_json(expected)
