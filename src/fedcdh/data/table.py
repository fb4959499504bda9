"""Tables in memory, made from data frames (through narwhals), mappings of columns or numpy arrays.

A `Table` has two kinds of columns, numeric and categorical, and knows nothing of plans or features. The plan decides
how a column is used, and no kind is ever guessed from a part of the data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from fedcdh._io.text import abbreviate_list, suggest_name
from fedcdh.data.columns import CategoricalColumn, Column, NumericColumn, to_level
from fedcdh.errors import DataError, SettingsError


@dataclass(frozen=True)
class Table:
    """Named columns of one length.

    Attributes
    ----------
    columns : mapping from str to NumericColumn or CategoricalColumn
        The columns, in order.

    Examples
    --------
    >>> table = to_table({"age": [61.0, 47.0], "sex": ["f", "m"]})
    >>> table.names, table.rows
    (('age', 'sex'), 2)
    """

    columns: Mapping[str, Column]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(self.columns)

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return next((len(column) for column in self.columns.values()), 0)

    def select(self, names: Sequence[str], owner: str) -> Table:
        """Return a table of these columns only.

        Parameters
        ----------
        names : sequence of str
            The columns.
        owner : str
            Name of the owner, such as a client, for error messages.

        Returns
        -------
        Table
            These columns, in this order.

        Raises
        ------
        DataError
            If the table lacks one of the columns.
        """
        lacking = [name for name in names if name not in self.columns]
        if lacking:
            raise missing_column_error(lacking, self.names, owner)
        return Table({name: self.columns[name] for name in names})

    def slice_rows(self, start: int, count: int) -> Table:
        """Return a range of rows; nothing is copied.

        Parameters
        ----------
        start : int
            The first row.
        count : int
            The largest number of rows.

        Returns
        -------
        Table
            These rows.
        """
        rows = slice(start, start + count)
        return Table({name: column.slice_rows(rows) for name, column in self.columns.items()})

    def select_rows(self, rows: npt.NDArray[np.bool_]) -> Table:
        """Return the selected rows.

        Parameters
        ----------
        rows : array of bool
            For every row, True to keep it.

        Returns
        -------
        Table
            These rows.
        """
        return Table({name: column.take(rows) for name, column in self.columns.items()})

    def split(self, by: str) -> dict[str, Table]:
        """Return one table per level of a column, without that column.

        Parameters
        ----------
        by : str
            The column that names the client of each row.

        Returns
        -------
        dict of str to Table
            The tables, by level.

        Raises
        ------
        DataError
            If there is no such column, or if it has missing values.
        """
        if by not in self.columns:
            raise DataError(
                f"there is no column {by!r}, which should name the client of each row; the table has "
                f"{_quote_names(self.names)}. Name one of these",
                parameter="domain",
            )
        labels = self.select([by], "the table").columns[by].to_categorical(f"column {by!r}")
        if labels.missing.any():
            raise DataError(
                f"column {by!r} is empty in {int(labels.missing.sum())} rows; expected the client of each row in it. "
                "Fill it in or remove these rows"
            )
        others = {name: column for name, column in self.columns.items() if name != by}
        return {
            level: Table({name: column.take(labels.codes == code) for name, column in others.items()})
            for code, level in enumerate(labels.levels)
        }


def to_table(
    data: Any,
    names: Sequence[str] | None = None,
    *,
    only: Collection[str] | None = None,
    exclude: Collection[str] = (),
    owner: str = "the table",
) -> Table:
    """Make a table from a data frame, a mapping of columns or a two-dimensional array.

    Parameters
    ----------
    data : data frame, mapping of columns, array or Table
        Any data frame that narwhals accepts (pandas, polars, pyarrow, ...).
    names : sequence of str, optional
        Names of the columns of an array; the default is x1, x2, ...
    only : collection of str, optional
        Columns to read; the others may hold anything. The default is all columns.
    exclude : collection of str, default ()
        Columns that are not read. They may hold anything.
    owner : str
        Name of the owner, such as a client, for error messages.

    Returns
    -------
    Table
        The columns, numeric or categorical.

    Raises
    ------
    DataError
        If the data cannot be read, or a column holds neither numbers nor texts.

    Examples
    --------
    >>> to_table({"age": [61, 47], "sex": ["f", None]}).columns["sex"].levels
    ('f',)
    """
    if isinstance(data, Table) and not exclude:
        return data
    try:
        if isinstance(data, Table):
            return Table(_drop_names(data.columns, exclude))
        return _read_table(data, names, only, exclude)
    except DataError as problem:
        raise DataError(f"{owner}: {problem.message}", parameter=problem.parameter) from None


def _read_cells(data: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns of a table by name, as they are."""
    if isinstance(data, Table):
        return dict(data.columns)
    if isinstance(data, np.ndarray) and data.dtype.names is None:
        return dict(_array_columns(data, names))
    if isinstance(data, Mapping):
        return _name_columns(data.items())
    return _name_columns(_frame_columns(data))


def check_excluded(exclude: Collection[str], names: Collection[str]) -> None:
    """Refuse to exclude columns that are not there: a misspelt name would leave a column in.

    Parameters
    ----------
    exclude : collection of str
        Columns to leave out.
    names : collection of str
        Columns that are there.

    Raises
    ------
    DataError
        If a column is not there.

    Examples
    --------
    >>> check_excluded(["id"], ["id", "age"])
    """
    if unknown := sorted(({exclude} if isinstance(exclude, str) else set(exclude)) - set(names)):
        found = ", ".join(f"{name!r}{suggest_name(name, names)}" for name in unknown)
        raise DataError(
            f"there is no column {found} to exclude; expected some of {abbreviate_list(names)}; correct the name",
            parameter="exclude",
        )


def _drop_names(cells: Mapping[str, Any], exclude: Collection[str]) -> dict[str, Any]:
    """Return the columns that are not excluded."""
    check_excluded(exclude, cells)
    return {name: values for name, values in cells.items() if name not in exclude}


def _read_column(name: str, values: Any) -> Column:
    if isinstance(values, nw.Series):
        return _column_from_series(name, values)
    return _column_from_values(name, values)


def _read_columns(cells: Mapping[str, Any]) -> dict[str, Column]:
    """Return all columns, or one error about all that hold neither numbers nor texts."""
    columns, problems = dict[str, Column](), list[DataError]()
    for name, values in cells.items():
        try:
            columns[name] = _read_column(name, values)
        except DataError as problem:
            problems.append(problem)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        lines = "\n- ".join(problem.message for problem in problems)
        raise DataError(
            f"{len(problems)} columns cannot be read:\n- {lines}\nCorrect them, or leave them out (exclude)",
            parameter="variables",
        )
    return columns


def _read_table(
    data: Any, names: Sequence[str] | None, only: Collection[str] | None, exclude: Collection[str] = ()
) -> Table:
    cells = _read_cells(data, names)
    if only is not None and (lacking := [name for name in only if name not in cells]):
        raise missing_column_error(lacking, list(cells))
    kept = _drop_names(cells, exclude)
    columns = _read_columns(kept if only is None else {name: cells[name] for name in only if name in kept})
    if len(lengths := {len(column) for column in columns.values()}) > 1:
        raise DataError(
            f"columns have different lengths ({sorted(lengths)}); expected one length, with a value of every row in "
            "every column. Fill in what is missing with None"
        )
    return Table(columns)


def _name_columns(columns: Iterable[tuple[object, Any]]) -> dict[str, Any]:
    listed = [(str(name), values) for name, values in columns]
    names = [name for name, _ in listed]
    if twins := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"two columns are called {_quote_names(twins)}; rename one of them")
    return dict(listed)


def _array_columns(data: npt.NDArray[Any], names: Sequence[str] | None) -> Iterator[tuple[str, Any]]:
    if data.ndim != 2:
        raise DataError(
            f"the array has {data.ndim} dimension(s); expected two, rows and variables. Reshape it, or pass a mapping "
            "of columns"
        )
    if names is None:
        names = [f"x{j + 1}" for j in range(data.shape[1])]
    if len(names) != data.shape[1] or len(set(names)) != len(names):
        raise DataError(
            f"there are {len(names)} names for an array with {data.shape[1]} columns; expected as many names, all "
            "different",
            parameter="names",
        )
    for j, name in enumerate(names):
        yield str(name), data[:, j]


def _frame_columns(data: Any) -> Iterator[tuple[str, nw.Series[Any]]]:
    try:
        frame = nw.from_native(data)
    except TypeError:
        raise DataError(
            f"found {type(data).__name__}, which cannot be read as a table; pass a data frame (pandas, polars, "
            "pyarrow, ...), a mapping of columns, a numpy array with the names of its columns, or a file with "
            "fedcdh.open_tables(...)"
        ) from None
    except nw.exceptions.DuplicateError as problem:
        raise DataError(f"two columns have one name ({problem}); rename one of them") from None
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    for series in eager.iter_columns():
        yield series.name, series


def _column_from_series(name: str, series: nw.Series[Any]) -> Column:
    if series.dtype.is_integer() or series.dtype.is_float():
        try:
            numbers = series.cast(nw.Float64).fill_null(float("nan")).to_numpy()
        except Exception:  # each library raises its own for integers beyond 2⁵³, which float64 rounds
            return _column_from_values(name, series.to_list())
        return NumericColumn(np.asarray(numbers, dtype=np.float64))
    if series.dtype == nw.Decimal:  # libraries convert decimals with an error in the last digit
        return _column_from_values(name, series.to_list())
    if series.dtype in (nw.Categorical, nw.Enum):  # labels, also where they look like numbers
        return CategoricalColumn.of([None if _is_missing(value) else to_level(value) for value in series.to_list()])
    if series.dtype in (nw.String, nw.Boolean, nw.Object) or series.is_null().all():
        return _column_from_values(name, series.to_list())
    raise _unsupported_type_error(name, str(series.dtype))


def _column_from_values(name: object, values: Any) -> Column:
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise DataError(f"column {name!r} has {array.ndim} dimensions; expected one value per row. Split the column up")
    if array.dtype.kind in "fiu":
        return NumericColumn(np.asarray(np.ma.filled(array.astype(np.float64), np.nan)))
    if array.dtype.kind in "mMcV":
        raise _unsupported_type_error(name, str(array.dtype))
    cells = array.tolist()
    if (texts := _categorical_or_none(cells)) is not None:
        return texts
    items = [None if _is_missing(value) else value for value in cells]
    present = [value for value in items if value is not None]
    if odd := [type(value).__name__ for value in present if not isinstance(value, _CELL_TYPES)]:
        raise _unsupported_type_error(name, odd[0])
    if all(isinstance(value, (Real, Decimal)) and not isinstance(value, bool) for value in present):
        return NumericColumn(
            np.array([np.nan if value is None else _to_float(value) for value in items], dtype=np.float64)
        )
    return CategoricalColumn.of([None if value is None else to_level(value) for value in items])


_CELL_TYPES = (str, bool, np.bool_, Real, Decimal)


def _categorical_or_none(cells: list[Any]) -> CategoricalColumn | None:
    """Return the column if all cells are texts or missing, and some are texts; only distinct values are checked."""
    try:
        distinct = set(cells)
    except TypeError:  # lists and similar values, which are refused later with the name of their type
        return None
    labels = {value: str(value) if isinstance(value, str) else None for value in distinct}
    if not any(labels.values()) or not all(label is not None or _is_missing(value) for value, label in labels.items()):
        return None
    return CategoricalColumn.of([labels[cell] for cell in cells])


def _is_missing(value: object) -> bool:
    # pandas' NA and NaT are not equal to themselves or not comparable at all; NaN is not equal to itself
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (Real, Decimal)) and bool(value != value)


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits; refused later, with the client's name
        return np.inf


def missing_column_error(lacking: Sequence[str], names: Sequence[str], owner: str | None = None) -> DataError:
    """Return the error for columns that a table lacks."""
    near = suggest_name(lacking[0], names)
    return DataError(
        f"{owner}: "
        * (owner is not None)
        + f"there is no column {_quote_names(lacking)}{near} (there are {_quote_names(names)}); "
        "add or rename it there, or leave it out of the study",
        parameter="variables",
    )


def _unsupported_type_error(name: object, kind: str) -> DataError:
    return DataError(
        f"column {name!r} holds {kind}, which is neither a number nor a text; turn it into one "
        "(a date, for example, into days since a fixed day) or leave it out",
        parameter="variables",
    )


def _quote_names(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def split_by_client(
    data: Any,
    domain: str | None,
    names: Sequence[str] | None = None,
    variables: Sequence[str] | None = None,
    exclude: Collection[str] = (),
) -> dict[str, Table]:
    """Return one table per client.

    Parameters
    ----------
    data : data frame, mapping of columns, array, or mapping from client to table
        One table with a column `domain` that names the client of each row, or one table per client.
    domain : str or None
        Name of the column that holds the client; None if `data` has one table per client.
    names : sequence of str, optional
        Names of the columns, if the tables are arrays.
    variables : sequence of str, optional
        The columns to keep. Default all.
    exclude : collection of str, default ()
        Columns to leave out, which may hold anything. One client at least has to have them.

    Returns
    -------
    dict from str to Table
        The table of each client, without the column `domain`.

    Raises
    ------
    SettingsError
        If `variables` is a text, or `domain` is given for one table per client.
    DataError
        If the client of a row is not known, or a table cannot be read.

    Examples
    --------
    >>> tables = split_by_client({"age": [61, 70, 48], "site": ["north", "south", "north"]}, "site")
    >>> {client: table.rows for client, table in tables.items()}
    {'north': 2, 'south': 1}
    """
    exclude = [exclude] if isinstance(exclude, str) else exclude
    if isinstance(variables, str):
        raise SettingsError(
            f"variables is the text {variables!r}; expected a list of column names, such as [{variables!r}]",
            parameter="variables",
        )
    per_client = isinstance(data, Mapping) and data and not any(_is_column(value) for value in data.values())
    if domain is not None and per_client:
        raise SettingsError(
            f"found one table per client and the domain {domain!r}; expected one of them; leave domain out, or pass "
            "one table with all rows",
            parameter="domain",
        )
    if domain is not None:
        only = None if variables is None else [*variables, domain]
        return to_table(data, names, only=only, exclude=exclude).split(domain)
    if per_client:
        there = {client: _read_cells(table, names) if exclude else {} for client, table in data.items()}
        check_excluded(exclude, {name: None for cells in there.values() for name in cells})
        return {
            str(client): to_table(
                table,
                names,
                only=variables,
                exclude=[name for name in exclude if name in there[client]],
                owner=f"client {client!r}",
            )
            for client, table in data.items()
        }
    raise DataError(
        f"found {type(data).__name__} and no domain; expected to learn which client a row belongs to; pass one table "
        "and the name of the column with the client, or a mapping from client to table",
        parameter="domain",
    )


def _is_column(value: Any) -> bool:
    return isinstance(value, (list, tuple, str)) or getattr(value, "ndim", 2) == 1
