"""Summaries are additive: rows may come in any order, in any batches and in any parts."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.discovery.api import discover_from
from fedcdh.errors import DataError
from fedcdh.summaries import accumulator as summing_module
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical, Continuous

cuts = st.lists(st.integers(0, 40), max_size=5)


def parts(items, places) -> list:
    edges = sorted({0, len(items), *(min(place, len(items)) for place in places)})
    return [items[a:b] for a, b in pairwise(edges)] or [items]


rows = st.lists(
    st.tuples(st.one_of(st.none(), st.floats(-1e6, 1e6)), st.sampled_from(["a", "b", None])), min_size=1, max_size=40
).map(lambda cells: [(1.5, "a"), *cells])


def table(cells) -> dict[str, list]:
    return {"x": [x for x, _ in cells], "g": [g for _, g in cells]}


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
