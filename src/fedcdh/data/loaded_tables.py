"""Tables that are read into memory: from names of files, and from sources such as `open_tables(...)`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedcdh.data.columns import CategoricalColumn, Column, NumericColumn
from fedcdh.data.readers import open_tables
from fedcdh.data.sources import ColumnKind, TableSource
from fedcdh.data.table import Table, missing_column_error


def load_tables(
    data: Any,
    kinds: Mapping[str, ColumnKind] | None = None,
    variables: Collection[str] | None = None,
    domain: str | None = None,
    exclude: Collection[str] = (),
) -> Any:
    r"""Read files and sources into tables; everything else stays as it is.

    Parameters
    ----------
    data : path, TableSource, or mapping from client to one of these or to a table
        The rows. A path is the name of a file, a folder or a pattern, as in `open_tables`.
    kinds : mapping from str to {"continuous", "categorical"}, optional
        The kind of single columns. By default numbers are continuous, all else is categorical.
    variables : collection of str, optional
        The columns to read. Default all.
    domain : str, optional
        The column that names the client of each row, which is read besides.
    exclude : collection of str, default ()
        Columns that are not read; they may hold anything. They are in the table, without values, so that a misspelt
        name is found.

    Returns
    -------
    object
        The data, with a `Table` in the place of every path and source.

    Raises
    ------
    DataError
        If a file cannot be read, or has a column that holds neither numbers nor texts.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "north.csv")
    ...     _ = path.write_text("age,ward\n61,1\n47,2\n")
    ...     tables = load_tables({"north": path}, kinds={"ward": "categorical"})
    >>> tables["north"].columns["ward"].levels
    ('1', '2')
    """
    known = kinds or {}
    if _is_stored(data):
        both = variables if variables is None or domain is None else {*variables, domain}
        return _load(data, known, both, exclude)
    if isinstance(data, Mapping) and any(map(_is_stored, data.values())):
        return {
            name: _load(rows, known, variables, exclude) if _is_stored(rows) else rows for name, rows in data.items()
        }
    return data


def _is_stored(data: Any) -> bool:
    if isinstance(data, (str, Path)):
        return True
    return not isinstance(data, (Table, Mapping, np.ndarray)) and isinstance(data, TableSource)


def _load(
    data: str | Path | TableSource,
    kinds: Mapping[str, ColumnKind],
    variables: Collection[str] | None,
    exclude: Collection[str],
) -> Table:
    source = open_tables(data) if isinstance(data, (str, Path)) else data
    found = source.kinds()
    names = [name for name in (found if variables is None else variables) if name not in exclude]
    if lacking := [name for name in names if name not in found]:
        owner = str(data) if isinstance(data, (str, Path)) else "the table"
        raise missing_column_error(lacking, list(found), owner)
    read = concatenate(source.batches({name: kinds.get(name, found[name]) for name in names}), names)
    unread = NumericColumn(np.full(read.rows, np.nan))
    return Table({name: unread for name in exclude if name in found} | dict(read.columns))


def concatenate(tables: Iterable[Table], names: Collection[str]) -> Table:
    """Return one table with the rows of several.

    Parameters
    ----------
    tables : iterable of Table
        Tables with these columns.
    names : collection of str
        The columns.

    Returns
    -------
    Table
        All rows, in order.

    Examples
    --------
    >>> parts = [Table({"g": CategoricalColumn.of(["b"])}), Table({"g": CategoricalColumn.of(["a", None])})]
    >>> whole = concatenate(parts, ["g"]).columns["g"]
    >>> whole.levels, whole.codes.tolist()
    (('a', 'b'), [1, 0, -1])
    """
    parts: dict[str, list[Column]] = {name: [] for name in names}
    for table in tables:
        for name in names:
            parts[name].append(table.columns[name])
    return Table({name: _join(columns, name) for name, columns in parts.items()})


def _join(columns: list[Column], name: str) -> Column:
    numbers = [column.values for column in columns if isinstance(column, NumericColumn)]
    if len(numbers) == len(columns):
        return NumericColumn(np.concatenate(numbers) if numbers else np.empty(0))
    labels = [column.to_categorical(f"column {name!r}") for column in columns]
    levels = tuple(sorted(set().union(*(column.levels for column in labels))))
    places = {level: place for place, level in enumerate(levels)}
    codes = [np.array([*map(places.__getitem__, column.levels), -1])[column.codes] for column in labels]
    return CategoricalColumn(levels, np.concatenate(codes))
