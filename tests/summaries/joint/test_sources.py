"""Clients in this process answer requests, each within the limits of the plan."""

from __future__ import annotations

from dataclasses import replace

import residual_studies
import studies

from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.joint import JointRequest, LocalAnswerSource, RoundBudget, answer_request
from fedcdh.summaries.residuals import answer_residuals

TABLES = studies.numbers(0, (60, 50), count=3)
PLAN = replace(studies.plan_of(TABLES), max_rounds=1, max_bytes=10**7)
COHORT = add_up((summarize(table, PLAN, client) for client, table in TABLES.items()), PLAN)
A, B, C = sorted(PLAN.names)


def test_every_client_answers_for_itself_and_keeps_its_budget():
    source = LocalAnswerSource(TABLES, PLAN, COHORT)
    request = JointRequest(PLAN.fingerprint, 1, ((A, B),))
    found = source.ask(request)
    for client, rows in zip(COHORT.clients, COHORT.client_rows, strict=True):
        assert found[client] == answer_request(TABLES[client], PLAN, client, request, RoundBudget(), rows)[0]
        assert source.budgets[client] == RoundBudget.of([request], PLAN, rows)
    assert source.ask(request) == found  # the same request may be answered again


def test_nothing_beyond_the_limits_is_answered():
    source = LocalAnswerSource(TABLES, PLAN, COHORT)
    source.ask(JointRequest(PLAN.fingerprint, 1, ((A, B),)))
    assert source.ask(JointRequest(PLAN.fingerprint, 2, ((A, C),))) == dict.fromkeys(TABLES, ())


def test_clients_answer_about_residuals_as_far_as_the_plan_allows():
    data = residual_studies.tables()
    plan = residual_studies.plan_of(data, max_rounds=1)
    cohort = residual_studies.cohort_of(data, plan)
    source, request = LocalAnswerSource(data, plan, cohort), residual_studies.request_for(cohort)
    found = source.ask_residuals(request)
    for client, summary in zip(cohort.clients, cohort.summaries, strict=True):
        assert found[client] == answer_residuals(data[client], plan, client, request, summary)
        assert source.budgets[client] == RoundBudget.of([request], plan, summary.rows)
    assert source.ask_residuals(replace(request, number=2)) == found  # nothing new is asked
    other = replace(residual_studies.TIES, node="x")
    assert source.ask_residuals(residual_studies.request_for(cohort, other)) == dict.fromkeys(data, ())
    wish = [other, residual_studies.SHAPE]
    assert source.select_affordable(wish, request.coordinates) == (residual_studies.SHAPE,)
    changed = replace(residual_studies.SHAPE, weights=(0.6,))  # asked once: the earlier answer stands for it
    again = source.ask_residuals(residual_studies.request_for(cohort, changed))
    place = request.queries.index(residual_studies.SHAPE)
    assert again == {client: (replace(answers[place], query=changed),) for client, answers in found.items()}
