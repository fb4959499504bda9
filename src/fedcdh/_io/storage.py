"""Files on disk that are complete or absent.

A file is written as a draft beside its target, and then moved there. A draft is called `.{name}.XXXX.draft`, with a
random XXXX. Its writer holds a lock on it, which ends with the process. A draft without a lock was left behind by a
crash, and the next write to the same target removes it. A file is read only if it is an ordinary one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fedcdh._io.file_locks import LOCKS
from fedcdh.errors import DataError

if sys.platform != "win32":
    import fcntl

_STALE_DRAFT_SECONDS = 3600.0  # only on Windows, where drafts are not locked
_UNSUPPORTED_SYNC_ERRNOS = {errno.EINVAL, errno.ENOTSUP}  # network file systems that synchronise by themselves


def write_atomically(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file in one step: after a crash there is the old file, or none, or all of the new one.

    Permissions follow the umask, and never exceed those of the file that is replaced. A private file can be read by its
    owner only. A link at the path is replaced, not followed.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with naming_target(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_stale_drafts(path)
        mode = 0o600 if private else _permissions_of(path)
        while not _write_draft(path, data, mode):
            pass
        _sync_folder(path.parent)


@contextlib.contextmanager
def naming_target(path: Path) -> Iterator[None]:
    """Name this file in an OSError: the system names none on a full disk, and a temporary one elsewhere."""
    try:
        yield
    except OSError as problem:
        if problem.errno is not None:
            problem.filename = str(path)
        raise


def write_files_atomically(contents: Sequence[tuple[Path, bytes]], replacing: Iterable[Path] = ()) -> None:
    """Write files of one folder in this order, all or none, after removing those in `replacing`.

    All files are written to a hidden folder before any of them is moved. An error or ctrl-C during the moves undoes
    them. Only a process that is killed can leave the first files without the last; the hidden folder then holds the
    files that were there before.
    """
    folder = contents[-1][0].parent
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{contents[-1][0].name}.", suffix=".draft", dir=folder) as aside:
        older, newer = Path(aside) / "older", Path(aside) / "newer"
        older.mkdir()
        for path, content in contents:
            mode = _permissions_of(path)
            with naming_target(path):
                write_atomically(newer / path.name, content)
            (newer / path.name).chmod(stat.S_IMODE((newer / path.name).lstat().st_mode) & mode)
        gone = dict.fromkeys([*replacing, *(path for path, _ in contents)])
        moves = [(path, older / path.name) for path in gone if os.path.lexists(path)]
        _move_all([*moves, *((newer / path.name, path) for path, _ in contents)])
    _sync_folder(folder)


def _move_all(moves: Sequence[tuple[Path, Path]]) -> None:
    begun: list[tuple[Path, Path]] = []
    try:
        for source, target in moves:
            begun.append((source, target))
            os.replace(source, target)  # noqa: PTH105 (as in `_written`)
    except BaseException:
        for source, target in reversed(begun):
            if os.path.lexists(target) and not os.path.lexists(source):  # the last may not have moved
                os.replace(target, source)  # noqa: PTH105
        raise


@contextlib.contextmanager
def hold_lock(path: Path, *, if_locked: Callable[[], Exception] | None = None) -> Iterator[None]:
    """Hold a lock on this file; it ends with the process.

    If another process holds it, wait, or raise the error that `if_locked` returns. An existing file keeps its content,
    and a link is not followed: others may write to the folder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0) as lock:
        if not LOCKS.lock(lock.fileno(), wait=if_locked is None) and if_locked is not None:
            raise if_locked()
        try:
            yield
        finally:
            LOCKS.unlock(lock.fileno())


def remove_stale_drafts(path: Path) -> None:
    """Remove the drafts of this file that no living process is writing."""
    ours = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}\.draft")
    for name in [name for name in os.listdir(path.parent) if ours.fullmatch(name)]:  # noqa: PTH208 (names, not paths)
        with contextlib.suppress(OSError):  # another process was quicker, or the draft belongs to another user
            _remove_stale(path.parent / name)


def read_regular_file(
    path: Path, max_bytes: int, expected: str, *, refuse: Callable[[str], Exception] = DataError
) -> bytes:
    """Return the bytes of an ordinary file that is no longer than `max_bytes`; links are followed.

    Folders, pipes, devices and larger files are refused before a byte is read. `expected` says in error messages what
    the file should be; `refuse` makes the error.
    """
    try:
        nature = path.stat()  # before opening, which alone can start a device
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise refuse(f"there is no file {str(path)!r}; expected {expected} there: check the name") from None
    _check_regular(nature, path, expected, refuse)
    # Not blocking: if a pipe has just taken the place of the file, opening it must not wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        nature = os.fstat(file.fileno())
        _check_regular(nature, path, expected, refuse)
        if nature.st_size > max_bytes:
            raise refuse(
                f"{str(path)!r} has {nature.st_size} bytes, {expected} has at most {max_bytes}; check that it is the "
                "right file, made with the same plan"
            )
        content = file.read(nature.st_size + 1)
    if len(content) != nature.st_size:
        raise refuse(f"{str(path)!r} changed while it was read; wait until it is complete, then try again")
    return content


def _check_regular(nature: os.stat_result, path: Path, what: str, refuse: Callable[[str], Exception]) -> None:
    if stat.S_ISDIR(nature.st_mode):
        raise refuse(f"{str(path)!r} is a folder; expected {what}: name the file in it")
    if not stat.S_ISREG(nature.st_mode):
        raise refuse(f"{str(path)!r} is a pipe, socket or device; expected {what}: save it as an ordinary file first")


def _permissions_of(path: Path) -> int:
    """Return the permissions to ask for; the system removes those that the umask forbids."""
    try:
        return stat.S_IMODE(path.lstat().st_mode) & 0o666 if not path.is_symlink() else 0o666
    except FileNotFoundError:
        return 0o666


def _write_draft(path: Path, data: bytes, mode: int) -> bool:
    """Write the content; return False if another process removed the draft before it could be locked."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")
    try:
        with open(draft, "xb", buffering=0, opener=lambda name, flags: os.open(name, flags, mode)) as file:
            if not _lock_draft(file.fileno()):
                return False
            _write_all(file.fileno(), data)
            if sys.platform == "win32":
                file.close()  # an open file cannot be moved there
            os.replace(draft, path)  # noqa: PTH105 (one call, which tests can make fail)
    finally:
        draft.unlink(missing_ok=True)  # gone already if it was moved
    return True


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.fsync(handle)  # before the move: otherwise a power failure may leave the new name with no content


if sys.platform == "win32":

    def _lock_draft(handle: int) -> bool:
        return True

    def _remove_stale(draft: Path) -> None:
        """Remove an old draft: an open file cannot be removed, and its age covers the time before the move."""
        if time.time() - draft.lstat().st_mtime > _STALE_DRAFT_SECONDS:
            draft.unlink()

    def _sync_folder(folder: Path) -> None:
        """Do nothing: folders cannot be opened on Windows, and need not be."""

else:

    def _lock_draft(handle: int) -> bool:
        """Lock a new draft; return False if another process has it. Without working locks, no process gets one."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return os.fstat(handle).st_nlink > 0

    def _remove_stale(draft: Path) -> None:
        handle = os.open(draft, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if its writer lives
            draft.unlink()
        finally:
            os.close(handle)

    def _sync_folder(folder: Path) -> None:
        """Make the move itself durable."""
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        except OSError as problem:
            if problem.errno not in _UNSUPPORTED_SYNC_ERRNOS:
                raise
        finally:
            os.close(handle)
