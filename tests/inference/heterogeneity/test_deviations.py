"""Comparison of clients: the tests of the textbooks, each client with the others that agree."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from fedcdh.discovery.drift import Drift, estimate_drift
from fedcdh.inference.heterogeneity import deviations
from fedcdh.inference.heterogeneity.deviations import (
    ResidualVariance,
    WeightedEstimates,
    compare_clients,
    log_f_tail,
    reject_by_holm,
)


def by_key(drifts: tuple[Drift, ...]) -> dict[tuple[str, str, str], Drift]:
    found = {(drift.variable, drift.client, drift.quantity): drift for drift in drifts}
    assert len(found) == len(drifts)
    return found


def test_two_clients_of_a_size_without_causes_are_compared_by_welchs_test():
    tables = studies.numbers(3, (40, 40))
    drifts = by_key(estimate_drift(studies.cohort_of(tables), {"v1": ()}))
    first, second = (table["v1"] for table in tables.values())
    welch = stats.ttest_ind(first, second, equal_var=False)
    assert drifts["v1", "site0", "level"].p_value == pytest.approx(welch.pvalue, rel=1e-4)
    assert drifts["v1", "site1", "level"].p_value == pytest.approx(welch.pvalue, rel=1e-4)
    assert np.sign(drifts["v1", "site0", "level"].deviation) == np.sign(welch.statistic)
    ratio = first.var(ddof=1) / second.var(ddof=1)
    tail = 2 * min(stats.f.sf(ratio, 39, 39), stats.f.cdf(ratio, 39, 39))
    assert drifts["v1", "site0", "noise"].p_value == pytest.approx(tail, rel=1e-4)  # these tails are not heavy
    assert drifts["v1", "site0", "level"].pooled == pytest.approx(np.concatenate([first, second]).mean(), abs=1e-5)


def test_the_pooled_effect_of_an_only_cause_is_that_of_one_regression_with_an_intercept_per_client():
    tables = study(5, clients=4, rows=60)
    drift = by_key(estimate_drift(studies.cohort_of(tables), {"y": ("x",)}))["y", "c0", "effect of x"]
    assert not drift.flagged
    x, y = (np.concatenate([table[name] - table[name].mean() for table in tables.values()]) for name in "xy")
    assert drift.pooled == pytest.approx(x @ y / (x @ x), rel=1e-4)  # the grid


def study(seed: int, *, clients: int = 6, rows: int = 100, odd: str = "", by: float = 0.0) -> studies.Tables:
    """x and z → y, everywhere alike but for one thing at client c2."""
    tables = {}
    for k in range(clients):
        rng = np.random.default_rng([seed, k, 77])
        slope, level, noise = (by * (k == 2 and odd == name) for name in ("slope", "level", "noise"))
        x, z, e = rng.standard_normal((3, rows))
        x = 50 + 10 * (x + 0.3 * k)
        z = 0.05 * x + z
        tables[f"c{k}"] = {"x": x, "z": z, "y": 3 + level + (0.1 + slope / 10) * x - z + np.exp(noise) * e}
    return tables


def test_deviations_stay_finite_and_ordered_where_p_values_vanish():
    drifts = estimate_drift(studies.cohort_of(study(0, rows=2000, odd="level", by=100.0)), {"y": ("x", "z")})
    found = by_key(drifts)["y", "c2", "level"]
    assert found.p_value == 0
    assert 50 < found.deviation < 1e4


@settings(max_examples=25, deadline=None)
@example(3.0, 3000.0, 1e5)
@given(st.floats(0.5, 500), st.sampled_from([1.0, 3.0, 40.0, 3000.0]), st.sampled_from([1.0, 10.0, 1e5]))
def test_tails_go_on_where_probabilities_do(ratio, above, below):
    here = float(log_f_tail(np.array(ratio), above, below))
    if (tail := stats.f.sf(ratio, above, below)) > 1e-250:
        assert here == pytest.approx(np.log(tail), rel=1e-6, abs=1e-9)
    assert float(log_f_tail(np.array(1.01 * ratio), above, below)) < here + 1e-12
    assert np.isfinite(here)


def some_estimates(seed: int, clients: int, odd: int = 0) -> tuple[WeightedEstimates, ResidualVariance]:
    """A level and a noise at many clients, the first few of which are off."""
    rng = np.random.default_rng(seed)
    design, freedom = rng.uniform(0.01, 0.1, clients), rng.integers(5, 40, clients).astype(float)
    noise = rng.chisquare(freedom) / freedom * np.where(np.arange(clients) < odd, 100.0, 1.0)
    values = np.sqrt(noise * design) * rng.standard_normal(clients) + np.where(np.arange(clients) < odd, 20.0, 0.0)
    comparable = np.arange(clients) % 7 != 6
    names = ("",) * clients
    level = WeightedEstimates("level", np.where(comparable, values, np.nan), design, noise, freedom, comparable, names)
    return level, ResidualVariance("noise", np.where(comparable, np.sqrt(noise), np.nan), freedom, names)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 12))
def test_all_clients_at_once_are_compared_as_each_with_its_others(seed, clients):
    among = np.random.default_rng(seed).random(clients) < 0.7
    for quantity in some_estimates(seed, clients):
        sign, logs = quantity.compare_with(among)
        for k in range(clients):
            others = among & quantity.comparable & (np.arange(clients) != k)
            if not quantity.comparable[k] or not others.any():
                assert np.isnan(logs[k])
                continue
            assert logs[k] == pytest.approx(one_against(quantity, k, others), rel=1e-9, abs=1e-12)
            assert sign[k] == np.sign(quantity.values[k] - quantity.pooled(others)) or isinstance(
                quantity, ResidualVariance
            )


def one_against(quantity: WeightedEstimates | ResidualVariance, k: int, others: np.ndarray) -> float:
    """The log of the p-value of one client against these others, by the textbook."""
    pooled, own = quantity.pooled(others), quantity.values[k]
    if isinstance(quantity, ResidualVariance):
        freedom = quantity.freedom[others].sum()
        above = stats.f.logsf((own / pooled) ** 2, quantity.freedom[k], freedom)
        below = stats.f.logcdf((own / pooled) ** 2, quantity.freedom[k], freedom)
        return min(min(above, below) + np.log(2), 0.0)
    weights = 1 / quantity.design[others] / (1 / quantity.design[others]).sum()

    def beside(sizes: np.ndarray) -> tuple[float, float]:
        parts = np.append(weights**2 * sizes[others], sizes[k])
        return parts.sum(), parts.sum() ** 2 / (
            parts**2 / np.append(quantity.freedom[others], quantity.freedom[k])
        ).sum()

    (variance, freedom), (_, at_most) = beside(quantity.variance), beside(quantity.design)
    return stats.t.logsf(abs(own - pooled) / np.sqrt(variance), min(freedom, at_most)) + np.log(2)


@pytest.mark.parametrize("rows", [(2, 5), (5, 5), (8, 8)])
def test_of_many_clients_with_a_few_rows_none_is_flagged_for_having_little_noise_by_chance(rows):
    flagged = []
    for seed in range(1000, 1200):
        rng = np.random.default_rng(seed)
        counts = rng.integers(rows[0], rows[1] + 1, 120)
        tables = [rng.standard_normal(count) for count in counts]
        values, noise = np.array([table.mean() for table in tables]), np.array([table.var(ddof=1) for table in tables])
        level = WeightedEstimates("level", values, 1 / counts, noise, counts - 1.0, counts > 0, ("",) * 120)
        flagged.append(compare_clients([level])[0].flagged.any())
    assert np.mean(flagged) < 0.1  # 0.05 are allowed; more than 0.1 of 200 happens once in 500 times


def test_of_many_clients_the_same_stand_out_when_several_are_set_aside_at_once(monkeypatch):
    quantities = some_estimates(1, 400, odd=30)
    together = compare_clients(quantities)
    monkeypatch.setattr(deviations, "CLIENTS_PER_EXCLUSION", 1_000_000)
    for found, one_by_one in zip(together, compare_clients(quantities), strict=True):
        assert np.array_equal(found.flagged, one_by_one.flagged)
        assert found.flagged.sum() >= 20
        assert found.pooled == pytest.approx(one_by_one.pooled, abs=0.02)


def test_of_many_clients_those_stay_whom_one_far_off_makes_look_odd():
    rng, clients = np.random.default_rng(5), 1000
    values = np.where(np.arange(clients) == 0, 8000.0, rng.standard_normal(clients))
    ones, names = np.ones(clients), ("",) * clients
    (found,) = compare_clients([WeightedEstimates("level", values, ones, ones, 48 * ones, ones > 0, names)])
    assert found.pooled == pytest.approx(values[1:].mean(), rel=1e-12)
    assert found.flagged[0]


def test_holm_is_the_textbooks():
    p = np.array([0.001, np.nan, 0.02, 0.013, 0.9])
    flags = np.concatenate(reject_by_holm([np.log(p[:2]), np.log(p[2:])]))
    assert flags.tolist() == [True, False, True, True, False]  # against 0.05/4, /3, /2, /1
    assert np.concatenate(reject_by_holm([np.log(np.array([0.02, 0.02, 0.001]))])).tolist() == [True, True, True]
    assert np.concatenate(reject_by_holm([np.log(np.array([0.03, 0.02, 0.04]))])).tolist() == [False] * 3
