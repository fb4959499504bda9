"""One thread for linear algebra while we work: our matrices are small, or there is a worker for every other core.

More threads would only get in each other's way, the more so where other programs run.
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
    """A setting of the whole process: the first thread to come in makes it, the last one to leave takes it back.

    If each did both for itself, the last would put back what the first had set.
    """

    def __init__(self, setting: Callable[[], AbstractContextManager[Any]]) -> None:
        self._setting, self._lock, self._made, self._inside = setting, threading.Lock(), ExitStack(), 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """While this lasts, the setting holds."""
        with self._lock:
            if not self._inside:
                self._made.enter_context(self._setting())
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._made.close()


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
    """Any thread may set the number of threads again: threadpoolctl, from 3.8 on, lets only the one that set it last
    do so, and whoever leaves last need not be the one that came first."""
    for library in _blas_controller().lib_controllers:
        getattr(library, "clear_controlling_thread", lambda: None)()


single_blas_thread = ProcessWideContext(_limit_blas_threads)
"""While this lasts, BLAS computes in one thread, in all threads of this process."""


@cache
def _blas_controller() -> ThreadpoolController:
    """Also has the C library keep the memory of freed arrays, as it does once a large one was freed, here of 24 MB.

    Else it gives that of every block back to the system and asks for it again, a quarter of the time.
    """
    np.empty(3 << 20)
    return ThreadpoolController()
