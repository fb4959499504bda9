"""Files of rows: reading, writing, merging the rows of several runs, and leaving out those of some methods."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeAlias

from fedcdh._io.storage import hold_lock, write_atomically
from fedcdh.errors import DataError, SettingsError
from fedcdh.evaluation.experiments.definition import Experiment, ExperimentJob
from fedcdh.evaluation.experiments.kinds import find_kind

ResultRow: TypeAlias = dict[str, str]
RowKey: TypeAlias = tuple[str, ...]


class MergeCounts(NamedTuple):
    """Counts of a merge.

    Parameters
    ----------
    added : int
        Rows of jobs that the file did not have.
    replaced : int
        Rows of jobs that the file had already.
    changed : int
        Replaced rows that differ in more than their seconds.

    Examples
    --------
    >>> from fedcdh.evaluation.experiments import MergeCounts
    >>> MergeCounts(added=3, replaced=2, changed=0).added
    3
    """

    added: int
    replaced: int
    changed: int


def merge_rows(experiment: Experiment, path: Path, others: Iterable[Path]) -> MergeCounts:
    """Merge the rows of other files of the same design into a file.

    A row of another file replaces that of the same job, unless it is one of a failure. A later file counts more than an
    earlier one. Runs of the parts of a design into several folders so become one file.

    Parameters
    ----------
    experiment : Experiment
        The design.
    path : Path
        CSV file of rows to change; it is created if necessary.
    others : iterable of Path
        CSV files with the same columns.

    Returns
    -------
    MergeCounts
        Counts of rows that were added, replaced and changed.

    Raises
    ------
    DataError
        If a file does not exist or has other columns.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fedcdh.evaluation.experiments import load_experiment, merge_rows, run_experiment
    >>> experiment, folder = load_experiment("communication", "smallest"), Path(tempfile.mkdtemp())
    >>> part = experiment.restrict(methods=["fedcdh-paper"])
    >>> number = len(run_experiment(part, folder / "part.csv"))
    >>> merge_rows(experiment, folder / "communication.csv", [folder / "part.csv"]).added == number
    True
    """
    columns = result_columns(experiment)
    path.parent.mkdir(parents=True, exist_ok=True)
    with lock_rows(path):
        before = {row_key(row, experiment): row for row in read_rows(path, columns)}
        arrived = _read_others(experiment, others, columns)
        taken = {key: row for key, row in arrived.items() if key not in before or not row["failure"]}
        write_rows(experiment, path, {**before, **taken})
    replaced = [key for key in taken if key in before]
    changed = sum(_without_seconds(before[key]) != _without_seconds(taken[key]) for key in replaced)
    return MergeCounts(len(taken) - len(replaced), len(replaced), changed)


def drop_rows(experiment: Experiment, path: Path, methods: Collection[str]) -> int:
    """Leave out the rows of some methods, so that the next run computes them anew.

    Parameters
    ----------
    experiment : Experiment
        The design.
    path : Path
        CSV file of rows to change.
    methods : collection of str
        Names of the methods, of the design or of an earlier one.

    Returns
    -------
    int
        Number of rows that were left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fedcdh.evaluation.experiments import drop_rows, load_experiment, run_experiment
    >>> experiment, path = load_experiment("communication", "smallest"), Path(tempfile.mkdtemp()) / "rows.csv"
    >>> rows = run_experiment(experiment, path)
    >>> drop_rows(experiment, path, ["fedcdh-paper"]) == sum(row["method"] == "fedcdh-paper" for row in rows)
    True
    """
    with lock_rows(path):
        before = {row_key(row, experiment): row for row in read_rows(path, result_columns(experiment))}
        kept = {key: row for key, row in before.items() if row["method"] not in methods}
        write_rows(experiment, path, kept)
    return len(before) - len(kept)


def _read_others(experiment: Experiment, others: Iterable[Path], columns: Sequence[str]) -> dict[RowKey, ResultRow]:
    arrived: dict[RowKey, ResultRow] = {}
    for other in others:
        if not other.exists():
            raise DataError(
                f"found no file {other}; expected a CSV file of rows of {experiment.name}; correct its name"
            )
        for row in read_rows(other, columns):
            key = row_key(row, experiment)
            if key not in arrived or not row["failure"]:
                arrived[key] = row
    return arrived


def _without_seconds(row: ResultRow) -> ResultRow:
    return {name: value for name, value in row.items() if name != "seconds"}


@contextmanager
def lock_rows(path: Path) -> Iterator[None]:
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


def row_key(row: ResultRow, experiment: Experiment) -> RowKey:
    """Return the key of the job that a row is of."""
    return tuple(row[name] for name in (*experiment.parameters, "method", "seed"))


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
            "and start again"
        )
    return [dict(zip(columns, row, strict=True)) for row in rows[1:] if len(row) == len(columns)]


def read_design_rows(experiment: Experiment, path: Path) -> list[ResultRow]:
    """Return the rows of the design, and no others that may be in the file, such as those of other seeds."""
    found = {row_key(row, experiment): row for row in read_rows(path, result_columns(experiment))}
    return [found[job.key] for job in experiment.jobs() if job.key in found]


def write_rows(experiment: Experiment, path: Path, done: Mapping[RowKey, ResultRow]) -> None:
    """Write rows in the order of the design; rows with other seeds or methods stay behind those."""
    jobs = experiment.jobs()
    rows = [done[job.key] for job in jobs if job.key in done]
    write_atomically(path, rows_to_csv([*rows, *_other_rows(done, jobs)], result_columns(experiment)))


def _other_rows(done: Mapping[RowKey, ResultRow], jobs: Iterable[ExperimentJob]) -> list[ResultRow]:
    wanted = {job.key for job in jobs}
    return [done[key] for key in sorted(done.keys() - wanted)]


def rows_to_csv(rows: Iterable[ResultRow], columns: Sequence[str], heading: bool = True) -> str:
    """Return rows as lines of a CSV file."""
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    if heading:
        writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()
