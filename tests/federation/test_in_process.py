"""A federation in one process gives the bytes of `discover`."""

from __future__ import annotations

import numpy as np
import pytest
from federations import (
    written,
)
from studies import mixed, numbers
from time_series import unrelated

import fedcdh
from fedcdh.discovery.api import discover
from fedcdh.errors import ExitCode, SettingsError
from fedcdh.federation import (
    simulate_federation,
)
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.reporting.result_files import render_result_json


@pytest.mark.parametrize("method", ["evidence", "constraint", "paper"])
@pytest.mark.parametrize("tables", [numbers(), mixed(sizes=(90, 70, 50))], ids=["numbers", "mixed"])
def test_messages_change_no_byte_of_the_result(tables, method, tmp_path):
    given = {"method": method, "seed": 4, "alpha": 0.03, "max_conditioning_size": 2}
    outcome = simulate_federation(tables, folder=tmp_path, **given)
    found = discover(tables, **given)
    assert render_result_json(outcome.result) == render_result_json(found)
    assert written(tmp_path) == render_result_json(found, without_disclosure_control=tables), (
        "research, as the messages say"
    )
    assert not outcome.missing


def test_settings_are_those_of_discover():
    tables = numbers()
    known = fedcdh.Knowledge(forbidden=[("v1", "v2")])
    given = {"variables": ["v2", "v1", "v4"], "kinds": {"v4": "continuous"}, "knowledge": known}
    assert render_result_json(simulate_federation(tables, **given).result) == render_result_json(
        discover(tables, **given)
    )


def test_the_limits_of_what_is_drawn_are_those_of_discover():
    tables = numbers()
    given = {"min_probability": 0.9, "min_arrow_probability": 0.95, "min_effect": 0.1}
    outcome = simulate_federation(tables, **given)
    assert render_result_json(outcome.result) == render_result_json(discover(tables, **given))
    assert outcome.result.settings.min_effect == 0.1
    with pytest.raises(SettingsError, match="min_effect is 1") as refusal:
        simulate_federation(tables, min_effect=1)
    assert refusal.value.parameter == "min_effect"


def test_unknown_faults_are_refused():
    for wrong in (("nobody", "summary"), ("site0", "answer 0"), ("site0", "request")):
        with pytest.raises(SettingsError, match="Expected one of the clients site0"):
            simulate_federation(numbers(), faults={wrong: "silent"})


def test_the_coordinator_learns_only_the_code_of_an_error():
    policy = {"site2": Policy(excluded_variables=frozenset({"v3"}))}
    outcome = simulate_federation(numbers(count=3), policy=policy)
    assert f"code {ExitCode.POLICY} ({ExitCode.POLICY.meaning})" in outcome.missing["site2"]
    assert "v3" not in outcome.missing["site2"]


def test_the_order_of_a_column_is_that_of_discover():
    rng = np.random.default_rng(5)
    tables = unrelated(4, clients=3)
    order = rng.permutation(200)
    mixed = {
        client: {name: column[order] for name, column in {"t": np.arange(200), **table}.items()}
        for client, table in tables.items()
    }
    for variables in (None, ["v0", "v1", "v2"]):
        outcome = simulate_federation(mixed, order_by="t", variables=variables)
        found = discover(mixed, order_by="t", variables=variables)
        assert outcome.result.cohort.plan.variables == found.cohort.plan.variables
        assert str(outcome.result.graph) == str(found.graph)
    assert any("rows depend on each other" in note for note in found.notes)
    assert not any("rows depend" in note for note in discover(mixed, variables=["v0", "v1"]).notes)
