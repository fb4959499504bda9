"""How a worker process is set while it adds up rows, and set back afterwards: another's process, on loan.

Linear algebra has one thread, since an engine runs as many tasks as there are cores. And memory that one block of rows
frees is kept for the next: Dask starts its workers so that they give all of it back at once (MALLOC_TRIM_THRESHOLD_),
and then most of the time would go into asking for the same pages again.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fedcdh._runtime.blas_threads import ProcessWideContext, single_blas_thread

_RETAINED_BYTES = 1 << 25  # bytes: many blocks of rows
_GLIBC_DEFAULT_BYTES = 1 << 17  # what glibc starts with, for all three
_MALLOPT_NUMBERS = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_TOP_PAD_": -2, "MALLOC_MMAP_THRESHOLD_": -3}
"""What glibc calls its settings in the environment, and their numbers in mallopt(3)."""


@contextmanager
def _apply_settings() -> Iterator[None]:
    with single_blas_thread(), _keep_freed_memory():
        yield


worker_settings = ProcessWideContext(_apply_settings)
"""While rows are added up."""


@contextmanager
def _keep_freed_memory() -> Iterator[None]:
    """Where the environment sets how glibc gives memory back; elsewhere it finds out by itself what to keep."""
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
