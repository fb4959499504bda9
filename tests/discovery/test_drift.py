"""What differs where: the numbers of least squares on each client's rows, calibrated, and naming the right client."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, asdict

import numpy as np
import pandas as pd
import pytest
import studies
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from fedcdh.discovery.api import discover, discover_from
from fedcdh.discovery.drift import Drift, estimate_drift, tabulate_drift
from fedcdh.errors import SettingsError
from fedcdh.evaluation.simulation import simulate
from fedcdh.inference.heterogeneity import deviations
from fedcdh.inference.heterogeneity.deviations import (
    ResidualVariance,
    WeightedEstimates,
    compare_clients,
    log_f_tail,
    reject_by_holm,
)
from fedcdh.inference.heterogeneity.residual_kurtosis import fourth_cumulants, residual_cumulants
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.plan import StudyPlan

PARENTS = {"dose": ("age",), "score": ("age", "group", "sex"), "group": ("dose", "sex"), "sex": ()}


def by_key(drifts: tuple[Drift, ...]) -> dict[tuple[str, str, str], Drift]:
    found = {(drift.variable, drift.client, drift.quantity): drift for drift in drifts}
    assert len(found) == len(drifts)
    return found


def on_grid(column: np.ndarray, variable: object, plan: StudyPlan) -> np.ndarray:
    """The values as they enter a summary."""
    unit = plan.clip * variable.scale
    steps = np.rint(np.clip((column - variable.location) / unit, -1, 1) * 2**18)
    return variable.location + unit * steps / 2**18


def least_squares(table: studies.Table, plan: StudyPlan, node: str, parents: tuple[str, ...], centre: dict, exact=True):
    """Level, effects and noise from the rows, with standard errors, by the textbook."""
    variables = {variable.name: variable for variable in plan.variables}
    columns, names = [], []
    for name in sorted(parents):
        if hasattr(variables[name], "levels"):
            first, *others = variables[name].levels
            for level in others:
                columns.append((table[name] == level) - centre[name, level])
                names.append(f"effect of {name}: {level} against {first}")
        else:
            values = on_grid(table[name], variables[name], plan) if exact else table[name]
            columns.append(values - centre[name, None])
            names.append(f"effect of {name}")
    x = np.column_stack([np.ones(len(table[node])), *columns])
    if hasattr(variables[node], "levels"):
        targets = {level: (table[node] == level).astype(float) for level in variables[node].levels}
    else:
        targets = {None: on_grid(table[node], variables[node], plan) if exact else table[node]}
    for level, y in targets.items():
        beta, *_ = np.linalg.lstsq(x, y, rcond=None)
        freedom = len(y) - x.shape[1]
        left = ((y - x @ beta) ** 2).sum()
        errors = np.sqrt(left / freedom * np.linalg.inv(x.T @ x).diagonal())
        here = ["level" if level is None else f"share of {level}"]
        here += [name if level is None else f"{name} on {level}" for name in names]
        for name, value, error in zip(here, beta, errors, strict=True):
            yield name, value, *stats.t.interval(0.95, freedom, value, error)
        if level is None:
            bounds = np.sqrt(left / stats.chi2.isf([0.025, 0.975], freedom))
            yield "noise", np.sqrt(left / freedom), *bounds


def centres(tables: studies.Tables, plan: StudyPlan, exact=True) -> dict:
    found = {}
    pooled = studies.pooled_table(tables)
    for variable in plan.variables:
        for level in getattr(variable, "levels", (None,)):
            column = pooled[variable.name]
            if level is not None:
                column = column == level
            elif exact:
                column = on_grid(column, variable, plan)
            found[variable.name, level] = column.mean()
    return found


@pytest.mark.parametrize("seed", range(3))
def test_estimates_are_those_of_least_squares_on_the_rows_of_each_client(seed):
    """To the last digits on the values a summary holds; within a thousandth of an interval on the values themselves."""
    tables = studies.mixed(seed, (300, 220, 150, 80))
    plan = studies.plan_of(tables)
    drifts = by_key(estimate_drift(studies.cohort_of(tables), PARENTS))
    compared = 0
    for client, table in tables.items():
        for node, parents in PARENTS.items():
            for exact, within in ((True, 1e-8), (False, 1e-3)):
                rows = list(least_squares(table, plan, node, parents, centres(tables, plan, exact), exact))
                for name, value, low, high in rows:
                    drift = drifts[node, client, name]
                    size = high - low
                    assert abs(drift.estimate - value) <= within * size, (node, client, name)
                    if name == "noise":  # heavy tails make it wider than normal ones would
                        assert drift.low <= low + 2e-3 * size
                        assert drift.high >= high - 2e-3 * size
                    elif not name.startswith("share"):
                        assert abs(drift.low - low) <= within * size + 1e-3 * size * (not exact)
                        assert abs(drift.high - high) <= within * size + 1e-3 * size * (not exact)
                    compared += exact
    assert compared == len(drifts)


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


@pytest.mark.parametrize(("odd", "by", "quantity"), [("slope", 1.0, "effect of x"), ("noise", 0.7, "noise")])
@pytest.mark.parametrize("seed", range(3))
def test_the_client_that_differs_is_flagged_and_nobody_else_for_it(odd, by, quantity, seed):
    drifts = estimate_drift(studies.cohort_of(study(seed, odd=odd, by=by)), {"y": ("x", "z")})
    assert {drift.client for drift in drifts if drift.flagged and drift.quantity == quantity} == {"c2"}
    row = tabulate_drift(drifts)["y"]
    assert max(row, key=lambda client: abs(row[client].deviation)) == "c2"
    found = by_key(drifts)["y", "c2", quantity]
    assert found.deviation > 4
    assert found.low > found.pooled


@pytest.mark.parametrize("seed", range(3))
def test_a_client_whose_level_is_far_off_does_not_make_the_others_look_odd(seed):
    drifts = estimate_drift(studies.cohort_of(study(seed, odd="level", by=50.0)), {"y": ("x", "z")})
    assert [(drift.client, drift.quantity) for drift in drifts if drift.flagged] == [("c2", "level")]
    found = by_key(drifts)
    assert found["y", "c2", "level"].estimate - found["y", "c2", "level"].pooled == pytest.approx(50, abs=1)
    assert all(abs(found["y", f"c{k}", "level"].deviation) < 4 for k in (0, 1, 3, 4, 5))


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


def test_the_order_of_clients_does_not_matter():
    tables = studies.mixed(4)
    plan = studies.plan_of(tables)
    messages = [summarize(table, plan, client) for client, table in tables.items()]
    assert estimate_drift(add_up(messages, plan), PARENTS) == estimate_drift(add_up(messages[::-1], plan), PARENTS)


@settings(max_examples=10, deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(-1e3, 1e3), st.integers(0, 50))
def test_other_units_give_the_same_numbers_in_other_units(scale, shift, seed):
    tables = study(seed, clients=4, rows=40)
    turned = {client: {**table, "x": shift * scale + scale * table["x"]} for client, table in tables.items()}
    mine, theirs = (by_key(estimate_drift(studies.cohort_of(t), {"y": ("x", "z"), "x": ()})) for t in (tables, turned))
    for key, drift in mine.items():
        other, unit, origin = theirs[key], 1.0, 0.0
        if key[2] == "effect of x":
            unit = 1 / scale
        elif key[0] == "x":
            unit, origin = scale, shift * scale * (key[2] == "level")
        size = unit * (drift.high - drift.low)
        for name in ("estimate", "low", "high", "pooled"):
            assert getattr(other, name) == pytest.approx(origin + unit * getattr(drift, name), abs=2e-3 * size)
        assert other.deviation == pytest.approx(drift.deviation, abs=0.01)


def test_renaming_clients_renames_and_nothing_else():
    tables = studies.numbers(2, (50, 40, 30))
    names = {"site0": "c", "site1": "a", "site2": "b"}
    mine = estimate_drift(studies.cohort_of(tables), {"v2": ("v1",)})
    theirs = by_key(
        estimate_drift(studies.cohort_of({names[site]: table for site, table in tables.items()}), {"v2": ("v1",)})
    )
    for drift in mine:
        other = theirs["v2", names[drift.client], drift.quantity]
        assert (other.estimate, other.low, other.high) == (drift.estimate, drift.low, drift.high)
        assert other.flagged == drift.flagged
        assert other.deviation == pytest.approx(drift.deviation, rel=1e-9)


# Tails


def residual_moments(seed: int, draw, rows: int = 4000) -> tuple[float, float]:
    """The fourth cumulant of what two skewed causes leave, from moments and from the residuals themselves."""
    rng = np.random.default_rng([seed, 8])
    first = rng.exponential(1.0, rows)
    second = 0.5 * first + rng.exponential(0.7, rows)
    x = first - 0.8 * second + draw(rng, rows)
    columns = np.column_stack([x, first, second]) + 3.0  # far from zero, as a client's may be
    both = np.column_stack([columns, columns**2])
    centred = both - both.mean(axis=0)
    cumulants = fourth_cumulants(centred.T @ centred, both.mean(axis=0), rows)
    slopes = np.linalg.lstsq(centred[:, 1:3], centred[:, 0], rcond=None)[0]
    left = centred[:, 0] - centred[:, 1:3] @ slopes
    found = residual_cumulants(cumulants, slopes, rows, left.var(), (centred[:, 1:3] @ slopes).var())
    return found.fourth, float((left**4).mean() - 3 * left.var() ** 2)


def test_fourth_cumulants_of_a_column_are_those_of_its_values():
    rng = np.random.default_rng(3)
    columns = 2 + np.column_stack([rng.exponential(1, 500), rng.standard_normal(500)])
    both = np.column_stack([columns, columns**2])
    centred = both - both.mean(axis=0)
    found = fourth_cumulants(centred.T @ centred, both.mean(axis=0), 500)
    a, b = centred[:, 0], centred[:, 1]
    assert found[0, 0] == pytest.approx((a**4).mean() - 3 * a.var() ** 2)
    assert found[0, 1] == pytest.approx((a**2 * b**2).mean() - a.var() * b.var() - 2 * (a * b).mean() ** 2)


@pytest.mark.parametrize("draw", [lambda r, n: r.exponential(1, n), lambda r, n: r.standard_normal(n)])
def test_what_two_causes_contribute_to_the_tails_is_taken_out(draw):
    differences = [np.subtract(*residual_moments(seed, draw)) for seed in range(40)]
    assert np.mean(differences) == pytest.approx(0, abs=4 * np.std(differences) / 40**0.5)
    assert abs(np.mean(differences)) < 0.3  # κσ⁴ is 6 for the exponential, 0 for the normal one


def test_heavy_tails_widen_the_interval_of_the_noise_and_of_nothing_else():
    rng = np.random.default_rng(5)
    light = {f"c{k}": {"x": rng.standard_normal(400)} for k in range(3)}
    heavy = {client: {"x": rng.exponential(1.0, 400)} for client in light}
    normal, exponential = (
        by_key(estimate_drift(studies.cohort_of(t), {"x": ()}))["x", "c0", "noise"] for t in (light, heavy)
    )
    ratio = np.log(exponential.high / exponential.low) / np.log(normal.high / normal.low)
    assert ratio == pytest.approx(2, abs=0.4)  # √(1 + κ/2) with κ = 6
    level = by_key(estimate_drift(studies.cohort_of(heavy), {"x": ()}))["x", "c0", "level"]
    x = heavy["c0"]["x"]
    assert level.high - level.low == pytest.approx(2 * stats.t.isf(0.025, 399) * x.std(ddof=1) / 20, rel=1e-3)


# What cannot be told is said, not raised


def test_clients_with_too_few_rows_say_so():
    drifts = estimate_drift(studies.cohort_of(studies.mixed(0, (60, 40, 4, 1))), {"score": ("age", "dose", "flag")})
    for drift in drifts:
        small = drift.client in ("clinic c", "clinic d")
        assert (drift.estimate is None) == (drift.deviation is None) == small
        assert ("too few rows" in drift.note) == small
        assert drift.pooled is not None
        assert not (small and drift.flagged)


def test_a_cause_that_does_not_vary_at_a_client_is_named():
    tables = study(1, clients=4, rows=50)
    tables["c1"]["x"] = np.full(50, 47.0)
    drifts = by_key(estimate_drift(studies.cohort_of(tables), {"y": ("x", "z")}))
    effect, level, other = (drifts["y", "c1", name] for name in ("effect of x", "level", "effect of z"))
    assert effect.estimate is effect.deviation is None
    assert effect.note == "x does not vary here"
    assert level.note == "not comparable: x does not vary here"
    assert level.deviation is None
    assert level.estimate is not None
    plain = np.column_stack([np.ones(50), tables["c1"]["z"]])
    assert other.estimate == pytest.approx(np.linalg.lstsq(plain, tables["c1"]["y"], rcond=None)[0][1], abs=1e-4)
    assert not other.note


def test_causes_that_cannot_be_told_apart_and_levels_that_are_not_there_are_named():
    tables = study(2, clients=4, rows=50)
    tables["c0"]["z"] = 3 - tables["c0"]["x"] / 10
    for client, table in tables.items():
        table["w"] = np.array(list("abc") if client != "c3" else list("bcb"))[np.arange(50) % 3]
    drifts = by_key(estimate_drift(studies.cohort_of(tables), {"y": ("x", "z", "w")}))
    assert drifts["y", "c0", "effect of x"].note == "x cannot be told from the other causes here"
    assert drifts["y", "c0", "effect of w: b against a"].estimate is not None
    assert drifts["y", "c3", "effect of w: b against a"].note == "no row here has w = a"
    assert drifts["y", "c3", "effect of x"].estimate is not None
    assert drifts["y", "c3", "level"].note == "not comparable: no row here has w = a"


def test_constants_copies_and_labels_without_rows_are_no_error():
    tables = studies.mixed(1, (40, 40, 40))
    tables["clinic a"]["group"][:] = "low"
    for table in tables.values():
        table["same"] = table["age"].copy()
        table["still"] = np.full(40, 3.5)
    tables["clinic b"]["dose"] = np.full(40, 1.25)
    drifts = estimate_drift(
        studies.cohort_of(tables),
        {"dose": ("age", "same"), "same": ("age",), "still": ("age",), "group": ("dose", "still"), "age": ("still",)},
    )
    json.dumps([asdict(drift) for drift in drifts], allow_nan=False)
    found = by_key(drifts)
    assert found["dose", "clinic b", "noise"].estimate < 1e-4
    assert found["dose", "clinic b", "level"].estimate == pytest.approx(1.25, abs=1e-4)
    assert found["group", "clinic a", "share of low"].high == 1
    assert 0 < found["group", "clinic a", "share of high"].high < 0.2


# From a result


def test_a_result_tells_its_changing_mechanisms_and_a_data_frame_takes_them():
    result = discover(studies.numbers(0))
    frame = pd.DataFrame(result.drift())
    assert set(frame["variable"]) == set(result.changing) == {"v2"}
    assert list(frame["client"].unique()) == ["site0", "site1", "site2"]
    quantities = ["level", *(f"effect of {name}" for name in sorted(result.to_dag().parents("v2"))), "noise"]
    assert list(frame["quantity"].unique()) == quantities
    assert frame["flagged"].any()
    assert frame["deviation"].notna().all()
    with pytest.raises(FrozenInstanceError):
        result.drift()[0].estimate = 0.0
    assert {drift.variable for drift in result.drift(["v1", "v3"])} == {"v1", "v3"}


def test_sums_over_clients_do_not_tell_and_say_so():
    cohort = studies.cohort_of(studies.numbers(0))
    result = discover_from(Aggregate.of(cohort), cohort.plan)
    with pytest.raises(SettingsError, match="only the sum of the clients' summaries is known"):
        result.drift()


def test_one_client_has_nothing_to_be_compared_with():
    cohort = studies.cohort_of(studies.numbers(0, (50,)))
    assert discover_from(cohort, cohort.plan).drift() == ()
    drifts = estimate_drift(cohort, {"v2": ("v1",)})
    assert [drift.deviation for drift in drifts] == [None] * 3
    assert all(drift.estimate == pytest.approx(drift.pooled) for drift in drifts)


def test_the_map_has_a_cell_for_every_mechanism_and_client():
    drifts = estimate_drift(studies.cohort_of(studies.mixed(0)), PARENTS)
    found = tabulate_drift(drifts)
    assert list(found) == sorted(PARENTS)
    for name, row in found.items():
        assert list(row) == sorted(row)
        for client, most in row.items():
            here = [abs(d.deviation) for d in drifts if (d.variable, d.client) == (name, client) and d.deviation]
            assert most is None if not here else abs(most.deviation) == max(here)


def test_unknown_variables_are_refused():
    result = discover(studies.numbers(0))
    with pytest.raises(SettingsError, match="no variable 'bmi'"):
        result.drift(["bmi"])


# Calibration


@pytest.mark.slow
@pytest.mark.parametrize("rows", [15, 100])
def test_intervals_hold_deviations_are_normal_and_flags_are_rare(rows):
    """Seeds from 1000: 95 % intervals, uniform p-values, and 5 % of mechanisms with a flag where nothing differs."""
    kept: dict[str, list[bool]] = {}
    p_values: dict[str, list[float]] = {}
    deviations, flags = [], []
    truth = {"effect of x": 0.1, "effect of z": -1.0, "noise": 1.0}
    for seed in range(1000, 1400):
        drifts = estimate_drift(studies.cohort_of(study(seed, clients=5, rows=rows)), {"y": ("x", "z")})
        flags.append(any(drift.flagged for drift in drifts))
        for drift in drifts:
            if drift.quantity in truth:
                kept.setdefault(drift.quantity, []).append(drift.low <= truth[drift.quantity] <= drift.high)
            if drift.client == "c0":
                p_values.setdefault(drift.quantity, []).append(drift.p_value)
                deviations.append(drift.deviation)
    for quantity, inside in kept.items():
        assert np.mean(inside) == pytest.approx(0.95, abs=0.015), quantity  # 3 standard errors, 2000 intervals
    for quantity, found in p_values.items():
        assert stats.kstest(found, "uniform").pvalue > 1e-3, quantity
    assert np.std(deviations) == pytest.approx(1, abs=0.06)
    assert np.mean(flags) <= 0.085  # 5 % and 3 standard errors


@pytest.mark.slow
def test_most_changed_mechanisms_of_simulated_studies_have_a_client_that_stands_out():
    """Ten clients with strengths and noise of their own, seeds from 1000."""
    told = []
    for seed in range(1000, 1020):
        drawn = simulate("linear", seed=seed)
        result = discover(drawn.columns("site"), domain="site")
        for row in pd.DataFrame(result.drift()).groupby("variable")["flagged"]:
            told.append(row[1].any())
    assert np.mean(told) > 0.95
