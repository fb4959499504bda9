"""Limits of the ledger file, and ledgers of an earlier format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedcdh.errors import LedgerError
from fedcdh.privacy.ledger import ledger_file
from fedcdh.privacy.ledger.ledger_file import EARLIER_FORMATS, MAX_REASON_LENGTH, ReleaseLedger
from fedcdh.privacy.ledger.record import Release


def some_release(number: int) -> Release:
    return Release("summary", "north", "", f"{number:064d}", 500, 12)


def test_a_ledger_may_be_as_long_as_the_limit_and_no_longer(tmp_path, monkeypatch):
    ledger = ReleaseLedger(tmp_path / "releases.jsonl")
    ledger.record(some_release(1))
    before = ledger.path.stat().st_size
    ledger.record(some_release(2))
    line = ledger.path.stat().st_size - before
    monkeypatch.setattr(ledger_file, "MAX_LEDGER_BYTES", before + 2 * line)
    assert ledger.record(some_release(3)) == 3
    monkeypatch.setattr(ledger_file, "MAX_LEDGER_BYTES", before + 3 * line - 1)
    with pytest.raises(LedgerError, match="expected at most"):
        ledger.record(some_release(4))
    assert len(ledger.entries()) == 3
    monkeypatch.setattr(ledger_file, "MAX_LEDGER_BYTES", before + 3 * line)
    assert ledger.record(some_release(4)) == 4


def test_a_reason_may_be_as_long_as_the_limit_and_no_longer(tmp_path):
    ledger = ReleaseLedger(tmp_path / "releases.jsonl")
    ledger.record(some_release(1))
    for reason in ("", " ", "r" * (MAX_REASON_LENGTH + 1)):
        with pytest.raises(LedgerError, match="expected 1 to 500"):
            ledger.withdraw(1, reason)
    assert ledger.withdraw(1, "r" * MAX_REASON_LENGTH) == 2


def outdated_ledger(folder: Path, found: str) -> dict[Path, bytes]:
    """The files of a ledger of an earlier format."""
    first = json.dumps({"format": found, "secret": "c2VjcmV0"}, separators=(",", ":")) + "\n"
    files = {
        folder / "releases.jsonl": first.encode(),
        folder / "releases.jsonl.head": f'{{"format":"{found}"}}'.encode(),
    }
    for path, content in files.items():
        path.write_bytes(content)
    return files


@pytest.mark.parametrize("found", EARLIER_FORMATS)
@pytest.mark.parametrize("with_head", [True, False])
def test_a_ledger_of_an_earlier_format_is_refused_and_left_as_it_is(tmp_path, with_head, found):
    files = outdated_ledger(tmp_path, found)
    if not with_head:
        files.pop(tmp_path / "releases.jsonl.head")
        (tmp_path / "releases.jsonl.head").unlink()
    ledger = ReleaseLedger(tmp_path / "releases.jsonl")
    for use in (ledger.entries, ledger.secret, lambda: ledger.record(some_release(1)), lambda: ledger.withdraw(1, "r")):
        with pytest.raises(LedgerError, match=f"{found!r} of an earlier version") as refused:
            use()
        assert "Expected 'fedcdh-releases-3'" in str(refused.value)
        assert "Move the ledger, its head and its lock to an archive" in str(refused.value)
    assert {path: path.read_bytes() for path in files} == files
