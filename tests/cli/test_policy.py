"""`fedcdh policy`: what holds here, and why."""

from __future__ import annotations

import json

from cli_study import run

from fedcdh.cli import main
from fedcdh.privacy.disclosure.policy import Policy
from fedcdh.privacy.ledger.ledger_file import settings_folder


def shown(capsys, *arguments: object) -> dict:
    run("policy", "show", "--json", *arguments)
    return json.loads(capsys.readouterr().out)


def test_the_origin_of_the_policy_is_named(here, capsys, monkeypatch):
    assert (shown(capsys)["origin"], shown(capsys)["policy"]) == ("default", None)
    (here / "policy.toml").write_text("max_leverage = 0.9\n", encoding="utf-8")
    assert shown(capsys)["origin"].startswith("current folder")
    run("policy", "init", "-q")
    assert shown(capsys)["origin"] == "settings folder"
    monkeypatch.setenv("FEDCDH_POLICY", "policy.toml")
    assert shown(capsys)["origin"] == "environment variable FEDCDH_POLICY"
    assert shown(capsys, "--policy", "policy.toml")["origin"] == "option --policy"


def test_rules_that_differ_from_the_default_are_marked(here, capsys):
    (here / "own.toml").write_text("min_rows = 5\nmax_leverage = 0.9\nmin_cell_count = 500\n", encoding="utf-8")
    rules = shown(capsys, "--policy", "own.toml")["rules"]
    marks = {name: rule["comparison"] for name, rule in rules.items() if rule["comparison"] != "default"}
    assert marks == {"min_rows": "looser", "max_leverage": "stricter", "min_cell_count": "depends on the plan"}
    run("policy", "show", "--policy", "own.toml")
    said = capsys.readouterr().out
    assert "No row has a leverage above 0.9." in said
    assert "3 of " in said


def test_a_policy_that_would_loosen_from_the_current_folder_is_refused(here, capsys):
    (here / "policy.toml").write_text("disclosure_control = false\n", encoding="utf-8")
    assert main(["policy", "show"]) == 2
    assert "disclosure_control: looser" in capsys.readouterr().err


def test_a_new_policy_changes_nothing_and_none_is_overwritten(here, capsys):
    run("policy", "init", "-q")
    path = settings_folder() / "policy.toml"
    assert Policy.from_file(path) == Policy()
    assert {rule["comparison"] for rule in shown(capsys)["rules"].values()} == {"default"}
    path.write_text("max_leverage = 0.5\n", encoding="utf-8")
    assert main(["policy", "init"]) == 2
    assert "is not overwritten" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "max_leverage = 0.5\n"
    path.unlink()
    path.symlink_to(here / "nowhere")  # a link is something, too
    assert main(["policy", "init"]) == 2
    run("policy", "init", "-o", "own.toml")
    assert "--policy own.toml" in capsys.readouterr().out
