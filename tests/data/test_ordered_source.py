"""Rows in the order of a column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.data.ordered_source import OrderedSource, sort_rows, with_order_column
from fedcdh.data.sources import to_source
from fedcdh.data.table import to_table
from fedcdh.errors import DataError


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(0, 20))
def test_rows_are_sorted_and_equal_times_keep_their_order(times, cut):
    place = np.arange(len(times))
    table = {"t": times, "place": place, "label": [str(k % 3) for k in place]}
    parts = [{name: column[:cut] for name, column in table.items()}, {n: c[cut:] for n, c in table.items()}]
    source = OrderedSource(to_source([one for one in parts if len(one["t"])], "client 'a'"), "t", "client 'a'")
    (found,) = source.batches({"place": "continuous", "label": "categorical"})
    expected = np.argsort(times, kind="stable")
    assert found.columns["place"].values.tolist() == expected.tolist()
    labels = found.columns["label"].to_categorical()
    assert [labels.levels[code] for code in labels.codes] == [str(k % 3) for k in expected]


def test_dates_as_texts_are_sorted():
    table = to_table({"day": ["2024-02-10", "2023-12-31", "2024-02-09"], "x": [3, 1, 2]})
    assert sort_rows(table, "day", "the table").columns["x"].values.tolist() == [1.0, 2.0, 3.0]


def test_a_missing_column_is_named():
    source = OrderedSource(to_source({"x": [1.0]}, "client 'a'"), "time", "client 'a'")
    with pytest.raises(DataError, match=r"client 'a': there is no column 'time'.*found 'x'") as caught:
        source.kinds()
    assert caught.value.parameter == "order_by"
    with pytest.raises(DataError, match="no column 'time'"):
        sort_rows(to_table({"x": [1.0]}), "time", "the table")


def test_missing_times_are_counted():
    with pytest.raises(DataError, match="is empty in 1 of 2 rows") as caught:
        sort_rows(to_table({"t": [1.0, float("nan")]}), "t", "the table")
    assert caught.value.parameter == "order_by"


def test_the_column_of_the_order_is_read_once():
    assert with_order_column(["x", "t"], "t") == ["x", "t"]
    assert with_order_column(None, "t") is None
    assert with_order_column(["x"], None) == ["x"]
