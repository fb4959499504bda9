"""Limits that follow from the settings of a policy."""

from __future__ import annotations

import pytest

from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.thresholds import DifferencingLimits, required_cell_count, required_rows
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

PLAN = StudyPlan((Continuous("x"), Continuous("y")), ("north",))


def test_limits_of_the_ledger_are_those_of_the_plan_unless_the_policy_sets_them():
    rows, people = required_rows(PLAN), required_cell_count(PLAN)
    assert Policy().differencing_limits() == DifferencingLimits(100, 8, 8)
    assert Policy().differencing_limits(PLAN) == DifferencingLimits(rows, people, 8)
    strict = Policy(min_rows=2 * rows, min_cell_count=30)
    assert strict.differencing_limits(PLAN) == DifferencingLimits(2 * rows, 30, 30, 2.0)


def test_replicates_multiply_the_odds_of_the_leverage():
    policy = Policy(max_leverage=0.9)
    assert policy.leverage_limit() == 0.9
    for replicates in (1, 8, 100):
        limit = policy.leverage_limit(replicates)
        assert limit / (1 - limit) * (replicates + 1) == pytest.approx(0.9 / 0.1), replicates
