"""Values of discrete variables are counted like levels, whoever counts which rows."""

from __future__ import annotations

import pickle
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.data.table import to_table
from fedcdh.privacy.disclosure.small_cells import CellCounter
from fedcdh.summaries.encoder import Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous


def written(value: float | str) -> str:
    return repr(value) if isinstance(value, str) or value % 1 else f"{value:.0f}"


def test_values_that_are_many_in_one_part_or_in_all_together_are_many():
    plan = StudyPlan((Continuous("v"), Continuous("w"), Categorical("g", ("a", "b"))), ("north",))

    def counted(v, w, g="a") -> CellCounter:
        few = CellCounter(plan, 3)
        few(to_table({"v": v, "w": w, "g": [g] * len(v)}))
        return few

    here, there = counted([1, 2], [5, 5]), counted([1, 3], [5, 6], "b")
    assert (here + there).cells == (there + here).cells
    assert (here + there).cells["value 1 of 'v' with 5 of 'w'"] == 2
    many = counted([1, 2, 3, 4], [5, 5, 5, 5])
    assert not any(cell.startswith("value") and "of 'v'" in cell for cell in (here + many).cells)
    assert (here + many).cells["value 5 of 'w' with 'a' of 'g'"] == 6
    together = here + there + counted([7], [5])
    assert not any(cell.startswith("value 1 of 'v'") for cell in together.cells)


def test_a_label_in_two_spellings_is_one():
    """As pandas writes whole numbers where one file has gaps and another has none."""
    plan = StudyPlan((Continuous("v"), Categorical("ward", ("1", "2.0"))), ("north",))
    few = CellCounter(plan, 3)
    few(to_table({"v": [0, 0, 0, 1, 1], "ward": ["1", "1.0", "2.0", "1.0", "1.0"]}))
    assert few.cells["value 0 of 'v' with '1' of 'ward'"] == 2
    assert few.cells["value 0 of 'v' with '2.0' of 'ward'"] == 1
    assert few.cells["value 1 of 'v' with '1' of 'ward'"] == 2
    assert not any("'1.0'" in cell for cell in few.cells)


@pytest.mark.parametrize("threads", [(0, 0), (0, 1), (1, 0)])
def test_a_value_that_many_have_is_one_wherever_they_stand(threads):
    plan, rng = StudyPlan((Continuous("cost"), Categorical("g", ("a", "b"))), ("north",)), np.random.default_rng(8)
    cost, g = np.where(rng.random(4000) < 0.6, 0.0, rng.random(4000)), np.repeat("b", 4000)
    cost[:600], cost[2000:2600] = 0.0, rng.random(600)  # the first rows of one block all have it, of the other none
    g[[*range(1000, 1020), *range(3000, 3020)]], cost[1000:1020], cost[3000:3020] = "a", 0.0, 0.0
    cost[3005] = 0.5
    found = [CellCounter(plan, 20), CellCounter(plan, 20)]
    for start, thread in zip((0, 2000), threads, strict=True):
        found[thread](to_table({"cost": cost, "g": g}).slice_rows(start, 2000))
    assert (found[0] + found[1]).cells["a value of 'cost' that few people share, with 'a' of 'g'"] == 1


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.0, 4.0]),
            st.sampled_from([0.0, 1.0, 7.5, 8.5, 9.5]),
            st.sampled_from(["a", "b", "c"]),
        ),
        min_size=1,
        max_size=40,
    ),
    st.lists(st.integers(0, 3), min_size=40, max_size=40),
)
def test_cells_are_those_of_the_rows_whoever_counts_which(found, whose):
    plan = StudyPlan((Continuous("v"), Continuous("w"), Categorical("g", ("a", "b", "c"))), ("north",))
    parts = [CellCounter(plan, 3) for _ in range(4)]
    for row, part in zip(found, whose, strict=False):
        parts[part](to_table({name: [cell] for name, cell in zip(plan.names, row, strict=True)}))
    v, w, g = (np.array(column) for column in zip(*found, strict=True))
    v, plain = v + 0.0, {}  # -0.0 is 0.0
    few = {name: column for name, column in (("v", v), ("w", w)) if len(set(column)) <= 3}
    for name, column in few.items():
        plain |= {f"value {written(x)} of {name!r}": (column == x).sum() for x in set(column.tolist())}
        for other, labels in {**few, "g": g}.items():
            if other > name or other == "g":
                plain |= {
                    f"value {written(x)} of {name!r} with {written(y)} of {other!r}": both
                    for x in set(column.tolist())
                    for y in set(labels.tolist())
                    if (both := ((column == x) & (labels == y)).sum())
                }
    for name, column in (("v", v), ("w", w)):
        values, counts = np.unique(column, return_counts=True)
        often = values[counts >= max(2, 0.15 * len(column))]
        for other, labels in {**few, "g": g}.items() if name not in few and len(often) else ():
            plain |= {
                f"a value of {name!r} that few people share, with {written(y)} of {other!r}": (
                    (labels == y) & ~np.isin(column, often)
                ).sum()
                for y in set(labels.tolist())
            }
    assert reduce(CellCounter.__add__, parts).cells == plain


def test_values_from_very_many_parts_take_bounded_memory():
    plan, rng = StudyPlan((Continuous("v"), Categorical("g", ("a", "b"))), ("north",)), np.random.default_rng(2)
    total = CellCounter(plan, 3)
    for _ in range(50):
        part = CellCounter(plan, 3)
        part(to_table({"v": np.append(rng.random(10), np.zeros(5)), "g": rng.choice(["a", "b"], 15)}))
        total += part
        assert len(pickle.dumps(total)) < 100_000
    assert 495 <= sum(total.cells.values()) <= 50 * 10  # who has another value than 0, but for those in its bucket


def test_many_values_are_not_counted_and_memory_stays_small():
    few = CellCounter(StudyPlan((Continuous("many"), Continuous("late")), ("north", "south")), max_values=20)
    for start in range(0, 100, 10):
        few(to_table({"many": np.arange(100.0), "late": np.repeat(np.arange(start, start + 10.0), 10)}))
    assert few.cells == {}


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-40, 40), min_size=1, max_size=30),
    st.floats(-3, 3),
    st.sampled_from([1e-3, 1.0, 1e3, 6e4]),
    st.integers(0, 3),
)
def test_people_are_counted_by_the_value_that_leaves(values, location, scale, cuts):
    """Clipped and rounded as the encoder does it, whatever the table holds, and in parts as at once."""
    variable = Continuous("v", location, scale)
    plan = StudyPlan((variable,), ("north",))
    encoded = Encoder(plan, "north")(to_table({"v": values}))[1]
    parts = [CellCounter(plan, 20) for _ in range(cuts + 1)]
    for part, chunk in zip(parts, np.array_split(np.array(values), cuts + 1), strict=True):
        if len(chunk):
            part(to_table({"v": chunk}))
    found = reduce(CellCounter.__add__, parts).cells
    steps, counts = np.unique(encoded, return_counts=True)
    assert list(found.values()) == (counts.tolist() if len(steps) <= 20 else [])


def test_numbers_that_rounding_makes_equal_are_one_value():
    plan = StudyPlan((Continuous("v", 0.0, 1e5),), ("north",))
    few = CellCounter(plan, 20)
    few(to_table({"v": [0.1, 0.2, 0.3, 4.0, 12.0]}))  # a step is 30 * 1e5 / 2**18 = 11.4
    assert few.cells == {"value 0 of 'v'": 4, "value 10 of 'v'": 1}


def test_values_beyond_the_clip_are_one_value():
    few = CellCounter(StudyPlan((Continuous("v", 0.0, 1.0),), ("north",)), 20)
    few(to_table({"v": [0.0, 999.0, 1500.0, -31.0]}))
    assert few.cells == {"value -30 or less of 'v'": 1, "value 0 of 'v'": 1, "value 30 or more of 'v'": 2}


@pytest.mark.parametrize("value", [0.1, 0.25, 7.0, 130.0, 1e-4, 123.45])
def test_a_value_is_named_as_it_stands_in_the_table(value):
    few = CellCounter(StudyPlan((Continuous("v", 0.9 * value, 0.2 * value),), ("north",)), 20)
    few(to_table({"v": [value, value]}))
    assert few.cells == {f"value {written(value)} of 'v'": 2}
