"""The regression of a product on its factors comes from the summary, and is that of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from residual_studies import cohort_of, coordinates_of, interacting_causes, plan_of

from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals.functions import MAX_COORDINATE
from fedcdh.summaries.residuals.products import MIN_VARIANCE, regress_product
from fedcdh.summaries.variables import Continuous

PAIR = ("a", "b")


def regress_rows(tables) -> tuple[np.ndarray, float]:
    """Return level and slopes, and the variance that is left, by least squares on all rows."""
    a, b = (np.concatenate([table[name] for table in tables.values()]) for name in PAIR)
    a, b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    columns = np.column_stack([np.ones_like(a), a, b])
    found = np.linalg.lstsq(columns, a * b, rcond=None)[0]
    return found, float(np.mean((a * b - columns @ found) ** 2))


def regress(tables, plan: StudyPlan | None = None):
    cohort = cohort_of(tables, plan or plan_of(tables))
    return regress_product(PAIR, coordinates_of(cohort), cohort.plan, cohort.total)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(20, 300))
def test_the_summary_gives_the_regression_of_the_rows(seed, rows):
    tables = interacting_causes((rows, 30), seed)
    found, (expected, variance) = regress(tables), regress_rows(tables)
    assert (found.mean, *found.slopes) == pytest.approx(expected, abs=2e-3)
    assert found.variance == pytest.approx(variance, rel=2e-3, abs=2e-3)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.01, 100), st.floats(-100, 100))
def test_units_do_not_matter(factor, shift):
    tables = interacting_causes((200, 100))
    moved = {client: {**one, "a": factor * one["a"] + shift} for client, one in tables.items()}
    assert flat(regress(moved)) == pytest.approx(flat(regress(tables)), abs=1e-2)


def flat(found) -> tuple[float, ...]:
    return (found.mean, *found.slopes, found.variance)


def test_two_names_may_be_given_in_either_order():
    cohort = cohort_of(tables := interacting_causes((200, 100)), plan_of(tables))
    one, other = (
        regress_product(pair, coordinates_of(cohort), cohort.plan, cohort.total) for pair in (PAIR, PAIR[::-1])
    )
    assert flat(other) == pytest.approx((one.mean, *one.slopes[::-1], one.variance))


def test_a_product_that_its_factors_explain_leaves_the_smallest_variance():
    """Of two values each, of which one decides the other, the product is linear."""
    a = np.tile([1.0, -1.0], 50)
    plan = StudyPlan(tuple(Continuous(name) for name in PAIR), ("site0",))
    assert regress({"site0": {"a": a, "b": -a}}, plan).variance == MIN_VARIANCE


def test_slopes_are_not_steeper_than_a_product_of_clipped_values():
    a = np.concatenate([np.zeros(400), [25.0]]) + np.random.default_rng(0).normal(scale=0.1, size=401)
    plan = StudyPlan(tuple(Continuous(name) for name in PAIR), ("site0",))
    found = regress({"site0": {"a": a, "b": a + np.random.default_rng(1).normal(scale=0.1, size=401)}}, plan)
    assert max(map(abs, found.slopes)) <= MAX_COORDINATE
    assert abs(found.mean) <= MAX_COORDINATE**2
