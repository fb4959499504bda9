"""Weights that fit no regression are refused: they could single out people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from residual_studies import (
    DIFFERING,
    QUERIES,
    SHAPE,
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

from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.residual_risk import (
    _to_risk,
    assess_residual_risk,
    check_coordinates,
    check_residual_risks,
    find_regular_queries,
)
from fedcdh.summaries.complete_rows import complete_blocks
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.residuals.answer import (
    compute_coordinates,
    coordinate_rms,
    fit_query,
    residual_moments,
    standardise,
)

DATA = tables((300, 280))
PLAN = plan_of(DATA)
COHORT = cohort_of(DATA, PLAN)
LIMITS = Policy().residual_limits(PLAN)


def findings(request):
    summary = COHORT.summaries[0]
    return [
        *check_coordinates(request, PLAN, summary, LIMITS.max_coordinate_rms),
        *check_residual_risks(assess_residual_risk(DATA["site0"], PLAN, summary, request), LIMITS),
    ]


@settings(max_examples=20, deadline=None)
@given(st.floats(-2, 2), st.floats(0.2, 3), st.booleans())
def test_root_mean_squares_from_the_summary_are_those_of_the_rows(weight, deviation, differs):
    query = replace(SHAPE, weights=(weight,), deviation=deviation, differs=differs)
    request, summary = request_for(COHORT, query), COHORT.summaries[0]
    fit = fit_query(query, request, PLAN, summary)
    (block,) = complete_blocks(DATA["site0"], PLAN, "site0")
    coordinates = compute_coordinates(Encoder(PLAN, "site0")(block), request, PLAN)
    z, _, _ = standardise(fit, coordinates, PLAN)
    assert residual_moments(fit, request, PLAN, summary) == pytest.approx((z.mean(), z.std()), abs=1e-9)
    (found,) = coordinate_rms("x", request, PLAN, summary)
    assert found == pytest.approx(float(np.sqrt((coordinates["x"][0] ** 2).mean())))


def test_an_honest_request_at_300_rows_has_no_findings():
    """Also where fewer people lie beyond the outermost steps than a cell needs: skewed noise always has such steps."""
    assert findings(request_for(COHORT)) == []
    assert find_regular_queries(request_for(COHORT), PLAN, {"site0": COHORT.summaries[0]}, LIMITS) == {*QUERIES}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (replace(SHAPE, weights=(40.0,)), "root mean square"),
        (replace(SHAPE, deviation=0.01), "root mean square"),
        (replace(SHAPE, deviation=100.0), "standard deviation 0.0"),
        (replace(SHAPE, deviation=0.3), "expected at least 0.2 and at most 2"),
        (replace(SIZED, size=(-8.0, 0.0, 0.0)), "logarithm of the noise size"),
        (replace(SIZED, size=(0.0, 0.0, 50.0)), "logarithm of the noise size"),
    ],
)
def test_what_is_no_regression_is_refused(query, words):
    assert any(words in one for one in findings(request_for(COHORT, query)))
    if not query.size:
        found = find_regular_queries(request_for(COHORT, query, TIES), PLAN, {"site0": COHORT.summaries[0]}, LIMITS)
        assert found == {TIES}


def test_weights_that_leave_only_the_outermost_person_between_the_steps_are_refused():
    """Centred at the person with the largest x, with a weight that takes everybody else beyond the steps."""
    coordinates = coordinates_of(COHORT)
    largest = float(np.max(DATA["site0"]["x"]))
    variable = next(one for one in PLAN.variables if one.name == "x")
    place = (largest - variable.location) / variable.scale / PLAN.clip
    there = replace(coordinates["x"], centre=(place, *coordinates["x"].centre[1:]))
    for weight in (1.2, 5.0, 20.0):
        query = replace(SHAPE, weights=(weight,), deviation=0.3)
        request = replace(request_for(COHORT, query), coordinates={**coordinates, "x": there})
        assert findings(request)


def risk_of(z):
    totals = [*((z**power).sum() for power in (1, 2, 3, 4)), 0.0, 100.0]
    return _to_risk(SHAPE, totals, len(z))


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.7])
def test_residuals_of_regressions_are_admitted(scale):
    rng = np.random.default_rng(0)
    for z in (rng.standard_normal(300), rng.exponential(size=300) - 1, rng.laplace(size=300) / 2**0.5):
        assert not list(check_residual_risks([risk_of(scale * z)], LIMITS))


@pytest.mark.parametrize("people", [1, 4])
def test_residuals_of_few_people_are_refused(people):
    few = np.zeros(300)
    few[:people] = 9.0
    risk = risk_of(few)
    assert risk.effective_rows == pytest.approx(people, rel=0.05)
    assert any(f"depend on {risk.effective_rows:.1f} rows" in one for one in check_residual_risks([risk], LIMITS))
    assert any("depend on 0.0 rows" in one for one in check_residual_risks([risk_of(np.zeros(300))], LIMITS))


def test_numbers_that_are_none_are_refused():
    none = replace(risk_of(np.ones(300)), rms=float("nan"), effective_rows=float("nan"), log_size_rms=float("nan"))
    assert len(list(check_residual_risks([none], LIMITS))) == 3


def test_a_mechanism_that_differs_is_standardised_by_the_site_itself():
    """Whatever the common weights: the site's own regression has a root mean square of 1."""
    for weight in (-3.0, 0.0, 30.0):
        query = replace(DIFFERING, weights=(weight,))
        (risk,) = assess_residual_risk(DATA["site0"], PLAN, COHORT.summaries[0], request_for(COHORT, query))
        assert risk.rms == pytest.approx(1)


def test_coordinates_that_are_not_standardised_are_refused():
    coordinates = coordinates_of(COHORT)
    for times in (30, 0.01):
        other = replace(coordinates["x"], matrix=(tuple(times * one for one in coordinates["x"].matrix[0]),))
        request = replace(request_for(COHORT, SHAPE), coordinates={**coordinates, "x": other})
        assert any("coordinates of 'x' have root mean squares" in one for one in findings(request))
        assert not find_regular_queries(request, PLAN, {"site0": COHORT.summaries[0]}, LIMITS)


def test_the_first_coordinate_is_the_value_itself():
    coordinates = coordinates_of(COHORT)
    bent = replace(coordinates["x"], matrix=((*coordinates["x"].matrix[0][:-1], 0.1),))
    request = replace(request_for(COHORT, SHAPE), coordinates={**coordinates, "x": bent})
    assert any("the first coordinate of 'x' is a function of its value" in one for one in findings(request))
    for block in Basis.of(COHORT).transforms.values():
        assert not block.weights[0, 1:].any()  # those of studies are


@pytest.mark.parametrize(("weight", "words"), [(0.3, None), (3.0, "root mean square"), (-3.0, "root mean square")])
def test_a_product_is_checked_by_the_residuals_that_it_leaves(weight, words):
    """Honest weights of these causes are about 0.7; those that fit no regression leave large residuals."""
    data = interacting_causes((400, 380))
    cohort = cohort_of(data, plan_of(data))
    query = replace(WITH_PRODUCT, product_weights=(weight, 0.0, 0.0, 0.0))
    risks = assess_residual_risk(data["site0"], cohort.plan, cohort.summaries[0], request_for(cohort, query))
    found = list(check_residual_risks(risks, LIMITS))
    assert not found if words is None else words in found[0]
