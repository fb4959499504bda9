"""Files on disk: complete or absent, whatever happens; and nothing but files is read."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from effort import PATIENCE

from fedcdh._io import storage
from fedcdh._io.storage import hold_lock, read_regular_file, write_atomically, write_files_atomically
from fedcdh.errors import DataError, SummaryFormatError

posix = pytest.mark.skipif(os.name == "nt", reason="modes, pipes and signals of POSIX")
OLD, NEW, LAST = b"old" * 1000, b"new" * 5000, b"last"


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def drafts(folder: Path) -> list[str]:
    return [name for name in names(folder) if name.endswith(".draft")]


@pytest.mark.parametrize("content", ["", "a\r\nb\n", "Größe → 😀", b"", bytes(range(256)), b"x" * 3_000_000])
def test_what_is_written_is_read_back(tmp_path, content):
    path = tmp_path / "new folder" / "file"
    for _ in range(2):  # a new file, and one in its place
        write_atomically(path, content)
        data = content.encode() if isinstance(content, str) else content
        assert read_regular_file(path, len(data), "a file") == data
    assert names(path.parent) == ["file"]


@posix
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_who_may_read_is_what_open_would_say(tmp_path, umask):
    before = os.umask(umask)
    try:
        (tmp_path / "plain").write_bytes(b"")
        write_atomically(tmp_path / "whole", b"")
        write_atomically(tmp_path / "private", b"", private=True)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"plain": 0o666 & ~umask, "whole": 0o666 & ~umask, "private": 0o600}


@posix
def test_a_file_is_never_opened_up_by_writing_it_again(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, OLD, private=True)
    write_atomically(path, NEW)
    assert path.stat().st_mode & 0o777 == 0o600


def test_text_that_no_file_can_hold_touches_nothing(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_atomically(tmp_path / "file", "\ud800")
    assert not names(tmp_path)


# Faults


@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch, call, fault):
    path = tmp_path / "file"
    write_atomically(path, OLD)

    def fails(*_):
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(storage.os, call, fails)
        with pytest.raises(type(fault)):
            write_atomically(path, NEW)
    assert names(tmp_path) == ["file"]
    assert path.read_bytes() == OLD


def test_a_disk_that_fills_up_halfway_leaves_the_old_file(tmp_path, monkeypatch):
    path, real = tmp_path / "file", os.write
    write_atomically(path, OLD)
    left = [7000]

    def write(handle, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, "full")
        written = real(handle, data[: min(left[0], 1000)])  # short writes, too
        left[0] -= written
        return written

    monkeypatch.setattr(storage.os, "write", write)
    with pytest.raises(OSError, match="full"):
        write_atomically(path, NEW)
    assert names(tmp_path) == ["file"]
    assert path.read_bytes() == OLD
    left[0] = 10**6
    write_atomically(path, NEW)
    assert path.read_bytes() == NEW


@posix
@pytest.mark.parametrize(("number", "raised"), [(errno.EIO, True), (errno.EINVAL, False)])
def test_a_folder_that_cannot_be_synced_holds_the_new_file_all_the_same(tmp_path, monkeypatch, number, raised):
    path, calls, real = tmp_path / "file", [], os.fsync

    def fsync(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(number, "folder")
        real(handle)

    monkeypatch.setattr(storage.os, "fsync", fsync)
    if raised:
        with pytest.raises(OSError, match="folder"):
            write_atomically(path, NEW)
    else:
        write_atomically(path, NEW)
    assert names(tmp_path) == ["file"]
    assert path.read_bytes() == NEW


# interrupted on its way out of `with`, a file is closed by the garbage collector, which says so
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_at_any_line_leaves_no_draft(tmp_path):
    path = tmp_path / "file"
    for line in range(1, 1000):
        path.write_bytes(OLD)
        if not interrupted_at(line, lambda: write_atomically(path, NEW)):
            break
        assert not drafts(tmp_path)
        assert path.read_bytes() in (OLD, NEW)
    assert line > 20
    assert path.read_bytes() == NEW


def interrupted_at(number: int, write: Callable[[], None]) -> bool:
    """Whether writing was interrupted as it came to its so-manieth line; it is over before that at last."""
    left = number

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename != storage.__file__:
            return None
        left -= event == "line"
        if left == 0 and event == "line":
            raise KeyboardInterrupt
        return trace

    def attempt() -> bool:
        sys.settrace(trace)
        try:
            write()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    # In a thread of its own: Python 3.11 takes an exception for handled forever when tracing interrupts its handler.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(attempt).result()


# Files that belong together


def older_files(folder: Path) -> dict[str, bytes]:
    found = {name: f"{name} was here".encode() for name in ("a", "b", "whole", "z")}
    for name, content in found.items():
        (folder / name).write_bytes(content)
    return found


def write_three(folder: Path) -> None:
    write_files_atomically([(folder / name, NEW) for name in ("a", "new", "whole")], [folder / "whole", folder / "b"])


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_written_together_take_the_place_of_others(tmp_path):
    write_three(tmp_path / "new folder")
    older_files(tmp_path / "new folder")
    write_three(tmp_path / "new folder")
    assert content(tmp_path / "new folder") == {"a": NEW, "new": NEW, "whole": NEW, "z": b"z was here"}


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
@pytest.mark.parametrize("stop", range(9))
def test_files_written_together_are_all_there_or_none(tmp_path, monkeypatch, fault, stop):
    """3 are written aside, 3 moved away, 3 moved in."""
    before, moves, move = older_files(tmp_path), [], os.replace

    def fails(source, target):
        moves.append(target)
        if len(moves) == stop + 1:
            raise fault
        move(source, target)

    monkeypatch.setattr(storage.os, "replace", fails)
    with pytest.raises(type(fault)):
        write_three(tmp_path)
    assert content(tmp_path) == before


@pytest.mark.parametrize("stop", range(9))
def test_where_nothing_can_be_undone_the_last_file_is_not_there(tmp_path, monkeypatch, stop):
    before, moves, move = older_files(tmp_path), [], os.replace

    def gone(source, target):
        moves.append(target)
        if len(moves) > stop:
            raise OSError("the disk is gone")
        move(source, target)

    monkeypatch.setattr(storage.os, "replace", gone)
    with pytest.raises(OSError, match="gone"):
        write_three(tmp_path)
    found = content(tmp_path)
    assert found == before if stop < 4 else "whole" not in found


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_interruption_at_any_line_leaves_old_files_or_new_ones(tmp_path):
    before = older_files(tmp_path)
    after = {"a": NEW, "new": NEW, "whole": NEW, "z": before["z"]}
    for line in range(1, 1000):
        (tmp_path / "new").unlink(missing_ok=True)
        older_files(tmp_path)
        if not interrupted_at(line, lambda: write_three(tmp_path)):
            break
        if drafts(tmp_path):
            gc.collect()  # a temporary folder that nobody entered yet goes with its name
        assert content(tmp_path) in (before, after)
    assert line > 50
    assert content(tmp_path) == after


@posix
def test_files_are_not_opened_up_by_writing_them_together(tmp_path):
    older_files(tmp_path)
    (tmp_path / "a").chmod(0o600)
    write_three(tmp_path)
    (tmp_path / "plain").write_bytes(b"")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes["a"] == 0o600
    assert modes["new"] == modes["whole"] == modes["plain"]


# Crashes and neighbours

KILLER = '''
import os, signal, sys
from pathlib import Path
from fedcdh._io import storage

OLD, NEW, LAST = b"old" * 1000, b"new" * 5000, b"last"

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def at_line(number):
    def trace(frame, event, _):
        nonlocal number
        if frame.f_code.co_filename != storage.__file__:
            return None
        number -= event == "line"
        if number == 0:
            die()
        return trace
    sys.settrace(trace)

def in_write(_):
    real = os.write
    os.write = lambda handle, data: (real(handle, data[: len(data) // 2]), die())

def killed(how, number, path):
    child = os.fork()
    if not child:
        how(number)
        storage.write_atomically(path, NEW)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

def check(folder, how, number, old):
    """One crash; then the file must be whole, and the next write must find it so and clean up."""
    path = folder / "file"
    path.unlink(missing_ok=True)
    if old:
        storage.write_atomically(path, OLD)
    dead = killed(how, number, path)
    found = path.read_bytes() if path.exists() else None
    assert found in ((OLD if old else None), NEW), (number, found and len(found))
    left = len(os.listdir(folder)) - path.exists()
    storage.write_atomically(path, LAST)
    assert os.listdir(folder) == ["file"] and path.read_bytes() == LAST, number
    return dead, left, found == NEW

seen = []
for old in (False, True):
    assert check(Path(sys.argv[1]), in_write, 0, old) == (True, 1, False)
    number = 1
    while (outcome := check(Path(sys.argv[1]), at_line, number, old))[0]:
        seen.append(outcome)
        number += 1
    assert outcome == (False, 0, True)
print(len(seen), sum(left for _, left, _ in seen), sum(new for _, _, new in seen))
'''


@posix
def test_kill_9_at_any_line_leaves_a_whole_file_and_the_next_write_sweeps(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLER, tmp_path], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    crashes, with_draft, with_new = map(int, done.stdout.split())
    assert crashes > 50
    assert with_draft > 10  # crashes that left a draft were among them,
    assert with_new > 5  # and crashes after the move


@posix
def test_only_abandoned_drafts_of_the_same_file_are_swept(tmp_path):
    import fcntl

    mark = "0123456789abcdef"
    alive, foreign = tmp_path / f".file.{mark}.draft", tmp_path / f".file.csv.{mark}.draft"
    strangers = [foreign, tmp_path / ".file.draft", tmp_path / ".file.notes.draft", tmp_path / f".fi.{mark}.draft"]
    abandoned = tmp_path / f".file.{mark[::-1]}.draft"
    for path in (alive, abandoned, *strangers):
        path.write_bytes(b"")
    with alive.open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_atomically(tmp_path / "file", NEW)
    assert drafts(tmp_path) == sorted(path.name for path in (alive, *strangers))
    write_atomically(tmp_path / "file", NEW)
    assert drafts(tmp_path) == sorted(path.name for path in strangers)


@posix
def test_a_draft_swept_before_it_was_locked_is_made_anew(tmp_path, monkeypatch):
    path, real, swept = tmp_path / "file", storage._lock_draft, []

    def claimed(handle):
        if len(swept) < 3:
            storage.remove_stale_drafts(path)  # a neighbour, in the one moment in which it can
            swept.append(handle)
        return real(handle)

    monkeypatch.setattr(storage, "_lock_draft", claimed)
    write_atomically(path, NEW)
    assert len(swept) == 3
    assert names(tmp_path) == ["file"]
    assert path.read_bytes() == NEW


def test_writers_of_one_file_do_not_break_each_other(tmp_path):
    path, problems = tmp_path / "file", []
    contents = [bytes([k]) * 50_000 for k in range(4)]

    def write(content):
        try:
            for _ in range(25):
                write_atomically(path, content)
                assert read_regular_file(path, 10**6, "a file") in contents
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert names(tmp_path) == ["file"]


# Reading


def test_a_file_that_is_too_long_is_not_read(tmp_path):
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole of a terabyte
    with pytest.raises(DataError, match=r"has 1099511627776 bytes, a plan has at most 100; check"):
        read_regular_file(path, 100, "a plan")
    path.write_bytes(b"x" * 101)
    with pytest.raises(SummaryFormatError, match="has 101 bytes, a summary has at most 100"):
        read_regular_file(path, 100, "a summary", refuse=SummaryFormatError)
    assert read_regular_file(path, 101, "a summary") == b"x" * 101


@pytest.mark.parametrize("name", ["missing", "file/inside", "a\0b"])
def test_what_is_not_there_is_named(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"there is no file .*; expected a plan there: check the name"):
        read_regular_file(tmp_path / name, 100, "a plan")


def test_folders_are_refused(tmp_path):
    with pytest.raises(DataError, match="is a folder; expected a plan"):
        read_regular_file(tmp_path, 100, "a plan")


@pytest.fixture
def promptly():
    """An opened pipe would wait for ever."""

    def late(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@posix
@pytest.mark.usefixtures("promptly")
def test_pipes_and_devices_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/zero"), Path("/dev/tty")):
        with pytest.raises(DataError, match="is a pipe, socket or device; expected a plan"):
            read_regular_file(path, 100, "a plan")


@posix
@pytest.mark.usefixtures("promptly")
def test_a_pipe_that_takes_the_place_of_a_file_is_refused_at_once(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.touch()
    real = os.open

    def swapped(name, flags, *rest):
        path.unlink()
        os.mkfifo(path)
        return real(name, flags, *rest)

    monkeypatch.setattr(storage.os, "open", swapped)
    with pytest.raises(DataError, match="is a pipe"):
        read_regular_file(path, 100, "a plan")


@posix
def test_links_to_files_are_followed_and_loops_are_not(tmp_path):
    (tmp_path / "file").write_bytes(NEW)
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "loop").symlink_to("loop")
    assert read_regular_file(tmp_path / "link", 10**6, "a file") == NEW
    with pytest.raises(OSError, match="loop"):
        read_regular_file(tmp_path / "loop", 10**6, "a file")
    write_atomically(tmp_path / "link", OLD)  # the link is replaced, what it pointed to is not touched
    assert (tmp_path / "file").read_bytes() == NEW
    assert not (tmp_path / "link").is_symlink()


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path, real = tmp_path / "file", os.fstat
    path.write_bytes(OLD)

    def grows(handle):
        nature = real(handle)
        with path.open("ab") as file:
            file.write(b"more")
        return nature

    monkeypatch.setattr(storage.os, "fstat", grows)
    with pytest.raises(DataError, match="changed while it was read"):
        read_regular_file(path, 10**6, "a file")


@posix
def test_a_lock_empties_no_file_that_is_in_its_place(tmp_path):
    (tmp_path / "precious").write_bytes(OLD)
    with hold_lock(tmp_path / "precious"):
        pass
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic link"), hold_lock(tmp_path / "lock"):
        pass
    assert (tmp_path / "precious").read_bytes() == OLD
