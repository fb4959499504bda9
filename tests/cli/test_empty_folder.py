"""In an empty folder, every command explains itself, refuses what is not there, and leaves nothing behind."""

from __future__ import annotations

import pytest

from fedcdh.cli import _registry, main

GROUPS = {"rounds": "ROUNDS", "secure-sum": "SECURE_SUM", "keys": "KEYS", "ledger": "LEDGER", "policy": "POLICY"}
WRITERS = {("demo",), ("simulate",), ("experiment",), ("keys", "new"), ("policy", "init")}
"""Commands that need no file."""
COMMANDS = [
    *((name,) for name in _registry.COMMANDS if name not in (*GROUPS, "flower")),
    *((group, name) for group, entries in GROUPS.items() for name in getattr(_registry, entries)),
]
MISTAKES = [[], ["none.json"], ["none.json", "none.csv", "--client", "north"], [".", "."], [".", ".", "--client", "x"]]


@pytest.mark.parametrize("command", [one for one in COMMANDS if one not in WRITERS], ids=" ".join)
def test_a_mistake_is_explained_and_leaves_nothing(command, tmp_path, monkeypatch, capsys):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("FEDCDH_LEDGER", "ledgers/releases.jsonl")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for words in MISTAKES:
        code = main([*command, *words])
        said = capsys.readouterr()
        assert code not in (70, 130), said.err
        assert said.err or said.out
        assert "Traceback" not in said.err
        assert not list((tmp_path / "here").iterdir()), words
        assert not (tmp_path / "config").exists(), words


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_needs_nothing(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: fedcdh")
    assert not list(tmp_path.iterdir())
