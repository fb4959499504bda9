"""Running an experiment: jobs in several processes, every row on disk as soon as it is there, resumable.

Rows are appended to one CSV file. A run that was stopped is started again with the same command: rows of the file are
not computed again, and a torn last line is dropped. When all jobs are done, the rows are put into the order of the
design, so that the file does not depend on which process was faster.
"""

from __future__ import annotations

import csv
import io
import multiprocessing
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fedcdh._io.storage import hold_lock, write_atomically
from fedcdh.errors import DataError, MissingDependencyError, SettingsError
from fedcdh.evaluation.experiments.definition import Experiment, ExperimentJob
from fedcdh.evaluation.experiments.kinds import find_kind

ResultRow: TypeAlias = dict[str, str]
JobGroup: TypeAlias = tuple[ExperimentJob, ...]
JobProgress: TypeAlias = Callable[[int, int, float | None], None]
"""Called with the jobs done, all jobs, and the seconds left, which are None while they are unknown."""


def run_experiment(
    experiment: Experiment, path: Path, *, workers: int = 1, watch: JobProgress | None = None
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
    watch : callable, optional
        Called with the number of jobs done, the number of jobs, and the seconds left (None while they are unknown).

    Returns
    -------
    list of dict
        All rows of the design, those that the file had already included.

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
    with _lock_results(path):
        return _run_locked(experiment, path, workers, watch)


def _run_locked(experiment: Experiment, path: Path, workers: int, watch: JobProgress | None) -> list[ResultRow]:
    columns, jobs = result_columns(experiment), experiment.jobs()
    done = {_row_key(row, experiment): row for row in read_rows(path, columns)}
    missing = {job.key: job for job in jobs if job.key not in done or done[job.key]["failure"]}
    kind = find_kind(experiment.kind)
    for job in {job.method: job for job in missing.values()}.values():
        kind.prepare_method(job.method)  # refused before the first job, not after hours
        kind.prepare_instance(job.case, job.seed)
    write_atomically(
        path, _to_csv([row for key, row in done.items() if key not in missing], columns)
    )  # without a torn line
    clock = _RemainingTime(done.values(), workers)
    if watch:
        watch(len(jobs) - len(missing), len(jobs), clock.left(missing.values()))
    with path.open("a", encoding="utf-8", newline="") as file:
        for job, row in _compute_rows(experiment, list(missing.values()), workers):
            done[job.key] = row
            del missing[job.key]
            file.write(_to_csv([row], columns, heading=False))
            file.flush()
            clock.tick(row)
            if watch:
                watch(len(jobs) - len(missing), len(jobs), clock.left(missing.values()))
    rows = [done[job.key] for job in jobs]
    write_atomically(path, _to_csv([*rows, *_other_rows(done, jobs)], columns))
    return rows


def missing_methods(experiment: Experiment) -> dict[str, str]:
    """Return the methods whose libraries are not installed here, each with what to install."""
    found = {}
    for method in experiment.methods:
        try:
            find_kind(experiment.kind).prepare_method(method)
        except MissingDependencyError as lacking:
            found[method] = str(lacking)
    return found


@contextmanager
def _lock_results(path: Path) -> Iterator[None]:
    """Make sure that one command at a time writes to a file of rows."""
    advice = (
        f"another command is writing to {path}; expected one command at a time; wait for it, or choose another folder"
    )
    with hold_lock(path.with_suffix(".lock"), if_locked=lambda: SettingsError(advice)):
        yield
    path.with_suffix(".lock").unlink(missing_ok=True)


def result_columns(experiment: Experiment) -> tuple[str, ...]:
    """Return the columns of a file of rows: parameters, method, seed, measures, CPU seconds and failure."""
    return (*experiment.parameters, "method", "seed", *find_kind(experiment.kind).measures, "seconds", "failure")


def read_rows(path: Path, columns: Sequence[str]) -> list[ResultRow]:
    """Return the whole rows of a file of results, none if there is no such file."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1].decode("utf-8")
    rows = list(csv.reader(io.StringIO(whole)))
    if not rows or rows[0] != list(columns):
        raise DataError(
            f"{path} has other columns than this experiment; expected {', '.join(columns)}; move or remove the file, "
            "and "
            "start again"
        )
    return [dict(zip(columns, row, strict=True)) for row in rows[1:] if len(row) == len(columns)]


def _compute_rows(
    experiment: Experiment, jobs: Sequence[ExperimentJob], workers: int
) -> Iterator[tuple[ExperimentJob, ResultRow]]:
    groups = _group_by_fit(experiment, jobs)
    if workers == 1:
        yield from ((job, measure_job(experiment, job)) for group in groups for job in group)
        return
    with ProcessPoolExecutor(workers, initializer=_ignore_interrupts) as pool:
        running: dict[Future[list[ResultRow]], JobGroup] = {}
        waiting = iter(groups)
        try:
            while True:
                running |= {
                    pool.submit(_measure_group, experiment, group): group
                    for group in islice(waiting, workers - len(running))
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


def _row_key(row: ResultRow, experiment: Experiment) -> tuple[str, ...]:
    return tuple(row[name] for name in (*experiment.parameters, "method", "seed"))


def _other_rows(done: Mapping[tuple[str, ...], ResultRow], jobs: Iterable[ExperimentJob]) -> list[ResultRow]:
    """Return rows of an earlier run with other seeds or methods, which stay behind those of this one."""
    wanted = {job.key for job in jobs}
    return [done[key] for key in sorted(done.keys() - wanted)]


def _to_csv(rows: Iterable[ResultRow], columns: Sequence[str], heading: bool = True) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    if heading:
        writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


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
