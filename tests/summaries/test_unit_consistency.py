"""Different units: found in nearly all studies, and hardly ever reported without reason."""

from __future__ import annotations

import numpy as np
import pytest
import studies

from fedcdh.errors import PlanError
from fedcdh.evaluation.demo import hospital_study
from fedcdh.evaluation.simulation import AUTHORS, PAPER, simulate
from fedcdh.federation.planning.study_from_profiles import plan_study
from fedcdh.messages.profile_file import ProfileMessage
from fedcdh.summaries.profiles import Profile, profile
from fedcdh.summaries.unit_consistency import CONVERSIONS, find_unit_mismatch


def messages(tables, **more) -> list[tuple[str, ProfileMessage]]:
    return [(f"{client}.json", ProfileMessage(profile(table, client), **more)) for client, table in tables.items()]


def draw_clients(
    seed: int, location: float = 5.4, scale: float = 1.1, apart: float = 0.3
) -> dict[str, dict[str, np.ndarray]]:
    """Clients that differ by 0.3 standard deviations in level and 15 % in spread, as clients do."""
    rng = np.random.default_rng([seed, 4])
    shapes = [(apart * rng.standard_normal(), np.exp(apart / 2 * rng.standard_normal())) for _ in range(4)]
    return {
        f"site {k}": {"q": location + scale * (shift + spread * rng.standard_normal(150))}
        for k, (shift, spread) in enumerate(shapes)
    }


@pytest.mark.parametrize(
    ("location", "scale", "factor", "offset", "units"),
    [
        (36.9, 0.6, 1.8, 32, "°C and °F"),
        (5.4, 1.1, 18.02, 0, "mmol/l and mg/dl of glucose"),
        (75, 9, 2.2046, 0, "kg and lb"),
        (170, 9, 1 / 2.54, 0, "inch and cm"),
        (5.2, 0.9, 1000, 0, "kg and g"),
        (3, 0.5, 1e6, 0, "10^6"),
        (-5.4, 0.8, 1000, 0, "kg and g"),
    ],
)
@pytest.mark.parametrize("wrong", [1, 2])
def test_different_units_are_found_and_explained(location, scale, factor, offset, units, wrong):
    tables = draw_clients(3, location, scale, 0.1 if factor < 3 else 0.3)  # small factors take more alike clients
    assert plan_study(messages(tables))
    for client in list(tables)[:wrong]:
        tables[client] = {"q": factor * tables[client]["q"] + offset}
    with pytest.raises(PlanError, match="Expected the same unit at all sites") as refused:
        plan_study(messages(tables))
    message = str(refused.value)
    assert units in message
    for said in ("'site 0'", "'site 3'", "median", "Convert the column at the site", "--accept-differences q"):
        assert said in message
    assert plan_study(messages(tables), accept_differences=["q"]).plan == studies.plan_of(
        tables, accept_differences=["q"]
    )


def test_different_units_are_found_in_at_least_95_of_100_studies():
    found = 0
    for seed in range(100):
        tables = draw_clients(seed)
        tables["site 0"] = {"q": 18.02 * tables["site 0"]["q"]}
        found += (
            find_unit_mismatch(
                "q", {c: m.profile.columns["q"] for c, (_, m) in zip(tables, messages(tables), strict=True)}
            )
            is not None
        )
    assert found >= 95


def find_all(tables) -> list[str]:
    profiles: list[Profile] = [profile(table, client) for client, table in tables.items()]
    return [
        name
        for name in profiles[0].columns
        if find_unit_mismatch(name, {one.client: one.columns[name] for one in profiles})
    ]


@pytest.mark.parametrize("model", ["linear", "general"])
@pytest.mark.parametrize("dialect", [PAPER, AUTHORS])
@pytest.mark.parametrize("clients", [2, 5])
def test_simulated_clients_are_not_reported(model, dialect, clients):
    for seed in range(12):
        study = simulate(model, clients=clients, rows=100, seed=seed, dialect=dialect)
        named = {client: dict(zip(study.names, table.T, strict=True)) for client, table in study.tables.items()}
        assert find_all(named) == []


def test_the_hospitals_of_the_demo_are_not_reported():
    for seed in range(4):
        assert find_all(hospital_study(seed).tables) == [], seed


def test_few_values_constants_and_labels_are_not_reported():
    tables = {
        "a": {"x": np.arange(15.0) + 5, "c": [1.0] * 15},
        "b": {"x": 1000 * (np.arange(15.0) + 5), "c": [1e3] * 15},
    }
    assert find_all(tables) == []
    assert find_all({"a": {"x": np.full(50, np.nan)}, "b": {"x": np.arange(50.0)}}) == []
    assert len({conversion.factor for conversion in CONVERSIONS}) == len(CONVERSIONS)
