"""Where a client's rows come from: a table in memory, batches of one, or files that are never in memory as a whole.

A source can be read again and again, always gives the same rows, and reads each column as it is told to. What a column
*is*, number or label, is decided once for the whole source or by the plan, never from a part of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeGuard, TypeVar, runtime_checkable

import narwhals as nw
import numpy as np

from fedcdh.data.table import CategoricalColumn, Column, Table, to_table
from fedcdh.errors import DataError

ColumnKind = Literal["continuous", "categorical"]
Result = TypeVar("Result")


@runtime_checkable
class TableSource(Protocol):
    """Rows in batches."""

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Every column, in order, and what it is by itself: numbers are continuous, labels categorical."""

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """All rows, once: the columns named, in that order, each read as its kind says.

        A categorical column that holds numbers may come as numbers. A continuous one that holds text is a DataError.
        """


@runtime_checkable
class PartitionedSource(Protocol):
    """A source whose rows lie in parts, each of which is worked on where it lies: in a thread, on another machine."""

    def spread(self, work: Callable[[TableSource], Result], add: Callable[[Result, Result], Result]) -> Result:
        """The sum, by `add`, of the work on all parts; in which order they are added makes no difference."""


@dataclass(frozen=True, eq=False)
class InMemorySource:
    """Tables that are here already, as batches of one."""

    tables: Iterable[Any]
    owner: str
    names: Sequence[str] | None = None  # of the columns of plain arrays
    only: Collection[str] | None = None  # columns besides these are not looked at

    def kinds(self) -> Mapping[str, ColumnKind]:
        """A column is one of labels as soon as one batch holds a label in it."""
        check_rereadable(self.tables, self.owner, "a profile")
        found: dict[str, ColumnKind] | None = None
        for table in self._read(self.only):
            here = {name: _kind_of(column) for name, column in table.columns.items()}
            found = here if found is None else found
            if set(found) != set(here):
                odd = sorted(set(found) ^ set(here))
                raise DataError(f"{self.owner}: column {odd[0]!r} is in some batches and not in others")
            found |= {name: kind for name, kind in here.items() if kind == "categorical"}
        return found or {}

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """The tables; each column as it is, since number or label is for the reader of the values to say."""
        for table in self._read(kinds):
            yield table.select(list(kinds), self.owner)

    def _read(self, only: Collection[str] | None) -> Iterator[Table]:
        return (to_table(table, self.names, only=only, owner=self.owner) for table in self.tables)


@dataclass(frozen=True, eq=False)
class CompleteCaseSource:
    """Of another source, the rows in which none of these columns is missing: those that a summary would be of."""

    source: TableSource
    columns: Mapping[str, ColumnKind]

    def kinds(self) -> Mapping[str, ColumnKind]:
        """These columns."""
        return dict(self.columns)

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Whichever columns are asked for, all of them have to be there."""
        for table in self.source.batches({**self.columns, **kinds}):
            complete = np.ones(table.rows, dtype=np.bool_)
            for column in table.columns.values():
                complete &= ~column.missing
            yield table.where(complete).select(list(kinds), "the table")


def to_source(
    data: Any, owner: str, *, names: Sequence[str] | None = None, only: Collection[str] | None = None
) -> TableSource:
    """A source of rows from a table, from an iterable of tables (batches), or the source itself."""
    if _is_table(data):
        return InMemorySource([data], owner, names, only)
    if isinstance(data, TableSource):
        return data
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        return InMemorySource(data, owner, names, only)
    return InMemorySource([data], owner, names, only)  # which says what is wrong with it


def check_rereadable(data: Any, owner: str, what: str) -> None:
    """Refuses an iterator of batches, before anything is taken from it, where rows are read more than once."""
    if isinstance(data, Iterator):
        raise DataError(
            f"{owner}: {what} reads the rows more than once, but an iterator gives them once; pass a list of batches, "
            "a table, or files opened with fedcdh.open_tables(...)"
        )


def is_partitioned(data: Any) -> TypeGuard[PartitionedSource]:
    """Whether the rows lie in parts; a data frame may have a column of that name, and is none."""
    return not _is_table(data) and isinstance(data, PartitionedSource)


def _kind_of(column: Column) -> ColumnKind:
    return "categorical" if isinstance(column, CategoricalColumn) and column.levels else "continuous"


def _is_table(data: Any) -> bool:
    if isinstance(data, (Table, np.ndarray, Mapping)):
        return True
    return isinstance(nw.from_native(data, pass_through=True), (nw.DataFrame, nw.LazyFrame))
