"""The functions of a residual are bounded, whatever the residual is, and they are what their formulas say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedcdh.summaries.residuals.functions import (
    MAX_COORDINATE,
    MAX_LARGE_RESIDUAL,
    MAX_RESIDUAL,
    SHAPE_FUNCTIONS,
    STEP_CENTRES,
    shape_bounds,
    shape_functions,
    size_bounds,
    size_functions,
    size_terms,
)

numbers = st.floats(allow_nan=False, allow_infinity=True)
residuals = arrays(np.float64, st.integers(1, 20), elements=numbers)
ROUNDING = 1 + 1e-12


@given(residuals)
def test_functions_of_the_shape_stay_within_their_bounds(z):
    found = shape_functions(z)
    assert found.shape == (SHAPE_FUNCTIONS, len(z))
    assert np.isfinite(found).all()
    assert (np.abs(found) <= ROUNDING * shape_bounds()[:, None]).all()


@given(st.integers(1, 3).flatmap(lambda parents: arrays(np.float64, (parents + 1, 7), elements=numbers)))
def test_functions_of_the_size_stay_within_their_bounds(values):
    z, coordinates = values[0], values[1:]
    terms = size_terms(coordinates)
    found = size_functions(z, terms)
    assert terms.shape == (2 * len(coordinates), 7)
    assert np.isfinite(found).all()
    assert (np.abs(found) <= ROUNDING * size_bounds(len(coordinates))[:, None]).all()


def test_every_bound_is_reached():
    largest = np.abs(shape_functions(np.array([-1e9, 1e9]))).max(axis=1)
    assert largest == pytest.approx(shape_bounds())
    corners = np.array([[-1e9, 1e9]])
    assert np.abs(size_functions(corners[0], size_terms(corners))).max(axis=1) == pytest.approx(size_bounds(1))


@given(residuals)
def test_a_mirrored_residual_has_mirrored_functions(z):
    found, mirrored = shape_functions(z), shape_functions(-z)
    assert mirrored[0] == pytest.approx(-found[0])
    assert mirrored[1:4] == pytest.approx(found[1:4])
    assert mirrored[4:] == pytest.approx(-found[:3:-1])


@given(arrays(np.float64, (3, 5), elements=st.floats(-9, 9)))
def test_the_order_of_rows_is_the_order_of_functions_whatever_their_shape(z):
    found = shape_functions(z)
    for row in range(3):
        assert np.array_equal(found[:, row], shape_functions(z[row]))
        assert np.array_equal(found[:, row, ::-1], shape_functions(z[row, ::-1]))


def test_formulas_within_the_clips():
    z, x = np.array([-2.0, 0.3]), np.array([[1.5, -0.5], [0.0, 3.0]])
    found = shape_functions(z)
    assert found[0] == pytest.approx(z)
    assert found[1] == pytest.approx(z**2)
    assert found[2] == pytest.approx(np.sqrt(1 + z**2))
    assert found[3] == pytest.approx(np.log(1 + z**2))
    assert (np.sign(found[4:]) == np.sign(z - STEP_CENTRES[:, None])).all()
    terms = size_terms(x)
    assert terms == pytest.approx(np.array([x[0], x[0] ** 2 - 1, x[1], x[1] ** 2 - 1]))
    logs = np.log(z**2 + 0.01)
    assert size_functions(z, terms) == pytest.approx(np.array([logs, *(logs * term for term in terms)]))


def test_beyond_the_clips_nothing_changes():
    far = np.array([1.0, 10.0])
    assert np.array_equal(shape_functions(MAX_RESIDUAL * far)[:, 0], shape_functions(MAX_RESIDUAL * far)[:, 1])
    terms = size_terms(MAX_COORDINATE * far[None])
    assert np.array_equal(terms[:, 0], terms[:, 1])
    found = size_functions(MAX_LARGE_RESIDUAL * far, terms)
    assert np.array_equal(found[:, 0], found[:, 1])
