"""The algebra of partial moments: residuals, F tests, combined p-values, and results in the order of the queries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedcdh.inference.batched_regression import (
    _MAX_ELEMENTS,
    combine_p_values,
    explained_scatter,
    group_by_shape,
    partial_covariance,
    pillai_test,
    solve_in_groups,
)

matrices = st.integers(0, 2**32).map(lambda seed: np.random.default_rng(seed).standard_normal((40, 7)))


@settings(deadline=None, max_examples=30)
@given(matrices)
def test_partial_moments_are_those_of_residuals(rows):
    scatter = rows.T @ rows
    targets, given_ = np.array([[0, 1], [4, 2]]), np.array([[2, 3, 4], [6, 5, 0]])
    left = partial_covariance(scatter, targets, given_)
    for b in range(2):
        residual = (
            rows[:, targets[b]] - rows[:, given_[b]] @ np.linalg.lstsq(rows[:, given_[b]], rows[:, targets[b]])[0]
        )
        assert left[b] == pytest.approx(residual.T @ residual, rel=1e-6, abs=1e-6)
    assert np.array_equal(
        partial_covariance(scatter, targets, np.zeros((2, 0), dtype=int))[1], scatter[np.ix_([4, 2], [4, 2])]
    )


@settings(deadline=None, max_examples=30)
@given(matrices)
def test_what_predictors_explain_and_leave_adds_up(rows):
    scatter = rows.T @ rows
    explained = explained_scatter(scatter, 2)
    left = partial_covariance(scatter, np.array([[0, 1]]), np.array([[2, 3, 4, 5, 6]]))[0]
    assert explained + left == pytest.approx(scatter[:2, :2], rel=1e-7, abs=1e-6)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_one_target_gives_the_textbooks_f_test(seed, predictors):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((30, predictors)), rng.standard_normal(30)
    about_x, about_y = x - x.mean(axis=0), y - y.mean()
    left = about_y - about_x @ np.linalg.lstsq(about_x, about_y)[0]
    total, after, freedom = about_y @ about_y, left @ left, 30 - 1 - predictors
    statistic = (total - after) / predictors / (after / freedom)
    found, p_value = pillai_test(np.array([[total - after]]), np.array([[total]]), predictors, freedom)
    assert found == pytest.approx(statistic, rel=1e-9)
    assert p_value == pytest.approx(stats.f.sf(statistic, predictors, freedom), abs=1e-9)


def test_nothing_to_explain_or_nothing_to_explain_it_with_gives_p_one():
    zero, one = np.zeros((1, 1)), np.ones((1, 1))
    assert pillai_test(zero, zero, 2, 10)[1] == 1.0
    assert pillai_test(zero, one, 2, 10)[1] == 1.0
    assert pillai_test(one, one, 2, 0)[1] == 1.0  # no degrees of freedom
    assert pillai_test(one, one, 2, -5)[1] == 1.0
    assert pillai_test(zero, one, 0, 10)[1] == 1.0  # no predictors, as for the domain of one client
    assert pillai_test(one, one, 2, 10)[1] < 1e-10
    assert np.array_equal(explained_scatter(np.zeros((3, 3)), 1), np.zeros((1, 1)))
    assert np.array_equal(
        partial_covariance(np.zeros((3, 3)), np.array([[0]]), np.array([[1, 2]])), np.zeros((1, 1, 1))
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_combined_p_values_are_p_values(p_values):
    found = float(combine_p_values([np.array(p) for p in p_values]))
    assert 0 <= found <= 1
    held = [max(p, 1e-300) if p <= 0.5 else 0.1 + 0.8 * p for p in p_values]
    assert min(held) * (1 - 1e-9) <= found <= max(held) * (1 + 1e-9)
    assert float(combine_p_values([np.array(p) for p in p_values[::-1]])) == pytest.approx(found, rel=1e-9)


def test_one_clear_answer_is_not_outvoted():
    assert combine_p_values([np.array(1e-6), np.array(1.0), np.array(1.0), np.array(1.0)]) < 1e-5


@given(st.lists(st.integers(0, 9), max_size=30))
def test_groups_give_results_back_in_order(items):
    batches = []

    def solve(batch):
        batches.append(batch)
        assert len({item % 3 for item in batch}) == 1
        return [(float(item), item / 10) for item in batch]

    results = solve_in_groups(items, lambda item: item % 3, lambda item: 1_000_000, solve)
    assert results == [(float(item), item / 10) for item in items]
    assert all(len(batch) <= 2 for batch in batches)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=40), st.integers(1, 5))
def test_parts_hold_every_query_once_and_one_shape_each(shapes, size):
    table = np.array(shapes, dtype=np.intp).reshape(len(shapes), 2)
    parts = group_by_shape(table, lambda shape: _MAX_ELEMENTS // size)
    assert sorted(np.concatenate([*parts, np.zeros(0, dtype=int)])) == list(range(len(shapes)))
    for part in parts:
        assert len(part) <= size
        assert len({tuple(table[position]) for position in part}) == 1
