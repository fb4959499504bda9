"""The command line: what a person sees, the files left behind, and the exit codes."""

import csv
import os
import subprocess
import sys

import pytest

from fedcdh.cli import main
from fedcdh.files import write_whole


def test_the_demo_shows_the_graph_and_where_the_report_is(tmp_path, capsys):
    assert main(["demo", "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "smoker → cholesterol" in shown
    assert "mechanisms that differ between clients: medication, systolic_pressure" in shown
    assert str(tmp_path / "out" / "graph.txt") in shown
    with (tmp_path / "out" / "edges.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 36  # all pairs of eight variables and the domain
    assert {"source", "target", "mark", "p_value", "separating_set", "oriented_by"} <= rows[0].keys()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["edges.csv", "graph.txt"]


def test_a_folder_that_cannot_be_written_is_an_error_with_advice(tmp_path, capsys):
    (tmp_path / "taken").write_text("a file, not a folder", encoding="utf-8")
    assert main(["demo", "-o", str(tmp_path / "taken")]) == 1
    assert "choose another folder with -o" in capsys.readouterr().err
    assert (tmp_path / "taken").read_text(encoding="utf-8") == "a file, not a folder"


def test_a_bad_seed_is_an_error_without_a_traceback(tmp_path, capsys):
    assert main(["demo", "--seed", "-1", "-o", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("fedcdh: ")


@pytest.mark.parametrize("arguments", [[], ["dance"]])
def test_unknown_commands_exit_with_two(arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2


def test_a_terminal_without_arrows_is_no_reason_to_fail(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "fedcdh", "demo", "-o", str(tmp_path)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0
    assert b"smoker ? cholesterol" in run.stdout


def test_a_file_is_whole_or_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "graph.txt"
    write_whole(path, "first")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, "second")
    assert path.read_text(encoding="utf-8") == "first"
    assert list(tmp_path.iterdir()) == [path]
