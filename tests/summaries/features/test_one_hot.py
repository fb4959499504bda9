"""One-hot features are the delta kernel."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.summaries.features import Fourier, Hermite, OneHot


def approximated(family: Fourier | Hermite | OneHot, x: np.ndarray) -> np.ndarray:
    weighted = family(x) * family.weights
    return weighted @ weighted.T


@given(st.integers(1, 12), st.lists(st.integers(0, 11), min_size=1, max_size=20))
def test_indicators_are_the_delta_kernel_exactly(levels, codes):
    codes = np.array(codes) % levels
    family = OneHot(tuple(f"l{i}" for i in range(levels)))
    assert family.width == levels
    assert np.array_equal(approximated(family, codes), (codes[:, None] == codes).astype(float))
