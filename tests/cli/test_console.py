"""The console prints text for people and JSON for programs, and escapes what a terminal cannot show."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from cli_study import summaries

from fedcdh.cli import main


def test_json_is_for_programs_and_quiet_is_quiet(study, tmp_path, capsys):
    arguments = ["summarize", str(study / "study.plan.json"), str(study / "north" / "data.csv"), "--client", "north"]
    assert main([*arguments, "-o", str(tmp_path / "a"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] == 300
    assert document["bytes"] == (tmp_path / "a").stat().st_size
    assert main([*arguments, "-o", str(tmp_path / "b"), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_terminal_without_arrows_is_no_reason_to_fail(study, tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "fedcdh", "discover", str(study / "study.plan.json"), *summaries(study), "-o", "r"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0
    assert b"v3 ? v5" in run.stdout


def test_names_do_nothing_to_a_terminal(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("x,[red]y[/red]\n" + "1,2\n2,3\n" * 60, encoding="utf-8")
    arguments = ["profile", str(tmp_path / "d.csv"), "-o", str(tmp_path / "p.json"), "--client"]
    assert main([*arguments, "n\x07"]) != 0
    (tmp_path / "e.csv").write_text("\x1b[2Jx,y\n" + "1,2\n2,3\n" * 60, encoding="utf-8")
    assert main([arguments[0], str(tmp_path / "e.csv"), *arguments[2:], "north"]) != 0
    assert main([*arguments, "north"]) == 0
    said = capsys.readouterr()
    assert "[red]y[/red]" in said.out
    assert not {"\x1b", "\x07"} & set(said.out + said.err)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_who_has_seen_enough_stops_nothing(study, tmp_path, unbuffered):
    command = f"{sys.executable} -m fedcdh profile {study / 'north' / 'data.csv'} --client north | true"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    run = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "north.profile.json").read_bytes() == (study / "north.profile.json").read_bytes()
