"""Work spread over several workers: threads of this process, or whatever joblib has been told to use.

A piece of work never depends on what else there is to do, so any number of workers, anywhere, gives the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from fedcdh.blas import one_blas_thread
from fedcdh.extras import needing
from fedcdh.questions import Crew, Part, Result, Shared, one_after_another


def crew_of(workers: int) -> Crew:
    """One after the other for one worker; for more (or -1: as many as there are), by joblib.

    By itself that means threads: they share what is known of all clients, and numpy lets them run at the same time.
    Within `joblib.parallel_config(backend="dask")`, or "ray", or "loky", the work goes there instead.
    """
    if workers == 1:
        return one_after_another
    with needing("joblib", extra="parallel"):
        import joblib  # an extra: for more than one worker only

    def by_joblib(work: Callable[[Shared, Part], Result], shared: Shared, parts: Sequence[Part], /) -> list[Result]:
        here, alone = os.getpid(), joblib.delayed(_alone)
        found = joblib.Parallel(n_jobs=workers, prefer="threads")(alone(here, work, shared, part) for part in parts)
        return list(found)

    return by_joblib


def _alone(home: int, work: Callable[[Any, Any], Any], shared: Any, part: Any) -> Any:
    """The work on one part; in another process, with one thread: there is a worker for every other core."""
    if os.getpid() == home:
        return work(shared, part)
    with one_blas_thread():
        return work(shared, part)
