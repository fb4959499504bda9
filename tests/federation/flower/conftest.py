"""Fixtures of tests with flwr."""

from __future__ import annotations

from pathlib import Path

import pytest

SITES = ("coast", "north", "south")


@pytest.fixture(autouse=True)
def _in_a_run(monkeypatch):
    """What Flower's processes know of themselves; messages cannot be made without it."""
    task_identity = pytest.importorskip("flwr.supercore.task_identity")
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(task_identity.TaskIdentity, name, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Three sites with data and settings, under the safe policy."""
    folder = tmp_path_factory.mktemp("sites")
    given = ("--sites", ",".join(SITES), "--rows", "4000,4500,5000", "--variables", "4", "--seed", "5")
    from fedcdh.cli import main

    assert main(["simulate", "-o", str(folder), *given, "-q"]) == 0
    for name in SITES:
        settings = f'client = "{name}"\ndata = "data.csv"\nmax_plans = 99\nledger = "releases.jsonl"\n'
        (folder / name / "site.toml").write_text(settings, encoding="utf-8")
    return folder
