"""`fedcdh profile`."""

from __future__ import annotations

import json

import numpy as np
from cli_study import data_of, plan_of, run
from time_series import series

from fedcdh.cli import main


def test_a_column_without_values_is_no_mistake_of_ours(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("x,y\n" + "1,\n2,\n" * 60, encoding="utf-8")
    assert main(["profile", str(tmp_path / "d.csv"), "--client", "north", "-o", str(tmp_path / "p.json")]) == 0
    assert "no values" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "p.json")]) == 0


def test_a_dry_run_writes_and_records_nothing(study, here, monkeypatch, capsys):
    monkeypatch.setenv("FEDCDH_LEDGER", str(here / "releases.jsonl"))
    run("profile", data_of(study), "--client", "north", "--dry-run")
    assert "Policy and ledger of this site admit this profile." in capsys.readouterr().out
    assert not (here / "north.profile.json").exists()
    run("ledger", "show")
    assert "0 releases in" in capsys.readouterr().out
    (here / "own.toml").write_text("min_rows = 301\n", encoding="utf-8")
    assert main(["profile", data_of(study), "--client", "north", "--dry-run", "--policy", "own.toml"]) == 7


def test_variables_and_kinds_are_those_that_were_named(study, here, capsys):
    run("profile", data_of(study), "--client", "north", "--variables", "v2, v1", "--json")
    run("inspect", "north.profile.json")
    shown = capsys.readouterr().out
    assert shown.index("v2 ") < shown.index("v1 ")
    assert "v3" not in shown
    for words, text in (
        (["--kind", "v1=odd"], "Choose one of"),
        (["--kind", "v1"], "Write it as"),
        (["--variables", "age"], "'age'"),
    ):
        assert main(["profile", data_of(study), "--client", "north", *words]) in (2, 3)
        assert text in capsys.readouterr().err


def test_a_draft_plan_is_followed(study, here):
    run("profile", data_of(study), "--client", "north", "--plan", plan_of(study), "-q")
    fingerprint = json.loads((study / "study.plan.json").read_text(encoding="utf-8"))["fingerprint"]
    assert fingerprint in (here / "north.profile.json").read_text(encoding="utf-8")


def test_rows_in_the_order_of_a_column_show_how_many_count(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x, y = series(rng, 300, 0.8), series(rng, 300, 0.8)
    rows = [f"{t},{x[t]:.6f},{y[t]:.6f}" for t in rng.permutation(300)]
    (tmp_path / "d.csv").write_text("\n".join(["time,x,y", *rows]) + "\n", encoding="utf-8")
    words = ["profile", str(tmp_path / "d.csv"), "--client", "north", "-o", str(tmp_path / "p.json")]
    assert main([*words, "--order-by", "time"]) == 0
    shown = capsys.readouterr().out
    assert "Rows of x depend on each other:" in shown
    assert "time " not in shown
    assert main(["inspect", str(tmp_path / "p.json")]) == 0
    assert "count for correlations" in capsys.readouterr().out
    assert main([*words, "--order-by", "day"]) == 3
    assert "'day', which should give the order of the rows" in capsys.readouterr().err
