"""The basis: orthonormal over all rows, without what says nothing new; and the algebra of partial moments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pooled
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedcdh.inference.batched_regression import (
    combine_p_values,
    explained_scatter,
    partial_covariance,
    pillai_test,
    solve_in_groups,
)
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import DEFAULT_CLIP


@pytest.fixture(scope="module", params=[Hermite(), Fourier(7, 1.3, 2)], ids=["hermite", "fourier"])
def study(request):
    tables = studies.mixed(4)
    cohort = studies.cohort_of(tables, request.param)
    return Basis.of(cohort), pooled.Rows.of(tables, cohort.plan)


def test_every_variable_is_orthonormal_over_all_rows(study):
    basis, rows = study
    for name, span in basis.spans.items():
        assert basis.total[np.ix_(span, span)] / rows.count == pytest.approx(np.eye(len(span)), abs=1e-8), name
    assert basis.rows.sum() == rows.count


def test_the_basis_spans_what_the_rows_span(study):
    basis, rows = study
    for name, coordinates in rows.coordinates.items():
        span = basis.spans[name]
        assert len(span) == coordinates.shape[1]
        # orthonormal in the same order: equal up to the sign of each column
        own = np.stack([coordinates[place].mean(axis=0) for place in rows.clients])
        assert np.abs(basis.means[:, span]) == pytest.approx(np.abs(own), abs=1e-8)
        for scatter, place in zip(basis.scatter, rows.clients, strict=True):
            about = coordinates[place] - coordinates[place].mean(axis=0)
            assert np.abs(scatter[np.ix_(span, span)]) == pytest.approx(np.abs(about.T @ about), abs=1e-7)


def test_the_same_variables_bend(study):
    basis, rows = study
    assert {name: len(span) for name, span in basis.predictors.items()} == {
        name: columns.shape[1] for name, columns in rows.predictors.items()
    }


def test_what_says_nothing_new_drops_out():
    rng = np.random.default_rng(0)
    size = 80
    table = {
        "number": rng.standard_normal(size),
        "constant": np.full(size, 7.0),
        "binary": rng.integers(0, 2, size).astype(float),
        "three values": rng.integers(0, 3, size).astype(float),
        "one label": np.full(size, "a"),
        "two labels": np.array(["a", "b"])[rng.integers(0, 2, size)],
        "five labels": np.array(list("abcde"))[rng.integers(0, 5, size)],
    }
    basis = Basis.of(studies.cohort_of({"here": table}))
    assert {name: len(span) for name, span in basis.spans.items()} == {
        "number": 6,
        "constant": 0,
        "binary": 1,
        "three values": 2,
        "one label": 0,
        "two labels": 1,
        "five labels": 4,
    }
    assert {name for name, span in basis.targets.items() if len(span) != 1} == {"constant", "one label", "five labels"}


@pytest.mark.parametrize("clip", [10.0, DEFAULT_CLIP])
def test_squares_follow_from_the_first_two_columns(clip):
    tables = studies.numbers(3)
    plan = replace(studies.plan_of(tables), clip=clip)
    basis = Basis.of(add_up([summarize(table, plan, client) for client, table in tables.items()], plan))
    rows = pooled.Rows.of(tables, plan)
    for name, (on_first, on_second) in basis.squares.items():
        first, second = rows.coordinates[name][:, 0], rows.coordinates[name][:, 1]
        first, second = (
            first * np.sign(first @ rows.features[name][:, 0]),
            second * np.sign(second @ rows.features[name][:, 1]),
        )
        left = first**2 - on_first * first - on_second * second
        # the feature and its square are rounded to the grid, each by half a step at most, so not to the last digit
        linear = rows.features[name][:, 0]
        assert np.ptp(left) <= (1 + 2 * np.abs(linear).max()) / pooled.GRID / linear.var()


# Partial moments

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
