"""What happens to a part of the rows on a worker, and how results become one; the same for every engine.

A refusal (text where numbers are expected, say) travels as a value as far as the next sum, and is raised there: an
engine that sees a function fail writes what it was called with into its log, and that must not be rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from importlib.metadata import version
from typing import Any, TypeVar

from fedcdh.data.clusters.worker_process import worker_settings
from fedcdh.data.sources import ColumnKind, InMemorySource, TableSource
from fedcdh.data.table import CategoricalColumn, Table, missing_column_error
from fedcdh.errors import DataError, FedCDHError, SettingsError

Item = TypeVar("Item")
Result = TypeVar("Result")

FAN_IN = 8
"""Results that are added at a time: so many are in the memory of one worker at once."""
FEDCDH_VERSION = version("fedcdh")


@dataclass(frozen=True)
class FailedTask:
    """What came out of a part that cannot be worked on."""

    problem: FedCDHError


def make_task(work: Callable[[TableSource], Result], owner: str) -> Callable[[Any], Result | FailedTask]:
    """The work as a function of one part of the rows, to be sent to workers."""
    return partial(_run_task, work, owner, FEDCDH_VERSION)


def _run_task(work: Callable[[TableSource], Result], owner: str, program: str, part: Any) -> Result | FailedTask:
    """Runs on a worker. `program` is the version of fedcdh it was sent from: another one might round differently."""
    try:
        if program != FEDCDH_VERSION:
            raise SettingsError(
                f"a worker of the cluster has fedcdh {FEDCDH_VERSION}, but the work came from fedcdh {program}; install the "
                "same version on all workers"
            )
        with worker_settings():
            return work(InMemorySource([part], owner))
    except FedCDHError as problem:
        return FailedTask(problem)


def reduce_results(add: Callable[[Result, Result], Result], results: Iterable[Result | FailedTask]) -> Result:
    """Runs on a worker: the sum of some results, or the refusal of one of them."""
    return reduce(add, [unwrap_result(result) for result in results])


def unwrap_result(result: Result | FailedTask) -> Result:
    """The result, if it is one."""
    if isinstance(result, FailedTask):
        raise result.problem
    return result


def tree_reduce(leaves: Iterable[Item], join: Callable[[Sequence[Item]], Item]) -> Item:
    """All leaves joined, at most `FAN_IN` at a time and as soon as they are there: few are waiting at any moment.

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
    for few in waiting:
        rest = [join([*few, *rest])] if few or rest else []
    return rest[0]


def find_categorical_columns(names: Collection[str], source: TableSource) -> frozenset[str]:
    """Which of these columns hold labels in a part; or dates and the like, which are refused once they are read."""
    return frozenset(name for name in names if _has_labels(source, name))


def _has_labels(source: TableSource, name: str) -> bool:
    try:
        columns = [table.columns[name] for table in source.batches({name: "categorical"})]
    except DataError:
        return True
    return any(isinstance(column, CategoricalColumn) and column.levels for column in columns)


def read_partition(kinds: Mapping[str, ColumnKind], source: TableSource) -> Table:
    """The one table of a part, with these columns."""
    return next(iter(source.batches(kinds)))


def match_columns(names: Iterable[str], columns: Iterable[Any], owner: str) -> list[Any]:
    """The columns of these names, as the table itself calls them: its names need not be texts."""
    theirs = {str(column): column for column in columns}
    if lacking := [name for name in names if name not in theirs]:
        raise missing_column_error(lacking, list(theirs), owner)
    return [theirs[name] for name in names]
