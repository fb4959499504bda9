"""`fedcdh discover`: the result does not depend on how summaries travelled."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
from cli_study import SITES, summaries

import fedcdh
from fedcdh.cli import main
from fedcdh.data.readers import open_tables
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.joint import DEFAULT_MAX_ROUNDS, default_max_bytes


def test_by_file_and_in_process_give_the_same_bytes(study, tmp_path):
    assert main(["discover", str(study / "study.plan.json"), *summaries(study), "-o", str(tmp_path / "r"), "-q"]) == 0
    tables = {site: open_tables(study / site / "data.csv") for site in SITES}
    profiles = [fedcdh.profile(table, site) for site, table in tables.items()]
    bare = fedcdh.StudyPlan.from_profiles(profiles)
    plan = replace(bare, max_rounds=DEFAULT_MAX_ROUNDS, max_bytes=default_max_bytes(bare))
    result, one = (
        fedcdh.discover_from([fedcdh.summarize(table, each, site) for site, table in tables.items()], each)
        for each in (plan, bare)
    )
    assert (tmp_path / "r" / "result.json").read_text(encoding="utf-8") == render_result_json(result)
    frames = {site: pa.Table.from_batches([*pa.csv.open_csv(study / site / "data.csv")]) for site in SITES}
    assert render_result_json(fedcdh.discover(frames, rounds="one")) == render_result_json(one)


def test_the_order_of_files_and_settings_that_change_nothing_change_no_byte(study, tmp_path):
    plan = str(study / "study.plan.json")
    assert main(["discover", plan, *summaries(study), "-o", str(tmp_path / "a"), "-q"]) == 0
    assert main(["discover", plan, *reversed(summaries(study)), "-o", str(tmp_path / "b"), "--json"]) == 0
    for name in ("result.json", "graph.dot", "edges.csv", "graph.txt"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    with (tmp_path / "a" / "edges.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 21  # all pairs of six variables and the domain


def test_the_limits_of_what_is_drawn_are_options(study, tmp_path, capsys):
    arguments = ["discover", str(study / "study.plan.json"), *summaries(study), "-o", str(tmp_path / "r")]
    limits = ["--min-probability", "0.6", "--min-arrow-probability", "0.9", "--min-effect", "0.9"]
    assert main([*arguments, *limits]) == 0
    settings = json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))["settings"]
    assert (settings["min_probability"], settings["min_arrow_probability"]) == (0.6, 0.9)
    assert settings["min_effect"] == 0.9
    assert "too weak to be drawn" in capsys.readouterr().out
    assert main([*arguments, "--min-probability", "0.3"]) == 2
    assert "(option --min-probability)" in capsys.readouterr().err


def test_messages_of_an_older_study_are_refused(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    profiles = [str(study / f"{site}.profile.json") for site in SITES]
    assert main(["plan", *profiles, "--study", "cardio 2027", "-q"]) == 0
    assert main(["discover", "study.plan.json", *summaries(study), "-q"]) == 4
    assert "make the summary again" in capsys.readouterr().err
    assert main(["inspect", "study.plan.json"]) == 0
    assert "study cardio 2027" in capsys.readouterr().out


def test_stability_is_part_of_a_result_that_asked_for_it(study, tmp_path):
    arguments = ["discover", str(study / "study.plan.json"), *summaries(study), "-q", "-o"]
    assert main([*arguments, str(tmp_path / "plain")]) == 0
    assert main([*arguments, str(tmp_path / "again"), "--stability"]) == 0
    plain, again = (json.loads((tmp_path / name / "result.json").read_text("utf-8")) for name in ("plain", "again"))
    found = again.pop("stability")
    assert again == plain
    assert [run["left_out"] for run in found["runs"]] == [["coast"], ["north"], ["south"]]
    assert main(["report", str(tmp_path / "again"), "-o", str(tmp_path / "study.html"), "-q"]) == 0
    assert "Stability of links" in (tmp_path / "study.html").read_text("utf-8")


def test_where_lines_are_left_the_next_step_is_named(study, tmp_path, capsys):
    """Only where the plan lets sites answer: of two normal variables, nothing but further messages could direct one."""
    rng = np.random.default_rng(0)
    for site in ("east", "west"):
        x = rng.standard_normal(300)
        rows = np.column_stack([x, x + rng.standard_normal(300)])
        np.savetxt(tmp_path / f"{site}.csv", rows, delimiter=",", header="x,y", comments="")
        data, profile = str(tmp_path / f"{site}.csv"), str(tmp_path / f"{site}.profile.json")
        assert main(["profile", data, "--client", site, "-o", profile, "-q"]) == 0
    profiles = [str(tmp_path / f"{site}.profile.json") for site in ("east", "west")]
    for rounds, words in ((12, True), (0, False)):
        plan, named = str(tmp_path / f"{rounds}.plan.json"), ["--study", f"of {rounds}"]
        assert main(["plan", *profiles, "--max-rounds", str(rounds), "-o", plan, *named, "-q"]) == 0
        files = [str(tmp_path / f"{rounds}-{site}.summary") for site in ("east", "west")]
        for site, file in zip(("east", "west"), files, strict=True):
            data = str(tmp_path / f"{site}.csv")
            assert main(["summarize", plan, data, "--client", site, "-o", file, "-q"]) == 0
        capsys.readouterr()
        assert main(["discover", plan, *files, "-o", str(tmp_path / f"result {rounds}")]) == 0
        assert ("--ask rounds/" in capsys.readouterr().out) is words


def test_hidden_causes_are_allowed_for_and_what_has_none_is_refused(study, tmp_path, capsys):
    arguments = ["discover", str(study / "study.plan.json"), *summaries(study), "--hidden", "-o", str(tmp_path / "r")]
    assert main(arguments) == 0
    assert "hidden causes allowed" in capsys.readouterr().out
    assert json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))["format"] == "fedcdh-hidden-causes-1"
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["edges"]
    for wrong, word in (
        (["--stability"], "--stability"),
        (["--effect", "v1:v2"], "--effect"),
        (["--method", "evidence"], "--method"),
        (["--rounds", "residuals"], "--rounds"),
    ):
        assert main([*arguments, *wrong]) != 0
        assert word in capsys.readouterr().err
    assert main(["report", str(tmp_path / "r"), "-o", str(tmp_path / "r.html")]) != 0
    assert "hidden causes" in capsys.readouterr().err
