"""Sums of residuals are rounded at the site, to steps that grow with the root of its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals import SHAPE, SIZE, TIES, ResidualQuery, ResidualSums
from fedcdh.summaries.residuals.rounding import ROUNDING, round_sums, rounding_steps
from fedcdh.summaries.variables import Categorical, Continuous

PLAN = StudyPlan((Continuous("a"), Continuous("b"), Categorical("g", ("u", "v"))), ("north",))
QUERY = ResidualQuery("b", ("a", "g"), SHAPE, (0.5, 0.1), (1, 1), 0.8)


@pytest.mark.parametrize(
    "query",
    [
        QUERY,
        replace(QUERY, about=SIZE),
        replace(QUERY, size=(0.1, 0.2, 0.0)),
        ResidualQuery("b", (), TIES, (), (), 1.0),
    ],
)
def test_every_sum_of_an_answer_has_a_step(query):
    few, many = (rounding_steps(query, PLAN, rows) for rows in (100, 10_000))
    assert len(few) == query.count_entries(PLAN)
    assert (few >= 1).all()
    if query.about != TIES:
        np.testing.assert_allclose(many, 10 * few, atol=5.5)


def test_a_soft_step_is_rounded_to_a_share_of_the_root_of_the_rows():
    assert rounding_steps(QUERY, PLAN, 400)[-1] == round(20 * ROUNDING * GRID)


@given(st.lists(st.integers(-300 * GRID, 300 * GRID), min_size=14, max_size=14))
def test_rounding_moves_a_sum_by_half_a_step_and_keeps_answers_valid(sums):
    steps = rounding_steps(QUERY, PLAN, 300)
    rounded = round_sums(np.array(sums), steps, 300)
    assert (2 * np.abs(rounded - sums) <= steps).all()
    within = np.abs(rounded) < 300 * GRID
    assert (rounded[within] % steps[within] == 0).all()
    assert ResidualSums(QUERY, 300, rounded).rows == 300
