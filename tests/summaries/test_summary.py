"""Summaries: integers that add up, in any order, to the same bits."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace
from functools import reduce
from operator import add

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.discovery.api import discover_from
from fedcdh.errors import DataError, PlanError, PlanMismatchError, SummaryError
from fedcdh.summaries import accumulator as summing_module
from fedcdh.summaries import summary as summary_module
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan
from fedcdh.summaries.summary import GRID, MAX_ROWS, Summary

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


def identical(first: Summary, second: Summary) -> bool:
    assert np.array_equal(first.moments, second.moments)
    return first == second and first.rows == second.rows


@settings(deadline=None, max_examples=40)
@given(
    st.lists(tables, min_size=1, max_size=5), st.randoms(use_true_random=False), st.sampled_from([Hermite(), Fourier()])
)
def test_where_rows_live_does_not_matter(parts, rng, family):
    plan = plan_for(family)
    rows = [cells for one in parts for cells in one]
    whole = part(rows, plan)
    summaries = [part(one, plan) for one in parts]
    rng.shuffle(summaries)
    assert identical(reduce(add, summaries), whole)
    rng.shuffle(rows)
    assert identical(part(rows, plan), whole)


@settings(deadline=None, max_examples=40)
@given(tables, tables, tables)
def test_adding_is_associative_and_commutative(one, two, three):
    plan = plan_for()
    a, b, c = part(one, plan), part(two, plan, "south"), part(three, plan)
    assert identical(a + b, b + a)
    assert identical((a + b) + c, a + (b + c))


@pytest.mark.parametrize("block", [1, 2, 7, 64, 8192])
def test_the_size_of_blocks_does_not_matter(monkeypatch, block):
    table = studies.mixed(3, sizes=(150,))["clinic a"]
    plan = studies.plan_of({"a": table})
    whole = summarize(table, plan, "a")
    monkeypatch.setattr(summing_module, "_block_rows", lambda plan: block)
    monkeypatch.setattr(summing_module, "_MAX_EXACT_ROWS", max(1, block // 2))
    assert identical(summarize(table, plan, "a"), whole)


def test_more_rows_than_a_block():
    rng = np.random.default_rng(0)
    table = {
        "x": rng.standard_normal(20_000),
        "g": np.array(list("abc"))[rng.integers(0, 3, 20_000)],
        "y": np.ones(20_000),
    }
    plan = plan_for()
    halves = [
        {name: column[half] for name, column in table.items()} for half in (slice(0, 11_111), slice(11_111, None))
    ]
    assert identical(reduce(add, (summarize(half, plan, "north") for half in halves)), summarize(table, plan, "north"))


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


@settings(deadline=None, max_examples=40)
@given(st.lists(tables, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_clients_does_not_matter(parts, rng):
    names = tuple(f"c{k}" for k in range(len(parts)))
    plan = plan_for(clients=names)
    summaries = [part(one, plan, client) for client, one in zip(names, parts, strict=True)]
    cohort = add_up(summaries, plan)
    mixed = add_up(rng.sample(summaries, len(summaries)), plan)
    assert mixed.clients == cohort.clients == names
    assert all(identical(a, b) for a, b in zip(mixed.summaries, cohort.summaries, strict=True))
    assert identical(mixed.total, cohort.total)
    first, second = discover_from(summaries, plan), discover_from(summaries[::-1], plan)
    assert str(first) == str(second)
    assert first.edges() == second.edges()


@pytest.mark.parametrize("method", ["constraint", "paper"])
def test_files_and_order_never_change_a_result(method):
    tables = studies.mixed(2)
    plan = studies.plan_of(tables, Fourier() if method == "paper" else Hermite())
    whole = [summarize(table, plan, client) for client, table in tables.items()]
    pieces = [
        summarize({name: column[k::2] for name, column in table.items()}, plan, client)
        for client, table in tables.items()
        for k in (1, 0)
    ]
    results = [discover_from(summaries, plan, method=method) for summaries in (whole, whole[::-1], pieces)]
    assert len({str(result) for result in results}) == 1
    assert len({result.edges() for result in results}) == 1


# A hundred million rows


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
    assert wide._watched() <= summing_module._MAX_EXACT_ROWS
    plan = plan_for()
    both = of_rows(plan, 5 * 10**7) + of_rows(plan, 5 * 10**7, "south")
    assert both.rows == 10**8
    assert (both.moments == 10**8 * GRID**2).all()
    assert add_up([of_rows(plan, 5 * 10**7), of_rows(plan, 5 * 10**7, "south")], plan).total.rows == 10**8


def test_too_many_rows_are_refused_not_wrapped_around(monkeypatch):
    plan = plan_for()
    assert (of_rows(plan, MAX_ROWS - 1) + of_rows(plan, 1)).rows == MAX_ROWS
    with pytest.raises(SummaryError, match=f"{MAX_ROWS + 1} rows are more than the {MAX_ROWS}.*random part"):
        of_rows(plan, MAX_ROWS) + of_rows(plan, 1)
    with pytest.raises(SummaryError, match="rows are more than"):
        add_up([of_rows(plan, MAX_ROWS), of_rows(plan, 1, "south")], plan)
    monkeypatch.setattr(summary_module, "MAX_ROWS", 3)
    assert part([(1.0, "a", 1.0)] * 3, plan).rows == 3
    with pytest.raises(SummaryError, match="4 rows are more than the 3"):
        part([(1.0, "a", 1.0)] * 4, plan)


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


# What is refused


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e200, 10**400])
def test_infinite_values_are_refused_by_name(value):
    with pytest.raises(DataError, match=r"'x' at client 'north' has 1 infinite.*replace them"):
        part([(1.0, "a", 1.0), (value, "a", 1.0)], plan_for())


def test_nan_is_missing_and_never_gets_in():
    found = part([(np.nan, "a", 1.0), (1.0, "a", 1.0), (2.0, None, 1.0)], plan_for())
    assert (found.rows, found.rows_read, dict(found.missing)) == (1, 3, {"x": 1, "g": 1, "y": 0})


def test_too_many_missing_values_are_refused_with_advice():
    rows = [(1.0, "a", None)] * 6 + [(1.0, "a", 1.0)] * 4
    with pytest.raises(DataError, match=r"client 'north' would lose 6 of 10 rows.*'y' \(6 missing\)"):
        summarize(columns(rows), plan_for(), "north")
    assert summarize(columns(rows), plan_for(), "north", max_missing_share=0.6).rows == 4
    with pytest.raises(DataError, match="no complete row is left"):
        summarize(columns([(1.0, "a", None)] * 3), plan_for(), "north", max_missing_share=1.0)
    with pytest.raises(DataError, match="client 'north' has no rows; leave it out"):
        summarize(columns([]), plan_for(), "north")


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (
            {"x": [1.0], "g": ["z"], "y": [1.0]},
            r"'g' at client 'north' holds \['z'\], not among.*'a', 'b', 'c'.*add the level",
        ),
        (
            {"x": ["tall"], "g": ["a"], "y": [1.0]},
            r"'x' at client 'north' holds text, but the plan says continuous; turn it into numbers",
        ),
        ({"x": [1.0], "g": ["a"]}, "client 'north': there is no column 'y'"),
    ],
)
def test_a_table_that_does_not_fit_the_plan_is_refused(table, complaint):
    with pytest.raises(DataError, match=complaint):
        summarize(table, plan_for(), "north")


def test_strangers_are_refused():
    with pytest.raises(DataError, match="client 'west' is not part of the plan"):
        summarize(columns([(1.0, "a", 1.0)]), plan_for(), "west")


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
