"""A piece of work in a process of its own: CPU seconds, and how far its memory rises while it works.

Everything runs on one thread. CPU seconds, so that other work on the machine hardly counts; of several repeats the
fastest. Memory is what the process holds at most while it works, beyond what it held when it began; -1 where the
system does not say. What preparation has freed is given back before: used again, it would seem to cost nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

LONG_ENOUGH = 1.0
"""Seconds after which work is not repeated."""
MOST_REPEATS = 5
Work = Callable[[], object]


class Measured(NamedTuple):
    """What a piece of work took."""

    seconds: float
    megabytes: float


def measure_job(module: str, name: str, sizes: Mapping[str, Any]) -> Measured:
    """The work that this function prepares for these sizes, in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=threadpool_limits, initargs=(1,)) as pool:
        return pool.submit(_measure_here, module, name, dict(sizes)).result()


def _measure_here(module: str, name: str, sizes: dict[str, Any]) -> Measured:
    work: Work = getattr(import_module(module), name)(**sizes)
    before = _reset_peak()
    first = cpu_seconds(work)
    rise = _memory("VmHWM") - before if before > 0 else -1.0
    return Measured(time_fastest(work, first), rise)


def time_fastest(work: Work, *before: float) -> float:
    """The seconds of the fastest round; what has taken long enough to be trusted is not repeated."""
    rounds = list(before) or [cpu_seconds(work)]
    while sum(rounds) < LONG_ENOUGH and len(rounds) < MOST_REPEATS:
        rounds.append(cpu_seconds(work))
    return min(rounds)


def cpu_seconds(work: Work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _reset_peak() -> float:
    """The memory held now, from which the peak is counted anew."""
    _free_memory()
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return -1.0
    return _memory("VmRSS")


def _free_memory() -> None:
    """Freed memory goes to the system, where the C library has a call for it (glibc does)."""
    gc.collect()
    with contextlib.suppress(AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _memory(what: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return float(line.split()[1]) / 1024
    return -1.0
