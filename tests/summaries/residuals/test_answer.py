"""Answers are sums over rows, of any order and any parts, up to the rounding at the site."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from residual_studies import (
    DIFFERING,
    PRODUCT_QUERIES,
    PRODUCTS,
    SHAPE,
    SIZE,
    SIZED,
    TIES,
    WITH_PRODUCT,
    cohort_of,
    coordinates_of,
    interacting_causes,
    plan_of,
    request_for,
    tables,
)

from fedcdh.errors import DataError, PlanMismatchError
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals import ResidualSums, add_answers, answer_residuals
from fedcdh.summaries.residuals.answer import MIN_VARIANCE, coordinate_rms, fit_query, residual_moments
from fedcdh.summaries.residuals.functions import (
    MAX_LARGE_RESIDUAL,
    MAX_LOG_SIZE,
    PRODUCT_BOUND,
    shape_bounds,
    shape_functions,
    size_bounds,
    size_functions,
    size_terms,
)
from fedcdh.summaries.residuals.products import regress_product
from fedcdh.summaries.residuals.rounding import rounding_steps
from fedcdh.summaries.variables import Continuous

DATA = tables((60, 50))
PLAN = plan_of(DATA)
COHORT = cohort_of(DATA, PLAN)
REQUEST = request_for(COHORT)
SHARED = request_for(COHORT, SHAPE, SIZE, SIZED)  # what is asked about a mechanism that all clients share


def answers_of(table, request=REQUEST, client="site0") -> tuple[ResidualSums, ...]:
    return answer_residuals(table, PLAN, client, request, summarize(table, PLAN, client))


def part_of(table, rows):
    return {name: column[rows] for name, column in table.items()}


@settings(max_examples=30)
@given(st.integers(1, 59))
def test_answers_of_two_parts_of_the_rows_are_the_answer_of_all(place):
    table = DATA["site0"]
    whole = answers_of(table, SHARED)
    first = answers_of(part_of(table, slice(None, place)), SHARED)
    second = answers_of(part_of(table, slice(place, None)), SHARED)
    for one, other, all_rows in zip(first, second, whole, strict=True):
        total = add_answers((one, other))
        assert total.rows == all_rows.rows
        steps = sum(rounding_steps(total.query, PLAN, answer.rows) for answer in (one, other, all_rows))
        assert (2 * np.abs(total.sums - all_rows.sums) <= steps).all()


def test_every_sum_of_an_answer_is_a_multiple_of_its_step():
    for answer in answers_of(DATA["site0"]):
        inside = np.abs(answer.sums) < answer.rows * GRID  # no sum is rounded beyond its bound
        assert not (answer.sums % rounding_steps(answer.query, PLAN, answer.rows))[inside].any()


@settings(max_examples=20)
@given(st.permutations(range(60)), st.integers(1, 59))
def test_neither_order_nor_batches_of_rows_change_a_byte(order, place):
    table, whole = DATA["site0"], answers_of(DATA["site0"])
    assert answers_of(part_of(table, np.array(order))) == whole
    batches = [part_of(table, slice(None, place)), part_of(table, slice(place, None))]
    assert answer_residuals(batches, PLAN, "site0", REQUEST, summarize(table, PLAN, "site0")) == whole


def test_who_has_the_rows_changes_no_byte():
    assert answers_of(DATA["site0"], client="site1") == answers_of(DATA["site0"], client="site0")


values = st.floats(-1e149, 1e149)


@settings(max_examples=40)
@given(st.lists(st.tuples(values, values), min_size=1, max_size=12))
def test_sums_are_integers_within_the_rows_whatever_the_values(rows):
    found = answers_of({"x": [x for x, _ in rows], "y": [y for _, y in rows]})
    for answer, query in zip(found, REQUEST.queries, strict=True):
        assert answer.query == query
        assert answer.sums.dtype == np.int64
        assert answer.rows == len(rows)
        assert len(answer.sums) == query.count_entries(PLAN)
        assert np.abs(answer.sums).max() <= len(rows) * GRID


def standardised(table) -> tuple[np.ndarray, np.ndarray]:
    """x and y of a table in pooled standard deviations."""
    rows = [np.concatenate([one[name] for one in DATA.values()]) for name in ("x", "y")]
    x, y = ((np.asarray(table[name]) - own.mean()) / own.std() for name, own in zip(("x", "y"), rows, strict=True))
    return x, y


def asked(query) -> np.ndarray:
    (found,) = answers_of(DATA["site0"], request_for(COHORT, query))
    return found.sums / GRID


def is_near(query, expected: np.ndarray) -> bool:
    steps = rounding_steps(query, PLAN, 60) / GRID
    return bool((np.abs(asked(query) - expected) <= steps / 2 + 0.01).all())


def test_sums_are_those_of_the_rows():
    """Sums differ by half a step of the rounding; the grid of the features adds less than 0.01 in 60 rows."""
    x, y = standardised(DATA["site0"])
    z, terms = (y - 0.7 * x) / 0.7, size_terms(x[None])
    assert is_near(SHAPE, (shape_functions(z) / shape_bounds()[:, None]).sum(axis=1))
    assert is_near(SIZE, (size_functions(z, terms) / size_bounds(1)[:, None]).sum(axis=1))
    log_size = 0.1 + 0.2 * terms[0]
    narrow = z * np.exp(-log_size / 2)
    expected = [
        *(shape_functions(narrow) / shape_bounds()[:, None]).sum(axis=1),
        (narrow**2).sum() / MAX_LARGE_RESIDUAL**2,
        log_size.sum() / MAX_LOG_SIZE,
    ]
    assert is_near(SIZED, np.array(expected))


def test_own_residuals_have_mean_zero_and_variance_one():
    sums = asked(DIFFERING) * shape_bounds()
    assert sums[:2] / 60 == pytest.approx([0.0, 1.0], abs=0.01)


def test_own_weights_lie_between_the_common_and_the_own_regression():
    for client, summary in zip(COHORT.clients, COHORT.summaries, strict=True):
        x, y = standardised(DATA[client])
        own = np.cov(x, y)[0, 1] / x.var(ddof=1)
        for common in (-1.0, 0.2, 0.7, 2.0):
            query = replace(DIFFERING, weights=(common,))
            found = fit_query(query, request_for(COHORT, query), PLAN, summary)
            assert min(common, own) - 1e-3 <= found.weights[0] <= max(common, own) + 1e-3
            left = y - found.weights[0] * x
            assert found.level == pytest.approx(left.mean(), abs=1e-3)
            assert found.deviation == pytest.approx(left.std(), rel=1e-3)


def test_common_weights_are_taken_as_they_are():
    found = fit_query(SHAPE, REQUEST, PLAN, COHORT.summaries[0])
    assert (tuple(found.weights), found.level, found.deviation) == (SHAPE.weights, 0.0, SHAPE.deviation)


def test_residuals_that_vanish_leave_finite_sums():
    table = {"x": np.arange(9.0), "y": 1 + 2 * np.arange(9.0)}
    query = replace(DIFFERING, weights=(1.0,))
    request, summary = request_for(COHORT, query), summarize(table, PLAN, "site0")
    assert fit_query(query, request, PLAN, summary).deviation >= np.sqrt(MIN_VARIANCE)
    (found,) = answer_residuals(table, PLAN, "site0", request, summary)
    assert np.abs(found.sums).max() <= 9 * GRID


def test_the_coordinator_knows_the_mean_square_of_residuals():
    request = request_for(COHORT, SHAPE, DIFFERING)
    for client, summary in zip(COHORT.clients, COHORT.summaries, strict=True):
        x, y = standardised(DATA[client])
        shared = residual_moments(fit_query(SHAPE, request, PLAN, summary), request, PLAN, summary)
        z = (y - 0.7 * x) / 0.7
        assert shared == pytest.approx((z.mean(), z.std()), rel=1e-3, abs=1e-3)
        own = residual_moments(fit_query(DIFFERING, request, PLAN, summary), request, PLAN, summary)
        assert own == pytest.approx((0.0, 1.0), abs=1e-9)
        assert coordinate_rms("x", request, PLAN, summary)[0] == pytest.approx(np.sqrt((x**2).mean()), rel=1e-3)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_ties_count_the_rows_with_the_most_frequent_value(drawn):
    table = {"x": np.arange(len(drawn)) / 7, "y": np.array(drawn, dtype=float)}
    (found,) = answers_of(table, request_for(COHORT, TIES))
    assert found.sums.tolist() == [GRID * max(map(drawn.count, drawn))]


@settings(max_examples=25)
@given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3), st.booleans())
def test_units_change_sums_by_little(factor, shift, mirrored):
    """The plan is made anew for the other units. Sums differ by the rounding to the grid, 60 rows by less than 0.02."""
    factor = -factor if mirrored else factor
    other = {client: {**table, "x": factor * table["x"] + shift} for client, table in DATA.items()}
    plan = plan_of(other)
    cohort = cohort_of(other, plan)
    sign = (-1.0 if mirrored else 1.0,)
    queries = [SHAPE, SIZE, DIFFERING, TIES]
    turned = [replace(one, weights=tuple(sign[0] * weight for weight in one.weights)) for one in queries]
    for query, same in zip(queries, turned, strict=True):
        request = request_for(cohort, same)
        (found,) = answer_residuals(other["site0"], plan, "site0", request, summarize(other["site0"], plan, "site0"))
        expected = asked(query)
        if query is SIZE and mirrored:
            expected[1] = -expected[1]
        assert found.sums / GRID == pytest.approx(expected, abs=0.02)


def test_rows_of_another_table_are_refused():
    fewer = part_of(DATA["site0"], slice(5, None))
    with pytest.raises(DataError, match="has 55 complete rows; expected the 60"):
        answer_residuals(fewer, PLAN, "site0", REQUEST, COHORT.summaries[0])


def test_requests_of_another_plan_are_refused():
    plan = StudyPlan((Continuous("y"),), ("site0",))
    with pytest.raises(PlanMismatchError):
        answer_residuals(DATA["site0"], plan, "site0", REQUEST, COHORT.summaries[0])


def test_missing_values_leave_rows_out_as_in_the_summary():
    table = {name: column.copy() for name, column in DATA["site0"].items()}
    table["x"][[3, 4]] = np.nan
    complete = part_of(DATA["site0"], np.delete(np.arange(60), [3, 4]))
    assert answers_of(table) == answers_of(complete)


# Products of two parents

CAUSES = interacting_causes((90, 70))
CAUSES_PLAN = plan_of(CAUSES)
CAUSES_COHORT = cohort_of(CAUSES, CAUSES_PLAN)
ABOUT_PRODUCTS = request_for(CAUSES_COHORT, *PRODUCT_QUERIES)


def product_answers(table, request=ABOUT_PRODUCTS) -> tuple[ResidualSums, ...]:
    return answer_residuals(table, CAUSES_PLAN, "site0", request, summarize(table, CAUSES_PLAN, "site0"))


@settings(max_examples=10)
@given(st.permutations(range(90)), st.integers(1, 89))
def test_neither_order_nor_batches_of_rows_change_a_byte_about_products(order, place):
    table, whole = CAUSES["site0"], product_answers(CAUSES["site0"])
    assert product_answers(part_of(table, np.array(order))) == whole
    batches = [part_of(table, slice(None, place)), part_of(table, slice(place, None))]
    summary = summarize(table, CAUSES_PLAN, "site0")
    assert answer_residuals(batches, CAUSES_PLAN, "site0", ABOUT_PRODUCTS, summary) == whole


def test_sums_of_products_are_those_of_the_rows():
    rows = {name: np.concatenate([one[name] for one in CAUSES.values()]) for name in "aby"}
    a, b, y = ((CAUSES["site0"][name] - own.mean()) / own.std() for name, own in rows.items())
    z, product = (y - 0.5 * a - 0.4 * b) / 0.7, np.clip(a, -4, 4) * np.clip(b, -4, 4)
    left = z - 0.3 * (product - 0.1 - 0.2 * a)
    expected = {
        PRODUCTS: [(product * z).sum() / PRODUCT_BOUND],
        WITH_PRODUCT: [
            *(shape_functions(left) / shape_bounds()[:, None]).sum(axis=1),
            (left**2).sum() / MAX_LARGE_RESIDUAL**2,
        ],
    }
    for answer in product_answers(CAUSES["site0"]):
        if answer.query in expected:
            steps = rounding_steps(answer.query, CAUSES_PLAN, 90) / GRID
            assert (np.abs(answer.sums / GRID - expected[answer.query]) <= steps / 2 + 0.01).all()


def test_a_mechanism_that_differs_has_the_mean_and_the_slopes_of_the_client():
    query, summary = replace(WITH_PRODUCT, differs=True), CAUSES_COHORT.summaries[0]
    fit = fit_query(query, request_for(CAUSES_COHORT, query), CAUSES_PLAN, summary)
    own = regress_product(query.product, coordinates_of(CAUSES_COHORT), CAUSES_PLAN, summary)
    assert fit.product_weights == (0.3, own.mean, *own.slopes)
    assert fit.product_weights != WITH_PRODUCT.product_weights
