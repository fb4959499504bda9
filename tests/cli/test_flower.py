"""`fedcdh flower`."""

from __future__ import annotations

import tomllib

from cli_study import run

from fedcdh.cli import main


def test_the_app_of_a_study_is_a_folder_that_flower_reads(here, capsys):
    run("flower", "init", "heart-study")
    assert "flwr run heart-study study" in capsys.readouterr().out
    settings = tomllib.loads((here / "heart-study" / "pyproject.toml").read_text(encoding="utf-8"))
    assert "flwr" in settings["tool"]
    assert main(["flower", "init", "heart-study"]) != 0  # a folder is never overwritten


def test_a_trial_takes_names_and_an_empty_folder(here, capsys):
    assert main(["flower", "trial", "new", "--sites", "a,a"]) == 2
    assert "different names" in capsys.readouterr().err
    (here / "full").mkdir()
    (here / "full" / "file").touch()
    assert main(["flower", "trial", "full"]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert not (here / "new").exists()
