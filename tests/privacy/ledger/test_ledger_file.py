"""The ledger as a file: changes are noticed, crashes are survived."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from killed_ledger import released
from ledger_studies import PLAN, at, count, gate_in, sent, table

from fedcdh._io.strict_json import to_canonical_json
from fedcdh.errors import LedgerError
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.ledger import (
    ReleaseLedger,
)
from fedcdh.privacy.ledger.row_sketches import N_BUCKETS
from fedcdh.summaries.variables import Categorical


def test_a_withdrawn_release_counts_no_more(tmp_path):
    gate = gate_in(tmp_path)
    assert not sent(table(), gate)
    corrected = at(table(), slice(1, None))
    assert sent(corrected, gate)
    assert gate.ledger.withdraw(1, "the export was wrong") == 2
    assert not sent(corrected, gate)
    assert sent(table(), gate), "what was withdrawn is no way back to the rows of then"
    assert [entry.release.kind for entry in gate.ledger.entries()] == ["summary", "withdrawn", "summary"]


@pytest.mark.parametrize(("number", "reason"), [(0, "why"), (2, "why"), (9, "why"), (1, " "), (1, "y" * 501)])
def test_only_what_is_there_is_withdrawn_and_with_a_reason(tmp_path, number, reason):
    gate = gate_in(tmp_path)
    assert not sent(table(), gate)
    with pytest.raises(LedgerError):
        gate.ledger.withdraw(number, reason)
    assert count(gate) == 1
    gate.ledger.withdraw(1, "it was not sent")
    with pytest.raises(LedgerError, match="cannot be withdrawn"):
        gate.ledger.withdraw(1, "twice")


def book(folder: Path, releases: int = 4, key: SigningKey | None = None) -> ReleaseLedger:
    ledger = ReleaseLedger(folder / "releases.jsonl")
    for number in range(1, releases + 1):
        assert ledger.record(released(number), key=key) == number
    return ledger


def test_a_ledger_is_private_and_says_when_and_what(tmp_path):
    key = SigningKey.generate()
    ledger = book(tmp_path, key=key)
    for path in (ledger.path, ledger.head):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for number, entry in enumerate(ledger.entries(), start=1):
        assert (entry.number, entry.key, entry.release) == (number, key.public, released(number))
        assert entry.time.endswith("+00:00")


@pytest.mark.parametrize("signed", [False, True])
def test_any_byte_that_is_changed_is_noticed(tmp_path, signed):
    ledger = book(tmp_path, 2, SigningKey.generate() if signed else None)
    content, head = ledger.path.read_bytes(), ledger.head.read_bytes()
    for path, good in ((ledger.path, content), (ledger.head, head)):
        for place in range(0, len(good), 1 if path == ledger.head else 7):
            path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
            with pytest.raises(LedgerError, match="nothing leaves"):
                ledger.record(released(9))
        path.write_bytes(good)
    assert ledger.record(released(3)) == 3


def test_bytes_of_sketches_are_noticed_as_well(tmp_path):
    gate = gate_in(tmp_path)
    assert not sent(table(), gate)
    content, rng = gate.ledger.path.read_bytes(), np.random.default_rng(0)
    for place in rng.choice(len(content), 60, replace=False):
        gate.ledger.path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(LedgerError, match="nothing leaves"):
            gate.ledger.entries()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"{"])
@pytest.mark.parametrize("which", ["path", "head"])
def test_a_damaged_ledger_is_restored_and_not_replaced(tmp_path, which, content):
    ledger = book(tmp_path)
    getattr(ledger, which).write_bytes(content)
    with pytest.raises(LedgerError, match="restore a backup of both files") as refused:
        ledger.record(released(9))
    assert "--ledger" not in str(refused.value)


@pytest.mark.parametrize("head", ['"releases":-1', '"releases":99999', '"releases":true', '"releases":[]'])
def test_a_head_that_is_none_is_noticed(tmp_path, head):
    ledger = book(tmp_path)
    ledger.head.write_text(ledger.head.read_text().replace('"releases":4', head))
    with pytest.raises(LedgerError, match="nothing leaves"):
        ledger.entries()


def test_lines_that_are_dropped_moved_doubled_or_cut_are_noticed(tmp_path):
    ledger = book(tmp_path)
    first, *lines = ledger.path.read_bytes().splitlines(keepends=True)
    bent = [
        [first, *lines[:3]],
        [first, *lines[1:]],
        [first, lines[1], lines[0], *lines[2:]],
        [first, *lines, lines[3]],
        [first, *lines, lines[3], lines[3]],
        lines,
        [first],
        [],
        [first, *lines, b"\n"],
        [first, *lines[:3], lines[3][:-1]],
        [first, *lines[:3], lines[3][: len(lines[3]) // 2]],
        [first, *lines, lines[3], b"{"],
    ]
    for content in bent:
        ledger.path.write_bytes(b"".join(content))
        with pytest.raises(LedgerError, match="nothing leaves"):
            ledger.entries()
    ledger.path.write_bytes(b"".join([first, *lines]))
    assert len(ledger.entries()) == 4


def test_a_chain_forged_without_the_key_is_noticed(tmp_path):
    """Whoever can write lines that follow each other still cannot sign them."""
    key, other = SigningKey.generate(), SigningKey.generate()
    ledger = book(tmp_path, 1, key)
    forged = book(tmp_path / "forged", 1, other)
    line = json.loads(forged.path.read_bytes().splitlines()[1])
    line.update(key=key.public, previous=json.loads(ledger.path.read_bytes().splitlines()[1])["previous"])
    first = ledger.path.read_bytes().splitlines(keepends=True)[0]
    ledger.path.write_bytes(first + to_canonical_json(line).encode() + b"\n")
    with pytest.raises(LedgerError, match="its signature is false"):
        ledger.entries()


def test_one_file_without_the_other_is_noticed(tmp_path):
    ledger = book(tmp_path)
    ledger.head.rename(tmp_path / "head")
    with pytest.raises(LedgerError, match="is missing"):
        ledger.entries()
    (tmp_path / "head").rename(ledger.head)
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="It is missing, but its head is still there"):
        ledger.record(released(5))


@pytest.mark.parametrize("rest", [b"{", b'{"about":{},"before":"', b"\0" * 100])
def test_half_a_line_was_never_sent_and_is_taken_away(tmp_path, rest):
    ledger = book(tmp_path)
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole + rest)
    assert len(ledger.entries()) == 4
    assert ledger.path.read_bytes() == whole


def test_a_line_that_the_head_does_not_know_yet_counts(tmp_path):
    ledger = book(tmp_path)
    head = ledger.head.read_bytes()
    assert ledger.record(released(5)) == 5
    ledger.head.write_bytes(head)
    assert len(ledger.entries()) == 5
    assert ledger.record(released(6)) == 6


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked there")
def test_a_process_killed_at_any_line_leaves_a_ledger_that_knows_what_was_sent(tmp_path, monkeypatch):
    program = [sys.executable, str(Path(__file__).parents[2] / "support" / "killed_ledger.py"), str(tmp_path)]
    run = subprocess.run(program, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert run.returncode == 0, run.stderr
    steps = int(run.stdout)
    assert steps > 100
    noted = set()
    monkeypatch.setattr("os.fsync", lambda handle: None)  # several hundred of them take their time
    for step in range(1, steps + 2):
        ledger = ReleaseLedger(tmp_path / str(step) / "releases.jsonl")
        told = [entry.release.digest for entry in ledger.entries()]
        before = [released(1).digest] if step % 2 else []
        assert told in (before, [*before, released(2).digest])
        assert not (tmp_path / str(step) / "sent").exists() or told[-1:] == [released(2).digest]
        noted.add(len(told) - len(before))
        assert ledger.record(released(2)) == len(before) + 1
    assert noted == {0, 1}
    assert (tmp_path / str(steps + 1) / "sent").exists()


def test_two_at_once_are_both_noted_or_one_is_refused(tmp_path):
    def note(number: int) -> int:
        return ReleaseLedger(tmp_path / "releases.jsonl").record(released(number))

    with ThreadPoolExecutor(8) as workers:
        assert sorted(workers.map(note, range(24))) == list(range(1, 25))
    ledger = ReleaseLedger(tmp_path / "releases.jsonl")
    assert {entry.release.digest for entry in ledger.entries()} == {released(number).digest for number in range(24)}


def test_what_is_in_the_way_lets_nothing_leave(tmp_path, monkeypatch):
    foreign = {"text": b"my notes\n", "json": b'{"a": 1}\n', "nothing": b"", "a summary": b"\0\1\2"}
    for name, content in foreign.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(LedgerError, match="not a ledger"):
            ReleaseLedger(path).record(released(1))
        assert path.read_bytes() == content
    (tmp_path / "folder").mkdir()
    with pytest.raises(LedgerError, match="is a folder"):
        ReleaseLedger(tmp_path / "folder").record(released(1))
    with pytest.raises(LedgerError, match="cannot be read or written"):
        ReleaseLedger(tmp_path / "text" / "below a file").record(released(1))
    huge = book(tmp_path / "huge", 1)
    monkeypatch.setattr("fedcdh.privacy.ledger.ledger_file.MAX_LEDGER_BYTES", huge.path.stat().st_size + 10)
    with pytest.raises(LedgerError, match="archive"):
        huge.record(released(2))
    monkeypatch.setattr("fedcdh.privacy.ledger.ledger_file.MAX_LEDGER_BYTES", 10)
    with pytest.raises(LedgerError, match="at most 10"):
        huge.entries()


@pytest.mark.parametrize("failing", ["fsync", "write", "replace"])
def test_a_disk_that_fails_lets_nothing_leave(tmp_path, monkeypatch, failing):
    ledger = book(tmp_path, 1)

    def fail(*given: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"os.{failing}", fail)
        with pytest.raises(LedgerError, match="No space left on device"):
            ledger.record(released(2))
    assert ledger.record(released(3)) in (2, 3)
    assert ledger.entries()[-1].release == released(3)


def test_the_ledger_holds_no_value_of_any_row(tmp_path):
    """A canary in a label and in a number: neither is in the files, as text or as bytes."""
    rows = table()
    rows["g"] = np.where(rows["g"] == "x", "canary-label", "y")
    plan = replace(PLAN, variables=(*PLAN.variables[:3], Categorical("g", ("canary-label", "y"))))
    gate = gate_in(tmp_path)
    assert not sent(rows, gate, plan)
    content = gate.ledger.path.read_bytes() + gate.ledger.head.read_bytes()
    assert b"canary" not in content
    for value in rows["a"][:50]:
        assert repr(float(value))[:10].encode() not in content
    assert len(content) < 2 * N_BUCKETS * (len(PLAN.names) + 1)
