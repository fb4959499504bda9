"""Locks on files, which end with the process: of whole files on POSIX systems, of one byte on Windows.

A lock on bytes keeps other processes from reading these bytes on Windows. So the byte lies far beyond the end of any
file that is locked, where no content is.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCKED_BYTE = 0x7FFF_FFF0
"""Position of the byte that is locked; it need not exist."""
SECONDS_BETWEEN_ATTEMPTS = 0.05

HandleFunction = Callable[[int], None]
"""Called with the handle of an open file."""


class FileLocks(Protocol):
    """A way to lock open files."""

    def lock(self, handle: int, *, wait: bool) -> bool:
        """Lock a file; return False if another process holds it and this one is not to wait."""

    def unlock(self, handle: int) -> None:
        """Give the lock back."""


@dataclass(frozen=True)
class ByteLocks:
    """Locks on one byte, by functions that lock and unlock the byte at the position of the file.

    Parameters
    ----------
    lock_byte : callable
        Locks the byte, or raises OSError at once if another process holds it.
    unlock_byte : callable
        Unlocks the byte.
    """

    lock_byte: HandleFunction
    unlock_byte: HandleFunction

    def lock(self, handle: int, *, wait: bool) -> bool:
        """Lock a file; return False if another process holds it and this one is not to wait.

        Parameters
        ----------
        handle : int
            Handle of an open file.
        wait : bool
            Whether to try again until the lock is free.

        Returns
        -------
        bool
            Whether the file is locked.
        """
        while not self._try(handle):
            if not wait:
                return False
            time.sleep(SECONDS_BETWEEN_ATTEMPTS)
        return True

    def unlock(self, handle: int) -> None:
        """Give the lock back.

        Parameters
        ----------
        handle : int
            Handle of a file that `lock` has locked.
        """
        self._at_locked_byte(handle, self.unlock_byte)

    def _try(self, handle: int) -> bool:
        try:
            self._at_locked_byte(handle, self.lock_byte)
        except OSError:  # Windows reports a lock of another process as a denied access, or as a deadlock
            return False
        return True

    def _at_locked_byte(self, handle: int, work: HandleFunction) -> None:
        before = os.lseek(handle, 0, os.SEEK_CUR)
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            work(handle)
        finally:
            os.lseek(handle, before, os.SEEK_SET)


if sys.platform == "win32":
    LOCKS: FileLocks = ByteLocks(
        lambda handle: msvcrt.locking(handle, msvcrt.LK_NBLCK, 1),
        lambda handle: msvcrt.locking(handle, msvcrt.LK_UNLCK, 1),
    )
else:

    @dataclass(frozen=True)
    class WholeFileLocks:
        """Locks on whole files, by flock."""

        def lock(self, handle: int, *, wait: bool) -> bool:
            """Lock a file; return False if another process holds it and this one is not to wait."""
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                return False
            return True

        def unlock(self, handle: int) -> None:
            """Give the lock back."""
            fcntl.flock(handle, fcntl.LOCK_UN)

    LOCKS: FileLocks = WholeFileLocks()
