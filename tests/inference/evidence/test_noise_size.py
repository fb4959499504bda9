"""The size of the noise: its coefficients are found from sums, and a constant size looks constant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedcdh.inference.evidence.noise_size import LOG_SQUARE_VARIANCE, MAX_LEVEL, SizeFit, fit_size, term_products
from fedcdh.summaries.residuals.functions import size_functions, size_terms

NOISE = {
    "normal": lambda rng, rows: rng.standard_normal(rows),
    "exponential": lambda rng, rows: rng.exponential(size=rows) - 1,
    "uniform": lambda rng, rows: rng.uniform(-1, 1, rows),
}


def simulate(seed: int, slopes: tuple[float, ...], rows: int = 2000, noise: str = "normal") -> SizeFit:
    """Fit residuals with log σ² = Σ (a x + b (x² − 1)), two slopes for each parent."""
    rng = np.random.default_rng([seed, rows, len(slopes)])
    x = rng.standard_normal((len(slopes) // 2, rows))
    terms = size_terms(x)
    z = NOISE[noise](rng, rows) * np.exp(np.array(slopes) @ terms / 2)
    design = np.concatenate([np.ones((1, rows)), terms])
    return fit_size(size_functions(z / z.std(), terms).sum(axis=1), design @ design.T, rows)


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("slopes", [(0.8, 0.0), (-0.7, 0.2), (0.0, 0.4), (0.5, 0.0, 0.0, 0.3)])
def test_coefficients_are_found_whatever_the_shape_of_the_noise(noise, slopes):
    """0.01 is added to squares, which takes about a seventh off; 2000 rows have standard errors below 0.05."""
    found = [simulate(seed, slopes, noise=noise) for seed in range(10)]
    mean = np.mean([fit.coefficients[1:] for fit in found], axis=0)
    assert mean == pytest.approx(0.88 * np.array(slopes), abs=0.06)
    assert all(fit.expected_gain(5.0, 2000) > 0 for fit in found)


@pytest.mark.parametrize("parents", [1, 2, 3])
def test_a_constant_size_has_the_statistic_of_its_degrees_of_freedom(parents):
    found = [simulate(seed, (0.0,) * 2 * parents, rows=400) for seed in range(300)]
    statistics = [fit.chi_square for fit in found]
    assert np.mean(statistics) == pytest.approx(2 * parents, rel=0.15)
    assert np.mean(np.array(statistics) > stats.chi2(2 * parents).ppf(0.95)) < 0.09
    assert sum(fit.expected_gain(5.0, 400) > 0 for fit in found) <= 1


def test_the_price_and_the_number_of_coefficients_count():
    """With x and x² − 1 the gain has to exceed the price plus log n."""
    gain = 1.2 * LOG_SQUARE_VARIANCE / 4
    for cost in (5.0, 20.0):
        threshold = (cost + np.log(100)) / gain
        assert SizeFit((0.0, 0.1, 0.1), 1.01 * threshold).expected_gain(cost, 100) > 0
        assert SizeFit((0.0, 0.1, 0.1), 0.99 * threshold).expected_gain(cost, 100) < 0
        assert SizeFit((0.0, 0.1, 0.1, 0.1, 0.1), 1.01 * threshold).expected_gain(cost, 100) < 0


@given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3))
def test_any_sums_give_finite_coefficients_and_a_bounded_level(sums):
    for products in (np.diag([100.0, 90.0, 150.0]), np.full((3, 3), 100.0), np.zeros((3, 3))):
        found = fit_size(np.array(sums), products, 100)
        assert np.isfinite(found.coefficients).all()
        assert np.isfinite(found.chi_square)
        assert abs(found.coefficients[0]) <= MAX_LEVEL


@given(st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=1, max_size=3), st.integers(0, 99))
def test_products_of_terms_are_those_of_the_rows(squares, seed):
    """x² − 1 = b e₁ + c e₂ in coordinates e."""
    rows = 8
    columns = np.random.default_rng(seed).standard_normal((2 * len(squares), rows))
    stacked = np.concatenate([np.ones((1, rows)), columns])
    places = 1 + 2 * np.arange(len(squares))
    found = term_products(stacked @ stacked.T, places, squares, places + 1)
    terms = [np.ones(rows)]
    for (b, c), place in zip(squares, places, strict=True):
        terms += [stacked[place], b * stacked[place] + c * stacked[place + 1]]
    assert found == pytest.approx(np.array(terms) @ np.array(terms).T)


def test_rows_that_count_half_gain_what_half_of_the_rows_gain():
    whole, half = SizeFit((0.0, 0.4, 0.1), 80.0), SizeFit((0.0, 0.4, 0.1), 40.0)
    assert whole.expected_gain(5.0, 200, 0.5) == half.expected_gain(5.0, 100)
