"""From Arrow's columns to ours: numbers or labels, a whole column at a time, never cell by cell."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from fedcdh._runtime.array_types import Array
from fedcdh.data.readers.csv_dialect import CsvStyle
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import CategoricalColumn, Column, NumericColumn

Cells = Any  # an Arrow array; the library says nothing about its types

Content = Literal["numbers", "labels", "nothing", "neither"]


def column_content(declared: Any) -> Content:
    """What a column of this Arrow type holds; dates, times, lists and bytes are neither numbers nor labels."""
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
    """A column whose type is known, as Parquet gives it: nulls and NaN are missing, all else is a value.

    Whole numbers that are labels are taken digit by digit: beyond 2^53, two of them may be the same float.
    """
    if pa.types.is_dictionary(cells.type):
        used = cells.indices.dictionary_encode()  # a dictionary may be far larger than the batch, and hold twins
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
        cells = cells.cast(pa.string())  # by way of text, the nearest float is found; the direct way may miss it
    return _to_numpy(
        cells.cast(pa.float64(), safe=False), np.nan
    )  # beyond 2^53, integers become the float next to them


def _to_numpy(cells: Cells, missing: float) -> npt.NDArray[Any]:
    """Arrow's array as numpy's, and never a file's: what is mapped may go away before it is looked at.

    Arrow's own to_numpy would import pandas wherever it is there: 50 MB for nothing.
    """
    filled = cells.fill_null(missing) if cells.null_count else cells
    found = np.from_dlpack(filled)
    return found.copy() if is_memory_mapped(filled) else found


def is_memory_mapped(cells: Cells) -> bool:
    """Whether a column lies in a file that is mapped into memory, and can only be read."""
    return any(buffer is not None and not buffer.is_mutable for buffer in cells.buffers())


def _expand_levels(distinct: CategoricalColumn, indices: Cells) -> CategoricalColumn:
    """The column whose cells point at these distinct labels."""
    return CategoricalColumn(distinct.levels, np.append(distinct.codes, -1)[_to_numpy(indices, -1)])


def parse_levels(cells: Cells, style: CsvStyle) -> CategoricalColumn:
    """Cells of a CSV file as labels, exactly as written."""
    encoded = cells.dictionary_encode()
    missing = {None, *style.missing}
    distinct = [
        label if label not in missing and label.strip() not in missing else None
        for label in encoded.dictionary.to_pylist()
    ]
    return _expand_levels(CategoricalColumn.of(distinct), encoded.indices)


def parse_numbers(cells: Cells, style: CsvStyle) -> NumericColumn | None:
    """Cells of a CSV file as numbers, rounded as Python does it; None where one of them is no number."""
    found = _parse_decimals(cells, style.decimal)
    if found is None:  # perhaps only because of spaces: rare enough to look for them afterwards
        bare = pc.utf8_trim_whitespace(cells)
        missing = pc.is_in(bare, pa.array(style.missing, pa.string()))
        found = _parse_decimals(pc.if_else(missing, None, bare), style.decimal)
    return found


def _parse_decimals(cells: Cells, decimal: str) -> NumericColumn | None:
    if decimal == ",":
        if pc.any(pc.match_substring(cells, ".")).as_py():
            return None  # 1.234 would be read as 1.234 by one and as 1234 by another
        cells = pc.replace_substring(cells, ",", ".")
    try:
        return NumericColumn(_to_floats(cells))
    except pa.ArrowInvalid:
        return None


def find_first_non_number(cells: Cells, style: CsvStyle) -> int:
    """The position of the first cell that is no number; one of them has to be none."""
    return bisect_left(range(len(cells)), True, key=lambda last: parse_numbers(cells[: last + 1], style) is None)
