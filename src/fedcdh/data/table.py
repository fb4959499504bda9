"""Tables in memory, whatever made them: data frames (through narwhals), mappings of columns, numpy arrays.

A `Table` knows two kinds of columns, numbers and texts, and nothing of plans or features. What a column *means* is the
plan's decision, so that no kind is ever guessed from a part of the data.
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

from fedcdh._runtime.array_types import Array
from fedcdh.errors import DataError, SettingsError

Codes = npt.NDArray[np.int64]
_MAX_EXACT_INTEGER = 2**53  # from here on, not every whole number is a float


@dataclass(frozen=True)
class NumericColumn:
    """A numeric column; NaN where the value is missing."""

    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        return np.isnan(self.values)

    def cut(self, rows: slice) -> NumericColumn:
        return NumericColumn(self.values[rows])

    def take(self, rows: npt.NDArray[Any]) -> NumericColumn:
        return NumericColumn(self.values[rows])

    def to_categorical(self, what: str = "a column of labels") -> CategoricalColumn:
        """The same column read as labels: 3.0 and 3 are the label "3"; what is too large to be exact is refused."""
        present = ~self.missing
        values, codes = np.unique(self.values[present], return_inverse=True)
        if (np.isfinite(values) & (np.abs(values) >= _MAX_EXACT_INTEGER)).any():
            raise DataError(
                f"{what} holds numbers of 16 digits and more, which as numbers are not exact, so that two labels may "
                "become one; turn the column into text (in pandas, astype(str)), and read it again"
            )
        labels = CategoricalColumn.of([_to_level(value) for value in values.tolist()])
        places = np.full(len(self), -1, dtype=np.int64)
        places[present] = labels.codes[codes]
        return CategoricalColumn(labels.levels, places)


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of labels: the position of each row's label in `levels` (sorted), -1 where it is missing."""

    levels: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, labels: Sequence[str | None]) -> CategoricalColumn:
        levels = tuple(sorted({label for label in labels if label is not None}))
        position: dict[str | None, int] = {level: i for i, level in enumerate(levels)}
        return cls(levels, np.fromiter((position.get(label, -1) for label in labels), np.int64, len(labels)))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.codes < 0)

    def cut(self, rows: slice) -> CategoricalColumn:
        """These rows, with all levels."""
        return CategoricalColumn(self.levels, self.codes[rows])

    def take(self, rows: npt.NDArray[Any]) -> CategoricalColumn:
        """These rows, with the levels that occur in them."""
        codes = self.codes[rows]
        present = np.flatnonzero(np.bincount(codes + 1, minlength=len(self.levels) + 1)[1:])
        place = np.full(len(self.levels) + 1, -1, dtype=np.int64)  # the last one for the missing, whose code is -1
        place[present] = np.arange(len(present))
        return CategoricalColumn(tuple(self.levels[code] for code in present), place[codes])

    def to_categorical(self, what: str = "") -> CategoricalColumn:
        return self


Column = NumericColumn | CategoricalColumn


@dataclass(frozen=True)
class Table:
    """Named columns of one length."""

    columns: Mapping[str, Column]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def rows(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)

    def select(self, names: Sequence[str], owner: str) -> Table:
        """These columns only; an error that names the owner (a client) and the columns it lacks."""
        lacking = [name for name in names if name not in self.columns]
        if lacking:
            raise missing_column_error(lacking, self.names, owner)
        return Table({name: self.columns[name] for name in names})

    def slice_rows(self, start: int, count: int) -> Table:
        """At most so many rows from a position on; nothing is copied."""
        rows = slice(start, start + count)
        return Table({name: column.cut(rows) for name, column in self.columns.items()})

    def where(self, rows: npt.NDArray[np.bool_]) -> Table:
        """These rows only."""
        return Table({name: column.take(rows) for name, column in self.columns.items()})

    def split(self, by: str) -> dict[str, Table]:
        """One table per value of the column `by`, without that column."""
        if by not in self.columns:
            raise DataError(f"domain={by!r} names no column of the table; it has {_quote_names(self.names)}")
        labels = self.select([by], "the table").columns[by].to_categorical(f"column {by!r}")
        if labels.missing.any():
            raise DataError(
                f"column {by!r} says which client a row belongs to, but is empty in {int(labels.missing.sum())} rows; "
                "fill it in or remove these rows"
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
    owner: str = "the table",
) -> Table:
    """A Table from a data frame that narwhals accepts, a mapping of columns, or a 2-D array with names.

    Columns that are not among `only` are not looked at; the owner (a client, say) is named in errors.
    """
    if isinstance(data, Table):
        return data
    try:
        return _read_table(data, names, only)
    except DataError as problem:
        raise DataError(f"{owner}: {problem}") from None


def _read_table(data: Any, names: Sequence[str] | None, only: Collection[str] | None) -> Table:
    if isinstance(data, np.ndarray) and data.dtype.names is None:
        cells = dict(_array_columns(data, names))
    elif isinstance(data, Mapping):
        cells = _name_columns(data.items())
    else:
        cells = _name_columns(_frame_columns(data))
    if only is not None and (lacking := [name for name in only if name not in cells]):
        raise missing_column_error(lacking, list(cells))
    columns = {
        name: _column_from_series(name, values)
        if isinstance(values := cells[name], nw.Series)
        else _column_from_values(name, values)
        for name in (cells if only is None else only)
    }
    if len(lengths := {len(column) for column in columns.values()}) > 1:
        raise DataError(f"columns have different lengths ({sorted(lengths)}); every row needs a value in every column")
    return Table(columns)


def _name_columns(columns: Iterable[tuple[object, Any]]) -> dict[str, Any]:
    listed = [(str(name), values) for name, values in columns]
    names = [name for name, _ in listed]
    if twins := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"two columns are called {_quote_names(twins)}; rename one of them")
    return dict(listed)


def _array_columns(data: npt.NDArray[Any], names: Sequence[str] | None) -> Iterator[tuple[str, Any]]:
    if data.ndim != 2:
        raise DataError(f"expected a 2-D array of rows and variables, found {data.ndim} dimension(s)")
    if names is None:
        names = [f"x{j + 1}" for j in range(data.shape[1])]
    if len(names) != data.shape[1] or len(set(names)) != len(names):
        raise DataError(f"the array has {data.shape[1]} columns: names= must give that many different names")
    for j, name in enumerate(names):
        yield str(name), data[:, j]


def _frame_columns(data: Any) -> Iterator[tuple[str, nw.Series[Any]]]:
    try:
        frame = nw.from_native(data)
    except TypeError:
        raise DataError(
            f"cannot read a table from {type(data).__name__}; pass a data frame (pandas, polars, pyarrow, ...), "
            "a mapping of columns, or a numpy array with names="
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
        except Exception:  # each library has its own for integers beyond 2⁵³, which float64 has to round
            return _column_from_values(name, series.to_list())
        return NumericColumn(np.asarray(numbers, dtype=np.float64))
    if series.dtype == nw.Decimal:  # libraries convert these with an error in the last digit
        return _column_from_values(name, series.to_list())
    if series.dtype in (nw.Categorical, nw.Enum):  # labels, also where they look like numbers
        return CategoricalColumn.of([None if _is_missing(value) else _to_level(value) for value in series.to_list()])
    if series.dtype in (nw.String, nw.Boolean, nw.Object) or series.is_null().all():
        return _column_from_values(name, series.to_list())
    raise _unsupported_type_error(name, str(series.dtype))


def _column_from_values(name: object, values: Any) -> Column:
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise DataError(f"column {name!r} has {array.ndim} dimensions instead of one")
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
    return CategoricalColumn.of([None if value is None else _to_level(value) for value in items])


_CELL_TYPES = (str, bool, np.bool_, Real, Decimal)


def _categorical_or_none(cells: list[Any]) -> CategoricalColumn | None:
    """The column if every cell is a text or missing, and some are texts: values are looked at, not every cell."""
    try:
        distinct = set(cells)
    except TypeError:  # lists and the like, which are refused with their type's name
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


def _to_level(value: object) -> str:
    if isinstance(value, (float, np.floating)) and value.is_integer():
        return str(int(value))
    return str(value)


def missing_column_error(lacking: Sequence[str], names: Sequence[str], owner: str | None = None) -> DataError:
    """What to say where columns are asked for that are not there."""
    return DataError(
        f"{owner}: "
        * (owner is not None)
        + f"there is no column {_quote_names(lacking)} (there are {_quote_names(names)}); "
        "add or rename it there, or leave it out of the study with variables=[...]"
    )


def _unsupported_type_error(name: object, kind: str) -> DataError:
    return DataError(
        f"column {name!r} holds {kind}, which is neither a number nor a label; turn it into one "
        "(a date, for example, into days since a fixed day) or leave it out with variables=[...]"
    )


def _quote_names(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def split_by_client(
    data: Any, domain: str | None, names: Sequence[str] | None = None, variables: Sequence[str] | None = None
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
        return to_table(data, names, only=only).split(domain)
    if per_client:
        return {
            str(client): to_table(table, names, only=variables, owner=f"client {client!r}")
            for client, table in data.items()
        }
    raise DataError(
        f"found {type(data).__name__} and no domain; expected to learn which client a row belongs to; pass one table "
        "and the name of the column with the client, or a mapping from client to table",
        parameter="domain",
    )


def _is_column(value: Any) -> bool:
    return isinstance(value, (list, tuple, str)) or getattr(value, "ndim", 2) == 1
