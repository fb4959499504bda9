"""Pools of workers: a function applied to many parts, one after the other, in threads or by joblib.

The work on one part never depends on the other parts. Any number of workers, anywhere, gives the same bytes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh._runtime.optional_imports import optional_import

Shared = TypeVar("Shared")
Part = TypeVar("Part")
Result = TypeVar("Result")

_BATCHES_PER_WORKER = 4
"""Batches of parts for each worker in another process: with Ray, `shared` is sent along with every batch."""


class WorkerPool(Protocol):
    """Apply a function to every part, in any order and anywhere; return the results in the order of the parts."""

    def __call__(
        self, work: Callable[[Shared, Part], Result], shared: Shared, parts: Sequence[Part], /
    ) -> list[Result]: ...


def make_worker_pool(workers: int) -> WorkerPool:
    """Return a pool for this number of workers; -1 means one per processor.

    One worker does the parts one after the other. More need joblib, which uses threads by default: they share the
    cohort, and numpy lets them run at the same time. Inside `joblib.parallel_config(backend="dask")`, or "ray", or
    "loky", the work goes there instead.
    """
    if workers == 1:
        return run_serially
    with optional_import("joblib", extra="parallel"):
        import joblib

    def run_by_joblib(work: Callable[[Shared, Part], Result], shared: Shared, parts: Sequence[Part], /) -> list[Result]:
        backend, _ = joblib.parallel.get_active_backend(prefer="threads")
        in_this_process = getattr(backend, "supports_sharedmem", False)
        size = 1 if in_this_process else 1 + len(parts) // (_BATCHES_PER_WORKER * joblib.effective_n_jobs(workers))
        batches = [parts[start : start + size] for start in range(0, len(parts), size)]
        run_batch = joblib.delayed(_run_batch)
        parallel = joblib.Parallel(n_jobs=workers, prefer="threads", batch_size=1)
        found = parallel(run_batch(os.getpid(), work, shared, batch) for batch in batches)
        return [result for batch in found for result in batch]

    return run_by_joblib


def run_serially(work: Callable[[Shared, Part], Result], shared: Shared, parts: Sequence[Part], /) -> list[Result]:
    """Do the work on one part after the other, in this thread."""
    return [work(shared, part) for part in parts]


def run_in_threads(work: Callable[[Shared, Part], Result], shared: Shared, parts: Sequence[Part], /) -> list[Result]:
    """Do the work on each part in a thread of its own; the calling thread takes the first part.

    BLAS uses one thread in each. If several parts fail, the error of the first of them is raised.
    """
    results: dict[int, Result] = {}
    problems: dict[int, BaseException] = {}

    def run(place: int) -> None:
        try:
            results[place] = work(shared, parts[place])
        except BaseException as problem:
            problems[place] = problem

    # Daemon threads: after ctrl-C, a thread that waits for a slow disk does not keep the process alive.
    others = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(1, len(parts))]
    with single_blas_thread():
        for thread in others:
            thread.start()
        run(0)
        for thread in others:
            thread.join()
    if problems:
        raise problems[min(problems)]
    return [results[place] for place in range(len(parts))]


def _run_batch(home: int, work: Callable[[Any, Any], Any], shared: Any, parts: Sequence[Any]) -> list[Any]:
    """Do the work on some parts; in another process with one BLAS thread, since every core has a worker there."""
    if os.getpid() == home:
        return run_serially(work, shared, parts)
    with single_blas_thread():
        return run_serially(work, shared, parts)
