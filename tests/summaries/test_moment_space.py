"""Moments of one variable that no values can have, and the bound over the curve that proves it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.summaries._moment_space import MAX_CELL_ERROR, MAX_CELLS, _cell_maxima, build_curve, is_feasible
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous

number = st.one_of(st.floats(-5, 5), st.floats(-1e3, 1e3), st.floats(-1e100, 1e100), st.sampled_from([0.0, 1.0, 1e9]))


families = st.one_of(
    st.builds(Hermite, st.integers(2, 64), st.floats(1e-3, 1e3)),
    st.builds(Fourier, st.integers(2, 64), st.floats(1e-3, 1e3), st.integers(0, 9)),
    st.sampled_from([Hermite(), Fourier()]),
)


size = st.one_of(st.just(1.0), st.floats(0.1, 10), st.floats(1e-290, 1e290))


BULKS = [
    (0.0, 1.0, 0.0, 1.0),
    (3.0, 7.0, 2.5, 4.0),
    (0.0, 1.0, 40.0, 0.1),
    (0.0, 1.0, 0.0, 500.0),
    (1e6, 3.0, 1e6, 0.01),
]


CURVES = [
    *((Hermite(width, bandwidth), bulk) for bulk in BULKS for width, bandwidth in ((4, 2.0), (8, 0.7), (64, 5.0))),
    (Fourier(), None),
    (Fourier(8, 3.0, 1), None),
]


def features(family, clip, bulk, x):
    """(1, φ) as the encoder computes it before rounding."""
    location, scale, centre, spread = bulk or (0.0, 1.0, 0.0, 1.0)
    inside = np.arcsinh((x * scale + (location - centre)) / spread) if family.compresses_tails else x
    return np.concatenate([np.stack([np.ones_like(x), x / clip, (x / clip) ** 2], axis=-1), family(inside)], axis=-1)


@pytest.mark.parametrize(("family", "bulk"), CURVES)
def test_the_bound_over_the_curve_holds_for_every_value(family, bulk):
    """For any quadratic form and any x: what a refusal rests on."""
    rng = np.random.default_rng(0)
    curve = build_curve(family, 30.0, bulk)
    x = np.unique(np.concatenate([np.linspace(-30, 30, 20001), np.sinh(np.linspace(-8, 8, 20001)) * 30 / np.sinh(8)]))
    exact = features(family, 30.0, bulk, x)[:, curve.columns]
    assert len(curve.columns) >= 5
    for _ in range(40):
        weight = np.where(curve.beyond <= MAX_CELL_ERROR, rng.standard_normal(curve.beyond.shape) ** 3, 0.0)
        form = (weight + weight.T) / 2
        tops, _ = _cell_maxima(curve, form)
        most = np.einsum("pi,ij,pj->p", exact, form, exact).max()
        assert most <= tops.max() + (np.abs(form) * curve.beyond).sum() + 1e-8 * np.abs(form).sum()
        assert most >= tops.max() - 1e-4 * np.abs(form).sum()  # and the bound is of use


@pytest.mark.parametrize(("family", "bulk"), CURVES)
def test_the_curve_has_the_derivatives_it_says(family, bulk):
    curve = build_curve(family, 30.0, bulk)
    value, first, second = curve.jets
    h = curve.widths[:, None]
    assert value[1:] == pytest.approx(value[:-1] + h / 2 * (first[1:] + first[:-1]), abs=1e-5)
    assert first[1:] * h == pytest.approx(first[:-1] * h + h**2 / 2 * (second[1:] + second[:-1]), abs=1e-5)


@settings(deadline=None, max_examples=60)
@given(families, size, size, number, st.floats(1, 100))
def test_a_curve_is_never_large(family, scale, spread, centre, clip):
    bulk = (0.0, scale, centre, spread) if family.compresses_tails else None
    curve = build_curve(family, clip, bulk)
    assert len(curve.widths) <= MAX_CELLS
    assert curve.columns[:3] == (0, 1, 2)  # the powers are always looked at
    assert np.isfinite(curve.jets).all()


@pytest.mark.parametrize("spread", [1e-12, 1.0, 1e12])
def test_where_features_cannot_be_looked_at_powers_are(spread):
    variable, x = Continuous("x", 0.0, 1.0, 0.0, spread), np.random.default_rng(0).standard_normal(500)
    plan = StudyPlan((variable,), ("here",))
    moments = summarize({"x": x}, plan, "here").moments / (500.0 * GRID**2)
    assert is_feasible(moments, variable, plan)
    moments[2, 2] = 0.9 * moments[0, 2] ** 2  # mean of fourth powers below the square of the mean of squares
    assert not is_feasible(moments, variable, plan)
