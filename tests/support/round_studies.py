"""Studies with adaptive rounds: plans with a budget, answers, and a source that counts what it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import studies

from fedcdh.evaluation.simulation import Simulation
from fedcdh.inference.independence.joint_regression_test import JointRegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.joint import (
    JointRequest,
    JointSummary,
    LocalAnswerSource,
    RoundBudget,
    answer_request,
)
from fedcdh.summaries.plan import StudyPlan

BUDGET = {"max_rounds": 9, "max_bytes": 10**9}


WITHIN = frozenset({DOMAIN})


def plan_for(tables: Mapping[str, object], **budget: int) -> StudyPlan:
    return replace(studies.plan_of(tables), **(BUDGET | budget))


def cohort_for(tables: Mapping[str, object], plan: StudyPlan) -> Cohort:
    return add_up((summarize(table, plan, client) for client, table in tables.items()), plan)


def answered(
    table: object, plan: StudyPlan, client: str, *sets: tuple[str, ...], rows: int
) -> tuple[JointSummary, ...]:
    return answer_request(table, plan, client, JointRequest(plan.fingerprint, 1, sets), RoundBudget(), rows)[0]


def columns_of(study: Simulation, names: Sequence[str] = "abcdef") -> studies.Tables:
    return {client: dict(zip(names, rows.T, strict=True)) for client, rows in study.tables.items()}


class CountingSource:
    """A source that remembers what it was asked."""

    def __init__(self, source: LocalAnswerSource) -> None:
        self._source = source
        self.requests: list[JointRequest] = []

    def ask(self, request: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        self.requests.append(request)
        return self._source.ask(request)


def joint_test(
    tables: Mapping[str, object], max_sets: int = 1000, **budget: int
) -> tuple[JointRegressionTest, CountingSource]:
    plan = plan_for(tables, **budget)
    cohort = cohort_for(tables, plan)
    source = CountingSource(LocalAnswerSource(tables, plan, cohort))
    return JointRegressionTest(cohort, Basis.of(cohort), source, max_sets), source
