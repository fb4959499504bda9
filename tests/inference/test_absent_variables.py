from __future__ import annotations

import numpy as np
import pytest

from fedcdh.inference.absent_variables import CompletedCohort, complete_cohort, count_shares
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Cohort, add_up
from fedcdh.summaries.plan import StudyPlan


def make_cohort(absent, rows=2000) -> tuple[Cohort, Cohort]:
    """A chain a → b → c at four sites: whole, and without what sites lack."""
    tables = {}
    for place, client in enumerate(("east", "north", "south", "west")):
        rng = np.random.default_rng([3, place])
        a = rng.normal(size=rows)
        b = a + rng.normal(size=rows)
        tables[client] = {"a": a, "b": b, "c": b + rng.normal(size=rows)}
    plan = StudyPlan.from_tables(tables)
    whole = add_up([summarize(table, plan, client) for client, table in tables.items()], plan)
    parts = {c: {n: v for n, v in table.items() if n not in absent.get(c, ())} for c, table in tables.items()}
    lacking = StudyPlan.from_tables(parts, absent="allow")
    return whole, add_up([summarize(table, lacking, client) for client, table in parts.items()], lacking)


def correlations(cohort: Cohort) -> np.ndarray:
    spans = cohort.plan.layout.spans
    places = [spans[name].start for name in ("a", "b", "c")]
    scatter = sum(one.means_and_scatter()[1][np.ix_(places, places)] for one in cohort.summaries)
    size = np.sqrt(np.diag(scatter))
    return scatter / np.outer(size, size)


def test_completed_correlations_are_those_of_the_whole_study():
    whole, part = make_cohort({"east": ["a"], "north": ["b"], "south": ["c"]})
    assert correlations(complete_cohort(part)) == pytest.approx(correlations(whole), abs=0.03)


def test_a_pair_never_measured_together_gets_what_follows_from_its_links():
    whole, part = make_cohort({"east": ["a"], "north": ["a"], "south": ["c"], "west": ["c"]})
    assert part.pairs_never_together() == {frozenset("ac")}
    found = correlations(complete_cohort(part))
    assert found[0, 2] == pytest.approx(found[0, 1] * found[1, 2], abs=0.03)
    assert found[0, 2] == pytest.approx(correlations(whole)[0, 2], abs=0.05)


def test_the_share_of_rows_is_that_of_pairs_measured_together():
    _, part = make_cohort({"east": ["a"]}, rows=50)
    completed = complete_cohort(part)
    assert isinstance(completed, CompletedCohort)
    assert completed.coverage == pytest.approx((3 + 3 + 4) / 12)
    assert count_shares(completed).product == pytest.approx(10 / 12)
    assert count_shares(part).product == 1.0


def test_a_variable_that_nobody_is_left_to_have_is_constant():
    _, part = make_cohort({"east": ["a"], "north": ["a"], "south": ["a"]}, rows=60)
    left = part.resample_clients(["east", "north", "south"])
    completed = complete_cohort(left)
    assert "a" in completed.total.constant_variables(completed.plan)
