"""Theorem 8 for the sum over clients: the paper's method finds the same graph from it as from single summaries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import studies
from query_studies import QueryStudy

from fedcdh.discovery.api import discover_from
from fedcdh.evaluation.simulation import simulate
from fedcdh.inference.independence.kernel_test import KernelTest
from fedcdh.inference.independent_change import PrintedChange
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, Cohort, add_up
from fedcdh.summaries.features import Fourier

STUDIES = [
    (model, variables, clients, rows, seed)
    for seed in range(5)
    for model, variables, clients, rows in (("linear", 5, 4, 60), ("general", 5, 4, 60), ("linear", 4, 12, 25))
]


def simulated_cohort(model: str, variables: int, clients: int, rows: int, seed: int) -> Cohort:
    study = simulate(model, variables=variables, clients=clients, rows=rows, seed=seed)
    tables = {client: dict(zip(study.names, table.T, strict=True)) for client, table in study.tables.items()}
    return studies.cohort_of(tables, Fourier(5, seed=seed))


def test_the_graph_of_a_sum_is_that_of_its_summaries():
    found = 0
    for given in STUDIES:
        cohort = simulated_cohort(*given)
        apart, summed = (
            discover_from(known, cohort.plan, method="paper", seed=given[-1])
            for known in (cohort, Aggregate.of(cohort))
        )
        assert apart.augmented == summed.augmented, given
        assert studies.p_values(apart) == studies.p_values(summed), given
        assert apart.orientation.reasons == summed.orientation.reasons, given
        found += len(summed.augmented.arrows)
    assert found > len(STUDIES)  # the graphs are not empty


def test_tests_and_independent_change_of_mixed_variables_agree_bit_for_bit():
    study = QueryStudy(2, Fourier(5, 1.0, 3))
    turned = [Query(query.y, query.x, query.given) for query in study.queries]
    apart, summed = (KernelTest.of_paper(known, seed=1) for known in (study.cohort, Aggregate.of(study.cohort)))
    assert apart(study.queries + turned) == summed(study.queries + turned)
    pairs = [(x, y) for x in study.cohort.plan.names for y in study.cohort.plan.names if x < y]
    assert PrintedChange(apart.space)(pairs) == PrintedChange(summed.space)(pairs)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_group_stands_for_a_client_with_the_rows_of_its_members(seed):
    tables = studies.numbers(seed, (40, 30, 35, 45))
    clients = sorted(tables)
    groups = dict(zip(clients, ["left", "left", "right", "right"], strict=True))
    cohort = studies.cohort_of(tables, Fourier(5))
    joined: studies.Tables = {
        group: {
            name: np.concatenate([tables[client][name] for client in clients if groups[client] == group])
            for name in cohort.plan.names
        }
        for group in ("left", "right")
    }
    plan = replace(cohort.plan, clients=("left", "right"))
    apart = add_up([summarize(table, plan, group) for group, table in joined.items()], plan)
    queries = [Query(DOMAIN, "v2"), Query(DOMAIN, "v2", frozenset({"v1"})), Query("v1", "v3", frozenset({DOMAIN}))]
    assert KernelTest.of_paper(Aggregate.of(cohort, groups))(queries) == KernelTest.of_paper(apart)(queries)
