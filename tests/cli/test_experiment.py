"""`fedcdh experiment`."""

from __future__ import annotations

import csv
import json

from cli_study import run

from fedcdh.cli import main
from fedcdh.cli.experiment import _format_duration


def test_experiments_are_listed(capsys):
    run("experiment", "list", "--json")
    assert "power" in json.loads(capsys.readouterr().out)
    run("experiment", "list")
    assert capsys.readouterr().out.splitlines()[0].split() == ["experiment", "title", "cases", "jobs"]


def test_a_run_leaves_rows_and_continues_from_them(here, capsys):
    words = ["experiment", "power", "--smallest", "--methods", "fedcdh-constraint", "--seeds", "1000:1002"]
    run(*words)
    with (here / "results" / "power.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert {row["method"] for row in rows} == {"fedcdh-constraint"}
    before = (here / "results" / "power.csv").read_bytes()
    run(*words, "-q")
    assert (here / "results" / "power.csv").read_bytes() == before


def test_rows_are_merged_dropped_and_left_for_later(here, capsys):
    words = ["experiment", "communication", "--smallest"]
    run(*words, "--minutes", "0")
    assert "jobs left" in capsys.readouterr().err
    run(*words, "-o", "other")
    capsys.readouterr()
    run(*words, "--merge", "other/communication.csv", "--json")
    merged = json.loads(capsys.readouterr().out)
    assert merged["added"] > 0 == merged["changed"]
    run(*words, "--drop", "fedcdh-paper,fedcdh", "--json")
    assert json.loads(capsys.readouterr().out)["dropped"] == merged["added"]


def test_an_unknown_experiment_is_refused(here, capsys):
    assert main(["experiment", "dance"]) == 2
    assert "power" in capsys.readouterr().err


def test_durations_are_rounded_for_people():
    assert [_format_duration(seconds) for seconds in (5.2, 600, 7200)] == ["5 s", "10 minutes", "2.0 hours"]
