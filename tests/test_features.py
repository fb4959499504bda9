"""Feature families: bounded everywhere, and the kernels they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedcdh.features import Fourier, Hermite, Indicator
from fedcdh.plan import Categorical, Continuous, StudyPlan
from fedcdh.summary import GRID, summarize

FAMILIES = [Fourier(), Fourier(64, 0.1, 3), Hermite(), Hermite(2), Hermite(64, 0.3), Hermite(40, 5.0)]
X = np.linspace(-3, 3, 61)


def gaussian(x: np.ndarray, bandwidth: float) -> np.ndarray:
    return np.exp(-((x[:, None] - x) ** 2) / (2 * bandwidth**2))


def approximated(family: Fourier | Hermite | Indicator, x: np.ndarray) -> np.ndarray:
    weighted = family(x) * family.weights
    return weighted @ weighted.T


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@given(x=arrays(np.float64, st.integers(0, 20), elements=st.floats(-100, 100)))
def test_features_lie_between_minus_one_and_one(family, x):
    features = family(x)
    assert features.shape == (len(x), family.width)
    assert np.isfinite(features).all()
    assert np.abs(features).max(initial=0.0) <= 1.0


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_bound_is_not_wasteful(family):
    """Features that stay far below 1 would waste the digits of the grid."""
    assert (np.abs(family(np.linspace(-100, 100, 40_001))).max(axis=0) > 0.4).all()


def test_random_features_approach_the_gaussian_kernel_as_they_get_more():
    def error(width: int) -> float:
        exact = gaussian(X, 1.5)
        return float(np.mean([np.abs(approximated(Fourier(width, 1.5, seed), X) - exact).mean() for seed in range(30)]))

    errors = [error(width) for width in (4, 16, 64)]
    assert errors[0] > 1.7 * errors[1] > 1.7**2 * errors[2]  # 1/√width would be a factor of 2
    assert errors[2] < 0.12
    mean = np.mean([approximated(Fourier(64, 1.5, seed), X) for seed in range(200)], axis=0)
    assert np.abs(mean - gaussian(X, 1.5)).max() < 0.05  # no bias


@pytest.mark.parametrize("bandwidth", [0.7, 1.0, 2.0])
def test_hermite_features_converge_to_the_gaussian_kernel(bandwidth):
    errors = [
        np.abs(approximated(Hermite(width, bandwidth), X) - gaussian(X, bandwidth)).max() for width in (4, 16, 64)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-6


def test_hermite_eigenfunctions_are_orthonormal_under_the_normal_distribution():
    family = Hermite(8, 2.0)
    x, weights = np.polynomial.hermite_e.hermegauss(120)
    a, b, c = family._constants
    eigenvalues = np.sqrt(2 * a / (a + b + c)) * (b / (a + b + c)) ** np.arange(8)
    functions = family(x) * family.weights / np.sqrt(eigenvalues)
    gram = (functions.T * weights / weights.sum()) @ functions
    assert np.allclose(gram, np.eye(8), atol=1e-8)


@given(st.integers(1, 12), st.lists(st.integers(0, 11), min_size=1, max_size=20))
def test_indicators_are_the_delta_kernel_exactly(levels, codes):
    codes = np.array(codes) % levels
    family = Indicator(tuple(f"l{i}" for i in range(levels)))
    assert family.width == levels
    assert np.array_equal(approximated(family, codes), (codes[:, None] == codes).astype(float))


def test_draws_depend_on_the_seed_and_on_nothing_else():
    assert np.array_equal(Fourier(5, 1.0, 1)(X), Fourier(5, 1.0, 1)(X))
    assert not np.array_equal(Fourier(5, 1.0, 1)(X), Fourier(5, 1.0, 2)(X))
    assert np.array_equal(Fourier(5, 2.0, 1)(2 * X), Fourier(5, 1.0, 1)(X))  # the bandwidth is a unit of length


@pytest.mark.parametrize("family", [Hermite(), Fourier()], ids=repr)
@given(value=st.floats(-1e6, 1e6), clip=st.floats(1, 100))
def test_a_number_leads_with_its_clipped_value_and_the_square(family, value, clip):
    plan = StudyPlan((Categorical("g", ("a", "b")), Continuous("x", 10.0, 4.0)), ("c",), family, clip)
    sums = summarize({"g": ["b"], "x": [value]}, plan, "c").moments[0] / GRID  # of one row: its features on the grid
    z = np.clip((value - 10.0) / 4.0, -clip, clip)
    assert sums[0] == GRID
    assert sums[1:3].tolist() == [0, GRID]  # the labels' indicators
    span = plan.spans()["x"]
    assert sums[span.start] == np.rint(z / clip * GRID)
    assert sums[span.start + 1] == np.rint((z / clip) ** 2 * GRID)
    assert np.array_equal(sums[span.start + 2 : span.stop], np.rint(family(np.array([z]))[0] * GRID))
