"""People who stand out: whoever can be read off a summary is found by their leverage, before it leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.data.table import to_table
from fedcdh.errors import DisclosureError
from fedcdh.privacy.disclosure.leverage import HighLeverageRows, compute_leverages
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.row_scan import ScanOptions, scan_rows
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical, Continuous


def watched(table, plan) -> tuple[Summary, dict]:
    found = scan_rows(table, plan, "north", ScanOptions())
    return found.summary(1.0), found.extremes.values


def patients(oldest: float, rows: int = 1000) -> dict[str, list]:
    rng = np.random.default_rng(1000)
    age = np.round(rng.normal(60, 10, rows))
    age[0] = oldest
    illness = ["yes", *rng.choice(["no", "yes"], rows - 1).tolist()]
    return {"age": age.tolist(), "bmi": rng.normal(27, 4, rows).tolist(), "ill": illness}


def plan_with(age: Continuous, family=Hermite()) -> StudyPlan:  # noqa: B008 (a value)
    return StudyPlan((age, Continuous("bmi", 27, 4), Categorical("ill", ("no", "yes"))), ("north", "south"), family)


PLANS = {
    "one step of the grid is ninety years": (plan_with(Continuous("age", 60, 786432)), 107.0),
    "a magnifying glass at 107": (plan_with(Continuous("age", 60, 20, 107, 1), Hermite(4, 0.25)), 107.0),
    "one age of 900": (plan_with(Continuous("age", 60, 30)), 900.0),
}


def reconstructed(summary: Summary, plan: StudyPlan, age: float) -> tuple[float, float]:
    """Body mass and illness of the one patient of this age, from the summary alone, as `standing_out` says."""
    columns = np.r_[0, plan.layout.spans["age"]]
    alone = replace(plan, variables=plan.variables[:1])
    own = Encoder(alone, "north")(to_table({"age": [age]}))[:, 0]
    moments = summary.moments / 1.0
    scales = np.sqrt(np.maximum(moments.diagonal()[columns], 1.0))
    scaled = moments[np.ix_(columns, columns)] / np.multiply.outer(scales, scales)
    weights = np.linalg.pinv(scaled, rcond=1e-12, hermitian=True) @ (own / scales) / scales
    leverage = weights @ own
    body, ill = plan.layout.spans["bmi"].start, plan.layout.spans["ill"].start + 1
    mass = weights @ moments[columns, body] / leverage / GRID * plan.clip * 4 + 27
    return float(mass), float(weights @ moments[columns, ill] / leverage / GRID)


@pytest.mark.parametrize("case", PLANS)
def test_an_attack_that_works_is_refused(case):
    plan, oldest = PLANS[case]
    table = patients(oldest)
    summary, outermost = watched(table, plan)
    mass, ill = reconstructed(summary, plan, oldest)
    assert abs(mass - table["bmi"][0]) < 0.4  # a tenth of a standard deviation
    assert abs(ill - 1) < 0.1
    with pytest.raises(DisclosureError, match="one row has a high leverage by its value of 'age'"):
        Policy().check_summary(summary, plan, outermost)
    Policy(disclosure_control=False, max_rms_distance=1e9).check_summary(summary, plan, outermost)


def test_ordinary_rows_have_a_low_leverage():
    plan, table = plan_with(Continuous("age", 60, 10)), patients(75.0)
    summary, outermost = watched(table, plan)
    assert max(compute_leverages(summary, plan, outermost).values()) < 0.9
    Policy().check_summary(summary, plan, outermost)


cells = st.one_of(st.none(), st.integers(-5, 5).map(float), st.floats(-1e6, 1e6))


@settings(deadline=None, max_examples=60)
@given(st.lists(cells, max_size=30), st.sampled_from([0, 1, 7, 30]))
def test_leverage_is_a_share_and_batches_do_not_matter(values, place):
    plan = StudyPlan((Continuous("x", 1.0, 3.0),), ("north",))
    rows = [2.0, *values]
    whole, outermost = watched({"x": rows}, plan)
    split, again = watched([{"x": rows[:place]}, {"x": rows[place:]}], plan)
    assert whole == split
    assert outermost["x"].tolist() == again["x"].tolist()
    assert 0 <= compute_leverages(whole, plan, outermost)["x"] < 1 + 1e-4  # few rows: rounded sums
    assert set(outermost["x"]) <= {value for value in rows if value is not None}


def largest_of_all(table, plan) -> float:
    """By way of the hat matrix, of all rows at once."""
    features = Encoder(plan, "north")(to_table(table)).T
    orthonormal, sizes, _ = np.linalg.svd(features / np.linalg.norm(features, axis=0), full_matrices=False)
    return float((orthonormal[:, sizes > 1e-6 * sizes[0]] ** 2).sum(axis=1).max())


@pytest.mark.parametrize("batch", [1, 7, 5000])
def test_the_row_with_the_highest_leverage_is_found_however_rows_come(batch):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        age = rng.standard_t(3, 300)
        table = {"age": age, "bmi": age + rng.standard_normal(300), "ill": np.where(rng.random(300) < 0.2, "yes", "no")}
        table["ill"][-1] = "new"  # nobody had it before
        levels = Categorical("ill", ("new", "no", "yes"))
        plan = StudyPlan((Continuous("age"), Continuous("bmi"), levels), ("north", "south"))
        truth = largest_of_all(table, plan)
        rows = to_table(table)
        parts = [rows.slice_rows(start, batch) for start in range(0, 300, batch)]
        alone = scan_rows(parts, plan, "north", ScanOptions(max_leverage=0.5)).high_leverage
        assert truth > 0.5, seed
        assert alone.largest(summarize(table, plan, "north")) == pytest.approx(truth, rel=1e-4), seed
        assert HighLeverageRows(plan.layout.n_columns, 0.5).largest(summarize(table, plan, "north")) == 0, seed


def test_a_row_with_a_high_leverage_in_all_variables_together_is_refused():
    rng = np.random.default_rng(5)
    common = rng.standard_normal(400)
    table = {name: common + 0.02 * rng.standard_normal(400) for name in "abc"}
    table["a"][0], table["b"][0], table["c"][0] = 0.0, -2.5, 2.5  # each an ordinary value
    plan = StudyPlan(tuple(map(Continuous, "abc")), ("north", "south"))
    assert all(found < 0.99 for found in compute_leverages(*watched_of(table, plan)).values())
    with pytest.raises(DisclosureError, match="all variables together"):
        release_summary(table, plan, ReleaseContext("north"))
    release_summary({name: column[1:] for name, column in table.items()}, plan, ReleaseContext("north"))


def watched_of(table, plan) -> tuple[Summary, StudyPlan, dict]:
    summary, outermost = watched(table, plan)
    return summary, plan, outermost
