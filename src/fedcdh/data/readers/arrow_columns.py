"""Conversion of Arrow columns to numeric and categorical columns, a whole column at a time."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from fedcdh._runtime.array_types import Array
from fedcdh.data.columns import CategoricalColumn, Column, NumericColumn
from fedcdh.data.readers.csv_dialect import CsvStyle
from fedcdh.data.sources import ColumnKind

Cells = Any  # an Arrow array; the library has no type annotations

Content = Literal["numbers", "labels", "nothing", "neither"]


def column_content(declared: Any) -> Content:
    """Return the content of a column of this Arrow type; dates, times, lists and bytes are "neither"."""
    kinds = pa.types
    if kinds.is_null(declared):
        return "nothing"
    if kinds.is_integer(declared) or kinds.is_floating(declared) or kinds.is_decimal(declared):
        return "numbers"
    if kinds.is_dictionary(declared):  # labels, also where they look like numbers
        return "neither" if column_content(declared.value_type) == "neither" else "labels"
    texts = (kinds.is_string, kinds.is_large_string, kinds.is_string_view, kinds.is_boolean)
    return "labels" if any(is_it(declared) for is_it in texts) else "neither"


def read_typed_column(cells: Cells, kind: ColumnKind) -> Column:
    """Return a column whose type is declared; nulls and NaN are missing values.

    Whole numbers of a categorical column keep all their digits: beyond 2^53, two of them may be the same float.
    """
    if pa.types.is_dictionary(cells.type):
        used = cells.indices.dictionary_encode()  # a dictionary may be much larger than the batch, and hold duplicates
        return _expand_levels(
            read_typed_column(cells.dictionary.take(used.dictionary), "categorical").to_categorical(), used.indices
        )
    exact = kind == "categorical" and pa.types.is_integer(cells.type)
    if column_content(cells.type) in ("numbers", "nothing") and not exact:
        return NumericColumn(_to_floats(cells))
    if pa.types.is_string_view(cells.type):
        cells = cells.cast(pa.large_string())  # Arrow cannot encode views
    encoded = cells.dictionary_encode()
    distinct = [None if value is None else str(value) for value in encoded.dictionary.to_pylist()]
    return _expand_levels(CategoricalColumn.of(distinct), encoded.indices)


def _to_floats(cells: Cells) -> Array:
    if pa.types.is_decimal(cells.type):
        cells = cells.cast(pa.string())  # by way of text, because the direct cast may miss the nearest float
    return _to_numpy(cells.cast(pa.float64(), safe=False), np.nan)  # beyond 2^53, integers become the nearest float


def _to_numpy(cells: Cells, missing: float) -> npt.NDArray[Any]:
    """Return an Arrow array as one of numpy, copied if it lies in a mapped file, which may be removed.

    Arrow's own to_numpy would import pandas if it is installed, which takes 50 MB.
    """
    filled = cells.fill_null(missing) if cells.null_count else cells
    found = np.from_dlpack(filled)
    return found.copy() if is_memory_mapped(filled) else found


def is_memory_mapped(cells: Cells) -> bool:
    """Return whether a column lies in a file that is mapped into memory, read-only."""
    return any(buffer is not None and not buffer.is_mutable for buffer in cells.buffers())


def _expand_levels(distinct: CategoricalColumn, indices: Cells) -> CategoricalColumn:
    """Return the column whose cells point at these distinct levels."""
    return CategoricalColumn(distinct.levels, np.append(distinct.codes, -1)[_to_numpy(indices, -1)])


def parse_levels(cells: Cells, style: CsvStyle) -> CategoricalColumn:
    """Return cells of a CSV file as levels, exactly as written."""
    encoded = cells.dictionary_encode()
    missing = {None, *style.missing}
    distinct = [
        label if label not in missing and label.strip() not in missing else None
        for label in encoded.dictionary.to_pylist()
    ]
    return _expand_levels(CategoricalColumn.of(distinct), encoded.indices)


def parse_numbers(cells: Cells, style: CsvStyle) -> NumericColumn | None:
    """Return cells of a CSV file as numbers, rounded as in Python, or None if one of them is not a number."""
    found = _parse_decimals(cells, style.decimal)
    if found is None:  # perhaps only because of spaces, which are rare enough to be removed afterwards
        bare = pc.utf8_trim_whitespace(cells)
        missing = pc.is_in(bare, pa.array(style.missing, pa.string()))
        found = _parse_decimals(pc.if_else(missing, None, bare), style.decimal)
    return found


def _parse_decimals(cells: Cells, decimal: str) -> NumericColumn | None:
    if decimal == ",":
        if pc.any(pc.match_substring(cells, ".")).as_py():
            return None  # 1.234 is ambiguous: it may mean 1.234 or 1234
        cells = pc.replace_substring(cells, ",", ".")
    try:
        return NumericColumn(_to_floats(cells))
    except pa.ArrowInvalid:
        return None


def find_first_non_number(cells: Cells, style: CsvStyle) -> int:
    """Return the position of the first cell that is not a number; there must be one."""
    return bisect_left(range(len(cells)), True, key=lambda last: parse_numbers(cells[: last + 1], style) is None)
