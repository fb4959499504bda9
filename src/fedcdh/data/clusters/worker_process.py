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

from fedcdh._runtime.blas_threads import ForAll, one_blas_thread

_KEPT = 1 << 25  # bytes: many blocks of rows
_USUALLY = 1 << 17  # what glibc starts with, for all three
_SETTINGS = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_TOP_PAD_": -2, "MALLOC_MMAP_THRESHOLD_": -3}
"""What glibc calls its settings in the environment, and their numbers in mallopt(3)."""


@contextmanager
def _set() -> Iterator[None]:
    with one_blas_thread(), _keeping_memory():
        yield


on_loan = ForAll(_set)
"""While rows are added up."""


@contextmanager
def _keeping_memory() -> Iterator[None]:
    """Where the environment sets how glibc gives memory back; elsewhere it finds out by itself what to keep."""
    if sys.platform != "linux" or "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        yield
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda number, value: 0)  # other libraries than glibc have none
    for number in _SETTINGS.values():
        mallopt(number, _KEPT)
    try:
        yield
    finally:
        for name, number in _SETTINGS.items():
            mallopt(number, int(os.environ.get(name, _USUALLY)))
