"""One thread for linear algebra while this package computes.

The matrices are small, or there is a worker for every other core; more threads would slow each other down.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


class ProcessWideContext:
    """A setting of the whole process that holds while at least one thread is inside.

    The first thread to enter applies the setting, the last one to leave restores it. If each thread did both for
    itself, the last would restore what the first had set.
    """

    def __init__(self, setting: Callable[[], AbstractContextManager[Any]]) -> None:
        self._setting, self._lock, self._applied, self._inside = setting, threading.Lock(), ExitStack(), 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep the setting applied inside the `with` block."""
        with self._lock:
            if not self._inside:
                self._applied.enter_context(self._setting())
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._applied.close()


@contextmanager
def _limit_blas_threads() -> Iterator[None]:
    limited = _blas_controller().limit(limits=1, user_api="blas")
    _release_thread_control()
    try:
        yield
    finally:
        limited.restore_original_limits()
        _release_thread_control()


def _release_thread_control() -> None:
    """Allow any thread to set the number of BLAS threads.

    From version 3.8 on, threadpoolctl allows this only to the thread that set it last, and the last thread to leave
    need not be the first that entered.
    """
    for library in _blas_controller().lib_controllers:
        getattr(library, "clear_controlling_thread", lambda: None)()


single_blas_thread = ProcessWideContext(_limit_blas_threads)
"""A context manager: inside it, BLAS uses one thread, in all threads of this process."""


@cache
def _blas_controller() -> ThreadpoolController:
    """Return the controller of the BLAS libraries that are loaded.

    The large array makes the C library keep the memory of freed arrays from now on. Otherwise it would return the
    memory of every block to the system and ask for it again, which takes a quarter of the time.
    """
    np.empty(3 << 20)
    return ThreadpoolController()
