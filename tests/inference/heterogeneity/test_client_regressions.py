"""One mechanism at each client: the values of least squares on its rows, and reasons where there is no value."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
import studies
from scipy import stats

from fedcdh.discovery.drift import Drift, estimate_drift
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


def test_estimates_are_those_of_least_squares_on_the_rows_of_each_client():
    """To the last digits on the values a summary holds; within a thousandth of an interval on the values themselves."""
    for seed in range(3):
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
                        assert abs(drift.estimate - value) <= within * size, (seed, node, client, name)
                        if name == "noise":  # heavy tails make it wider than normal ones would
                            assert drift.low <= low + 2e-3 * size, seed
                            assert drift.high >= high - 2e-3 * size, seed
                        elif not name.startswith("share"):
                            assert abs(drift.low - low) <= within * size + 1e-3 * size * (not exact), seed
                            assert abs(drift.high - high) <= within * size + 1e-3 * size * (not exact), seed
                        compared += exact
        assert compared == len(drifts), seed


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
    assert drifts["y", "c0", "effect of x"].note == "x cannot be distinguished from the other causes here"
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
