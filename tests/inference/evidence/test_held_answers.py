from __future__ import annotations

import numpy as np
import pytest

from fedcdh.inference.absent_variables import complete_cohort
from fedcdh.inference.evidence.held_answers import HeldAnswers, with_bases
from fedcdh.inference.evidence.residual_factors import shape_factors
from fedcdh.protocols import DOMAIN, Family
from fedcdh.summaries import Continuous, StudyPlan, add_up, summarize
from fedcdh.summaries.residuals import ResidualQuery, ResidualSums

ALONE = ResidualQuery("y", (), "shape", (), (), 1.0)
WITH_X = ResidualQuery("y", ("x",), "shape", (0.5,), (1,), 1.0)
PLAN = StudyPlan(
    (Continuous("x"), Continuous("y"), Continuous("z")), ("east", "north"), absent={"east": ["z"], "north": ["x"]}
)
VALUES = np.linspace(-1, 1, 40)


@pytest.fixture
def held():
    tables = {"east": {"x": VALUES, "y": VALUES**2}, "north": {"y": VALUES, "z": VALUES**3}}
    cohort = add_up([summarize(table, PLAN, client) for client, table in tables.items()], PLAN)
    return HeldAnswers(complete_cohort(cohort), 80.0)


def sums_of(query, seed):
    draw = np.random.default_rng(seed)
    return ResidualSums(query, 40, draw.integers(-(1 << 18), 1 << 18, query.count_entries(PLAN)), mean_square=1.0)


def test_a_family_that_all_clients_answered_has_its_own_factor(held):
    answers = {ALONE: {"east": sums_of(ALONE, 1), "north": sums_of(ALONE, 2)}}
    total = answers[ALONE]["east"] + answers[ALONE]["north"]
    assert held.factor(ALONE, ALONE, answers) == pytest.approx(shape_factors([total], 1.0)[0])


def test_a_family_is_compared_with_the_node_alone_on_the_same_rows(held):
    answers = {
        ALONE: {"east": sums_of(ALONE, 1), "north": sums_of(ALONE, 2)},
        WITH_X: {"east": sums_of(WITH_X, 3)},
    }
    alone = held.factor(ALONE, ALONE, answers)
    here = shape_factors([answers[ALONE]["east"]], 2.0)[0]
    with_x = shape_factors([answers[WITH_X]["east"]], 2.0)[0]
    assert held.factor(WITH_X, ALONE, answers) == pytest.approx(alone + with_x - here)


def test_a_family_that_nobody_has_gains_nothing_by_its_parents(held):
    both = ResidualQuery("y", ("x", "z"), "shape", (0.5, 0.1), (1, 1), 1.0)
    answers = {ALONE: {"east": sums_of(ALONE, 1), "north": sums_of(ALONE, 2)}}
    assert not held.is_held(both)
    assert held.factor(both, ALONE, answers) == held.factor(ALONE, ALONE, answers)
    assert held.factor(WITH_X, ALONE, answers) is None  # not answered yet
    assert held.factor(both, ALONE, {}) is None


def test_families_come_with_their_nodes_alone():
    one = Family("y", frozenset({"x", DOMAIN}))
    assert list(with_bases({one: None})) == [one, Family("y", frozenset({DOMAIN}))]
