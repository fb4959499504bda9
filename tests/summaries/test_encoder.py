"""The encoder gives the features that anybody would write."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.data.table import to_table
from fedcdh.summaries.encoder import Encoder, _arcsinh
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import Continuous, StudyPlan


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.sampled_from([Hermite(), Hermite(8, 0.5)]))
def test_the_quick_arcsinh_gives_the_same_whole_numbers(values, family):
    plan = StudyPlan((Continuous("x", 0.3, 1.7, 0.1, 0.9),), ("north",), family)
    data = to_table({"x": values})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedcdh.summaries.encoder._MIN_SMOOTH_BANDWIDTH", np.inf)
        exact = Encoder(plan, "north")
    assert not exact._smooth
    assert np.array_equal(Encoder(plan, "north")(data), exact(data))


def test_the_quick_arcsinh_is_near_numpys_and_ties_are_left_to_that():
    values = np.concatenate([np.linspace(-40, 40, 20_001), 10.0 ** np.arange(-300, 150, 7.0)])
    assert np.abs(_arcsinh(values) - np.arcsinh(values)).max() < 1e-12
    near = np.abs(values) < 100
    assert np.abs(_arcsinh(values) - np.arcsinh(values))[near].max() < 4e-15
    plan, calls = StudyPlan((Continuous("x"),), ("north",)), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedcdh.summaries.encoder._TIE_TOLERANCE", 0.5)  # everything is one
        patch.setattr(np, "arcsinh", lambda found, exact=np.arcsinh: calls.append(1) or exact(found))
        Encoder(plan, "north")(to_table({"x": values}))
    assert calls


@pytest.mark.parametrize("family", [Hermite(), Fourier()])
def test_features_are_those_that_anybody_would_write(family):
    values = np.random.default_rng(5).standard_t(3, 5000)
    plan = StudyPlan((Continuous("x", 0.2, 1.5, 0.1, 0.8),), ("north",), family)
    standardised = np.clip((values - 0.2) / 1.5, -30, 30)
    inside = np.arcsinh((standardised * 1.5 + 0.2 - 0.1) / 0.8) if family.compresses_tails else standardised
    linear = standardised / 30
    plain = np.stack([np.ones(5000), linear, linear**2, *family.iter_columns(inside)])
    assert np.abs(Encoder(plan, "north")(to_table({"x": values})) / 2**18 - plain).max() <= 2.0**-19 + 1e-12
