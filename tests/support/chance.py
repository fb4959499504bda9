"""Chance that repeats itself: keys, masks and noise come from the name of the test that asks for them.

The package draws its secrets from the operating system, so a test that looks at noise would fail every so often, and
differently each time. Here `secrets` draws from a stream that the name of the test (or fixture) begins. Processes that
a test starts draw from the operating system as ever: there is no switch for this in the package, nor may there be one.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from unittest import mock

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")


class Stream:
    """Bytes that a name decides. A process forked from this one gets others, or two would draw the same names."""

    def __init__(self, name: str) -> None:
        self.name, self.drawn, self.process, self.lock = name, 0, os.getpid(), Lock()

    def __call__(self, size: int) -> bytes:
        if os.getpid() != self.process:
            return os.urandom(size)
        with self.lock:
            self.drawn += 1
            return hashlib.shake_256(f"{self.name}\0{self.drawn}".encode()).digest(size)


@contextmanager
def repeated(name: str) -> Iterator[None]:
    """Within it, `secrets` draws what it drew the last time under this name."""
    with mock.patch.object(random, "_urandom", Stream(name)):  # what random.SystemRandom draws with, and so secrets
        yield
