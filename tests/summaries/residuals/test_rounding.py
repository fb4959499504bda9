"""Sums of residuals are rounded at the site, to steps that grow with the root of its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals import SHAPE, SIZE, TIES, ResidualQuery, ResidualSums, add_answers
from fedcdh.summaries.residuals.rounding import ROUNDING, choose_coarseness, choose_offsets, round_sums, rounding_steps
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


def test_coarse_sums_are_the_coarser_the_fewer_rows_there_are():
    six = StudyPlan(tuple(map(Continuous, "abcdef")), ("north",))
    found = [ROUNDING * choose_coarseness(six, rows) for rows in (10, 232, 300, 1000, 10**6)]
    np.testing.assert_allclose(found, [5.0, 5.0, 3.042, 0.27378, 0.2])
    usual, coarse = rounding_steps(QUERY, PLAN, 300), rounding_steps(QUERY, PLAN, 300, 60.0)
    np.testing.assert_allclose(coarse, 60 * usual, rtol=0.001)


def test_the_sum_of_log_sizes_stays_finer_than_other_coarse_sums():
    steps = rounding_steps(replace(QUERY, size=(0.1, 0.2, 0.0)), PLAN, 300, 60.0)
    fine = rounding_steps(replace(QUERY, size=(0.1, 0.2, 0.0)), PLAN, 300)
    np.testing.assert_allclose(steps / fine, [*[60.0] * 15, 6.0], rtol=0.002)


@given(st.lists(st.integers(-300 * GRID, 300 * GRID), min_size=14, max_size=14), st.sampled_from(["north", "south"]))
def test_coarse_rounding_moves_a_sum_by_half_a_step_and_keeps_answers_valid(sums, client):
    steps = rounding_steps(QUERY, PLAN, 300, 60.0)
    rounded = round_sums(np.array(sums), steps, 300, choose_offsets(steps, PLAN, client, SHAPE))
    assert (2 * np.abs(rounded - sums) <= steps).all()
    assert ResidualSums(QUERY, 300, rounded).rows == 300


def test_errors_of_many_clients_cancel_although_all_have_the_same_sums():
    """Without starting points of their own, the errors would be equal."""
    steps = rounding_steps(QUERY, PLAN, 300, 60.0)
    exact = np.full(14, 7 * GRID)
    errors = np.array(
        [
            (round_sums(exact, steps, 300, choose_offsets(steps, PLAN, str(client), SHAPE)) - exact) / steps
            for client in range(400)
        ]
    )
    assert np.abs(errors.mean(axis=0)).max() < 4 * (12 * 400) ** -0.5
    np.testing.assert_allclose(errors.std(axis=0), 12**-0.5, rtol=0.15)


def test_the_coarseness_of_a_total_is_the_root_mean_square_over_rows():
    sums = np.zeros(14, dtype=np.int64)
    one, other = ResidualSums(QUERY, 100, sums, coarseness=60.0), ResidualSums(QUERY, 300, sums, coarseness=20.0)
    assert add_answers([one, other]).coarseness == pytest.approx(1200**0.5)
    assert add_answers([one, one, one]).coarseness == 60.0
