"""Plans, profiles and summaries in plain words."""

from __future__ import annotations

import json

import pytest
from cli_study import SITES, data_of, plan_of, run

from fedcdh.cli import main


def test_a_plan_states_its_clients_and_prior_knowledge(study, here, capsys):
    profiles = [study / f"{site}.profile.json" for site in SITES]
    (here / "known.toml").write_text(
        '[knowledge]\nrequired = [["v1", "v2"]]\nforbidden = [["v2", "v3"]]\ntiers = [["v1"], ["v2", "v3"]]\n',
        encoding="utf-8",
    )
    run("plan", *profiles, "--declare", "known.toml", "-q")
    run("inspect", "study.plan.json")
    said = capsys.readouterr().out
    for line in (
        "Clients: coast, north, south.",
        "  v1 causes v2",
        "  v2 does not cause v3",
        "  tier 0: v1",
        "Not signed.",
    ):
        assert line in said.splitlines()


def test_levels_are_counted(here, capsys):
    lines = ["ward,age", *(f"{'ABC'[place % 3]},{place % 40}.5" for place in range(300))]
    (here / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run("profile", "data.csv", "--client", "north", "-q")
    run("plan", "north.profile.json", "-q")
    run("summarize", "study.plan.json", "data.csv", "--client", "north", "-q")
    capsys.readouterr()
    run("inspect", "north.profile.json")
    assert "A 100, B 100, C 100" in capsys.readouterr().out
    run("inspect", "north.summary")
    said = capsys.readouterr().out
    assert "A 100, B 100, C 100" in said
    assert "The rarest level that occurs has 100 rows." in said


def test_without_its_plan_a_summary_shows_its_header_only(study, here, capsys):
    (here / "north.summary").write_bytes((study / "north.summary").read_bytes())
    run("inspect", "north.summary")
    assert "Name it with --plan" in capsys.readouterr().out
    assert main(["inspect", "north.summary", "--numbers", "n.csv"]) == 4
    assert "Name it with --plan" in capsys.readouterr().err
    run("inspect", "north.summary", "--plan", plan_of(study), "--json")
    assert json.loads(capsys.readouterr().out)["client"] == "north"


def test_a_plan_of_another_study_is_refused(study, here, capsys):
    profiles = [study / f"{site}.profile.json" for site in SITES]
    run("plan", *profiles, "--study", "other", "-q")
    assert main(["inspect", str(study / "north.summary"), "--plan", "study.plan.json"]) == 4
    assert "Name the plan that it was made with" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--bootstrap", "1"], []])
def test_what_was_made_without_control_says_so(study, here, capsys, words):
    run("summarize", plan_of(study), data_of(study), "--client", "north", "--no-disclosure-control", "-q", *words)
    capsys.readouterr()
    run("inspect", "north.summary", "--plan", plan_of(study))
    assert "It was made without disclosure control" in capsys.readouterr().out
    if words:
        run("inspect", "north.boot-001.summary", "--plan", plan_of(study))
        assert "Its rows were resampled" in capsys.readouterr().out
