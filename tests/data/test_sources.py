"""Rows that come in batches: frames, lists of frames, and what cannot be read in batches."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fedcdh.data.sources import TableSource, to_source
from fedcdh.errors import DataError
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.variables import Categorical, Continuous

PLAN = StudyPlan((Continuous("x", 3.0, 1e5), Categorical("g", ("a", "b"))), ("north", "south"))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_are_tables_and_lists_of_frames_are_batches(frame):
    data = {"x": [1.0, 2.0, 4.0], "g": ["a", "b", "a"]}
    assert summarize([frame(data), frame(data)], PLAN, "north").rows == 2 * summarize(frame(data), PLAN, "north").rows
    assert profile([frame(data)], "north") == profile(frame(data), "north")


def test_a_column_is_labels_if_one_batch_says_so():
    source = to_source([{"x": [1.0, 2.0]}, {"x": [None, None]}, {"x": ["unknown"]}], "client 'north'")
    assert isinstance(source, TableSource)
    assert source.kinds() == {"x": "categorical"}
    assert profile([{"x": [1.0, 2.0]}, {"x": ["unknown"]}], "north").columns["x"].levels == ("1", "2", "unknown")


def test_what_cannot_be_read_in_batches_says_why():
    with pytest.raises(DataError, match="pass a list of batches"):
        profile(({"x": [1.0]} for _ in range(2)), "north")
    with pytest.raises(DataError, match="column 'y' is in some batches and not in others"):
        profile([{"x": [1.0]}, {"x": [1.0], "y": [2.0]}], "north")
    with pytest.raises(DataError, match="no column 'g'"):
        summarize([{"x": [1.0]}], PLAN, "north")
    with pytest.raises(DataError, match="found int, which cannot be read as a table"):
        summarize(3, PLAN, "north")
