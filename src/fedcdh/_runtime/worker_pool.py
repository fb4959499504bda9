"""Work spread over several workers: threads of this process, or whatever joblib has been told to use.

A piece of work never depends on what else there is to do, so any number of workers, anywhere, gives the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh._runtime.optional_imports import optional_import

Shared = TypeVar("Shared")
Part = TypeVar("Part")
Result = TypeVar("Result")

_BATCHES_PER_WORKER = 4
"""Of parts, for each worker in another process: by Ray, what all parts share goes along with every bundle."""


class WorkerPool(Protocol):
    """Does a piece of work on every part, in whatever order and wherever, and returns the results in theirs."""

    def __call__(
        self, work: Callable[[Shared, Part], Result], shared: Shared, parts: Sequence[Part], /
    ) -> list[Result]: ...


def run_serially(work: Callable[[Shared, Part], Result], shared: Shared, parts: Sequence[Part], /) -> list[Result]:
    """Do the work here and now."""
    return [work(shared, part) for part in parts]


def make_worker_pool(workers: int) -> WorkerPool:
    """One after the other for one worker; for more (or -1: as many as there are), by joblib.

    By itself that means threads: they share what is known of all clients, and numpy lets them run at the same time.
    Within `joblib.parallel_config(backend="dask")`, or "ray", or "loky", the work goes there instead.
    """
    if workers == 1:
        return run_serially
    with optional_import("joblib", extra="parallel"):
        import joblib  # an extra: for more than one worker only

    def by_joblib(work: Callable[[Shared, Part], Result], shared: Shared, parts: Sequence[Part], /) -> list[Result]:
        backend, _ = joblib.parallel.get_active_backend(prefer="threads")
        here = getattr(backend, "supports_sharedmem", False)
        most = 1 if here else 1 + len(parts) // (_BATCHES_PER_WORKER * joblib.effective_n_jobs(workers))
        bundles = [parts[start : start + most] for start in range(0, len(parts), most)]
        alone = joblib.delayed(_run_batch)
        spread = joblib.Parallel(n_jobs=workers, prefer="threads", batch_size=1)
        found = spread(alone(os.getpid(), work, shared, bundle) for bundle in bundles)
        return [result for bundle in found for result in bundle]

    return by_joblib


def _run_batch(home: int, work: Callable[[Any, Any], Any], shared: Any, parts: Sequence[Any]) -> list[Any]:
    """The work on some parts; in another process, with one thread: there is a worker for every other core."""
    if os.getpid() == home:
        return run_serially(work, shared, parts)
    with single_blas_thread():
        return run_serially(work, shared, parts)
