"""Columns that look swapped at one client, and tails that only one client has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.attacks.poisoning import cohort_of, study_tables, swap_columns
from fedcdh.inference.heterogeneity import unlike_clients
from fedcdh.inference.heterogeneity.unlike_clients import find_long_tails, find_swapped_columns
from fedcdh.summaries.aggregation import Cohort


def chain(seed: int, sites: int = 6, rows: int = 300) -> dict[str, dict[str, np.ndarray]]:
    """a → b → c and d alone: no two columns look alike."""
    tables = {}
    for k in range(sites):
        a, b, c, d = np.random.default_rng([seed, k]).standard_normal((4, rows))
        tables[f"s{k}"] = {"a": a, "b": a + 0.5 * b, "c": a + 0.5 * b + 2 * c, "d": d}
    return tables


def test_a_swap_is_found_at_any_client_and_for_any_two_columns_that_differ():
    for seed in range(5):
        tables = chain(seed)
        assert find_swapped_columns(cohort_of(tables)) == ()
        for site in ("s0", "s5"):
            for one, other in (("a", "d"), ("b", "d"), ("a", "c")):
                swapped = {**tables, site: {**tables[site], one: tables[site][other], other: tables[site][one]}}
                found = find_swapped_columns(cohort_of(swapped))
                assert [(each.client, each.columns) for each in found] == [(site, (one, other))]
                assert found[0].log_ratio > unlike_clients.MIN_LOG_RATIO


def test_the_ratio_is_that_of_its_definition():
    """Term by term, for every two columns: own values under the others' t distribution, as sent and swapped."""
    tables, _, _ = swap_columns(study_tables("linear", 0, 5, 100, 4), 0)
    cohort = cohort_of(tables)
    marginals, dependences = unlike_clients._describe_columns(cohort, list(cohort.plan.names))
    ratios = unlike_clients._swap_ratios(marginals, dependences, 0, 100)
    alone = unlike_clients._fit_to_others(marginals, 0, 100)
    pairs = unlike_clients._fit_to_others(dependences, 0, 100)
    for i in range(4):
        for j in range(i):
            rest = [k for k in range(4) if k not in (i, j)]
            sent = sum(alone[k, k].sum() + pairs[k, k, rest].sum() for k in (i, j))
            swapped = sum(alone[k, m].sum() + pairs[k, m, rest].sum() for k, m in ((i, j), (j, i)))
            assert ratios[i, j] == pytest.approx(swapped - sent)
            assert ratios[j, i] == pytest.approx(ratios[i, j])


def test_units_and_order_of_clients_make_no_difference():
    tables, site, columns = swap_columns(study_tables("linear", 1, 6, 300, 5), 1)
    plain = find_swapped_columns(cohort_of(tables))
    backwards = find_swapped_columns(cohort_of(dict(reversed(tables.items()))))
    assert plain == backwards
    scaled = {key: {name: 1000 * x + 7 for name, x in table.items()} for key, table in tables.items()}
    assert [(one.client, one.columns) for one in find_swapped_columns(cohort_of(scaled))] == [
        (one.client, one.columns) for one in plain
    ]
    assert (site, columns) in {(one.client, one.columns) for one in plain}


def test_tails_that_all_clients_have_are_no_finding():
    rng = np.random.default_rng(2)
    tables = {f"s{k}": {"x": rng.standard_t(3, 400), "y": rng.standard_normal(400)} for k in range(8)}
    tables["s3"]["y"][:4] = 10.0
    assert [(one.client, one.variable) for one in find_long_tails(cohort_of(tables))] == [("s3", "y")]


def test_the_kurtosis_is_that_of_the_rows():
    tables = chain(0, 7)
    tables["s2"]["d"][:3] = 12.0
    (found,) = find_long_tails(cohort_of(tables))
    x = tables["s2"]["d"]
    assert found.kurtosis == pytest.approx(((x - x.mean()) ** 4).mean() / x.var() ** 2, rel=1e-3)
    assert found.largest_elsewhere < 5


def test_a_column_that_hardly_varies_at_a_client_is_no_finding():
    """There the rounding to the grid decides: its kurtosis and its correlations mean nothing."""
    for width in (0.0, 1e-6, 1e-3, 0.05):
        tables = chain(3, 8)
        for k, table in enumerate(tables.values()):
            table["d"] = 10.0 * k + width * table["d"]
        cohort = cohort_of(tables)
        assert find_long_tails(cohort) == ()
        assert find_swapped_columns(cohort) == ()


def test_nothing_is_said_where_too_little_is_known(monkeypatch):
    two = cohort_of({site: table for site, table in chain(0).items() if site in ("s0", "s1")})
    assert (find_swapped_columns(two), find_long_tails(two)) == ((), ())
    constant = chain(0)
    constant["s1"]["d"] = np.zeros(300)
    find_swapped_columns(cohort_of(constant))
    tables = chain(0)
    tables["s2"] = {**tables["s2"], "a": tables["s2"]["d"], "d": tables["s2"]["a"]}
    cohort = cohort_of(tables)
    noisy = Cohort(cohort.plan, tuple(replace(one, noise=1.0) for one in cohort.summaries))
    assert (find_swapped_columns(noisy), find_long_tails(noisy)) == ((), ())
    monkeypatch.setattr(unlike_clients, "MAX_WORK", 6 * 4**3)
    assert find_swapped_columns(cohort)
    monkeypatch.setattr(unlike_clients, "MAX_WORK", 6 * 4**3 - 1)
    assert find_swapped_columns(cohort) == ()
