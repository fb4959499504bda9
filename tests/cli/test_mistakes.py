"""Deliberate mistakes: exchanged arguments, files that came twice, several bad files, dry runs, misspelt paths."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from cli_study import data_of, make_study, plan_of, run, summaries

from fedcdh.cli import main


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDCDH_LEDGER", str(folder / "releases.jsonl"))
        return make_study(folder)


@pytest.fixture
def study(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "study")
    monkeypatch.setenv("FEDCDH_LEDGER", str(tmp_path / "ledger" / "releases.jsonl"))
    monkeypatch.chdir(tmp_path / "study")
    return tmp_path / "study"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


DATA, PLAN, PROFILE, SUMMARY = "north/data.csv", "study.plan.json", "north.profile.json", "north.summary"


@pytest.mark.parametrize(
    ("words", "found", "advice"),
    [
        (("summarize", DATA, PLAN, "--client", "north"), "is a table", "fedcdh summarize PLAN DATA"),
        (("summarize", SUMMARY, DATA, "--client", "north"), "is a summary", "follow the plan"),
        (("summarize", PLAN, PLAN, "--client", "north"), "is a plan", "The plan comes first"),
        (("profile", PLAN, "--client", "north"), "is a plan", "The plan comes first"),
        (("profile", PROFILE, "--client", "north"), "is a profile", "fedcdh plan PROFILE"),
        (("discover", SUMMARY, PLAN), "is a summary", "fedcdh discover PLAN SUMMARY"),
        (("discover", PLAN, PROFILE), "is a profile", "fedcdh plan PROFILE"),
        (("discover", PLAN, DATA), "is a table", "Tables follow the plan"),
        (("aggregate", SUMMARY, PLAN), "is a summary", "follow the plan"),
        (("plan", SUMMARY, "-o", "new.plan.json"), "is a summary", "follow the plan"),
        (("plan", PLAN, "-o", "new.plan.json"), "is a plan", "The plan comes first"),
        (("advise", DATA, PLAN, "--client", "north"), "is a", "plan"),
        (("secure-sum", "run", "north", PLAN), "is a folder", "fedcdh secure-sum run PLAN FOLDER"),
        (("secure-sum", "run", DATA, "rounds"), "is a table", "fedcdh secure-sum run PLAN FOLDER"),
        (("secure-sum", "run", PLAN, SUMMARY), "is a file", "fedcdh secure-sum run PLAN FOLDER"),
        (("compare", "truth.json", PLAN), "is a plan", "fedcdh compare RESULT TRUTH"),
        (("compare", DATA, "truth.json"), "is a table", "fedcdh compare RESULT TRUTH"),
        (("compare", SUMMARY, "truth.json"), "is a summary", "fedcdh compare RESULT TRUTH"),
        (("secure-sum", "join", DATA, PLAN, "--client", "north"), "is a table", "Tables follow the plan"),
        (("rounds", "answer", PLAN, DATA, PLAN, "--client", "north"), "is a table", "Tables follow the plan"),
    ],
)
def test_exchanged_arguments_get_advice_about_their_order(study, capsys, words, found, advice):
    before = tree(study)
    assert main([*words]) not in (0, 70)
    said = " ".join(capsys.readouterr().err.split())
    assert found in said
    assert advice in said
    assert "expected" in said
    assert tree(study) == before


def test_the_true_graph_is_not_scored_as_a_result(study, capsys):
    run("discover", plan_of(study), *summaries(study), "-o", study / "result", "-q")
    run("compare", study / "result", study / "truth.json")
    capsys.readouterr()
    run("compare", study / "truth.json", study / "result", code=3)
    said = " ".join(capsys.readouterr().err.split())
    assert "is a result; expected the true graph" in said
    assert "fedcdh compare RESULT TRUTH" in said


def test_all_bad_files_are_listed(study, capsys):
    for name in ("north", "south"):
        content = bytearray((study / f"{name}.summary").read_bytes())
        content[-1] ^= 1
        (study / f"{name}.summary").write_bytes(content)
    run("discover", plan_of(study), *summaries(study), code=5)
    said = capsys.readouterr().err
    assert "2 files cannot be used" in said
    assert "north.summary" in said
    assert "south.summary" in said


def test_a_resent_summary_is_named_with_both_files_and_dates(study, capsys):
    shutil.copy(study / "north.summary", study / "again.summary")
    run("discover", plan_of(study), *summaries(study), study / "again.summary", code=5)
    said = " ".join(capsys.readouterr().err.split())
    for part in ("'north'", "north.summary (written 20", "again.summary (written 20", "300 rows", "SHA-256"):
        assert part in said


def test_all_bad_profiles_are_listed(study, capsys):
    for name in ("north", "south"):
        text = (study / f"{name}.profile.json").read_text()
        (study / f"{name}.profile.json").write_text(text[: len(text) // 2])
    before = tree(study)
    run("plan", study / "north.profile.json", study / "south.profile.json", study / SUMMARY, code=3)
    said = " ".join(capsys.readouterr().err.split())
    assert "3 files cannot be used" in said
    for part in ("north.profile.json", "south.profile.json", "north.summary is a summary"):
        assert part in said
    assert tree(study) == before


def test_a_resent_summary_of_a_sum_is_named_with_both_files_and_dates(study, capsys):
    content = bytearray((study / "north.summary").read_bytes())
    shutil.copy(study / "north.summary", study / "again.summary")
    run("aggregate", plan_of(study), *summaries(study), study / "again.summary", code=5)
    said = " ".join(capsys.readouterr().err.split())
    for part in ("north.summary (written 20", "again.summary (written 20", "300 rows", "SHA-256"):
        assert part in said
    assert (study / "north.summary").read_bytes() == content


def test_two_different_summaries_for_a_sum_are_named_with_their_dates(study, tmp_path, capsys):
    table = tmp_path / "fewer.csv"
    table.write_text("\n".join((study / DATA).read_text().splitlines()[:250]))
    other = study / "later.summary"
    run(*("summarize", plan_of(study), table, "--client", "north", "-o", other, "--no-disclosure-control", "-q"))
    capsys.readouterr()
    run("aggregate", plan_of(study), *summaries(study), other, code=5)
    said = " ".join(capsys.readouterr().err.split())
    for part in ("north.summary (written 20", "later.summary (written 20", "300 rows", "249 rows", "different"):
        assert part in said


@pytest.mark.parametrize(
    "words",
    [
        ("summarize", PLAN, DATA, "--client", "north", "-o", "new.summary", "--dry-run"),
        ("profile", DATA, "--client", "north", "-o", "new.profile.json", "--dry-run"),
        ("profile", DATA, "--client", "north", "--complete", "--dry-run"),
    ],
)
def test_a_dry_run_writes_nothing_at_all(study, tmp_path, monkeypatch, words):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for ledger in ("", str(tmp_path / "elsewhere" / "x.jsonl")):
        monkeypatch.setenv("FEDCDH_LEDGER", ledger)
        before = tree(tmp_path)
        assert main([*words]) == 0
        assert tree(tmp_path) == before


def test_a_dry_run_reads_the_ledger_that_is_there(study, tmp_path):
    run("summarize", plan_of(study), data_of(study), "--client", "north", "-o", tmp_path / "first.summary", "-q")
    before = tree(tmp_path)
    run("summarize", plan_of(study), data_of(study), "--client", "north", "--dry-run", "-q")
    assert tree(tmp_path) == before


def test_a_misspelt_folder_gets_no_key(tmp_path, capsys):
    run("keys", "new", "-o", tmp_path / "nowhere" / "site.key", code=2)
    assert "does not exist" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_columns_that_are_no_variables_are_excluded_by_the_site(study, tmp_path, capsys):
    lines = (study / DATA).read_text().splitlines()
    number = np.random.default_rng(0).permutation(len(lines) - 1) + 5000
    table = tmp_path / "with.csv"
    rows = [f"patient,note,{lines[0]}"]
    rows += [f"{one},seen by {one},{line}" for one, line in zip(number, lines[1:], strict=True)]
    table.write_text("\n".join(rows))
    target = tmp_path / "n.profile.json"
    run("profile", table, "--client", "north", "-o", target, code=3)
    said = capsys.readouterr().err
    assert "'patient'" in said
    assert "'note'" in said
    assert "--exclude patient --exclude note" in said
    assert not target.exists()
    run("profile", table, "--client", "north", "-o", target, "--exclude", "patint", code=3)
    assert "did you mean 'patient'" in capsys.readouterr().err
    run("profile", table, "--client", "north", "-o", target, "--exclude", "patient", "--exclude", "note", "-q")
    assert target.read_bytes() == (study / PROFILE).read_bytes()


def test_advice_without_a_plan_is_about_the_columns_that_are_left(study, tmp_path, capsys):
    table = tmp_path / "with.csv"
    lines = (study / DATA).read_text().splitlines()
    table.write_text("\n".join([f"patient,{lines[0]}", *(f"p{n},{line}" for n, line in enumerate(lines[1:]))]))
    assert main(["advise", str(table), "--client", "north", "-q"]) != 0
    assert "'patient'" in capsys.readouterr().err
    run("advise", table, "--client", "north", "--exclude", "patient")
    assert "may leave as it is" in capsys.readouterr().out
    run("advise", table, "--client", "north", "--exclude", "patiens", code=3)
    assert "did you mean 'patient'" in capsys.readouterr().err
    run("advise", plan_of(study), table, "--client", "north", "--exclude", "patient", code=2)
    assert "--exclude" in capsys.readouterr().err


def test_a_column_that_came_twice_is_named_at_the_site(study, tmp_path, capsys):
    table = tmp_path / "twice.csv"
    lines = (study / DATA).read_text().splitlines()
    table.write_text("\n".join([f"v1 copy,{lines[0]}", *(f"{line.split(',')[0]},{line}" for line in lines[1:])]))
    run("profile", table, "--client", "north", "-o", tmp_path / "north.profile.json", "--dry-run", "-q")
    said = " ".join(capsys.readouterr().err.split())
    first = lines[0].split(",")[0]
    assert f"'{first}' and 'v1 copy' have the same value in every row" in said
    run("profile", table, "--client", "north", "--exclude", first, "--dry-run", "-q")
    assert "same value" not in capsys.readouterr().err
