"""A CSV file, read in blocks of bytes; all cells come as text and are converted afterwards."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import csv as arrow_csv

from fedcdh.data.columns import Column
from fedcdh.data.labels import has_thousands_separators
from fedcdh.data.readers.arrow_columns import Cells, Content, find_first_non_number, parse_levels, parse_numbers
from fedcdh.data.readers.csv_dialect import CsvStyle
from fedcdh.data.readers.csv_header import CsvHeader, read_header
from fedcdh.data.readers.paths import file_state, is_gzipped, table_suffix, unreadable_file_error
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table
from fedcdh.errors import DataError

BLOCK_BYTES = 1 << 20
"""Bytes read at a time. Arrow reads ahead: by measurement, blocks of 1 MB take 80 MB of memory, blocks of 4 MB 220."""


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with a header, which declares no types."""

    path: Path
    style: CsvStyle

    @property
    def types(self) -> Mapping[str, Any]:
        """Return nothing: a CSV file declares no types."""
        return {}

    @property
    def delimiter(self) -> str:
        """Return the delimiter."""
        return self._header.delimiter

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names in the header; the empty text for columns without one."""
        return self._header.names

    @cached_property
    def _header(self) -> CsvHeader:
        encoding = self.style.codec.replace("utf-8", "utf-8-sig")  # with or without a byte order mark
        expected = self.style.delimiter_for(table_suffix(self.path))
        with self._translate_errors([]), _open_stream(self.path) as (_, stream):
            found = read_header(io.TextIOWrapper(stream, encoding, newline=""), expected)
        if not found.names:
            raise DataError(
                f"{self.path} is empty; expected a header with the names of the columns, and rows below it. Save it "
                "again"
            )
        if any("\0" in name for name in found.names):
            raise self._encoding_error()
        self._check_delimiter(found)
        return found

    def _check_delimiter(self, found: CsvHeader) -> None:
        if found.delimiter == self.style.decimal:
            raise DataError(
                f"the first line of {self.path} makes {found.delimiter!r} the delimiter, which is the decimal mark as "
                "well; expected two different characters. Correct the line, or name the right decimal mark",
                parameter="decimal",
            )
        others = [mark for mark in ",;\t|" if mark in found.names[0] and mark != found.delimiter]
        if len(found.names) == 1 and others:
            raise DataError(
                f"{self.path} has a single column {found.names[0]!r} if the delimiter is {found.delimiter!r}; "
                f"try {others[0]!r} as the delimiter",
                parameter="delimiter",
            )

    def state(self) -> tuple[int, int]:
        """Return the size of the file and the time it was written last."""
        return file_state(self.path)

    def contents(self) -> dict[str, Content]:
        """Return the content of each column over all rows: numbers if every cell that is not missing is one."""
        found: dict[str, Content] = dict.fromkeys(self.names, "nothing")
        single = [name for name, times in Counter(self.names).items() if times == 1]  # others cannot be read
        for block, _ in self._blocks(single) if single else ():
            for name, cells in zip(single, block.columns, strict=True):
                if found[name] == "labels" or (found[name] == "nothing" and cells.null_count == len(cells)):
                    continue
                numbers = parse_numbers(cells, self.style)
                if numbers is None:
                    found[name] = "labels"
                elif not numbers.missing.all():
                    found[name] = "numbers"
        return found

    def batches(self, kinds: Mapping[str, ColumnKind], rows: int) -> Iterator[tuple[Table, float]]:
        """Yield all rows in tables of at most `rows` rows, each with the share of the file read so far."""
        before = 0
        for block, share in self._blocks(list(kinds)):
            for start in range(0, block.num_rows, rows):
                part = block.slice(start, rows)
                columns = {
                    name: self._column(name, kind, cells, before)
                    for (name, kind), cells in zip(kinds.items(), part.columns, strict=True)
                }
                yield Table(columns), share
                before += part.num_rows

    def _column(self, name: str, kind: ColumnKind, cells: Cells, before: int) -> Column:
        if kind == "categorical":
            levels = parse_levels(cells, self.style)
            grouped = levels.levels and all(map(has_thousands_separators, levels.levels))
            if grouped and parse_numbers(cells, self.style) is None:
                raise self._grouped_digits_error(name)
            return levels
        numbers = parse_numbers(cells, self.style)
        if numbers is None:  # the cell itself is not shown, because errors end up in logs
            place = find_first_non_number(cells, self.style)
            if has_thousands_separators(cells[place].as_py()):
                raise self._grouped_digits_error(name)
            row = before + place + 1
            raise DataError(
                f"{self.path}: row {row} (the header not counted) has no number in column {name!r}; expected numbers "
                f"with the decimal mark {self.style.decimal!r}. Correct the cell, or add it to the cells that mean "
                "'missing'",
                parameter="missing",
            )
        return numbers

    def _grouped_digits_error(self, name: str) -> DataError:
        return DataError(
            f"{self.path}: column {name!r} holds numbers with thousands separators, such as 1,234.5 or 1.234,5; "
            f"expected numbers with the decimal mark {self.style.decimal!r} and no separators. Save the column without "
            "them, or name the right decimal mark",
            parameter="decimal",
        )

    def _blocks(self, columns: Sequence[str]) -> Iterator[tuple[Any, float]]:
        """Yield these columns as text, block by block, with the share of the file's bytes read so far."""
        size = self.path.stat().st_size
        misfits: list[Any] = []
        with self._translate_errors(misfits), _open_stream(self.path) as (file, stream):
            try:
                reader = self._reader(stream, columns, misfits)
            except pa.ArrowInvalid as problem:
                if "Empty CSV" in str(problem):  # a header without an end of line
                    return
                raise
            with reader:
                for block in reader:
                    yield block, file.tell() / size

    def _reader(self, stream: Any, columns: Sequence[str], misfits: list[Any]) -> Any:
        def refuse(row: Any) -> str:
            misfits.append(row)
            return "error"

        wide = 16 * sum(map(len, self.names))  # where the header is long, rows are long too
        return arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=max(BLOCK_BYTES, wide),
                encoding=self.style.codec,
                skip_rows=self._header.lines_above,
            ),
            arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(self.names) > 1,  # with one column, an empty line is an empty cell
                invalid_row_handler=refuse,
            ),
            arrow_csv.ConvertOptions(
                include_columns=columns,
                column_types=dict.fromkeys(columns, pa.string()),
                null_values=self.style.missing,
                strings_can_be_null=True,
            ),
        )

    @contextmanager
    def _translate_errors(self, misfits: list[Any]) -> Iterator[None]:
        """Turn errors of Arrow, which may quote cells, into helpful ones."""
        try:
            yield
        except UnicodeError:
            raise self._encoding_error() from None
        except (pa.ArrowException, csv.Error) as problem:
            raise self._format_error(str(problem), misfits) from None
        except OSError as problem:
            damaged = "it is not compressed with gzip, or damaged" if is_gzipped(self.path) else "it may be damaged"
            raise unreadable_file_error(self.path, problem, damaged) from None

    def _format_error(self, problem: str, misfits: list[Any]) -> DataError:
        if misfits:
            row = misfits[0]
            return DataError(
                f"{self.path}: row {self._row_number(row.number)} (the header not counted) has {row.actual_columns} "
                f"cells; expected {row.expected_columns}. Correct it, or check that {self.delimiter!r} is the "
                "delimiter and that quotation marks are closed",
                parameter="delimiter",
            )
        if "UTF8" in problem:
            place = re.search(r"Row #(\d+)", problem)
            where = f" in row {self._row_number(int(place[1]))} (the header not counted)" if place else ""
            return self._encoding_error(where)
        if "straddl" in problem or "field limit" in problem:
            return DataError(
                f"{self.path} has a row longer than {BLOCK_BYTES >> 20} MB; most likely a quotation mark is not "
                "closed. Correct it, leave the long column out of the file, or save the table as Parquet"
            )
        return DataError(f"{self.path} cannot be read as CSV; check that it is a CSV file, or save it again")

    def _row_number(self, number: int) -> int:
        """Return a row number without the header and the lines above it, which Arrow counts."""
        return number - 1 - self._header.lines_above

    def _encoding_error(self, where: str = "") -> DataError:
        return DataError(
            f"{self.path} is not written in the encoding {self.style.encoding}{where}; name the encoding it is written "
            "in (often 'latin-1', 'cp1252' or 'utf-16'), or save it as UTF-8",
            parameter="encoding",
        )


@contextmanager
def _open_stream(path: Path) -> Iterator[tuple[Any, Any]]:
    """Open a file; yield it and the stream of its decompressed content."""
    with pa.OSFile(str(path)) as file:
        if not is_gzipped(path):
            yield file, file
            return
        with pa.CompressedInputStream(file, "gzip") as stream:
            yield file, stream
