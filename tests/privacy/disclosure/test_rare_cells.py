"""Rare levels are merged and counts of rare pairs rounded; what leaves is still a summary that some rows can have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedcdh.privacy.disclosure.rare_cells import (
    coarsen_summary,
    count_pairs,
    find_rare_levels,
    merge_rare_levels,
    round_rare_pairs,
    round_table,
    surrounding_multiples,
)
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.validation import validate_summary
from fedcdh.summaries.variables import Categorical, Continuous

LEVEL, PAIR = 12, 8
PLAN = StudyPlan(
    (Continuous("x"), Categorical("g", ("a", "b", "c")), Categorical("h", ("d", "e")), Categorical("k", ("f", "i"))),
    ("north",),
)
TABLES = arrays(np.int64, st.tuples(st.integers(2, 5), st.integers(2, 5)), elements=st.integers(0, 40))


def draw_rows(seed: int, n: int = 300, rare: float = 0.06) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    return {
        "x": x,
        "g": rng.choice(["a", "b", "c"], n, p=[1 - 2 * rare, rare, rare]),
        "h": np.where(x + rng.standard_normal(n) > 1.5, "e", "d"),
        "k": rng.choice(["f", "i"], n, p=[0.9, 0.1]),
    }


@given(TABLES)
def test_rounding_keeps_margins_and_leaves_no_small_count_exact_but_beside_rounded_ones(counts):
    rounded = round_table(counts, PAIR)
    if rounded is None:
        return
    assert (rounded >= 0).all()
    np.testing.assert_array_equal(rounded.sum(axis=0), counts.sum(axis=0))
    np.testing.assert_array_equal(rounded.sum(axis=1), counts.sum(axis=1))
    small = (counts > 0) & (counts < PAIR)
    if not small.any():
        np.testing.assert_array_equal(rounded, counts)
    for i, j in np.argwhere(small & (rounded % 4 != 0)):
        row, column = counts[i] > 0, counts[:, j] > 0
        assert small[i][row].all() or small[:, j][column].all() or rounded[i, j] != counts[i, j]


@given(TABLES)
def test_a_table_of_enough_people_with_each_level_can_be_rounded(counts):
    whole = counts + 20 * np.eye(*counts.shape, dtype=np.int64)
    if min(whole.sum(axis=0).min(), whole.sum(axis=1).min()) >= LEVEL and whole.shape[0] == whole.shape[1]:
        assert round_table(whole, PAIR) is not None


@pytest.mark.parametrize(("count", "changed"), [(0, False), (1, True), (7, True), (8, False), (9, False)])
def test_counts_are_rounded_below_the_limit_only(count, changed):
    counts = np.array([[count, 60 - count], [40, 200]])
    rounded = round_table(counts, PAIR)
    assert (rounded[0, 0] != count) == changed
    assert rounded[0, 0] in (0, 4, 8) or not changed


@given(st.integers(1, 30), st.floats(0, 30), st.integers(1, 8))
def test_a_count_lies_between_the_multiples_that_stand_for_it(count, expected, step):
    found = surrounding_multiples(count, expected, step)
    assert all(abs(one - count) < step and one % step == 0 for one in found)
    assert abs(found[0] - expected) == min(abs(one - expected) for one in found)


def test_what_stands_for_a_count_stands_for_at_least_four():
    for expected in np.linspace(0, 12, 49):
        sent = [surrounding_multiples(count, float(expected), 4)[0] for count in range(1, PAIR)]
        assert min(sent.count(value) for value in set(sent) - {8}) >= 3, expected


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_merging_levels_gives_the_summary_of_recoded_rows(seed):
    rows = draw_rows(seed, rare=0.03)
    summary = summarize(rows, PLAN, "north")
    rare = find_rare_levels(summary, PLAN, LEVEL)
    recoded = {name: column.copy() for name, column in rows.items()}
    for one in rare:
        recoded[one.variable][recoded[one.variable] == one.level] = one.into
    merged = merge_rare_levels(summary, PLAN, rare)
    np.testing.assert_array_equal(merged.moments, summarize(recoded, PLAN, "north").moments)
    assert sum(merged.coarsened.values()) == len(rare)
    assert not find_rare_levels(merged, PLAN, LEVEL)


@pytest.mark.parametrize(("people", "rare"), [(0, False), (1, True), (LEVEL - 1, True), (LEVEL, False)])
def test_levels_are_merged_below_the_limit_only(people, rare):
    rows = {**draw_rows(0), "k": np.repeat(["i", "f"], [people, 300 - people])}
    found = find_rare_levels(summarize(rows, PLAN, "north"), PLAN, LEVEL)
    assert ("k" in {one.variable for one in found}) == rare


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.02, 0.05, 0.1, 0.2]))
def test_what_leaves_is_a_summary_of_some_rows_without_exact_small_counts(seed, rare):
    summary = summarize(draw_rows(seed, rare=rare), PLAN, "north")
    coarse, merged = coarsen_summary(summary, PLAN, LEVEL, PAIR)
    validate_summary(coarse, PLAN)
    assert not find_rare_levels(coarse, PLAN, LEVEL)
    for one, other in (("g", "h"), ("g", "k"), ("h", "k")):
        counts = count_pairs(coarse, PLAN, one, other)
        assert (one, other) in coarse.coarsened or not ((counts > 0) & (counts < PAIR)).any()
    assert coarsen_summary(summary, PLAN, LEVEL, PAIR) == (coarse, merged)


def test_only_counts_of_two_labels_change():
    summary = summarize(draw_rows(3), PLAN, "north")
    coarse = round_rare_pairs(summary, PLAN, PAIR)
    assert coarse.coarsened
    changed = coarse.moments != summary.moments
    spans = PLAN.layout.spans
    for one, other in coarse.coarsened:
        changed[spans[one], spans[other]] = changed[spans[other], spans[one]] = False
    assert not changed.any()


def test_a_summary_without_rare_cells_stays_as_it_is():
    rng = np.random.default_rng(0)
    rows = {"x": rng.standard_normal(400), "g": np.tile(["a", "b"], 200), "h": np.repeat(["d", "e"], 200)}
    summary = summarize({**rows, "k": np.tile(["f", "f", "i", "i"], 100)}, PLAN, "north")
    assert coarsen_summary(summary, PLAN, LEVEL, PAIR) == (summary, ())


def test_where_no_rows_can_have_rounded_counts_a_level_is_merged():
    """Two labels that follow from a third leave no room: their counts are those of the third."""
    n = 200
    g = np.repeat(["a", "b", "c"], [n - 27, 13, 14])
    rows = {"x": np.random.default_rng(1).standard_normal(n), "g": g, "h": np.where(g == "a", "d", "e")}
    rows["k"] = np.where(np.arange(n) < 5, "i", np.where(g == "b", "i", "f"))
    summary = summarize(rows, PLAN, "north")
    assert any(summary.moments[0] // GRID**2 > 0)
    coarse, _ = coarsen_summary(summary, PLAN, LEVEL, PAIR)
    validate_summary(coarse, PLAN)
