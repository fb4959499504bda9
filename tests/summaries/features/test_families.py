"""Every feature family lies in [-1, 1] and uses that range."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedcdh.summaries.features import Fourier, Hermite

FAMILIES = [Fourier(), Fourier(64, 0.1, 3), Hermite(), Hermite(2), Hermite(64, 0.3), Hermite(40, 5.0)]


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
