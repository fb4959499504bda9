"""What differs where: the numbers of least squares on each client's rows, calibrated, and naming the right client."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedcdh.discovery.api import discover, discover_from
from fedcdh.discovery.drift import Drift, estimate_drift, tabulate_drift
from fedcdh.errors import SettingsError
from fedcdh.evaluation.simulation import simulate
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up

PARENTS = {"dose": ("age",), "score": ("age", "group", "sex"), "group": ("dose", "sex"), "sex": ()}


def by_key(drifts: tuple[Drift, ...]) -> dict[tuple[str, str, str], Drift]:
    found = {(drift.variable, drift.client, drift.quantity): drift for drift in drifts}
    assert len(found) == len(drifts)
    return found


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
def test_the_client_that_differs_is_flagged_and_nobody_else_for_it(odd, by, quantity):
    for seed in range(3):
        drifts = estimate_drift(studies.cohort_of(study(seed, odd=odd, by=by)), {"y": ("x", "z")})
        assert {drift.client for drift in drifts if drift.flagged and drift.quantity == quantity} == {"c2"}, seed
        row = tabulate_drift(drifts)["y"]
        assert max(row, key=lambda client: abs(row[client].deviation)) == "c2", seed
        found = by_key(drifts)["y", "c2", quantity]
        assert found.deviation > 4, seed
        assert found.low > found.pooled, seed


def test_a_client_whose_level_is_far_off_does_not_make_the_others_look_odd():
    for seed in range(3):
        drifts = estimate_drift(studies.cohort_of(study(seed, odd="level", by=50.0)), {"y": ("x", "z")})
        assert [(drift.client, drift.quantity) for drift in drifts if drift.flagged] == [("c2", "level")], seed
        found = by_key(drifts)
        assert found["y", "c2", "level"].estimate - found["y", "c2", "level"].pooled == pytest.approx(50, abs=1), seed
        assert all(abs(found["y", f"c{k}", "level"].deviation) < 4 for k in (0, 1, 3, 4, 5)), seed


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
