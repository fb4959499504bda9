"""Files of statistics programs: SPSS (.sav, .zsav), Stata (.dta) and SAS (.sas7bdat, .xpt).

Labels of values become levels, and values that the file declares missing are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from fedcdh._runtime.optional_imports import optional_import
from fedcdh.data.columns import to_level
from fedcdh.data.readers.arrow_columns import Content
from fedcdh.data.readers.csv_dialect import CsvStyle
from fedcdh.data.readers.paths import file_state, table_suffix, unreadable_file_error
from fedcdh.data.readers.python_cells import cells_content, clear_missing, is_number, to_column
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table
from fedcdh.errors import DataError

_READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
_MAX_BLOCK_CELLS = 1 << 20
"""Cells that are read at a time: 100 MB of Python values."""
_MAX_NAMED_VALUES = 5


@dataclass(frozen=True)
class StatisticsFile:
    """A file of SPSS, Stata or SAS.

    Attributes
    ----------
    path : Path
        The file.
    style : CsvStyle
        Its `missing` names values and labels that mean "no value", besides those that the file declares.
    """

    path: Path
    style: CsvStyle

    @property
    def types(self) -> Mapping[str, Any]:
        """Return nothing: whether a column holds labels follows from its values."""
        return {}

    def state(self) -> tuple[int, int]:
        """Return the size of the file and the time it was written last."""
        return file_state(self.path)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(self._metadata.column_names)

    @cached_property
    def _metadata(self) -> Any:
        with self._open() as read:
            return read(self.path, metadataonly=True)[1]

    @cached_property
    def _values(self) -> dict[str, set[Any]]:
        """Return the distinct values of every column with labels, before labels are put in their place."""
        labelled = list(self._labels)
        found: dict[str, set[Any]] = {name: set() for name in labelled}
        for columns, _ in self._blocks(labelled):
            for name, cells in columns.items():
                found[name].update(cells)
        return {name: values - {None} for name, values in found.items()}

    @cached_property
    def _labels(self) -> dict[str, dict[Any, str]]:
        """Return the labels of values, for each column that has some."""
        return {name: dict(labels) for name, labels in self._metadata.variable_value_labels.items() if labels}

    @cached_property
    def _contents(self) -> dict[str, Content]:
        found: dict[str, Content] = dict.fromkeys(self.names, "nothing")
        for columns, _ in self._blocks(list(self.names)):
            found |= {name: cells_content(cells, found[name]) for name, cells in columns.items()}
        for name, values in self._values.items():
            if found[name] == "numbers" and values and values <= self._labels[name].keys():
                found[name] = "labels"
        return found

    def contents(self) -> dict[str, Content]:
        """Return the content of each column: labels if there are texts, or every value has a label."""
        return dict(self._contents)

    def batches(self, kinds: Mapping[str, ColumnKind], rows: int) -> Iterator[tuple[Table, float]]:
        """Yield all rows in tables of at most `rows` rows, each with the share of the file read so far."""
        for name, kind in kinds.items():
            self._check_column(name, kind)
        for columns, share in self._blocks(list(kinds)):
            table = Table(
                {name: to_column(self._cells(name, kinds[name], cells), kinds[name]) for name, cells in columns.items()}
            )
            for start in range(0, table.rows, rows):
                yield table.slice_rows(start, rows), share

    def _cells(self, name: str, kind: ColumnKind, cells: Sequence[Any]) -> list[Any]:
        labels = self._labels.get(name, {}) if kind == "categorical" else {}
        return [labels.get(cell, cell) for cell in cells]

    def _check_column(self, name: str, kind: ColumnKind) -> None:
        content = self._contents[name]
        if content == "neither":
            raise DataError(
                f"{self.path}: column {name!r} holds dates or times; expected numbers or texts. Turn it into numbers "
                "(days since a fixed day), or leave it out of the study",
                parameter="variables",
            )
        if kind == "continuous" and content == "labels":
            what = "values with labels" if name in self._labels else "texts"
            raise DataError(
                f"{self.path}: column {name!r} holds {what}, but the study expects numbers. Make it categorical for "
                "all clients, or save it as numbers without labels"
            )
        if kind == "continuous" and name in self._labels:
            self._check_codes(name)
        if kind == "categorical" and name in self._labels:
            self._check_distinct_labels(name)

    def _check_codes(self, name: str) -> None:
        """Refuse labelled values far from all others, such as 99 "refused" among ages: they are no numbers."""
        values = {value for value in self._values[name] if is_number(value)}
        plain = sorted(values - self._labels[name].keys())
        step = max((b - a for a, b in pairwise(plain)), default=1)
        coded = [
            value
            for value in sorted(values & self._labels[name].keys())
            if plain and not plain[0] - step <= value <= plain[-1] + step
        ]
        if coded:
            shown = ", ".join(f"{to_level(value)} ({self._labels[name][value]})" for value in coded[:_MAX_NAMED_VALUES])
            raise DataError(
                f"{self.path}: column {name!r} holds numbers, and values with a label that are far from them: {shown}; "
                f"expected numbers. If they mean 'no value', declare them missing in the file, or add "
                f"{to_level(coded[0])!r} to those that mean 'missing'; if they are numbers, remove their labels",
                parameter="missing",
            )

    def _check_distinct_labels(self, name: str) -> None:
        """Refuse two values with one label, which would become one level."""
        seen: dict[str, Any] = {}
        for value in sorted(self._values[name] & self._labels[name].keys(), key=str):
            label = self._labels[name][value]
            if label in seen:
                raise DataError(
                    f"{self.path}: column {name!r} has the label {label!r} for {to_level(seen[label])} and for "
                    f"{to_level(value)}; expected one label per value. Correct the labels, or recode the column"
                )
            seen[label] = value

    def _blocks(self, names: Sequence[str]) -> Iterator[tuple[dict[str, list[Any]], float]]:
        """Yield the cells of these columns, None where a value is missing, with the share of rows read so far."""
        if not names:
            return
        rows, total, done = max(1, _MAX_BLOCK_CELLS // len(names)), self._metadata.number_rows, 0
        with self._open() as read:
            while True:
                cells, _ = read(self.path, usecols=list(names), row_offset=done, row_limit=rows, output_format="dict")
                found = len(next(iter(cells.values()), ()))
                if found:
                    done += found
                    yield (
                        {name: self._without_missing(name, cells[name]) for name in names},
                        min(1.0, done / total) if total else 1.0,
                    )
                if found < rows:
                    return

    def _without_missing(self, name: str, cells: Sequence[Any]) -> list[Any]:
        markers, labels = set(self.style.missing), self._labels.get(name, {})
        cleared = clear_missing(cells, markers)
        return [None if labels.get(cell) in markers else cell for cell in cleared] if labels else cleared

    @contextmanager
    def _open(self) -> Iterator[Callable[..., Any]]:
        """Return the function that reads the file; turn its errors into a DataError."""
        with optional_import("pyreadstat", extra="files"):
            import pyreadstat
        try:
            yield getattr(pyreadstat, _READERS[table_suffix(self.path)])
        except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, OSError, OverflowError) as problem:
            reason = "it is not a file of SPSS, Stata or SAS, or it is damaged"
            raise unreadable_file_error(self.path, problem, reason) from None
