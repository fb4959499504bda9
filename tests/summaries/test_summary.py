"""A summary: exact moments, exact centring, and refusals of damaged ones."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.errors import PlanError, PlanMismatchError, SummaryError
from fedcdh.summaries import accumulator as summing_module
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import GRID, MAX_ROWS, Summary
from fedcdh.summaries.variables import Categorical, Continuous

row = st.tuples(
    st.one_of(
        st.floats(-1e3, 1e3), st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100)
    ),
    st.sampled_from("abc"),
    st.one_of(st.none(), st.floats(-5, 5)),
)


# every table, and every part of one, has a row that can be used
tables = st.lists(row, min_size=0, max_size=25).map(lambda rows: [(1.0, "a", 2.0), *rows])


def plan_for(family=Hermite(), clients=("north", "south")) -> StudyPlan:  # noqa: B008 (a value)
    x, g, y = Continuous("x", 3.0, 7.0, 2.5, 4.0), Categorical("g", ("a", "b", "c")), Continuous("y")
    return StudyPlan((x, g, y), clients, family)


def columns(rows) -> dict[str, list]:
    return {name: [cells[j] for cells in rows] for j, name in enumerate(("x", "g", "y"))}


def part(rows, plan, client="north") -> Summary:
    return summarize(columns(rows), plan, client, max_missing_share=1.0)


def exact(rows, plan: StudyPlan) -> list[list[int]]:
    """Σ φφᵀ on the grid with Python's own integers."""
    total = [[0] * plan.layout.n_columns for _ in range(plan.layout.n_columns)]
    for x, g, y in rows:
        if y is None:
            continue
        features = [GRID]
        for variable, value in zip(plan.variables, (x, g, y), strict=True):
            if isinstance(variable, Categorical):
                features += [GRID * (value == level) for level in variable.levels]
                continue
            z = min(max((value - variable.location) / variable.scale, -plan.clip), plan.clip)
            clipped = z * variable.scale + (variable.location - variable.centre)
            inside = math.asinh(clipped / variable.spread) if isinstance(plan.family, Hermite) else z
            real = [z / plan.clip, (z / plan.clip) ** 2, *plan.family(np.array([inside]))[0].tolist()]
            features += [round(number * GRID) for number in real]
        for i, left in enumerate(features):
            for j, right in enumerate(features):
                total[i][j] += left * right
    return total


@settings(deadline=None, max_examples=40)
@given(tables, st.sampled_from([Hermite(), Fourier(6, 0.7, 3)]))
def test_moments_are_exact_integers(rows, family):
    plan = plan_for(family)
    found = part(rows, plan)
    assert found.moments.dtype == np.int64
    assert found.moments.tolist() == exact(rows, plan)
    assert found.rows == sum(y is not None for _, _, y in rows)
    assert found.rows_read == len(rows)
    assert dict(found.missing) == {"x": 0, "g": 0, "y": sum(y is None for _, _, y in rows)}


def of_rows(plan: StudyPlan, rows: int, client: str = "north") -> Summary:
    """A summary as if every one of that many rows had all features at their largest."""
    return Summary(
        plan.fingerprint,
        (client,),
        np.full((plan.layout.n_columns,) * 2, rows * GRID**2),
        rows,
        dict.fromkeys(plan.names, 0),
    )


def test_a_hundred_million_rows_fit():
    largest = np.iinfo(np.int64).max
    assert largest >= GRID**2 * 10**8
    assert largest >= GRID**2 * MAX_ROWS
    assert MAX_ROWS >= 10**8
    assert summing_module._MAX_EXACT_ROWS * GRID**2 <= 2**53  # block sums are exact in float64
    wide = summing_module.MomentAccumulator(
        StudyPlan(tuple(Continuous(f"x{number}") for number in range(2000)), ("a",))
    )
    wide.used = 10**8
    assert wide._observed_rows() <= summing_module._MAX_EXACT_ROWS
    plan = plan_for()
    both = of_rows(plan, 5 * 10**7) + of_rows(plan, 5 * 10**7, "south")
    assert both.rows == 10**8
    assert (both.moments == 10**8 * GRID**2).all()
    assert add_up([of_rows(plan, 5 * 10**7), of_rows(plan, 5 * 10**7, "south")], plan).total.rows == 10**8


@pytest.mark.parametrize("rows", [1, 2, 1000, 10**8, MAX_ROWS])
def test_centring_is_exact_however_many_rows(rows):
    """Half of the rows at one end of the range, half at the other; and a feature that never varies."""
    plan = StudyPlan((Categorical("g", ("a", "b", "c")),), ("north",))
    a, b = rows // 2, rows - rows // 2
    moments = np.diag([rows, a, b, 0]) * GRID**2
    moments[0, 1:3] = moments[1:3, 0] = np.array([a, b]) * GRID**2
    means, scatter = Summary(plan.fingerprint, ("north",), moments, rows, {"g": 0}).means_and_scatter()
    assert means == pytest.approx([1, a / rows, b / rows, 0], rel=1e-15)
    spread = a * b / rows
    expected = np.array([[0, 0, 0, 0], [0, spread, -spread, 0], [0, -spread, spread, 0], [0, 0, 0, 0]])
    assert scatter == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(tables)
def test_centring_agrees_with_the_rows(rows):
    plan = plan_for()
    features = np.array([part([cells], plan).moments[0] / GRID**2 for cells in rows if cells[2] is not None])
    means, scatter = part(rows, plan).means_and_scatter()
    assert means == pytest.approx(features.mean(axis=0), rel=1e-12, abs=1e-14)
    about = features - features.mean(axis=0)
    assert scatter == pytest.approx(about.T @ about, rel=1e-9, abs=1e-12)


def test_only_summaries_of_one_plan_add_up():
    one, other = plan_for(), replace(plan_for(), clip=5.0)
    rows = [(1.0, "a", 1.0)]
    with pytest.raises(PlanMismatchError, match=r"different plans.*same plan file"):
        part(rows, one) + part(rows, other)
    with pytest.raises(PlanMismatchError, match=r"summary of north follows plan.*make it again"):
        add_up([part(rows, one)], other)


def test_a_cohort_needs_every_client_apart():
    plan, rows = plan_for(), [(1.0, "a", 1.0)]
    with pytest.raises(SummaryError, match="no summary from client south"):
        add_up([part(rows, plan)], plan)
    with pytest.raises(SummaryError, match="sum of clients north, south"):
        add_up([part(rows, plan) + part(rows, plan, "south")], plan)


@pytest.mark.parametrize(
    "damage",
    [
        {"moments": np.arange(9).reshape(3, 3)},
        {"moments": np.zeros(3, dtype=np.int64)},
        {"moments": np.zeros((2, 3), dtype=np.int64)},
        {"rows_read": -1},
        {"moments": np.diag([-(GRID**2), 0, 0])},
        {"moments": np.diag([GRID**2, GRID**2 + 1, 0])},
        {"moments": np.diag([GRID**2, np.iinfo(np.int64).min, 0])},
        {"moments": np.full((3, 3), np.nan)},
        {"moments": np.eye(3)},
        {"moments": np.zeros((0, 0), dtype=np.int64)},
    ],
)
def test_a_damaged_summary_is_refused(damage):
    sound = Summary("plan", ("north",), np.eye(3, dtype=np.int64) * GRID**2, 1, {})
    with pytest.raises(SummaryError, match="summary of north is damaged"):
        replace(sound, **damage)


def test_a_summary_of_the_wrong_size_is_refused():
    plan = plan_for()
    small = Summary(plan.fingerprint, ("north",), np.eye(3, dtype=np.int64) * GRID**2, 1, dict.fromkeys(plan.names, 0))
    empty = of_rows(plan, 0)
    for wrong in (small, empty):
        with pytest.raises(SummaryError, match=r"summary of north .*make it again"):
            add_up([wrong, part([(1.0, "a", 1.0)], plan, "south")], plan)


def test_a_summary_is_a_value():
    found = part([(1.0, "a", 1.0)], plan_for())
    with pytest.raises(ValueError, match="read-only"):
        found.moments[0, 0] = 0
    with pytest.raises(TypeError):
        found.missing["x"] = 7
    with pytest.raises(FrozenInstanceError):
        found.rows_read = 7
    given_array = np.eye(3, dtype=np.int64) * GRID**2
    kept = Summary("plan", ("north",), given_array, 1, {})
    given_array[0, 0] = 0
    assert kept.rows == 1
    given_array[0, 0] = GRID**2
    view = given_array[:]  # what others can still write to is copied, even if not by this name
    view.setflags(write=False)
    assert not np.shares_memory(Summary("plan", ("north",), view, 1, {}).moments, given_array)
    assert np.shares_memory(Summary("plan", ("north",), kept.moments, 1, {}).moments, kept.moments)
    assert found != "something else"


def test_some_rows_of_the_scatter_are_rows_of_the_scatter():
    for summary in studies.cohort_of(studies.mixed(3)).summaries:
        whole = summary.means_and_scatter()[1]
        assert np.array_equal(whole, whole.T)
        assert np.array_equal(summary.scatter(slice(2, 5)), whole[2:5])
        assert np.array_equal(summary.means_and_scatter(slice(3, 7))[1], whole[3:7, 3:7])


@pytest.mark.parametrize("place", [(0, -1), (600, 3)])
def test_damage_anywhere_in_a_large_matrix_is_found(place):
    moments = np.eye(700, dtype=np.int64) * GRID**2
    assert Summary("plan", ("north",), moments, 1, {}).rows == 1
    moments[place] = 5
    with pytest.raises(SummaryError, match="damaged"):
        Summary("plan", ("north",), moments, 1, {})


@pytest.mark.parametrize(("centre", "spread"), [(1.8e18, 1e-290), (-1e299, 1e-300), (0.0, 1e299)])
def test_absurd_plans_made_by_hand_give_sums_all_the_same(centre, spread):
    plan = StudyPlan((Continuous("x", 0.0, 1.0, centre, spread),), ("north",))
    assert summarize({"x": [1.0, 2.0]}, plan, "north").rows == 2
    with pytest.raises(PlanError, match="finite"):
        Continuous("x", 1e301)
