"""Locks on files. Those of Windows were not tried on Windows: what is platform-independent of them runs on POSIX locks.

`ByteLocks` gets functions that lock one byte at the position of the file, as `msvcrt.locking` does. Here these are
`fcntl.lockf`, real locks between processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

fcntl = pytest.importorskip("fcntl", reason="locks of POSIX systems")

from fedcdh._io import file_locks  # noqa: E402 (after the skip)
from fedcdh._io.file_locks import LOCKED_BYTE, LOCKS, ByteLocks, FileLocks  # noqa: E402

BYTES = ByteLocks(
    lambda handle: fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0, os.SEEK_CUR),
    lambda handle: fcntl.lockf(handle, fcntl.LOCK_UN, 1, 0, os.SEEK_CUR),
)
HOLDER = """
    import fcntl, os, sys
    handle = os.open(sys.argv[1], os.O_RDWR)
    if sys.argv[2] == "bytes":
        fcntl.lockf(handle, fcntl.LOCK_EX, 1, int(sys.argv[3]), os.SEEK_SET)
    else:
        fcntl.flock(handle, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.readline()
"""


class Holder:
    """Another process, which holds the lock until it is told to end."""

    def __init__(self, path: Path, kind: str) -> None:
        words = [sys.executable, "-c", textwrap.dedent(HOLDER), str(path), kind, str(LOCKED_BYTE)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "locked\n"

    def end(self) -> None:
        self.process.communicate("\n")


@pytest.fixture(params=["bytes", "whole files"])
def locks(request) -> tuple[FileLocks, str]:
    return (BYTES if request.param == "bytes" else LOCKS), request.param


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "a.lock").write_bytes(b"content")
    return tmp_path / "a.lock"


def test_a_lock_of_another_process_is_not_taken(path, locks):
    locker, kind = locks
    holder = Holder(path, kind)
    with path.open("r+b", buffering=0) as file:
        assert not locker.lock(file.fileno(), wait=False)
        holder.end()
        assert locker.lock(file.fileno(), wait=False), "the lock ends with the process"


def test_a_lock_is_waited_for(path, locks, monkeypatch):
    locker, kind = locks
    holder = Holder(path, kind)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        holder.end()

    if kind == "bytes":
        monkeypatch.setattr(file_locks.time, "sleep", sleep)
    else:
        holder.process.stdin.close()
    with path.open("r+b", buffering=0) as file:
        assert locker.lock(file.fileno(), wait=True)
    assert len(slept) == (kind == "bytes")
    assert holder.process.wait(timeout=30) == 0
    holder.process.stdout.close()


def test_a_lock_that_was_given_back_is_free(path, locks):
    locker, kind = locks
    with path.open("r+b", buffering=0) as file:
        assert locker.lock(file.fileno(), wait=False)
        locker.unlock(file.fileno())
        Holder(path, kind).end()


def test_neither_content_nor_position_change(path, locks):
    locker, _ = locks
    with path.open("r+b", buffering=0) as file:
        file.seek(3)
        assert locker.lock(file.fileno(), wait=False)
        assert file.tell() == 3
        assert path.read_bytes() == b"content", "the byte lies beyond the end, so others may read"
        locker.unlock(file.fileno())
        assert file.tell() == 3
    assert path.read_bytes() == b"content"
