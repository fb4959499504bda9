"""The ledger at the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ledger_studies import CLIENTS, PLAN, Columns, at, table

from fedcdh.cli import main
from fedcdh.messages.study_file import Study
from fedcdh.privacy.ledger import default_ledger
from fedcdh.privacy.ledger.ledger_file import settings_folder
from fedcdh.summaries.plan import StudyPlan


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("data.csv", table())
    write("fewer.csv", at(table(), slice(1, None)))
    Path("study.plan.json").write_text(Study(PLAN).to_json())
    return tmp_path


def write(name: str, rows: Columns) -> None:
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


SUMMARIZE = ["summarize", "study.plan.json"]


def test_the_command_line_notes_and_refuses(files, capsys, own_ledger):
    assert main(["profile", "data.csv", "--client", "north", "-q"]) == 0
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "-q"]) == 0
    before = Path("north.summary").read_bytes()
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "-q"]) == 0
    assert main([*SUMMARIZE, "fewer.csv", "--client", "north", "-q"]) == 7
    assert "since release 2 (summary" in capsys.readouterr().err
    assert Path("north.summary").read_bytes() == before
    assert main(["ledger", "show", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [entry["kind"] for entry in found["releases"]] == ["profile", "summary"]
    assert found["ledger"] == str(own_ledger)
    assert "secret" not in json.dumps(found)
    assert main(["ledger", "verify"]) == 0
    assert "is complete: 2 releases, 0 of them signed" in capsys.readouterr().out
    assert main(["ledger", "show"]) == 0
    assert "summary" in capsys.readouterr().out


def test_a_ledger_can_be_named_and_is_signed(files, capsys):
    assert main(["keys", "new", "-q"]) == 0
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "--ledger", "my.jsonl", "-q"]) == 0
    assert main(["ledger", "verify", "--ledger", "my.jsonl", "--key", "site.pub"]) == 0
    assert "1 of them signed by" in capsys.readouterr().out
    (settings_folder() / "site.key").unlink()
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "--bootstrap", "1", "--ledger", "my.jsonl", "-q"]) == 0
    assert main(["ledger", "verify", "--ledger", "my.jsonl", "--key", "site.pub"]) == 6
    assert "release 2 is not signed" in capsys.readouterr().err
    content = Path("my.jsonl").read_bytes()
    Path("my.jsonl").write_bytes(content.replace(b'"replicates":1', b'"replicates":0'))
    assert main(["ledger", "verify", "--ledger", "my.jsonl"]) == 7
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "--ledger", "my.jsonl", "-q"]) == 7
    assert "Its lines do not agree with its head" in capsys.readouterr().err


def test_a_site_with_gaps_profiles_its_complete_rows(files, capsys):
    rows = table()
    rows["a"][:3] = np.nan
    write("gaps.csv", rows)
    assert main(["profile", "gaps.csv", "--client", "north"]) == 7
    assert "profile with --complete" in capsys.readouterr().err
    assert not Path("north.profile.json").exists()
    assert main(["profile", "gaps.csv", "--client", "north", "--complete"]) == 0
    assert main([*SUMMARIZE, "gaps.csv", "--client", "north"]) == 0


def test_a_site_asks_first_and_withdraws_what_it_did_not_send(files, capsys, own_ledger):
    rows = table()
    write("data.csv", rows)
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "--dry-run"]) == 0
    assert "admit this summary" in capsys.readouterr().out
    assert not Path("north.summary").exists()
    assert not default_ledger().entries()
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "-q"]) == 0
    rows["a"][0] += 1
    write("data.csv", rows)
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "--dry-run"]) == 7
    assert "fedcdh ledger withdraw" in capsys.readouterr().err
    assert main(["ledger", "withdraw", "1", "--reason", "a wrong cell; never sent", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["noted"] == 2
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "-q"]) == 0
    assert main(["ledger", "show"]) == 0
    assert "withdrawn: 1" in capsys.readouterr().out
    assert main(["ledger", "withdraw", "1", "--reason", "again"]) == 7


def test_nothing_left_is_shown_as_nothing(files, capsys, own_ledger):
    assert main(["ledger", "show"]) == 0
    assert "0 releases" in capsys.readouterr().out
    assert main(["ledger", "verify"]) == 0
    said = capsys.readouterr().out
    assert "no ledger" in said
    assert "whole" not in said
    assert not own_ledger.exists()


def test_other_names_of_columns_are_no_way_around(files, capsys):
    """The plan calls the site's column otherwise: the ledger goes by the site's own names."""
    assert main([*SUMMARIZE, "data.csv", "--client", "north", "-q"]) == 0
    variables = (replace(PLAN.variables[0], name="blood pressure"), *PLAN.variables[1:])
    Path("other.plan.json").write_text(Study(StudyPlan(variables, CLIENTS)).to_json())
    Path("names.toml").write_text('a = "blood pressure"\n')
    named = ["summarize", "other.plan.json", "--client", "north", "--column-map", "names.toml", "-q"]
    assert main([*named, "fewer.csv"]) == 7
    assert "since release 1" in capsys.readouterr().err
    assert main([*named, "data.csv"]) == 0


def test_the_result_and_its_report_name_clients_without_disclosure_control(files):
    research = [*SUMMARIZE, "data.csv", "--no-disclosure-control", "-q", "--client"]
    assert main([*research, "north"]) == 0
    write("south.csv", table(seed=1))
    assert main([*SUMMARIZE, "south.csv", "-q", "--client", "south"]) == 0
    assert main(["discover", "study.plan.json", "north.summary", "south.summary", "-o", "result", "-q"]) == 0
    assert json.loads(Path("result/result.json").read_text())["without_disclosure_control"] == ["north"]
    assert main(["report", "result", "-o", "study.html", "-q"]) == 0
    assert "No disclosure control" in Path("study.html").read_text()
    assert "switched off at north" in Path("study.html").read_text()
