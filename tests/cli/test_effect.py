"""`fedcdh effect`, from the folder of a result alone and with the summaries."""

from __future__ import annotations

import json

import pytest
from cli_study import plan_of, run, summaries

from fedcdh.cli import main


@pytest.fixture(scope="module")
def result(study, tmp_path_factory):
    """A result with one effect that is published by site."""
    folder = tmp_path_factory.mktemp("effects") / "result"
    run("discover", plan_of(study), *summaries(study), "-o", folder, "--effect", "v1:v2", "-q")
    return folder


def pairs(result):
    records = json.loads((result / "result.json").read_text(encoding="utf-8"))["effects"]
    return [record for record in records if record["value"] and (record["cause"], record["outcome"]) != ("v1", "v2")]


def test_the_folder_has_single_sites_only_for_effects_that_were_chosen(result, capsys):
    records = json.loads((result / "result.json").read_text(encoding="utf-8"))["effects"]
    with_sites = [(one["cause"], one["outcome"]) for one in records if "by_client" in one]
    assert with_sites == [("v1", "v2")]
    one = pairs(result)[0]
    run("effect", result, "--cause", one["cause"], "--outcome", one["outcome"])
    shown = capsys.readouterr().out
    assert shown.startswith(f"total effect of {one['cause']} on {one['outcome']}: ")
    assert "What each site finds is not in the result" in shown


def test_with_summaries_every_site_is_shown_and_the_pooled_value_is_the_same(result, study, capsys):
    one = pairs(result)[0]
    names = ("--cause", one["cause"], "--outcome", one["outcome"])
    run("effect", result, *summaries(study), "--plan", plan_of(study), *names, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["value"] == one["value"]
    assert sorted(found["by_client"]) == ["coast", "north", "south"]
    run("effect", result, *summaries(study), "--plan", plan_of(study), *names, "--adjust", "parents")
    assert "north: " in capsys.readouterr().out


def test_all_effects_are_listed(result, capsys):
    run("effect", result)
    rows = capsys.readouterr().out.splitlines()
    records = json.loads((result / "result.json").read_text(encoding="utf-8"))["effects"]
    assert rows[0].startswith("cause")
    assert len([row for row in rows[1:] if row]) == len(records)
    run("effect", result, "--json")
    assert json.loads(capsys.readouterr().out)["effects"] == records


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--cause", "v9"], "has no variable 'v9'"),
        (["--cause", "v1", "--outcome", "v1"], "are both 'v1'"),
        (["--cause", "v1", "--outcome", "v2", "--adjust", "parents"], "--adjust came without summaries"),
        (["--plan", "x.json"], "--plan came without summaries"),
    ],
)
def test_what_cannot_be_answered_is_refused(options, words, result, capsys):
    assert main(["effect", str(result), *options]) == 2
    assert words in capsys.readouterr().err


def test_summaries_need_the_plan_of_the_result(result, study, capsys):
    pair = ["--cause", "v1", "--outcome", "v2"]
    assert main(["effect", str(result), *summaries(study), *pair]) == 2
    assert "Pass it with --plan" in capsys.readouterr().err
    assert main(["effect", str(result), *summaries(study), "--plan", plan_of(study)]) == 2
    assert "Name two variables" in capsys.readouterr().err
    assert main(["discover", plan_of(study), *summaries(study), "--effect", "v1:v1", "-q"]) == 2
    assert "Expected CAUSE:OUTCOME" in capsys.readouterr().err
