"""Sums of floating-point numbers are exact, whatever the batches."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.summaries import _exact_sum
from fedcdh.summaries._exact_sum import ExactSum

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


ordinary = st.one_of(finite, st.floats(-100, 100), st.integers(-3, 3).map(float), st.sampled_from([0.0, -0.0, 1e-320]))


cuts = st.lists(st.integers(0, 40), max_size=5)


def parts(items, places) -> list:
    edges = sorted({0, len(items), *(min(place, len(items)) for place in places)})
    return [items[a:b] for a, b in pairwise(edges)] or [items]


@given(st.lists(ordinary, max_size=40), cuts, st.sampled_from([0, 10, _exact_sum.MAX_BUFFERED]))
def test_sums_are_exact_in_any_batches(numbers, places, few):
    total = ExactSum()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_exact_sum, "MAX_BUFFERED", few)
        for part in parts(np.array(numbers, dtype=np.float64), places):
            total.add(part)
    exact = sum(map(Fraction, numbers), Fraction(0))
    if abs(exact) < Fraction(2) ** 1023:
        assert total.value == float(exact)
        if all(abs(number) < 1e300 for number in numbers):
            assert total.value == math.fsum(numbers)


def test_no_more_numbers_are_added_at_once_than_stay_whole(monkeypatch):
    sizes, add = [], ExactSum._add
    monkeypatch.setattr(_exact_sum, "_MAX_CHUNK", 1000)
    monkeypatch.setattr(
        ExactSum, "_add", staticmethod(lambda values, *to: (sizes.append(len(values)), add(values, *to)))
    )
    total = ExactSum()
    total.add(np.full(10_500, np.nextafter(1.0, 0.0)))
    assert total.value == float(10_500 * Fraction(np.nextafter(1.0, 0.0)))
    assert sum(sizes) == 10_500
    assert max(sizes) <= 1000
