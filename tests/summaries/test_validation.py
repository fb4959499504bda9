"""What arrives is checked: no honest summary is refused, and a false one with the right error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.bench_validation import (
    DISTRIBUTIONS,
    FALSE_SUMMARIES,
    UNDETECTABLE_CHANGES,
    draw_honest_summary,
    judge_moments,
    repair_moments,
    simulate_sums,
)
from fedcdh.errors import (
    DuplicateClientError,
    InfeasibleMomentsError,
    MomentBoundsError,
    MomentIdentityError,
    NotPositiveSemidefiniteError,
    PlanMismatchError,
    RowCountError,
    SummaryError,
    UnknownClientError,
)
from fedcdh.summaries._moment_space import MAX_CELL_ERROR, MAX_CELLS, _cell_maxima, build_curve, is_feasible
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import Categorical, Continuous, StudyPlan
from fedcdh.summaries.summary import MAX_ROWS, Summary
from fedcdh.summaries.validation import admit_summaries, validate_summary

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


def changed(summary: Summary, *entries: tuple[int, int, int]) -> Summary:
    """The summary with some entries, and their twins, moved."""
    moments = summary.moments.copy()
    for i, j, by in entries:
        moments[i, j] = moments[j, i] = moments[i, j] + by
    return replace(summary, moments=moments, rows_read=int(moments[0, 0]) // GRID**2)


# What is honest is admitted


@pytest.mark.parametrize("part", range(8))
def test_no_honest_summary_is_refused(part):
    assert len(DISTRIBUTIONS) >= 20
    for seed in range(250 * part, 250 * (part + 1)):
        validate_summary(*draw_honest_summary(seed))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_no_honest_summary_of_very_many_is_refused(part):
    for seed in range(10_000 + 1000 * part, 10_000 + 1000 * (part + 1)):
        validate_summary(*draw_honest_summary(seed))


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


# What is false is refused


@pytest.mark.parametrize("repair", [lambda moments, plan: moments, repair_moments], ids=["careless", "insider"])
@pytest.mark.parametrize("kind", sorted(set(FALSE_SUMMARIES) - {"one bit flipped"}))
def test_false_sums_are_refused(kind, repair):
    for seed in range(4):
        sums = simulate_sums(seed, Hermite(), 0)
        moments = repair(FALSE_SUMMARIES[kind](sums, np.random.default_rng([seed, 1])), sums.plan)
        assert judge_moments(sums.moments, sums.plan) == "admitted"
        assert judge_moments(moments, sums.plan) != "admitted"


@pytest.mark.parametrize("kind", UNDETECTABLE_CHANGES)
def test_valid_sums_are_admitted_even_of_the_wrong_rows(kind):
    """A server can tell what is possible, not what is true: said here, so that nobody promises more."""
    sums = simulate_sums(0, Hermite(), 1)
    assert judge_moments(UNDETECTABLE_CHANGES[kind](sums, np.random.default_rng(0)), sums.plan) == "admitted"


# columns: 0 constant; 1, 2 x and its square; 3..6 its features; 7..9 levels of g; 10, 11 y and its square; 12..15
ROW = GRID**2


@pytest.mark.parametrize(
    ("entries", "error", "complaint"),
    [
        ([(0, 0, 1)], MomentIdentityError, "the column of ones: expected a whole number of rows"),
        ([(0, 1, 1)], MomentIdentityError, "column 1 of 'x': expected whole steps"),
        ([(4, 4, 1)], MomentIdentityError, "column 4 of 'x': expected a sum of squares as odd or even"),
        ([(0, 7, ROW), (7, 7, ROW)], MomentIdentityError, "the levels of 'g' to cover all rows"),
        ([(7, 8, ROW)], MomentIdentityError, "the levels of 'g' to exclude one another"),
        (
            [(7, 3, 1), (8, 3, -1)],
            MomentIdentityError,
            "column 3 of 'x': expected whole steps in sums over the rows of a level",
        ),
        ([(1, 1, 3 * ROW)], MomentIdentityError, "two different sums of squares of 'x'"),
        ([(5, 5, -40 * ROW)], MomentBoundsError, "squares that are as large as the sums ask for"),
        (
            [(2, 11, -ROW)],
            MomentBoundsError,
            "column 2 of 'x' times column 2 of 'y': expected products within the bounds",
        ),
        ([(1, 10, ROW)], MomentBoundsError, "column 1 of 'x' times column 1 of 'y': expected products no larger than"),
        (
            [(4, 12, 25 * ROW)],
            NotPositiveSemidefiniteError,
            "some sum of squares would be negative, the first with column 3 of 'y'",
        ),
        (
            [(4, 4, 2 * ROW)],
            InfeasibleMomentsError,
            "moments of 'x' in the summary of client 'north' are those of no 200 values",
        ),
    ],
)
def test_each_law_has_its_error(entries, error, complaint):
    with pytest.raises(error, match=complaint) as refusal:
        validate_summary(changed(sent(), *entries), plan_for())
    assert refusal.type is error
    assert "client 'north'" in str(refusal.value)
    assert "make the summary again" in str(refusal.value)


@pytest.mark.parametrize("family", [Hermite(), Fourier(), Hermite(64), Fourier(8, 2.0)])
@pytest.mark.parametrize("more", [1, 2, 200])
def test_a_false_number_of_rows_is_refused(family, more):
    plan = replace(plan_for(family), variables=(Continuous("x", 3.0, 7.0, 2.5, 4.0), Continuous("y")))
    with pytest.raises(
        InfeasibleMomentsError, match=r"no \d+ values within 30 scales of 3; look for .*wrong number of rows"
    ):
        validate_summary(changed(sent(plan=plan), (0, 0, more * ROW)), plan)


@pytest.mark.parametrize(
    "other",
    [
        replace(plan_for(Fourier()), family=Fourier(seed=1)),
        replace(plan_for(Fourier()), family=Fourier(bandwidth=1.1)),
        replace(plan_for(Fourier()), clip=20.0),
    ],
)
def test_features_of_another_plan_are_refused(other):
    plan = plan_for(Fourier())
    with pytest.raises(InfeasibleMomentsError, match="another seed"):
        validate_summary(replace(sent(plan=other), plan=plan.fingerprint), plan)


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


# Who sends, and how often


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


# The curve


BULKS = [
    (0.0, 1.0, 0.0, 1.0),
    (3.0, 7.0, 2.5, 4.0),
    (0.0, 1.0, 40.0, 0.1),
    (0.0, 1.0, 0.0, 500.0),
    (1e6, 3.0, 1e6, 0.01),
]
CURVES = [
    *((Hermite(width, bandwidth), bulk) for bulk in BULKS for width, bandwidth in ((4, 2.0), (8, 0.7), (64, 5.0))),
    (Fourier(), None),
    (Fourier(8, 3.0, 1), None),
]


def features(family, clip, bulk, x):
    """(1, φ) as the encoder computes it before rounding."""
    location, scale, centre, spread = bulk or (0.0, 1.0, 0.0, 1.0)
    inside = np.arcsinh((x * scale + (location - centre)) / spread) if family.compresses_tails else x
    return np.concatenate([np.stack([np.ones_like(x), x / clip, (x / clip) ** 2], axis=-1), family(inside)], axis=-1)


@pytest.mark.parametrize(("family", "bulk"), CURVES)
def test_the_bound_over_the_curve_holds_for_every_value(family, bulk):
    """For any quadratic form and any x: what a refusal rests on."""
    rng = np.random.default_rng(0)
    curve = build_curve(family, 30.0, bulk)
    x = np.unique(np.concatenate([np.linspace(-30, 30, 20001), np.sinh(np.linspace(-8, 8, 20001)) * 30 / np.sinh(8)]))
    exact = features(family, 30.0, bulk, x)[:, curve.columns]
    assert len(curve.columns) >= 5
    for _ in range(40):
        weight = np.where(curve.beyond <= MAX_CELL_ERROR, rng.standard_normal(curve.beyond.shape) ** 3, 0.0)
        form = (weight + weight.T) / 2
        tops, _ = _cell_maxima(curve, form)
        most = np.einsum("pi,ij,pj->p", exact, form, exact).max()
        assert most <= tops.max() + (np.abs(form) * curve.beyond).sum() + 1e-8 * np.abs(form).sum()
        assert most >= tops.max() - 1e-4 * np.abs(form).sum()  # and the bound is of use


@pytest.mark.parametrize(("family", "bulk"), CURVES)
def test_the_curve_has_the_derivatives_it_says(family, bulk):
    curve = build_curve(family, 30.0, bulk)
    value, first, second = curve.jets
    h = curve.widths[:, None]
    assert value[1:] == pytest.approx(value[:-1] + h / 2 * (first[1:] + first[:-1]), abs=1e-5)
    assert first[1:] * h == pytest.approx(first[:-1] * h + h**2 / 2 * (second[1:] + second[:-1]), abs=1e-5)


@settings(deadline=None, max_examples=60)
@given(families, size, size, number, st.floats(1, 100))
def test_a_curve_is_never_large(family, scale, spread, centre, clip):
    bulk = (0.0, scale, centre, spread) if family.compresses_tails else None
    curve = build_curve(family, clip, bulk)
    assert len(curve.widths) <= MAX_CELLS
    assert curve.columns[:3] == (0, 1, 2)  # the powers are always looked at
    assert np.isfinite(curve.jets).all()


@pytest.mark.parametrize("spread", [1e-12, 1.0, 1e12])
def test_where_features_cannot_be_looked_at_powers_are(spread):
    variable, x = Continuous("x", 0.0, 1.0, 0.0, spread), np.random.default_rng(0).standard_normal(500)
    plan = StudyPlan((variable,), ("here",))
    moments = summarize({"x": x}, plan, "here").moments / (500.0 * GRID**2)
    assert is_feasible(moments, variable, plan)
    moments[2, 2] = 0.9 * moments[0, 2] ** 2  # mean of fourth powers below the square of the mean of squares
    assert not is_feasible(moments, variable, plan)
