"""What leaves under the default policy: tables that only rare pairs kept back, and the hospitals of the heart data."""

from __future__ import annotations

import pytest

from benchmarks.bench_release_gate import HEART_STEPS, heart_folder, leaves_by_counts, read_heart, try_release
from benchmarks.labelled_tables import simulate_labelled
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.features import Hermite
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary

HEART = heart_folder()


def test_sites_of_300_rows_with_a_level_of_five_per_cent_leave():
    tables = simulate_labelled(300, 0).tables
    plan = StudyPlan.from_tables(tables)
    assert not any(leaves_by_counts(summarize(table, plan, site), plan) for site, table in tables.items())
    assert all(isinstance(one, Summary) for one in try_release(tables, plan).values())


@pytest.mark.skipif(not (HEART / "data.csv").is_file(), reason=f"there is no heart data in {HEART}")
def test_three_of_four_hospitals_leave_with_ten_of_eleven_variables():
    advice = HEART_STEPS[4]
    tables = read_heart(HEART, advice)
    plan = StudyPlan.from_tables(tables, family=Hermite(advice.columns))
    found = try_release(tables, plan)
    assert len(plan.names) == 10
    assert sorted(site for site, one in found.items() if isinstance(one, Summary)) == [
        "cleveland",
        "hungary",
        "va_longbeach",
    ]
