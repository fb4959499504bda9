"""Rows in the order of a column, such as the time of a measurement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcdh.data.columns import CategoricalColumn, Column, NumericColumn
from fedcdh.data.sources import ColumnKind, TableSource
from fedcdh.data.table import Table
from fedcdh.errors import DataError


@dataclass(frozen=True, eq=False)
class OrderedSource:
    """The rows of another source, sorted by one of its columns.

    All rows of the columns that are read are in memory at once.

    Parameters
    ----------
    source : TableSource
        The rows.
    order_by : str
        Column of numbers, or of texts such as dates like 2024-01-31. Equal ones keep their order.
    owner : str
        Name of the owner, such as a client, for error messages.

    Examples
    --------
    >>> from fedcdh.data import to_source
    >>> rows = to_source({"day": ["2024-02-01", "2024-01-01"], "x": [2.0, 1.0]}, "client 'north'")
    >>> (table,) = OrderedSource(rows, "day", "client 'north'").batches({"x": "continuous"})
    >>> table.columns["x"].values.tolist()
    [1.0, 2.0]
    """

    source: TableSource
    order_by: str
    owner: str

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Return every column with its kind.

        Returns
        -------
        mapping from str to {"continuous", "categorical"}
            The kind of each column, also of the one that gives the order.

        Raises
        ------
        DataError
            If there is no column that gives the order.
        """
        found = self.source.kinds()
        if self.order_by not in found:
            raise _missing_order_error(self.order_by, list(found), self.owner)
        return found

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Yield all rows at once, sorted.

        Parameters
        ----------
        kinds : mapping from str to {"continuous", "categorical"}
            The columns to read, and the kind of each.

        Yields
        ------
        Table
            The rows.
        """
        own = self.kinds()[self.order_by]
        parts = list(self.source.batches({self.order_by: own, **kinds}))
        if not parts:
            return
        whole = Table({name: _join([part.columns[name] for part in parts]) for name in (self.order_by, *kinds)})
        yield sort_rows(whole, self.order_by, self.owner).select(list(kinds), self.owner)


def sort_rows(table: Table, order_by: str, owner: str) -> Table:
    """Return the rows of a table, sorted by one of its columns.

    Parameters
    ----------
    table : Table
        The rows.
    order_by : str
        Column of numbers, or of texts such as dates like 2024-01-31. Equal ones keep their order.
    owner : str
        Name of the owner, such as a client, for error messages.

    Returns
    -------
    Table
        The same rows, with all columns.

    Raises
    ------
    DataError
        If there is no such column, or a row has no value in it.

    Examples
    --------
    >>> from fedcdh.data import to_table
    >>> sort_rows(to_table({"t": [2, 1], "x": [5, 6]}), "t", "the table").columns["x"].values.tolist()
    [6.0, 5.0]
    """
    if order_by not in table.columns:
        raise _missing_order_error(order_by, table.names, owner)
    column = table.columns[order_by]
    if lacking := int(column.missing.sum()):
        raise DataError(
            f"{owner}: column {order_by!r} gives the order of the rows, but is empty in {lacking} of {table.rows} "
            "rows; expected a value in every row; fill it in, or remove these rows",
            parameter="order_by",
        )
    keys: npt.NDArray[Any] = column.values if isinstance(column, NumericColumn) else column.codes  # levels are sorted
    rows = np.argsort(keys, kind="stable")
    return Table({name: one.take(rows) for name, one in table.columns.items()})


def with_order_column(variables: Sequence[str] | None, order_by: str | None) -> Sequence[str] | None:
    """Return the columns to read: the variables, and the column that gives the order.

    Parameters
    ----------
    variables : sequence of str or None
        The variables; None for all columns.
    order_by : str or None
        The column that gives the order, if there is one.

    Returns
    -------
    sequence of str or None
        Each column once; None for all columns.

    Examples
    --------
    >>> with_order_column(["x", "y"], "time")
    ['x', 'y', 'time']
    """
    if variables is None or order_by is None or isinstance(variables, str):
        return variables
    return list(dict.fromkeys([*variables, order_by]))


def _join(columns: Sequence[Column]) -> Column:
    """Return one column of the rows of several batches; numbers become labels beside labels."""
    if all(isinstance(column, NumericColumn) or not column.levels for column in columns):
        return NumericColumn(
            np.concatenate([one.values if isinstance(one, NumericColumn) else one.codes * np.nan for one in columns])
        )
    labels = [column.to_categorical() for column in columns]
    levels = tuple(sorted({level for one in labels for level in one.levels}))
    place = {level: number for number, level in enumerate(levels)}
    codes = [np.array([*(place[level] for level in one.levels), -1], dtype=np.int64)[one.codes] for one in labels]
    return CategoricalColumn(levels, np.concatenate(codes))


def _missing_order_error(order_by: str, names: Sequence[str], owner: str) -> DataError:
    return DataError(
        f"{owner}: there is no column {order_by!r}, which should give the order of the rows; found "
        f"{', '.join(map(repr, names))}; name one of these",
        parameter="order_by",
    )
