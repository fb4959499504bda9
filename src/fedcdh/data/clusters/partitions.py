"""The work on one partition, and the sum of the results; the same for every engine.

An error in the data (such as text where numbers are expected) travels as a value to the next sum and is raised there.
An engine that sees a function fail writes its arguments into its log, and rows must not get there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from importlib.metadata import version
from typing import Any, TypeVar

from fedcdh.data.clusters.worker_process import worker_settings
from fedcdh.data.columns import CategoricalColumn
from fedcdh.data.sources import ColumnKind, InMemorySource, TableSource
from fedcdh.data.table import Table, missing_column_error
from fedcdh.errors import DataError, FedCDHError, SettingsError

Item = TypeVar("Item")
Result = TypeVar("Result")

FAN_IN = 8
"""Results that are added at a time, and are in the memory of one worker at once."""
FEDCDH_VERSION = version("fedcdh")


@dataclass(frozen=True)
class FailedTask:
    """The error of a partition that could not be processed."""

    problem: FedCDHError


def make_task(work: Callable[[TableSource], Result], owner: str) -> Callable[[Any], Result | FailedTask]:
    """Return the work as a function of one partition, to be sent to workers."""
    return partial(_run_task, work, owner, FEDCDH_VERSION)


def _run_task(work: Callable[[TableSource], Result], owner: str, program: str, part: Any) -> Result | FailedTask:
    """Do the work, on a worker; another version of fedcdh than the sender's, `program`, might round differently."""
    try:
        if program != FEDCDH_VERSION:
            raise SettingsError(
                f"a worker of the cluster has fedcdh {FEDCDH_VERSION}, but the work came from fedcdh {program}; "
                "install the same version on all workers"
            )
        with worker_settings():
            return work(InMemorySource([part], owner))
    except FedCDHError as problem:
        return FailedTask(problem)


def reduce_results(add: Callable[[Result, Result], Result], results: Iterable[Result | FailedTask]) -> Result:
    """Return the sum of results, on a worker; raise the error of a failed one."""
    return reduce(add, [unwrap_result(result) for result in results])


def unwrap_result(result: Result | FailedTask) -> Result:
    """Return the result; raise the error of a failed task."""
    if isinstance(result, FailedTask):
        raise result.problem
    return result


def tree_reduce(leaves: Iterable[Item], join: Callable[[Sequence[Item]], Item]) -> Item:
    """Join all leaves, `FAN_IN` at a time and as soon as they exist, so that few wait at any moment.

    >>> tree_reduce(map(str, range(20)), "+".join).count("+")
    19
    """
    waiting: list[list[Item]] = []
    for leaf in leaves:
        level = 0
        while True:
            if level == len(waiting):
                waiting.append([])
            waiting[level].append(leaf)
            if len(waiting[level]) < FAN_IN:
                break
            leaf, waiting[level], level = join(waiting[level]), [], level + 1
    rest: list[Item] = []
    for group in waiting:
        rest = [join([*group, *rest])] if group or rest else []
    return rest[0]


def find_categorical_columns(names: Collection[str], source: TableSource) -> frozenset[str]:
    """Return the columns that hold texts in a partition, or dates and other types, which are refused when read."""
    return frozenset(name for name in names if _has_labels(source, name))


def _has_labels(source: TableSource, name: str) -> bool:
    try:
        columns = [table.columns[name] for table in source.batches({name: "categorical"})]
    except DataError:
        return True
    return any(isinstance(column, CategoricalColumn) and column.levels for column in columns)


def read_partition(kinds: Mapping[str, ColumnKind], source: TableSource) -> Table:
    """Return the table of a partition, with these columns."""
    return next(iter(source.batches(kinds)))


def match_columns(names: Iterable[str], columns: Iterable[Any], owner: str) -> list[Any]:
    """Return the columns with these names as the table itself names them, which need not be texts."""
    theirs = {str(column): column for column in columns}
    if lacking := [name for name in names if name not in theirs]:
        raise missing_column_error(lacking, list(theirs), owner)
    return [theirs[name] for name in names]
