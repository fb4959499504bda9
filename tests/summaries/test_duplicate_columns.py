"""Columns with the same values in every row are found, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.summaries.duplicate_columns import find_duplicate_columns
from fedcdh.summaries.profiles import profile


def find(rows):
    return find_duplicate_columns(rows, profile(rows, "north"))


@pytest.mark.parametrize("values", [[1.5, 2.5, None, 4.0], ["a", None, "b", "a"]])
def test_copies_are_found_with_their_gaps(values):
    other = [values[3], values[1], values[2], values[0]] if isinstance(values[0], str) else values[::-1]
    assert find({"x": values, "y": list(values), "z": other}) in ((("x", "y"),), (("x", "y", "z"),))
    assert find({"x": values, "z": [*values[:2], values[3], values[2]]}) == ()


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_the_same_values_in_another_order_are_no_copy(first, second):
    rows = {"a": np.array(first) + 0.5, "b": np.array(second) + 0.5}
    assert bool(find(rows)) == (first == second)


def test_two_pairs_with_one_profile_are_two_groups():
    up, down = [1.0, 2.0, 2.0, 3.0], [3.0, 2.0, 2.0, 1.0]
    assert find({"a": up, "b": down, "c": up, "d": down}) == (("a", "c"), ("b", "d"))


def test_empty_columns_are_no_copies():
    rows = {"a": [None, None, None], "b": [None, None, None], "c": [1.0, 2.0, 4.0]}
    assert find_duplicate_columns(rows, profile(rows, "north", kinds={"a": "continuous", "b": "continuous"})) == ()
