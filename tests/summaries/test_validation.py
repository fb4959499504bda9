"""Summaries that arrive: honest ones are admitted, contradictions and copies are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.bench_validation import (
    DISTRIBUTIONS,
    UNDETECTABLE_CHANGES,
    draw_honest_summary,
    judge_moments,
    simulate_sums,
)
from fedcdh.errors import (
    DuplicateClientError,
    PlanMismatchError,
    RowCountError,
    SummaryError,
    UnknownClientError,
)
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import MAX_ROWS, Summary
from fedcdh.summaries.validation import admit_summaries, validate_summary
from fedcdh.summaries.variables import Categorical, Continuous

number = st.one_of(st.floats(-5, 5), st.floats(-1e3, 1e3), st.floats(-1e100, 1e100), st.sampled_from([0.0, 1.0, 1e9]))


rows = st.lists(st.tuples(number, st.sampled_from("abc"), st.none() | number), max_size=25)


families = st.one_of(
    st.builds(Hermite, st.integers(2, 64), st.floats(1e-3, 1e3)),
    st.builds(Fourier, st.integers(2, 64), st.floats(1e-3, 1e3), st.integers(0, 9)),
    st.sampled_from([Hermite(), Fourier()]),
)


size = st.one_of(st.just(1.0), st.floats(0.1, 10), st.floats(1e-290, 1e290))


def plan_for(family=Hermite(), clients=("north", "south")) -> StudyPlan:  # noqa: B008 (a value)
    x, g, y = Continuous("x", 3.0, 7.0, 2.5, 4.0), Categorical("g", ("a", "b", "c")), Continuous("y")
    return StudyPlan((x, g, y), clients, family)


def sample(seed: int = 0, size: int = 200) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(size)
    return {
        "x": 3 + 7 * x,
        "g": np.array(list("abc"))[rng.integers(0, 3, size)],
        "y": np.sin(x) + rng.normal(size=size),
    }


def sent(client="north", plan=None, seed=0, size=200) -> Summary:
    return summarize(sample(seed, size), plan or plan_for(), client)


def check_seeds(seeds: range) -> None:
    for seed in seeds:
        try:
            validate_summary(*draw_honest_summary(seed))
        except SummaryError as refusal:
            pytest.fail(f"the honest summary of seed {seed} is refused: {refusal}")


def test_no_honest_summary_is_refused():
    assert len(DISTRIBUTIONS) >= 20
    check_seeds(range(2000))


@pytest.mark.slow
def test_no_honest_summary_of_very_many_is_refused():
    check_seeds(range(10_000, 20_000))


@settings(deadline=None, max_examples=150)
@given(rows, families, number, size, number, size, st.sampled_from([1.0, 3.0, 30.0, 100.0]))
def test_whatever_is_summarized_is_admitted(cells, family, location, scale, centre, spread, clip):
    cells = [(1.0, "a", 2.0), *cells]
    variables = (Continuous("x", location, scale, centre, spread), Categorical("g", tuple("abc")), Continuous("y"))
    plan = StudyPlan(variables, ("north",), family, clip)
    with np.errstate(over="ignore", invalid="ignore"):
        found = summarize(
            {k: [row[j] for row in cells] for j, k in enumerate("xgy")}, plan, "north", max_missing_share=1.0
        )
    assert admit_summaries([found], plan).total == found


@pytest.mark.parametrize("family", [Hermite(), Fourier()])
def test_parts_and_sums_of_what_is_admitted_are_admitted(family):
    plan = plan_for(family)
    one, two = sent("north", plan), sent("south", plan, seed=1)
    validate_summary(one + two, plan)
    copies = MAX_ROWS // one.rows
    validate_summary(replace(one, moments=one.moments * copies, rows_read=one.rows * copies), plan)
    assert admit_summaries([two, one], plan).client_rows == (one.rows, two.rows)
    assert admit_summaries([one, two], plan).total == add_up([one, two], plan).total


@pytest.mark.parametrize("kind", UNDETECTABLE_CHANGES)
def test_valid_sums_are_admitted_even_of_the_wrong_rows(kind):
    """A server can tell what is possible, not what is true: said here, so that nobody promises more."""
    sums = simulate_sums(0, Hermite(), 1)
    assert judge_moments(UNDETECTABLE_CHANGES[kind](sums, np.random.default_rng(0)), sums.plan) == "admitted"


@pytest.mark.parametrize(
    ("rows_read", "missing"),
    [
        (201, {}), (202, {"x": 1}), (201, {"x": 2}), (200, {"x": 1}), (201, {"x": 2, "g": -1}), (205, {"x": 2, "y": 2}),
    ],
)  # fmt: skip
def test_counts_have_to_agree(rows_read, missing):
    counts = {"x": 0, "g": 0, "y": 0} | missing
    with pytest.raises(RowCountError, match=f"client 'north' uses 200 of {rows_read} rows.*make the summary again"):
        validate_summary(replace(sent(), rows_read=rows_read, missing=counts), plan_for())


def test_counts_may_be_those_of_rows_with_several_values_missing():
    for rows_read, missing in ((203, {"x": 3, "g": 3, "y": 1}), (203, {"x": 1, "g": 1, "y": 1}), (200, {})):
        validate_summary(replace(sent(), rows_read=rows_read, missing={"x": 0, "g": 0, "y": 0} | missing), plan_for())
    with pytest.raises(RowCountError, match="missing values of x, y, but the plan's variables are x, g, y"):
        validate_summary(replace(sent(), missing={"x": 0, "y": 0}), plan_for())
    with pytest.raises(RowCountError, match="uses 0 of 0 rows"):
        validate_summary(replace(sent(), moments=np.zeros_like(sent().moments), rows_read=0), plan_for())


def test_summaries_of_another_plan_or_client_are_refused():
    plan = plan_for()
    with pytest.raises(PlanMismatchError, match=r"client 'north' follows plan .*make the summary again"):
        validate_summary(sent(), plan_for(Fourier()))
    with pytest.raises(SummaryError, match="has 15 columns; expected the 16 of the plan"):
        validate_summary(replace(sent(), moments=sent().moments[:15, :15]), plan)
    with pytest.raises(UnknownClientError, match="from west, but the plan names only north, south; correct the name"):
        validate_summary(replace(sent(), clients=("west",)), plan)
    with pytest.raises(UnknownClientError, match="from nobody"):
        validate_summary(replace(sent(), clients=()), plan)
    with pytest.raises(SummaryError, match="no summary from client south"):
        admit_summaries([sent()], plan)
    with pytest.raises(SummaryError, match="sum of clients north, south"):
        admit_summaries([sent() + sent("south", seed=1)], plan)


def test_every_client_counts_once():
    plan, one, two = plan_for(), sent(), sent("south", seed=1)
    for again in (one, sent(seed=2)):
        with pytest.raises(DuplicateClientError, match="second summary of client 'north' came; ask"):
            admit_summaries([one, two, again], plan)
    with pytest.raises(DuplicateClientError, match=r"'north' and client 'south' have the same sums of 200 rows"):
        admit_summaries([one, replace(one, clients=("south",))], plan)


@pytest.mark.parametrize(
    "table",
    [
        {"x": [1.0] * 200, "g": ["a"] * 200, "y": [2.0] * 200},
        {"x": [0.0, 1.0] * 100, "g": ["a", "b"] * 100, "y": [2.0] * 200},
        sample(size=20),
    ],
    ids=["constant", "two kinds of rows", "few rows"],
)
def test_equal_sums_are_admitted_where_they_can_be_chance(table):
    plan = plan_for()
    assert len(admit_summaries([summarize(table, plan, client) for client in plan.clients], plan).summaries) == 2


def test_a_name_that_looks_like_one_of_the_plan_is_shown_with_its_escapes():
    plan = plan_for()
    summary = replace(summarize(sample(), plan, "north"), clients=("n\u043erth",))
    with pytest.raises(UnknownClientError, match=r"looks like 'north', but is written 'n.u043erth'"):
        validate_summary(summary, plan)
