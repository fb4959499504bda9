"""Running an experiment: jobs in several processes, every row on disk as soon as it is there, resumable.

Rows are appended to one CSV file. A run that was stopped is started again with the same command: rows of the file are
not computed again, and a torn last line is dropped. When a run ends, the rows are put into the order of the design, so
that the file does not depend on which process was faster. Jobs of one seed follow each other: a run that is stopped
early has all methods on the same instances.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fedcdh._io.storage import write_atomically
from fedcdh.errors import MissingDependencyError, SettingsError
from fedcdh.evaluation.experiments.definition import Experiment, ExperimentJob
from fedcdh.evaluation.experiments.kinds import find_kind
from fedcdh.evaluation.experiments.row_files import (
    ResultRow,
    lock_rows,
    read_rows,
    result_columns,
    row_key,
    rows_to_csv,
    write_rows,
)

JobGroup: TypeAlias = tuple[ExperimentJob, ...]
JobProgress: TypeAlias = Callable[[int, int, float | None], None]
"""Called with the jobs done, all jobs, and the seconds left, which are None while they are unknown."""


def run_experiment(
    experiment: Experiment,
    path: Path,
    *,
    workers: int = 1,
    minutes: float | None = None,
    watch: JobProgress | None = None,
) -> list[ResultRow]:
    """Compute the rows of an experiment that its file does not have yet; failed ones are computed again.

    Parameters
    ----------
    experiment : Experiment
        The design.
    path : Path
        CSV file of rows; it is created if necessary.
    workers : int, default 1
        Number of processes.
    minutes : float, optional
        Wall-clock time after which no further job begins. Jobs that run are finished, so that none is lost.
    watch : callable, optional
        Called with the number of jobs done, the number of jobs, and the seconds left (None while they are unknown).

    Returns
    -------
    list of dict
        The rows of the design, those that the file had already included; all of them if there was time for all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fedcdh.evaluation.experiments import load_experiment, run_experiment
    >>> experiment = load_experiment("communication", "smallest")
    >>> rows = run_experiment(experiment, Path(tempfile.mkdtemp()) / "communication.csv")
    >>> len(rows) == len(experiment.jobs())
    True
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    stop = math.inf if minutes is None else time.monotonic() + 60 * minutes
    with lock_rows(path):
        return _run_locked(experiment, path, workers, stop, watch)


def _run_locked(
    experiment: Experiment, path: Path, workers: int, stop: float, watch: JobProgress | None
) -> list[ResultRow]:
    columns, jobs = result_columns(experiment), experiment.jobs()
    done = {row_key(row, experiment): row for row in read_rows(path, columns)}
    missing = {job.key: job for job in jobs if job.key not in done or done[job.key]["failure"]}
    kind = find_kind(experiment.kind)
    for job in {job.method: job for job in missing.values()}.values():
        kind.prepare_method(job.method)  # refused before the first job, not after hours
        kind.prepare_instance(job.case, job.seed)
    kept = [row for key, row in done.items() if key not in missing]
    write_atomically(path, rows_to_csv(kept, columns))  # without a torn line
    clock = _RemainingTime(done.values(), workers)
    if watch:
        watch(len(jobs) - len(missing), len(jobs), clock.left(missing.values()))
    with path.open("a", encoding="utf-8", newline="") as file:
        for job, row in _compute_rows(experiment, list(missing.values()), workers, stop):
            done[job.key] = row
            del missing[job.key]
            file.write(rows_to_csv([row], columns, heading=False))
            file.flush()
            clock.tick(row)
            if watch:
                watch(len(jobs) - len(missing), len(jobs), clock.left(missing.values()))
    write_rows(experiment, path, done)
    return [done[job.key] for job in jobs if job.key in done]


def missing_methods(experiment: Experiment) -> dict[str, str]:
    """Return the methods whose libraries are not installed here, each with what to install."""
    found = {}
    for method in experiment.methods:
        try:
            find_kind(experiment.kind).prepare_method(method)
        except MissingDependencyError as lacking:
            found[method] = str(lacking)
    return found


def _compute_rows(
    experiment: Experiment, jobs: Sequence[ExperimentJob], workers: int, stop: float
) -> Iterator[tuple[ExperimentJob, ResultRow]]:
    """Yield each job with its row; no group of jobs begins after the time `stop`."""
    groups = takewhile(lambda group: time.monotonic() < stop, _group_by_fit(experiment, jobs))
    if workers == 1:
        yield from ((job, measure_job(experiment, job)) for group in groups for job in group)
        return
    with ProcessPoolExecutor(workers, initializer=_ignore_interrupts) as pool:
        running: dict[Future[list[ResultRow]], JobGroup] = {}
        try:
            while True:
                running |= {
                    pool.submit(_measure_group, experiment, group): group
                    for group in islice(groups, workers - len(running))
                }
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield from zip(running.pop(future), future.result(), strict=True)
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()  # their jobs are repeated next time
            raise


def _group_by_fit(experiment: Experiment, jobs: Iterable[ExperimentJob]) -> list[JobGroup]:
    """Put jobs that share a fit next to each other, where the first of them is; any other job is alone."""
    kind = find_kind(experiment.kind)
    groups: dict[tuple[str, ...], list[ExperimentJob]] = {}
    for job in jobs:
        fit = kind.fit_name(job.method)
        groups.setdefault((*map(str, job.case.values()), str(job.seed), fit or f"alone: {job.method}"), []).append(job)
    return [tuple(group) for group in groups.values()]


def _measure_group(experiment: Experiment, group: JobGroup) -> list[ResultRow]:
    return [measure_job(experiment, job) for job in group]


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def measure_job(experiment: Experiment, job: ExperimentJob) -> ResultRow:
    """Return one row; its CPU seconds are those of all clients and the server in one thread, as the paper counts.

    The seconds of a fit that was there already are counted as well: they are what the method takes by itself.
    """
    kind, case = find_kind(experiment.kind), tuple(job.case.items())
    with threadpool_limits(1):
        kind.prepare_method(job.method)
        prepared = _cached_instance(experiment.kind, case, job.seed)
        fitted = _TimedFit()
        start, failure = time.process_time(), ""
        try:
            if kind.fit_name(job.method):
                fitted = _shared_fit(experiment.kind, job, prepared)
                start = time.process_time()
            measured = kind.measure(prepared, job.case, job.method, job.seed, fitted.value)
        except (MissingDependencyError, SettingsError):
            raise
        except Exception as problem:  # a failure is a result, and does not end a run of hours
            measured, failure = (
                kind.failure_measures(prepared),
                f"{type(problem).__name__}: {problem}".splitlines()[0][:200],
            )
        seconds = fitted.seconds + time.process_time() - start
    shown = {name: _format_value(measured[name]) for name in kind.measures}
    given = {name: str(value) for name, value in job.case.items()}
    return {
        **given,
        "method": job.method,
        "seed": str(job.seed),
        **shown,
        "seconds": f"{seconds:.4g}",
        "failure": failure,
    }


@lru_cache(maxsize=1)
def _cached_instance(kind: str, case: tuple[tuple[str, Any], ...], seed: int) -> Any:
    """Return the instance of a case and a seed; all methods of these follow each other and share it."""
    return find_kind(kind).prepare_instance(dict(case), seed)


class _TimedFit(NamedTuple):
    """A fit, and the CPU seconds that it took."""

    value: Any = None
    seconds: float = 0.0


_LAST_FIT: dict[tuple[str, ...], _TimedFit] = {}  # one at most, in each process


def _shared_fit(kind_name: str, job: ExperimentJob, prepared: Any) -> _TimedFit:
    """Return the fit of a job's method, which may be that of the job before."""
    kind = find_kind(kind_name)
    key = (kind_name, *map(str, job.case.values()), str(job.seed), kind.fit_name(job.method))
    if key not in _LAST_FIT:
        start = time.process_time()
        value = kind.fit(prepared, job.method, job.seed)
        _LAST_FIT.clear()
        _LAST_FIT[key] = _TimedFit(value, time.process_time() - start)
    return _LAST_FIT[key]


def _format_value(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class _RemainingTime:
    """An estimate of the time that the rest will take, by every method's mean seconds and the number of its jobs left.

    These are CPU seconds. Processes share the machine with others, so they are scaled by the ratio of wall-clock time
    to CPU time in this run.
    """

    def __init__(self, rows: Iterable[ResultRow], workers: int) -> None:
        self._workers = workers
        self._seconds: dict[str, list[float]] = {}
        for row in rows:
            self._note(row)
        self._start, self._spent = time.monotonic(), 0.0

    def tick(self, row: ResultRow) -> None:
        """Record that a job is done."""
        self._note(row)
        self._spent += float(row["seconds"])

    def left(self, jobs: Collection[ExperimentJob]) -> float | None:
        """Return the seconds left, or None while some method has not yet finished a job."""
        means = {method: sum(seconds) / len(seconds) for method, seconds in self._seconds.items()}
        if any(job.method not in means for job in jobs):
            return None
        pace = (time.monotonic() - self._start) / self._spent if self._spent else 1 / self._workers
        return sum(means[job.method] for job in jobs) * pace

    def _note(self, row: ResultRow) -> None:
        self._seconds.setdefault(row["method"], []).append(float(row["seconds"]))
