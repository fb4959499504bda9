"""Rows are counted before memory is taken for a wide summary."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fedcdh.errors import DataError, DisclosureError
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.disclosure.row_count import MAX_COLUMNS_UNCOUNTED, count_rows_of_wide_plan
from fedcdh.privacy.releases import ReleaseContext, release_summary
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Categorical, Continuous


def wide_plan(numbers: int) -> StudyPlan:
    return StudyPlan(tuple(Continuous(f"v{j}") for j in range(numbers)), ("north", "south"))


def rows_of(plan: StudyPlan, n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(n) for name in plan.names}


def test_too_few_rows_for_very_many_columns_are_refused_in_little_memory():
    plan = wide_plan(3317)
    assert plan.layout.n_columns == 19_903
    rows = rows_of(plan, 120)
    tracemalloc.start()
    try:
        with pytest.raises(DisclosureError, match="there are 120 rows, expected at least"):
            release_summary(rows, plan, ReleaseContext("north"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 << 20, "the moments alone would take 3.2 GB"


def test_rows_are_counted_only_for_a_wide_plan():
    levels = tuple(map(str, range(64)))
    names = [f"g{j}" for j in range(MAX_COLUMNS_UNCOUNTED // 64 - 1)]
    at_limit = StudyPlan((*(Categorical(name, levels) for name in names), Categorical("h", levels[:-1])), ("north",))
    assert at_limit.layout.n_columns == MAX_COLUMNS_UNCOUNTED
    assert count_rows_of_wide_plan({}, at_limit, "client 'north'") is None
    beyond = wide_plan(342)
    assert beyond.layout.n_columns == MAX_COLUMNS_UNCOUNTED + 5
    rows = rows_of(beyond, 7)
    parts = [{name: column[:3] for name, column in rows.items()}, {name: column[3:] for name, column in rows.items()}]
    for table, workers in ((rows, 1), (rows, 3), (parts, 2)):
        assert count_rows_of_wide_plan(table, beyond, "client 'north'", workers=workers) == 7


def test_rows_that_can_be_read_once_are_refused_for_a_wide_plan():
    plan = wide_plan(342)
    with pytest.raises(DataError, match=r"a summary of 2053 columns reads the rows more than once"):
        release_summary(iter([rows_of(plan, 5)]), plan, ReleaseContext("north"))


def test_the_limit_of_the_policy_counts():
    policy, plan = Policy(min_rows=50), wide_plan(2)
    policy.check_row_count(50, plan)
    policy.check_row_count(100, plan, replicates=1)
    for rows, replicates in ((49, 0), (99, 1)):
        with pytest.raises(DisclosureError, match=f"there are {rows} rows"):
            policy.check_row_count(rows, plan, replicates)
    Policy(disclosure_control=False).check_row_count(1, plan)
