"""Tables in memory, whatever made them: data frames (through narwhals), mappings of columns, numpy arrays.

A `Table` knows two kinds of columns, numbers and texts, and nothing of plans or features. What a column *means* is the
plan's decision, so that no kind is ever guessed from a part of the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from fedcdh.errors import DataError

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Numbers:
    """A numeric column; NaN where the value is missing."""

    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        return np.isnan(self.values)

    def take(self, rows: npt.NDArray[Any]) -> Numbers:
        return Numbers(self.values[rows])

    def as_texts(self) -> Texts:
        """The same column read as labels: 3.0 and 3 are the label "3"."""
        return Texts.of([None if np.isnan(v) else _label(v) for v in self.values.tolist()])


@dataclass(frozen=True)
class Texts:
    """A column of labels: the position of each row's label in `levels` (sorted), -1 where it is missing."""

    levels: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, labels: Sequence[str | None]) -> Texts:
        levels = tuple(sorted({label for label in labels if label is not None}))
        position: dict[str | None, int] = {level: i for i, level in enumerate(levels)}
        return cls(levels, np.fromiter((position.get(label, -1) for label in labels), np.int64, len(labels)))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.codes < 0)

    def take(self, rows: npt.NDArray[Any]) -> Texts:
        return Texts(self.levels, self.codes[rows])

    def as_texts(self) -> Texts:
        return self


Column = Numbers | Texts


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
            raise DataError(
                f"{owner} has no column {_quoted(lacking)} (it has {_quoted(self.names)}); "
                "add or rename it there, or leave it out of the study with variables=[...]"
            )
        return Table({name: self.columns[name] for name in names})

    def split(self, by: str) -> dict[str, Table]:
        """One table per value of the column `by`, without that column."""
        labels = self.select([by], "the table").columns[by].as_texts()
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


def as_table(data: Any, names: Sequence[str] | None = None) -> Table:
    """A Table from a data frame that narwhals accepts, a mapping of columns, or a 2-D array with names."""
    if isinstance(data, Table):
        return data
    if isinstance(data, np.ndarray) and data.dtype.names is None:
        columns = dict(_array_columns(data, names))
    elif isinstance(data, Mapping):
        columns = {str(name): _from_values(name, values) for name, values in data.items()}
    else:
        columns = dict(_frame_columns(data))
    if len(lengths := {len(column) for column in columns.values()}) > 1:
        raise DataError(f"columns have different lengths ({sorted(lengths)}); every row needs a value in every column")
    return Table(columns)


def _array_columns(data: npt.NDArray[Any], names: Sequence[str] | None) -> Iterator[tuple[str, Column]]:
    if data.ndim != 2:
        raise DataError(f"expected a 2-D array of rows and variables, found {data.ndim} dimension(s)")
    if names is None:
        names = [f"x{j + 1}" for j in range(data.shape[1])]
    if len(names) != data.shape[1] or len(set(names)) != len(names):
        raise DataError(f"the array has {data.shape[1]} columns: names= must give that many different names")
    for j, name in enumerate(names):
        yield str(name), _from_values(name, data[:, j])


def _frame_columns(data: Any) -> Iterator[tuple[str, Column]]:
    try:
        frame = nw.from_native(data)
    except TypeError:
        raise DataError(
            f"cannot read a table from {type(data).__name__}; pass a data frame (pandas, polars, pyarrow, ...), "
            "a mapping of columns, or a numpy array with names="
        ) from None
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    for name in eager.columns:
        series = eager[name]
        if series.dtype.is_numeric():
            numbers = series.cast(nw.Float64).fill_null(float("nan")).to_numpy()
            yield str(name), Numbers(np.asarray(numbers, dtype=np.float64))
        elif series.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Object):
            yield str(name), _from_values(name, series.to_list())
        else:
            yield str(name), _from_values(name, _unsupported(name, str(series.dtype)))


def _from_values(name: object, values: Any) -> Column:
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise DataError(f"column {name!r} has {array.ndim} dimensions instead of one")
    if array.dtype.kind in "fiu":
        return Numbers(array.astype(np.float64))
    if array.dtype.kind in "mMcV":
        _unsupported(name, str(array.dtype))
    items = [None if _is_missing(value) else value for value in array.tolist()]
    present = [value for value in items if value is not None]
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present):
        return Numbers(np.array([np.nan if value is None else value for value in items], dtype=np.float64))
    return Texts.of([None if value is None else _label(value) for value in items])


def _is_missing(value: object) -> bool:
    # pandas' NA and NaT are not equal to themselves or not comparable at all; NaN is not equal to itself
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _label(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _unsupported(name: object, kind: str) -> list[Any]:
    raise DataError(
        f"column {name!r} holds {kind}, which is neither a number nor a label; turn it into one "
        "(a date, for example, into days since a fixed day) or leave it out with variables=[...]"
    )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
