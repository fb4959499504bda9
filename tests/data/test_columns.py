"""Numeric and categorical columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.data.columns import CategoricalColumn
from fedcdh.data.table import to_table
from fedcdh.errors import DataError

labels = st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "ä", "", "1"])), max_size=20)


@given(labels)
def test_labels_are_what_they_were(cells):
    column = CategoricalColumn.of(cells)
    assert [None if code < 0 else column.levels[code] for code in column.codes] == cells
    assert list(column.levels) == sorted({cell for cell in cells if cell is not None})


@given(st.lists(st.one_of(st.none(), st.integers(-3, 3), st.floats(-3, 3)), min_size=1, max_size=20))
def test_whole_numbers_have_one_label_however_they_are_written(cells):
    as_numbers = to_table({"x": cells}).columns["x"].to_categorical()
    as_floats = to_table({"x": [None if cell is None else float(cell) for cell in cells]}).columns["x"].to_categorical()
    assert as_numbers.levels == as_floats.levels
    assert np.array_equal(as_numbers.codes, as_floats.codes)


@pytest.mark.parametrize("cells", [np.array([2**53, 1]), pd.Series([2**53 + 1, None], dtype="Int64"), [10**16, 3]])
def test_numbers_that_are_not_exact_are_refused_as_labels(cells):
    column = to_table({"code": cells}).columns["code"]
    with pytest.raises(DataError, match=r"column 'code' at .* 16 digits .* Turn the column into text"):
        column.to_categorical("column 'code' at client 'north'")
    assert to_table({"code": [2**53 - 1, -3]}).columns["code"].to_categorical().levels == ("-3", str(2**53 - 1))
