"""Fixtures that the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_study import make_study


@pytest.fixture(autouse=True)
def _own_settings(tmp_path_factory, monkeypatch):
    """No key and no policy of the person who runs the tests."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("FEDCDH_KEY", "FEDCDH_POLICY", "FEDCDH_PASSPHRASE", "FEDCDH_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def study(tmp_path_factory) -> Path:
    """A folder with a plan, and a profile and a summary of every site; no test changes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("FEDCDH_LEDGER", str(tmp_path_factory.mktemp("ledger") / "releases.jsonl"))
        return make_study(tmp_path_factory.mktemp("study"))


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
