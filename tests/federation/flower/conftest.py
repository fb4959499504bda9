"""Fixtures of tests with flwr."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedcdh.cli import main

SITES = ("coast", "north", "south")


@pytest.fixture(autouse=True)
def _in_a_run(monkeypatch):
    """Give this process the identity of a Flower process, without which no message can be made."""
    try:
        from flwr.supercore import task_identity
    except ImportError:  # the app folder is written without flwr
        return
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(task_identity.TaskIdentity, name, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Three sites with data and settings, under the safe policy."""
    folder = tmp_path_factory.mktemp("sites")
    given = ("--sites", ",".join(SITES), "--rows", "4000,4500,5000", "--variables", "4", "--seed", "5")
    assert main(["simulate", "-o", str(folder), *given, "-q"]) == 0
    for name in SITES:
        settings = f'client = "{name}"\ndata = "data.csv"\nmax_plans = 99\nledger = "releases.jsonl"\n'
        (folder / name / "site.toml").write_text(settings, encoding="utf-8")
    return folder
