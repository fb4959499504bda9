"""The product of two causes that explains most, from one sum for each pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.inference.evidence.product_terms import MIN_UNEXPLAINED, PRODUCT_PRICE, fit_product
from fedcdh.summaries.residuals.products import ProductRegression

ALONE = ProductRegression(0.1, (0.2, -0.3), 1.5)
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))


@given(st.floats(-50, 50), st.integers(20, 10**6))
def test_the_weight_and_the_gain_are_those_of_least_squares(total, rows):
    fit = fit_product(np.array([total]), {PAIRS[0]: ALONE}, rows)
    assert fit.weights == (pytest.approx(total / (1.5 * rows)), 0.1, 0.2, -0.3)
    explained = min(total**2 / (1.5 * rows) / rows, 1 - MIN_UNEXPLAINED)
    assert fit.gain == pytest.approx(-rows / 2 * np.log(1 - explained) - np.log(rows) / 2 - PRODUCT_PRICE)


@given(st.lists(st.floats(-500, 500), min_size=3, max_size=3))
def test_the_pair_that_explains_most_is_taken(sums):
    fit = fit_product(np.array(sums), dict.fromkeys(PAIRS, ALONE), 1000)
    assert abs(sums[PAIRS.index(fit.pair)]) == max(map(abs, sums))


@given(st.floats(0, 500), st.integers(20, 2000))
def test_the_sign_of_a_sum_changes_that_of_the_weight_only(total, rows):
    one, other = (fit_product(np.array([sign * total]), {PAIRS[0]: ALONE}, rows) for sign in (1, -1))
    assert (one.weights[0], one.gain) == (-other.weights[0], other.gain)


def test_no_dependence_does_not_pay():
    assert fit_product(np.zeros(3), dict.fromkeys(PAIRS, ALONE), 1000).gain < -PRODUCT_PRICE


def test_rows_that_count_half_gain_what_half_of_the_rows_gain():
    regression = {("a", "b"): ProductRegression(0.0, (0.0, 0.0), 1.0)}
    whole, half = fit_product(np.array([30.0]), regression, 200, 0.5), fit_product(np.array([15.0]), regression, 100)
    assert whole.gain == pytest.approx(half.gain)
    assert whole.weights == half.weights
