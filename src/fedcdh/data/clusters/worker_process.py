"""Settings of a worker process while it works, restored afterwards because the process belongs to the cluster.

Linear algebra uses one thread, since an engine runs as many tasks as there are cores. Memory that one block of rows
frees is kept for the next: Dask makes its workers return it at once (MALLOC_TRIM_THRESHOLD_), and then most of the time
would be spent on asking the system for the same pages again.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fedcdh._runtime.blas_threads import ProcessWideContext, single_blas_thread

_RETAINED_BYTES = 1 << 25  # bytes: many blocks of rows
_GLIBC_DEFAULT_BYTES = 1 << 17  # the initial value of all three settings
_MALLOPT_NUMBERS = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_TOP_PAD_": -2, "MALLOC_MMAP_THRESHOLD_": -3}
"""The names of glibc's settings in the environment, and their numbers in mallopt(3)."""


@contextmanager
def _apply_settings() -> Iterator[None]:
    with single_blas_thread(), _keep_freed_memory():
        yield


worker_settings = ProcessWideContext(_apply_settings)
"""A context manager: inside it, the settings for adding up rows hold."""


@contextmanager
def _keep_freed_memory() -> Iterator[None]:
    """Keep freed memory where the environment says otherwise; elsewhere glibc finds out by itself."""
    if sys.platform != "linux" or "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        yield
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda number, value: 0)  # other libraries than glibc have none
    for number in _MALLOPT_NUMBERS.values():
        mallopt(number, _RETAINED_BYTES)
    try:
        yield
    finally:
        for name, number in _MALLOPT_NUMBERS.items():
            mallopt(number, int(os.environ.get(name, _GLIBC_DEFAULT_BYTES)))
