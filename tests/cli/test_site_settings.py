"""Where a site's policy is looked for, and what it is about."""

from __future__ import annotations

import os
from pathlib import Path

from fedcdh.cli import main


def test_lists_of_a_policy_speak_of_the_sites_own_columns(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text('excluded_variables = ["v1"]', encoding="utf-8")
    (tmp_path / "names.toml").write_text('"v1" = "harmless"', encoding="utf-8")
    data = str(study / "north" / "data.csv")
    assert main(["profile", data, "--client", "north", "--column-map", "names.toml"]) == 7
    assert "'harmless' (here 'v1') is among the excluded_variables" in capsys.readouterr().err
    assert main(["profile", data, "--client", "north", "--plan", str(study / "study.plan.json")]) == 7


def test_what_the_user_has_set_up_comes_before_what_lies_around(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["profile", str(study / "north" / "data.csv"), "--client", "north"]
    settings = Path(os.environ["XDG_CONFIG_HOME"]) / "fedcdh"
    settings.mkdir()
    (settings / "policy.toml").write_text('excluded_variables = ["v1"]', encoding="utf-8")
    (tmp_path / "policy.toml").write_text("disclosure_control = false", encoding="utf-8")
    assert main(arguments) == 7
    (settings / "policy.toml").unlink()
    assert main([*arguments, "-q"]) == 0
    assert "disclosure control is off" in capsys.readouterr().err  # also for those who want to hear nothing
    (tmp_path / "policy.toml").unlink()
    (tmp_path / "policy.toml").symlink_to("nowhere")
    assert main(arguments) == 7


def test_the_ledger_is_announced_with_the_first_release_only(study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDCDH_LEDGER", str(tmp_path / "releases.jsonl"))
    words = ["profile", str(study / "north" / "data.csv"), "--client", "north"]
    said = []
    for options in (["--variables", "age"], [], []):  # a refusal, the first release, the same again
        main([*words, *options])
        said.append("every release of this site is recorded" in capsys.readouterr().out)
    assert said == [False, True, False]
