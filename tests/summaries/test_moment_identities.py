"""The laws of moments: false sums are refused, each with its error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from benchmarks.bench_validation import (
    FALSE_SUMMARIES,
    judge_moments,
    repair_moments,
    simulate_sums,
)
from fedcdh.errors import (
    InfeasibleMomentsError,
    MomentBoundsError,
    MomentIdentityError,
    NotPositiveSemidefiniteError,
)
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.features import Fourier, Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import validate_summary
from fedcdh.summaries.variables import Categorical, Continuous

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


@pytest.mark.parametrize("repair", [lambda moments, plan: moments, repair_moments], ids=["careless", "insider"])
@pytest.mark.parametrize("kind", sorted(set(FALSE_SUMMARIES) - {"one bit flipped"}))
def test_false_sums_are_refused(kind, repair):
    for seed in range(4):
        sums = simulate_sums(seed, Hermite(), 0)
        moments = repair(FALSE_SUMMARIES[kind](sums, np.random.default_rng([seed, 1])), sums.plan)
        assert judge_moments(sums.moments, sums.plan) == "admitted"
        assert judge_moments(moments, sums.plan) != "admitted"


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
