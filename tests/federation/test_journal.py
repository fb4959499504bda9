"""The journal: files that commands open, safe names, and no way in for changed files."""

from __future__ import annotations

import pytest
from studies import numbers

import fedcdh
from fedcdh.cli import main
from fedcdh.federation import (
    simulate_federation,
)
from fedcdh.federation.journal import Journal, StoredFile
from fedcdh.messages.envelope import (
    PROFILE,
)
from fedcdh.messages.study_file import Study


def test_stored_files_are_those_of_a_study_by_file(tmp_path, capsys):
    tables = numbers()
    outcome = simulate_federation(tables, folder=tmp_path, rounds="one")
    journal = tmp_path / "journal"
    files = [str(path) for path in sorted(journal.glob("*.summary"))]
    assert main(["discover", str(journal / "study.plan.json"), *files, "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "result.json").read_bytes() == (tmp_path / "result.json").read_bytes()
    assert Study.from_json((journal / "study.plan.json").read_bytes()) == outcome.study


def test_a_changed_file_is_refused_with_its_name(tmp_path):
    simulate_federation(numbers(), folder=tmp_path)
    stored = tmp_path / "journal" / "site0.summary"
    content = stored.read_bytes()
    stored.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(fedcdh.FedCDHError, match=r"site0\.summary cannot be used.*Remove"):
        simulate_federation(numbers(), folder=tmp_path)


def test_a_full_disk_stops_the_coordinator(tmp_path, monkeypatch):
    monkeypatch.setattr(Journal, "store", lambda *given: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space"):
        simulate_federation(numbers(), folder=tmp_path)


@pytest.mark.parametrize("client", ["../north", "a/b", "..", ".", "ü" * 200, "a\\b", "con", "study.plan.json"])
def test_every_name_stays_in_the_journal(client, tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.store(PROFILE, client, StoredFile(b"content", b"signature"))
    assert journal.load(PROFILE, client, 100).content == b"content"
    assert all(path.parent == tmp_path / "journal" for path in tmp_path.rglob("*") if path.is_file())
    journal.remove(PROFILE, client)
    assert journal.load(PROFILE, client, 100) is None
