"""Profiles of columns do not depend on batches, and levels are written in one way."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.summaries import _order_statistics
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.variables import Categorical

cuts = st.lists(st.integers(0, 40), max_size=5)


def parts(items, places) -> list:
    edges = sorted({0, len(items), *(min(place, len(items)) for place in places)})
    return [items[a:b] for a, b in pairwise(edges)] or [items]


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
