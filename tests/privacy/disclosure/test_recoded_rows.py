"""Recoded rows are the same rows with rare levels replaced."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.data.sources import to_source
from fedcdh.privacy.disclosure.rare_cells import RareLevel
from fedcdh.privacy.disclosure.recoded_rows import RecodedRows
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous

PLAN = StudyPlan((Continuous("x"), Categorical("g", ("1", "2", "3"))), ("north",))
KINDS = {"x": "continuous", "g": "categorical"}


@pytest.mark.parametrize("spelt", [["1", "2", "3"], [1.0, 2.0, 3.0], ["1.0", "2.0", "3.0"]])
def test_levels_are_replaced_however_they_are_spelt(spelt):
    rows = {"x": np.arange(6.0), "g": np.array(spelt * 2)}
    recoded = RecodedRows(to_source(rows, "client 'north'"), (RareLevel("g", "3", "1"),))
    expected = {"x": np.arange(6.0), "g": ["1", "2", "1"] * 2}
    assert summarize(recoded, PLAN, "north") == summarize(expected, PLAN, "north")
    assert recoded.kinds() == to_source(rows, "client 'north'").kinds()


def test_missing_values_stay_missing_and_levels_may_be_merged_in_turn():
    rows = to_source({"x": [1.0, 2.0, 3.0], "g": ["3", None, "2"]}, "client 'north'")
    (table,) = RecodedRows(rows, (RareLevel("g", "3", "2"), RareLevel("g", "2", "1"))).batches(KINDS)
    assert table.columns["g"].levels == ("1",)
    assert table.columns["g"].codes.tolist() == [0, -1, 0]


def test_without_rare_levels_rows_are_passed_on():
    rows = to_source({"x": [1.0], "g": ["3"]}, "client 'north'")
    (table,) = RecodedRows(rows, ()).batches(KINDS)
    assert table.columns["g"].levels == ("3",)
