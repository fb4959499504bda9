"""Regressions in batches: every query in one part, and one shape per part."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.inference import batched_regression


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=40), st.integers(1, 5))
def test_parts_hold_every_question_once_and_one_shape_each(shapes, size):
    table = np.array(shapes, dtype=np.intp).reshape(len(shapes), 2)
    parts = batched_regression.group_by_shape(table, lambda shape: batched_regression._MAX_ELEMENTS // size)
    assert sorted(np.concatenate([*parts, np.zeros(0, dtype=int)])) == list(range(len(shapes)))
    for part in parts:
        assert len(part) <= size
        assert len({tuple(table[position]) for position in part}) == 1
