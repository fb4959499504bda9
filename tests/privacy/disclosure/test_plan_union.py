"""Leverage in the columns of several plans together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.data.sources import to_source
from fedcdh.data.table import to_table
from fedcdh.privacy.disclosure.plan_union import (
    PlanColumns,
    UnionMeasure,
    column_names,
    largest_union_leverage,
    measure_union,
)
from fedcdh.privacy.disclosure.separated_groups import UnionLimits
from fedcdh.summaries.encoder import GRID, Encoder
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous


def plan_of(*variables: Continuous | Categorical, **columns: str) -> PlanColumns:
    plan = StudyPlan(variables, ("north",))
    return PlanColumns(plan, {name: columns.get(name, name) for name in plan.names})


def some_rows(n: int = 300, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "a": rng.standard_normal(n),
        "b": rng.exponential(size=n),
        "g": rng.choice(["x", "y", "z"], n),
        "code": rng.integers(1, 4, n).astype(np.float64),
    }


A = plan_of(Continuous("a", 0, 1), Continuous("b", 1, 1))
OTHER_A = plan_of(Continuous("a", 0.1, 1.3))
LEVELS = plan_of(Categorical("g", ("x", "y", "z")), Continuous("a", 0, 1))
CODES, NUMBERS = plan_of(Categorical("code", ("1", "2", "3"))), plan_of(Continuous("code", 2, 1))
PLANS = (A, OTHER_A, LEVELS, CODES, NUMBERS)


def leverage_by_hand(rows: dict, plans: tuple[PlanColumns, ...]) -> float:
    """The largest diagonal entry of the hat matrix of all columns."""
    columns = np.concatenate([Encoder(one.plan, "north")(to_table(rows).select(one.plan.names, "")) for one in plans]).T
    left, sizes, _ = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), full_matrices=False)
    return float((left[:, sizes > 1e-11 * sizes[0]] ** 2).sum(axis=1).max())


@given(st.lists(st.sampled_from(PLANS), min_size=1, max_size=5), st.integers(0, 20), st.integers(60, 2500))
@settings(max_examples=25)
def test_the_leverage_is_that_of_all_columns_side_by_side(plans, seed, n):
    rows = some_rows(n, seed)
    assert largest_union_leverage(rows, plans, "north") == pytest.approx(leverage_by_hand(rows, plans), rel=1e-6)


@given(st.lists(st.sampled_from(PLANS), min_size=2, max_size=4), st.integers(0, 20))
@settings(max_examples=25)
def test_a_further_plan_never_lowers_the_leverage_and_its_order_does_not_matter(plans, seed):
    rows = some_rows(seed=seed)
    found = largest_union_leverage(rows, plans, "north")
    assert found >= largest_union_leverage(rows, plans[:-1], "north") - 1e-9
    assert found == pytest.approx(largest_union_leverage(rows, plans[::-1], "north"), rel=1e-6)
    assert found == pytest.approx(largest_union_leverage(rows, [*plans, plans[0]], "north"), rel=1e-6)


@pytest.mark.parametrize("n", [400, 20_000])
def test_one_row_that_two_plans_round_differently_is_found(n):
    """Only the difference of two columns singles it out, by one step of the grid."""
    rows = {"a": np.random.default_rng(1).standard_normal(n)}
    step = 30 / GRID
    scaled = rows["a"] / step
    above = np.sort(np.floor(scaled + 0.5) + 0.5 - scaled)  # how far each value is below the next rounding
    shift = step * (above[0] + above[1]) / 2
    plans = [plan_of(Continuous("a", location, 1, 0, 1)) for location in (0.0, -shift)]
    linear = [one.encode(to_table(rows), "north")[1] for one in plans]
    assert np.abs(linear[0] - linear[1]).sum() == 1
    assert largest_union_leverage(rows, plans[:1], "north") < 0.95
    assert largest_union_leverage(rows, plans, "north") > 0.999


def test_thresholds_on_either_side_of_one_person_single_it_out():
    rows = {"a": np.arange(200.0), "b": np.random.default_rng(0).standard_normal(200)}
    labels = [
        plan_of(Categorical("g", ("high", "low")), Continuous("b"), g=column) for column in ("above197", "above196")
    ]
    rows |= {f"above{t}": np.where(rows["a"] > t, "high", "low") for t in (196, 197)}
    assert largest_union_leverage(rows, labels[:1], "north") < 0.9
    assert largest_union_leverage(rows, labels, "north") == pytest.approx(1)


def test_rows_that_a_plan_leaves_out_count_as_zero_in_it():
    rows = some_rows(200)
    rows["b"][:5], rows["a"][7] = np.nan, np.inf
    rows["g"][5:7] = "unknown"
    features = {name: one.encode(to_table(rows), "north") for name, one in (("a", A), ("g", LEVELS))}
    assert [np.flatnonzero(features["a"][0] == 0).tolist(), np.flatnonzero(features["g"][0] == 0).tolist()] == [
        [0, 1, 2, 3, 4, 7],
        [5, 6, 7],
    ]


def test_levels_may_be_kept_as_hashes():
    rows = {"g": np.array(["1", "2.0", "3", None], dtype=object)}
    texts = plan_of(Categorical("g", ("1", "2", "3")))
    hashed = PlanColumns(
        StudyPlan((Categorical("g", ("#1", "#2", "#3")),), ("north",)), {"g": "g"}, lambda level: f"#{level}"
    )
    assert np.array_equal(texts.encode(to_table(rows), "north"), hashed.encode(to_table(rows), "north"))


def test_batches_of_any_size_and_columns_read_in_two_ways_make_no_difference():
    rows, plans = some_rows(3000), (A, CODES, NUMBERS)
    cuts = [0, 7, 8, 1100, 2500, 3000]
    batches = [{name: column[one:two] for name, column in rows.items()} for one, two in pairwise(cuts)]
    whole = largest_union_leverage(rows, plans, "north")
    assert largest_union_leverage(batches, plans, "north") == pytest.approx(whole, rel=1e-9)
    assert largest_union_leverage(_Parts(batches), plans, "north") == pytest.approx(whole, rel=1e-9)
    assert column_names(rows, "north", ()) == column_names(_Parts(batches), "north", ()) == rows.keys()


@dataclass(frozen=True)
class _Parts:
    """Rows in parts, each of which is a source of its own, as on a cluster."""

    parts: list

    def map_reduce(self, work: Callable, add: Callable):
        return reduce(add, [work(to_source(part, "client 'north'")) for part in self.parts])


def test_no_rows_have_no_leverage():
    assert largest_union_leverage({"a": np.zeros(0), "b": np.zeros(0)}, [A], "north") == 0


def test_whitened_rows_have_unit_moments():
    rows = some_rows(400)
    features = np.concatenate([one.encode(to_table(rows), "north") for one in (A, LEVELS)])
    measure = UnionMeasure.of(np.linalg.qr(features.T, mode="r"))
    white = measure.whiten(features)
    assert np.allclose(white @ white.T, np.eye(len(white)))
    assert measure.each(features) == pytest.approx((white**2).sum(axis=0))


@pytest.mark.parametrize("apart", [1, 2, 5, 11, 12])
def test_people_between_two_thresholds_are_found_up_to_the_largest_group(apart):
    rows = {"b": np.random.default_rng(0).standard_normal(300)}
    rows |= {f"first{k}": np.where(np.arange(300) < k, "few", "many") for k in (12, 12 + apart)}
    one, other = (plan_of(Categorical("g", ("few", "many")), Continuous("b"), g=f"first{k}") for k in (12, 12 + apart))
    limits = UnionLimits(max_people=11)
    assert measure_union(rows, one, [], "north", limits).people == 0
    found = measure_union(rows, other, [one], "north", limits)
    assert (found.row > limits.of_rows) == (apart == 1)
    assert found.people == (0 if apart == 12 else max(apart, 2))
