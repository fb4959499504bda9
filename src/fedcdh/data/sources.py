"""Sources of a client's rows: a table in memory, batches of one, or files that are never in memory as a whole.

A source can be read several times and always gives the same rows. The kind of a column is decided once for the whole
source, or by the plan, never from a part of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeGuard, TypeVar, runtime_checkable

import narwhals as nw
import numpy as np

from fedcdh.data.columns import CategoricalColumn, Column
from fedcdh.data.table import Table, to_table
from fedcdh.errors import DataError

ColumnKind = Literal["continuous", "categorical"]
Result = TypeVar("Result")


@runtime_checkable
class TableSource(Protocol):
    """The rows of a client in batches."""

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Return every column in order, with its kind: numbers are continuous, texts categorical."""

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Yield all rows once, in batches of the named columns, each read according to its kind.

        A categorical column that holds numbers may come as numbers. Text in a continuous column is a DataError.

        Parameters
        ----------
        kinds : mapping from str to {"continuous", "categorical"}
            The columns to read, and the kind of each.

        Yields
        ------
        Table
            The next rows.
        """


@runtime_checkable
class PartitionedSource(Protocol):
    """The rows of a client in parts, each processed where it lies: in a thread, or on another machine."""

    def map_reduce(self, work: Callable[[TableSource], Result], add: Callable[[Result, Result], Result]) -> Result:
        """Return the sum of the work on all parts; the order of the sum makes no difference.

        Parameters
        ----------
        work : callable
            The work on one part of the rows.
        add : callable
            Adds two results.

        Returns
        -------
        result
            The sum of all results.
        """


@dataclass(frozen=True, eq=False)
class InMemorySource:
    """Tables in memory as batches of one source.

    Parameters
    ----------
    tables : iterable of tables
        The batches: data frames, mappings of columns or arrays.
    owner : str
        Name of the owner, such as a client, for error messages.
    names : sequence of str, optional
        Names of the columns of plain arrays.
    only : collection of str, optional
        Columns to read; the default is all of them.

    Examples
    --------
    >>> source = InMemorySource([{"x": [1.0]}, {"x": ["high"]}], "client 'north'")
    >>> source.kinds()
    {'x': 'categorical'}
    """

    tables: Iterable[Any]
    owner: str
    names: Sequence[str] | None = None
    only: Collection[str] | None = None

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Return every column with its kind: categorical if any batch holds a text in it.

        Returns
        -------
        mapping from str to {"continuous", "categorical"}
            The kind of each column.

        Raises
        ------
        DataError
            If a column is missing from some of the batches.
        """
        check_rereadable(self.tables, self.owner, "a profile")
        found: dict[str, ColumnKind] | None = None
        for table in self._read(self.only):
            here = {name: _kind_of(column) for name, column in table.columns.items()}
            found = here if found is None else found
            if set(found) != set(here):
                odd = sorted(set(found) ^ set(here))
                raise DataError(
                    f"{self.owner}: column {odd[0]!r} is in some batches and not in others; expected the same columns "
                    "in all of them. Add the column, or remove it everywhere"
                )
            found |= {name: kind for name, kind in here.items() if kind == "categorical"}
        return found or {}

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Yield the tables with these columns, numeric or categorical as they are.

        Parameters
        ----------
        kinds : mapping from str to {"continuous", "categorical"}
            The columns to read. The kinds are not used: the reader of the values converts them.

        Yields
        ------
        Table
            The next batch.
        """
        for table in self._read(kinds):
            yield table.select(list(kinds), self.owner)

    def _read(self, only: Collection[str] | None) -> Iterator[Table]:
        return (to_table(table, self.names, only=only, owner=self.owner) for table in self.tables)


@dataclass(frozen=True, eq=False)
class CompleteCaseSource:
    """The complete cases of another source: the rows that a summary uses.

    Parameters
    ----------
    source : TableSource
        The rows.
    columns : mapping from str to {"continuous", "categorical"}
        The columns that must not be missing in a row, with their kinds.

    Examples
    --------
    >>> rows = to_source({"x": [1.0, float("nan")], "y": [3.0, 4.0]}, "client 'north'")
    >>> complete = CompleteCaseSource(rows, {"x": "continuous", "y": "continuous"})
    >>> [table.columns["y"].values.tolist() for table in complete.batches({"y": "continuous"})]
    [[3.0]]
    """

    source: TableSource
    columns: Mapping[str, ColumnKind]

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Return the columns that must not be missing, with their kinds."""
        return dict(self.columns)

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Yield the rows in which no column is missing, whichever columns are read.

        Parameters
        ----------
        kinds : mapping from str to {"continuous", "categorical"}
            The columns to read, and the kind of each.

        Yields
        ------
        Table
            The next rows.
        """
        for table in self.source.batches({**self.columns, **kinds}):
            complete = np.ones(table.rows, dtype=np.bool_)
            for column in table.columns.values():
                complete &= ~column.missing
            yield table.select_rows(complete).select(list(kinds), "the table")


def to_source(
    data: Any, owner: str, *, names: Sequence[str] | None = None, only: Collection[str] | None = None
) -> TableSource:
    """Return a source of rows from a table or from batches; a source is returned as it is.

    Parameters
    ----------
    data : data frame, mapping of columns, array, iterable of these, or TableSource
        The rows.
    owner : str
        Name of the owner, such as a client, for error messages.
    names : sequence of str, optional
        Names of the columns of plain arrays.
    only : collection of str, optional
        Columns to read; the default is all of them.

    Returns
    -------
    TableSource
        The rows.

    Examples
    --------
    >>> to_source({"x": [1.0, 2.0], "sex": ["f", "m"]}, "client 'north'").kinds()
    {'x': 'continuous', 'sex': 'categorical'}
    """
    if is_single_table(data):
        return InMemorySource([data], owner, names, only)
    if isinstance(data, TableSource):
        return data
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        return InMemorySource(data, owner, names, only)
    return InMemorySource([data], owner, names, only)  # reading it raises an error that names the type


def check_rereadable(data: Any, owner: str, what: str) -> None:
    """Refuse an iterator of batches, before anything is taken from it, where rows are read more than once."""
    if isinstance(data, Iterator):
        raise DataError(
            f"{owner}: found an iterator, which gives its rows once, but {what} reads the rows more than once; pass a "
            "list of batches, a table, or files opened with fedcdh.open_tables(...)"
        )


def is_partitioned(data: Any) -> TypeGuard[PartitionedSource]:
    """Return whether the data are a partitioned source; a data frame with a column `map_reduce` is not one."""
    return not is_single_table(data) and isinstance(data, PartitionedSource)


def _kind_of(column: Column) -> ColumnKind:
    return "categorical" if isinstance(column, CategoricalColumn) and column.levels else "continuous"


def is_single_table(data: Any) -> bool:
    """Return whether this is one table in memory, and not a source or several batches."""
    if isinstance(data, (Table, np.ndarray, Mapping)):
        return True
    return isinstance(nw.from_native(data, pass_through=True), (nw.DataFrame, nw.LazyFrame))
