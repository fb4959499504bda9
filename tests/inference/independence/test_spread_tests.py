"""The test of "constraint" on sums: what it shares with that of a cohort, and its level where it differs."""

from __future__ import annotations

import numpy as np
import pytest
import studies

from fedcdh.evaluation.simulation import keyed_generator
from fedcdh.inference.independence import partial_f_tests
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.aggregation import Aggregate, Cohort

WITHIN = frozenset({DOMAIN})


def both_tests(cohort: Cohort) -> tuple[RegressionTest, RegressionTest]:
    return RegressionTest(Basis.of(cohort)), RegressionTest(Basis.of(Aggregate.of(cohort)))


def test_spreads_of_clients_follow_from_means_of_features():
    tables = studies.mixed(4, sizes=(60, 50, 40, 3))
    basis = Basis.of(Aggregate.of(studies.cohort_of(tables)))
    for number, name in enumerate(basis.spans):
        column = tables["clinic a"][name]
        if column.dtype.kind != "f" or len(np.unique(column)) < 3:
            assert (basis.client_variances[number] == 1).all(), name
            continue
        pooled = np.concatenate([table[name] for table in tables.values()]).var()
        direct = [table[name].var() / pooled for table in tables.values()]
        assert basis.client_variances[number] == pytest.approx(direct, abs=1e-3), name  # features are rounded


def test_without_conditions_the_domain_gets_the_answers_of_a_cohort():
    for seed in range(5):
        cohort = studies.cohort_of(studies.mixed(seed, sizes=(60, 50, 40, 12)))
        queries = [Query(DOMAIN, name) for name in cohort.plan.names]
        for one, other in zip(*(test(queries) for test in both_tests(cohort)), strict=True):
            assert other.p_value == pytest.approx(one.p_value, abs=1e-3), (seed, one.query)  # features are rounded


def test_where_clients_are_too_small_for_regressions_of_their_own_pairs_get_the_answers_of_a_cohort(monkeypatch):
    monkeypatch.setattr(partial_f_tests, "measure_uneven_spread", lambda basis, batch: np.ones(len(batch)))
    cohort = studies.cohort_of(studies.mixed(3, sizes=(5,) * 12))
    queries = [
        Query(x, y, WITHIN | given)
        for x, y in (("age", "dose"), ("dose", "score"), ("age", "group"))
        for given in (frozenset[str](), frozenset({"flag"}), frozenset({"sex"}))
    ]
    for one, other in zip(*(test(queries) for test in both_tests(cohort)), strict=True):
        assert other.p_value == pytest.approx(one.p_value, rel=1e-6), one.query


def test_one_client_is_its_own_sum():
    cohort = studies.cohort_of(studies.mixed(1, sizes=(90,)))
    names = cohort.plan.names
    queries = [Query(x, y, given) for x in names for y in names if x < y for given in (frozenset[str](), WITHIN)]
    one, other = (test(queries) for test in both_tests(cohort))
    assert one == other


def spread_study(seed: int, *, causes: int, change: float = 0.0, curved: bool = False, shift: float = 1.0) -> Cohort:
    """z_i differ in mean and spread between ten clients; x = Σ f(z_i) + noise, whose size may differ."""
    tables = {}
    for number in range(10):
        draw = keyed_generator(seed, "spread", str(number))
        z = shift * draw.standard_normal(causes) + np.exp(shift / 3 * draw.standard_normal(causes)) * (
            draw.standard_normal((100, causes))
        )
        size = np.exp(change * draw.standard_normal())
        x = (np.sin(z) if curved else z).sum(axis=1) + size * draw.standard_normal(100)
        tables[f"client {number}"] = {"x": x, **{f"z{i}": z[:, i] for i in range(causes)}}
    return studies.cohort_of(tables)


def rejections(seeds: range, **given: object) -> float:
    found = []
    for seed in seeds:
        cohort = spread_study(seed, **given)
        query = Query(DOMAIN, "x", frozenset(cohort.plan.names) - {"x"})
        (answer,) = both_tests(cohort)[1]([query])
        found.append(answer.p_value < 0.05)
    return float(np.mean(found))


@pytest.mark.parametrize("curved", [False, True], ids=["linear", "sin"])
@pytest.mark.parametrize("causes", [1, 2, 3])
def test_equal_mechanisms_are_seldom_taken_for_different_ones(causes, curved):
    assert rejections(range(40), causes=causes, curved=curved) <= 0.175  # 7 of 40: p = 0.003 at a level of 5 %


def test_other_noise_is_found_behind_causes():
    assert rejections(range(25), causes=1, change=0.5) >= 0.8
    assert rejections(range(25), causes=2, change=0.8) >= 0.6


def test_clients_with_other_spreads_of_both_variables_do_not_look_dependent(monkeypatch):
    queries, found = [Query("x", "y", WITHIN)], []
    for seed in range(80):
        tables = {}
        for number in range(10):
            draw = keyed_generator(seed, "uneven", str(number))
            size = np.exp(0.5 * draw.standard_normal())
            x, y = size * draw.standard_normal((2, 60))
            tables[f"client {number}"] = {"x": x, "y": y}
        cohort = studies.cohort_of(tables)
        found.append([test(queries)[0].p_value for test in both_tests(cohort)])
        with monkeypatch.context() as patch:
            patch.setattr(partial_f_tests, "measure_uneven_spread", lambda basis, batch: np.ones(len(batch)))
            found[-1].append(both_tests(cohort)[1](queries)[0].p_value)
    of_cohort, of_sum, of_all_rows = np.mean(np.array(found) < 0.05, axis=0)
    assert max(of_cohort, of_sum) <= 0.15
    assert of_all_rows > 0.3  # where all rows count, other spreads look like dependence


def test_answers_on_sums_depend_neither_on_other_queries_nor_on_the_order_of_clients():
    tables = studies.mixed(2, sizes=(60, 50, 40))
    turned = studies.cohort_of(dict(reversed(tables.items())))
    test, other = (both_tests(cohort)[1] for cohort in (studies.cohort_of(tables), turned))
    queries = [
        Query(x, y, given)
        for x, y in ((DOMAIN, "score"), (DOMAIN, "dose"))
        for given in (frozenset({"age"}), frozenset({"age", "flag"}), frozenset({"group", "age"}))
    ]
    alone = [test([query])[0] for query in queries]
    assert test(queries) == alone
    assert [answer.p_value for answer in other(queries)] == pytest.approx([answer.p_value for answer in alone])
