"""A study with noise, from the declaration to the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from noisy_studies import CLIENTS, a_plan, bits, chain, noisy_chains

from fedcdh.cli import main
from fedcdh.discovery.api import discover_from
from fedcdh.errors import (
    MomentBoundsError,
    NotPositiveSemidefiniteError,
    SettingsError,
)
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.privacy.differential.mechanism import (
    add_noise,
)
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.bootstrap import bootstrap_summaries
from fedcdh.summaries.dp_parameters import (
    DPParameters,
)
from fedcdh.summaries.validation import admit_summaries, validate_summary


def test_what_arrives_with_noise_is_let_in_and_what_noise_does_not_explain_is_not():
    plan = a_plan(DPParameters(1, 1e-6))
    assert plan.noise is not None
    for seed in range(5):
        admit_summaries(noisy_chains(plan, 300, seed), plan)
    sent = noisy_chains(plan, 300)[0]
    damage = np.zeros_like(sent.moments)
    damage[1, 1] = -100 * plan.noise.deviation
    with pytest.raises(NotPositiveSemidefiniteError):
        validate_summary(replace(sent, moments=sent.moments + damage), plan)
    with pytest.raises(MomentBoundsError):
        validate_summary(replace(sent, moments=sent.moments - 10 * damage), plan)


def test_what_does_not_know_about_noise_refuses_it():
    plan = a_plan(DPParameters(8, 1e-6))
    sent = noisy_chains(plan, 2000)
    for method in ("evidence", "paper"):
        with pytest.raises(SettingsError, match="takes the noise in these summaries for dependence"):
            discover_from(sent, plan, method=method)
    with pytest.raises(SettingsError, match="have noise"):
        Basis.of(add_up(sent, plan))
    with pytest.raises(SettingsError, match="summaries have noise"):
        discover_from(sent, plan).drift()
    with pytest.raises(SettingsError, match="spend the plan's epsilon again"):
        bootstrap_summaries(chain(300), plan, "north", 2, 1)


def test_by_file_from_the_declaration_to_the_result(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sites = ("north", "south")
    (tmp_path / "variables.toml").write_text(
        'clients = ["north", "south"]\n' + "".join(f"[variables.{name}]\nmean = 0\nsd = 1\n" for name in "abc")
    )
    assert (
        main(["plan", "--declare", "variables.toml", "--epsilon", "4", "--expected-rows", "8000", "-o", "p.json"]) == 0
    )
    assert "epsilon 4, delta 1e-06, added by every site" in capsys.readouterr().out
    for k, site in enumerate(sites):
        rows = chain(4000, k)
        lines = ["a,b,c", *(",".join(f"{value:.6f}" for value in row) for row in zip(*rows.values(), strict=True))]
        (tmp_path / f"{site}.csv").write_text("\n".join(lines) + "\n")
        assert main(["summarize", "p.json", f"{site}.csv", "--client", site]) == 0
    assert "spends epsilon again" in capsys.readouterr().out
    assert main(["inspect", "north.summary", "--plan", "p.json"]) == 0
    assert "Noise was added to every sum" in capsys.readouterr().out
    assert main(["discover", "p.json", "north.summary", "south.summary", "-o", "result"]) == 0
    assert main(["profile", "north.csv", "--client", "north", "-q"]) == 0
    capsys.readouterr()
    assert main(["plan", "north.profile.json", "--epsilon", "1", "-o", "q.json"]) != 0
    assert "Profiles are exact numbers about the rows" in capsys.readouterr().err


def test_a_study_with_noise_is_found():
    plan = a_plan(DPParameters(2, 1e-6, expected_rows=24_000))
    result = discover_from(noisy_chains(plan, 8000), plan)
    assert result.graph.skeleton == {frozenset("ab"), frozenset("bc")}
    assert result.settings.method == "constraint"
    assert result.changing == frozenset()
    assert any("nine times in ten" in note for note in result.notes)
    assert not any("the noise hides correlations" in note for note in result.notes)
    assert result.stability().edges
    assert '"drift": null' in render_result_json(result)


def test_a_study_that_noise_leaves_nothing_of_says_so():
    plan = a_plan(DPParameters(0.1, 1e-6, expected_rows=1000))
    notes = discover_from(noisy_chains(plan, 300), plan).notes
    assert any("the noise hides correlations" in note for note in notes)
    assert any("smaller than the noise" in note for note in notes)


def test_wrong_units_are_noticed_by_the_server():
    plan = a_plan(DPParameters(4, 1e-6))
    far = {name: values * 10 for name, values in chain(3000).items()}
    sent = [add_noise(summarize(far, plan, client), plan, bits(k)) for k, client in enumerate(CLIENTS)]
    assert any("features were shortened" in note for note in discover_from(sent, plan).notes)
