"""Rows that come in batches: whatever the batches, the same profile and the same summary, and little memory."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.data.sources import TableSource, to_source
from fedcdh.errors import DataError
from fedcdh.summaries import _exact_sum, _order_statistics
from fedcdh.summaries._exact_sum import ExactSum
from fedcdh.summaries._order_statistics import RankSelection
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan
from fedcdh.summaries.profiles import profile

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


@settings(deadline=None)
@given(st.lists(ordinary, min_size=1, max_size=40), cuts, st.sampled_from([0, 1, 3, 1000]))
def test_ranks_are_those_of_sorting_however_little_is_kept(numbers, places, kept):
    ranks = sorted({0, len(numbers) // 3, len(numbers) // 2, len(numbers) - 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_order_statistics, "MAX_BUFFERED_VALUES", kept)
        selection, found, passes = RankSelection(), None, 0
        while found is None:
            for part in parts(np.array(numbers), places):
                selection.add(part)
            found, passes = selection.narrow(ranks), passes + 1
    assert passes <= 6
    assert found == {rank: sorted(numbers)[rank] for rank in ranks}


rows = st.lists(
    st.tuples(st.one_of(st.none(), st.floats(-1e6, 1e6)), st.sampled_from(["a", "b", None])), min_size=1, max_size=40
).map(lambda cells: [(1.5, "a"), *cells])


def table(cells) -> dict[str, list]:
    return {"x": [x for x, _ in cells], "g": [g for _, g in cells]}


@settings(deadline=None)
@given(rows, cuts, st.sampled_from([2, 1000]))
def test_batches_give_the_profile_of_the_whole(cells, places, kept):
    whole = profile(table(cells), "north")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_order_statistics, "MAX_BUFFERED_VALUES", kept)
        assert profile([table(part) for part in parts(cells, places)], "north") == whole
    values = [x for x, _ in cells if x is not None]
    assert whole.columns["x"].quantiles == pytest.approx(np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]))
    assert whole.columns["x"].mean == math.fsum(values) / len(values)


PLAN = StudyPlan((Continuous("x", 3.0, 1e5), Categorical("g", ("a", "b"))), ("north", "south"))


@settings(deadline=None)
@given(rows, cuts)
def test_batches_give_the_summary_of_the_whole(cells, places):
    whole = summarize(table(cells), PLAN, "north", max_missing_share=1)
    batches = [table(part) for part in parts(cells, places)]
    assert summarize(batches, PLAN, "north", max_missing_share=1) == whole
    assert summarize((batch for batch in batches), PLAN, "north", max_missing_share=1) == whole


def test_a_batch_may_have_no_complete_row_if_the_client_has_enough():
    batches = [{"x": [None, None], "g": ["a", "b"]}, {"x": [1.0, 2.0, 3.0], "g": ["a", "b", "a"]}]
    summary = summarize(batches, PLAN, "north")
    assert (summary.rows, summary.rows_read, dict(summary.missing)) == (3, 5, {"x": 2, "g": 0})
    with pytest.raises(DataError, match="2 of 5 rows"):
        summarize(batches, PLAN, "north", max_missing_share=0.3)


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


@pytest.mark.parametrize(("cell", "code"), [("3", 0), ("3.0", 0), ("3.", 0), ("-1.00", 1), ("03", None), ("3.5", None)])
def test_whole_numbers_are_labels_also_where_a_program_wrote_them_with_decimals(cell, code):
    plan = StudyPlan((Categorical("ward", ("3", "-1")),), ("north",))
    if code is None:
        with pytest.raises(DataError, match="not among the plan's levels"):
            summarize({"ward": [cell]}, plan, "north")
    else:
        assert summarize({"ward": [cell]}, plan, "north") == summarize({"ward": [[3, -1][code]]}, plan, "north")


spellings = st.sampled_from(["3", "3.0", "-1", "-1.00", "2.5", "03", "1e3", None])


@settings(deadline=None)
@given(st.lists(st.one_of(spellings, st.sampled_from(["k.A.", "x"])), min_size=1, max_size=20), cuts)
def test_labels_do_not_depend_on_the_batches(cells, places):
    whole = profile({"g": cells}, "north", kinds={"g": "categorical"})
    batches = [{"g": part} for part in parts(cells, places)]
    assert profile(batches, "north", kinds={"g": "categorical"}) == whole
    assert sum(whole.columns["g"].counts) == sum(cell is not None for cell in cells)


@settings(deadline=None)
@given(st.lists(spellings, min_size=1, max_size=20))
def test_where_all_labels_are_numbers_whole_ones_are_written_without_decimals(cells):
    (column,) = profile({"g": cells}, "north", kinds={"g": "categorical"}).columns.values()
    whole = {"3.0": "3", "-1.00": "-1"}
    assert column.levels == tuple(sorted({whole.get(cell, cell) for cell in cells if cell is not None}))
    if column.levels and None not in cells:  # and such cells are found again when the rows are summarized
        plan = StudyPlan((Categorical("g", column.levels),), ("north",))
        assert summarize({"g": cells}, plan, "north").rows == len(cells)


def test_a_text_among_numbers_leaves_labels_as_written():
    assert profile({"g": ["3.0", "3", "k.A."]}, "north").columns["g"].levels == ("3", "3.0", "k.A.")


@pytest.mark.parametrize("kind", ["continuous", "categorical"])
def test_a_column_without_values_has_all_properties(kind):
    column = profile({"x": [None, None]}, "north", kinds={"x": kind}).columns["x"]
    assert (column.count, column.missing) == (0, 2)
    assert (column.location, column.scale, column.centre, column.spread) == (0.0, 1.0, 0.0, 1.0)
