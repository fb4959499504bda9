"""A sheet of a spreadsheet: Excel (.xlsx, .xlsm, .xlsb, .xls) or OpenDocument (.ods).

A workbook is compressed as a whole, so one sheet is in memory while it is read; a sheet has at most a million rows.
Cells have types: texts stay labels, also where they look like numbers. A formula has the value that was saved with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.data.readers.arrow_columns import Content
from fedcdh.data.readers.csv_dialect import CsvStyle
from fedcdh.data.readers.paths import file_state, unreadable_file_error
from fedcdh.data.readers.python_cells import cells_content, clear_missing, find_first_text, to_column
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table
from fedcdh.errors import DataError

_DIGITS_AS_TEXT = re.compile(r"\s*[-+]?[0-9][0-9.,' ]*\s*")


@dataclass(frozen=True)
class ExcelFile:
    """One sheet of a workbook: names in its first row that is not empty, and rows below it.

    Attributes
    ----------
    path : Path
        The workbook.
    sheet : str
        Name of the sheet; the empty text for the only sheet that has cells.
    style : CsvStyle
        Its `missing` names texts that mean "no value".
    """

    path: Path
    sheet: str
    style: CsvStyle

    @property
    def types(self) -> Mapping[str, Any]:
        """Return nothing: single cells have types, columns have not."""
        return {}

    def state(self) -> tuple[int, int]:
        """Return the size of the file and the time it was written last."""
        return file_state(self.path)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names in the first row that is not empty; the empty text for columns without one."""
        with self._open_rows() as rows:
            first = next(rows, None)
        if first is None:
            raise DataError(
                f"{self._place} is empty; expected the names of the columns in a row, and rows of data below it. Save "
                "the table again, or name another sheet"
            )
        return tuple("" if name is None else str(name).strip() for name in clear_missing(first, ("",)))

    @property
    def _place(self) -> str:
        return f"{self.path}#{self.sheet}" if self.sheet else str(self.path)

    def contents(self) -> dict[str, Content]:
        """Return the content of each column over all rows: numbers if every cell that is not missing is one."""
        found: dict[str, Content] = dict.fromkeys(self.names, "nothing")
        for columns in self._blocks(list(self.names), 65536):
            found |= {name: cells_content(cells, found[name]) for name, cells in columns.items()}
        return found

    def batches(self, kinds: Mapping[str, ColumnKind], rows: int) -> Iterator[tuple[Table, float]]:
        """Yield all rows in tables of at most `rows` rows, each with the share of the file read so far."""
        before = 0
        for columns in self._blocks(list(kinds), rows):
            for name, cells in columns.items():
                self._check_cells(name, kinds[name], cells, before)
            table = Table({name: to_column(cells, kinds[name]) for name, cells in columns.items()})
            before += table.rows
            yield table, 1.0  # the sheet was read as a whole

    def _check_cells(self, name: str, kind: ColumnKind, cells: Sequence[Any], before: int) -> None:
        content = cells_content(cells)
        if content == "neither":
            raise DataError(
                f"{self._place}: column {name!r} holds dates or times; expected numbers or texts. Turn it into numbers "
                "(days since a fixed day), or leave it out of the study",
                parameter="variables",
            )
        if kind == "continuous" and content == "labels":
            place = find_first_text(cells)
            digits = isinstance(cells[place], str) and _DIGITS_AS_TEXT.fullmatch(cells[place])
            stored, remedy = (
                ("a number that is stored as text", "Convert the column to numbers")
                if digits
                else ("no number", "Correct the cell, or add it to those that mean 'missing'")
            )
            raise DataError(  # the cell itself is not shown, because errors end up in logs
                f"{self._place}: row {before + place + 1} (the header not counted) has {stored} in column {name!r}; "
                f"expected numbers. {remedy}",
                parameter="missing",
            )

    def _blocks(self, names: Sequence[str], rows: int) -> Iterator[dict[str, list[Any]]]:
        """Yield the cells of these columns, with None for missing values, at most `rows` rows at a time."""
        places = {name: self.names.index(name) for name in names}
        with self._open_rows() as found:
            next(found, None)  # the names
            while block := list(islice(found, rows)):
                yield {
                    name: clear_missing((row[place] for row in block), self.style.missing)
                    for name, place in places.items()
                }

    @contextmanager
    def _open_rows(self) -> Iterator[Iterator[list[Any]]]:
        """Open the sheet; its rows are lists of Python values, and empty rows are left out."""
        with optional_import("python-calamine", extra="files"):
            from python_calamine import CalamineError, CalamineWorkbook, PasswordError
        try:
            with CalamineWorkbook.from_path(self.path) as workbook:
                sheet = self._choose_sheet(workbook)
                yield (row for row in sheet.iter_rows() if any(cell not in ("", None) for cell in row))
        except PasswordError:
            raise DataError(
                f"{self.path} is protected by a password; expected a file that can be read. Save a copy without one"
            ) from None
        except (CalamineError, OSError) as problem:
            reason = "it is not a workbook, or it is damaged"
            raise unreadable_file_error(self.path, problem, reason, " as a workbook") from None

    def _choose_sheet(self, workbook: Any) -> Any:
        names = list(workbook.sheet_names)
        if self.sheet:
            if self.sheet not in names:
                raise DataError(
                    f"{self.path} has no sheet {self.sheet!r}; expected one of {', '.join(map(repr, names))}. Correct "
                    "the name behind '#'"
                )
            return workbook.get_sheet_by_name(self.sheet)
        sheets = {name: workbook.get_sheet_by_name(name) for name in names}
        filled = [name for name, sheet in sheets.items() if sheet.height]
        if len(filled) > 1:
            raise DataError(
                f"{self.path} has the sheets {', '.join(map(repr, filled))}; expected to learn which one holds the "
                f"rows. Name it behind '#', such as {str(self.path) + '#' + filled[0]!r}"
            )
        return sheets[(filled or names)[0]]
