"""Clients in this process answer requests, each within the limits of the plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
import studies

from fedcdh.errors import DisclosureError
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.joint import JointRequest, LocalAnswerSource, RoundBudget, answer_request

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
    with pytest.raises(DisclosureError, match="round 2"):
        source.ask(JointRequest(PLAN.fingerprint, 2, ((A, C),)))
