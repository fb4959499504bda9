"""Sketches tell the same rows from nearly the same and from others."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_studies import Columns, at

from fedcdh.data.table import to_table
from fedcdh.privacy.ledger import (
    RowSketcher,
    ValueSketch,
)
from fedcdh.privacy.ledger.row_sketches import EMPTY_SKETCH


@st.composite
def rows_in_parts(draw: st.DrawFn) -> tuple[Columns, list[int], np.ndarray]:
    rows = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = {"n": rng.integers(-3, 3, rows) * 0.5, "t": rng.choice(["0", "1", "a", "ä"], rows)}
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=4)))
    return columns, cuts, rng.permutation(rows)


@settings(max_examples=40, deadline=None)
@given(rows_in_parts())
def test_order_batches_and_names_make_no_difference(given_):
    columns, cuts, order = given_
    rows, whole, parts = len(columns["n"]), RowSketcher(b"secret"), RowSketcher(b"secret")
    whole(to_table(columns))
    moved = {"t": columns["t"][order], "renamed": columns["n"][order]}
    for start, end in zip([0, *cuts], [*cuts, rows], strict=True):
        parts(to_table(at(moved, slice(start, end))))
    assert parts.rows == whole.rows
    assert parts.columns["renamed"] == whole.columns["n"]
    assert parts.columns["t"] == whole.columns["t"]
    assert ValueSketch.from_document(json.loads(json.dumps(whole.rows.to_document()))) == whole.rows


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 400), st.integers(0, 400), st.integers(1, 500))
def test_no_fewer_values_changed_than_a_sketch_says(seed, gone, come, kinds):
    """A sure bound, whatever the values and however often each occurs."""
    rng = np.random.default_rng(seed)
    before = rng.integers(0, kinds, 500) * 1.0
    after = np.concatenate([before[gone:], rng.integers(0, kinds, come)])
    values, counts = np.unique(np.concatenate([before, after]), return_counts=True)
    of = [np.array([(side == value).sum() for value in values]) for side in (before, after)]
    true = int(np.abs(of[0] - of[1]).sum())
    one, two = sketch(before), sketch(after)
    assert one.changed(two) == two.changed(one) <= true
    assert (one.changed(two) > 0) == (true > 0)
    if true <= 20:  # few enough to lie in buckets of their own, nearly always
        assert one.changed(two) >= true - 4
    assert counts.sum() == one.values + two.values


def sketch(values: np.ndarray) -> ValueSketch:
    sketcher = RowSketcher(b"secret")
    sketcher(to_table({"x": values}))
    return sketcher.columns.get("x", EMPTY_SKETCH)


def test_numbers_read_as_labels_are_the_same_column():
    as_numbers, as_labels = RowSketcher(b"secret"), RowSketcher(b"secret")
    as_numbers(to_table({"x": np.array([0.0, 1.0, 1.0, -0.0, 2.5])}))
    as_labels(to_table({"x": ["0", "1", "1", "0", "2.5"]}))
    assert as_numbers.columns["x"] == as_labels.columns["x"]
    other = RowSketcher(b"another secret")
    other(to_table({"x": np.array([0.0, 1.0, 1.0, -0.0, 2.5])}))
    assert other.columns["x"] != as_numbers.columns["x"]


def test_rows_in_common_are_seen_and_others_are_not():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        for draw in (
            rng.standard_normal,
            lambda n, rng=rng: np.round(rng.normal(50, 15, n)),
            lambda n, rng=rng: rng.integers(0, 2, n) * 1.0,
        ):
            one, other = draw(2000), draw(2000)
            assert not sketch(one).shares(sketch(other)), seed
            assert not sketch(one).shares(sketch(draw(700))), seed
        numbers = rng.standard_normal(2000)
        assert sketch(numbers).shares(sketch(np.concatenate([numbers[:600], rng.standard_normal(1400)]))), seed
        years = np.round(rng.normal(50, 15, 2000))
        assert sketch(years).shares(sketch(years[:-30])), seed


def sketch_of(values: object) -> ValueSketch:
    sketcher = RowSketcher(b"secret")
    sketcher.add_values(to_table({"v": values}))
    return sketcher.columns["v"]


@pytest.mark.parametrize(("count", "discrete"), [(20, True), (21, False)])
def test_a_column_of_twenty_values_is_discrete(count, discrete):
    sketch = sketch_of(np.repeat(np.arange(float(count)), 3))
    assert np.count_nonzero(sketch.counts) == count, "no two values share a bucket"
    assert sketch.discrete == discrete


@pytest.mark.parametrize(("twice", "distinct"), [(5, True), (6, False)])
def test_values_are_distinct_up_to_one_and_a_half_squares_per_value(twice, distinct):
    """With d values that occur twice among 20, the squares add up to 20 + 2 d."""
    sketch = sketch_of([*range(20 - twice), *range(twice)])
    assert (sketch.counts**2).sum() == 20 + 2 * twice, "no two values share a bucket"
    assert sketch.distinct == distinct


def test_counts_at_the_ends_of_their_types_come_back():
    for count in (127, 128, -128, -129, 32767, 32768, -32769):
        counts = EMPTY_SKETCH.counts.copy()
        counts[7] = count
        sketch = ValueSketch(abs(count), (1, 2), counts)
        assert ValueSketch.from_document(sketch.to_document()) == sketch, count
