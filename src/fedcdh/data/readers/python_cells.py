"""Conversion of cells that come as Python values, from spreadsheets and databases, to columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from fedcdh.data.columns import CategoricalColumn, Column, NumericColumn, to_level
from fedcdh.data.readers.arrow_columns import Content
from fedcdh.data.sources import ColumnKind


def is_number(cell: object) -> bool:
    """Return whether a cell holds a number; truth values are labels."""
    return isinstance(cell, (Real, Decimal)) and not isinstance(cell, (bool, np.bool_))


def clear_missing(cells: Iterable[Any], missing: Collection[str]) -> list[Any]:
    """Return the cells, with None for those that mean "no value".

    Parameters
    ----------
    cells : iterable
        Cells of a column.
    missing : collection of str
        Texts that mean "no value", spaces around them ignored; numbers are compared by their level.

    Returns
    -------
    list
        The cells.

    Examples
    --------
    >>> clear_missing([1.5, "NA ", float("nan"), 99], ("NA", "99"))
    [1.5, None, None, None]
    """
    return [None if _is_missing(cell, missing) else cell for cell in cells]


def _is_missing(cell: Any, missing: Collection[str]) -> bool:
    if cell is None or (is_number(cell) and bool(cell != cell)):  # NaN is not equal to itself
        return True
    return (cell.strip() if isinstance(cell, str) else to_level(cell)) in missing


def cells_content(cells: Sequence[Any], before: Content = "nothing") -> Content:
    """Return the content of a column after these further cells, None where a value is missing.

    Parameters
    ----------
    cells : sequence
        Cells of the column.
    before : {"numbers", "labels", "nothing", "neither"}
        The content of the cells before.

    Returns
    -------
    {"numbers", "labels", "nothing", "neither"}
        "labels" if there is a text, "neither" if there is a date or another type that is no value of a variable.

    Examples
    --------
    >>> cells_content([1, None]), cells_content(["high"], "numbers")
    ('numbers', 'labels')
    """
    types = {type(cell) for cell in cells} - {type(None)}
    if before == "neither" or not all(issubclass(one, (str, bool, np.bool_, Real, Decimal)) for one in types):
        return "neither"
    if before == "labels" or any(issubclass(one, (str, bool, np.bool_)) for one in types):
        return "labels"
    return "numbers" if types else before


def to_column(cells: Sequence[Any], kind: ColumnKind) -> Column:
    """Return the column of these cells, which `cells_content` has found to fit the kind.

    Parameters
    ----------
    cells : sequence
        Numbers, texts and truth values; None where a value is missing.
    kind : {"continuous", "categorical"}
        The kind of the variable.

    Returns
    -------
    NumericColumn or CategoricalColumn
        The column.

    Examples
    --------
    >>> to_column([3.0, None, "x"], "categorical").levels
    ('3', 'x')
    """
    if kind == "continuous":
        return NumericColumn(np.array([np.nan if cell is None else float(cell) for cell in cells], dtype=np.float64))
    return CategoricalColumn.of([None if cell is None else _to_label(cell) for cell in cells])


def _to_label(cell: Any) -> str:
    return to_level(float(cell)) if isinstance(cell, Decimal) and cell == cell.to_integral_value() else to_level(cell)


def find_first_text(cells: Sequence[Any]) -> int:
    """Return the position of the first cell that is not a number; there must be one."""
    return next(place for place, cell in enumerate(cells) if cell is not None and not is_number(cell))
