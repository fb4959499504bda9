"""One CSV file, read in blocks of bytes. All cells come as text and are turned into what they are wanted as."""

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

from fedcdh.data.readers.arrow_columns import Cells, Content, find_first_non_number, parse_levels, parse_numbers
from fedcdh.data.readers.csv_dialect import CsvStyle
from fedcdh.data.readers.csv_header import CsvHeader, read_header
from fedcdh.data.readers.paths import is_gzipped, table_suffix, unreadable_file_error
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Column, Table
from fedcdh.errors import DataError

BLOCK_BYTES = 1 << 20
"""Bytes read at a time. Arrow reads blocks ahead: measured, 1 MB of them take 80 MB of memory, 4 MB take 220."""


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with a heading, which declares no types."""

    path: Path
    style: CsvStyle

    @property
    def types(self) -> Mapping[str, Any]:
        return {}

    @property
    def delimiter(self) -> str:
        return self._heading.delimiter

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the heading; empty for columns without one."""
        return self._heading.names

    @cached_property
    def _heading(self) -> CsvHeader:
        encoding = self.style.codec.replace("utf-8", "utf-8-sig")  # with or without a mark at the beginning
        expected = self.style.delimiter_for(table_suffix(self.path))
        with self._explained([]), _open_stream(self.path) as (_, stream):
            found = read_header(io.TextIOWrapper(stream, encoding, newline=""), expected)
        if not found.names:
            raise DataError(
                f"{self.path} is empty; expected a heading with the names of the columns, and rows below it"
            )
        if any("\0" in name for name in found.names):
            raise self._undecodable()
        self._check_delimiter(found)
        return found

    def _check_delimiter(self, found: CsvHeader) -> None:
        if found.delimiter == self.style.decimal:
            raise DataError(
                f"{self.path} says in its first line that {found.delimiter!r} sets cells apart, but that is the "
                "decimal mark as well; correct the line, or name the right decimal mark"
            )
        others = [mark for mark in ",;\t|" if mark in found.names[0] and mark != found.delimiter]
        if len(found.names) == 1 and others:
            raise DataError(
                f"{self.path} has a single column {found.names[0]!r} when cells are set apart by {found.delimiter!r}; "
                f"try {others[0]!r} as the delimiter"
            )

    def contents(self) -> dict[str, Content]:
        """What each column holds, decided over all rows: numbers if every cell that is not missing is one."""
        found: dict[str, Content] = dict.fromkeys(self.names, "nothing")
        single = [name for name, times in Counter(self.names).items() if times == 1]  # others cannot be asked for
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
        """All rows, at most so many at a time, each batch with the share of the file that has been read."""
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
            return parse_levels(cells, self.style)
        numbers = parse_numbers(cells, self.style)
        if numbers is None:  # the cell itself is not shown: errors end up in logs
            raise DataError(
                f"{self.path}: row {before + find_first_non_number(cells, self.style) + 1} (the heading not counted) holds no "
                f"number in column {name!r}, where numbers with the decimal mark {self.style.decimal!r} are expected; "
                "correct the cell, or add it to the cells that mean 'missing'"
            )
        return numbers

    def _blocks(self, columns: Sequence[str]) -> Iterator[tuple[Any, float]]:
        """These columns as text, block by block, with the share of the file's bytes that has been read."""
        size = self.path.stat().st_size
        misfits: list[Any] = []
        with self._explained(misfits), _open_stream(self.path) as (file, stream):
            try:
                reader = self._reader(stream, columns, misfits)
            except pa.ArrowInvalid as problem:
                if "Empty CSV" in str(problem):  # a heading without so much as an end of line
                    return
                raise
            with reader:
                for block in reader:
                    yield block, file.tell() / size

    def _reader(self, stream: Any, columns: Sequence[str], misfits: list[Any]) -> Any:
        def refuse(row: Any) -> str:
            misfits.append(row)
            return "error"

        wide = 16 * sum(map(len, self.names))  # where the heading alone is long, so are the rows
        return arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=max(BLOCK_BYTES, wide),
                encoding=self.style.codec,
                skip_rows=self._heading.above,
            ),
            arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(self.names) > 1,  # of one column, an empty line is an empty cell
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
    def _explained(self, misfits: list[Any]) -> Iterator[None]:
        """Arrow's refusals in words that help; its own may quote cells."""
        try:
            yield
        except UnicodeError:
            raise self._undecodable() from None
        except (pa.ArrowException, csv.Error) as problem:
            raise self._refusal(str(problem), misfits) from None
        except OSError as problem:
            damaged = "it is not packed with gzip, or damaged" if is_gzipped(self.path) else "it may be damaged"
            raise unreadable_file_error(self.path, problem, damaged) from None

    def _refusal(self, problem: str, misfits: list[Any]) -> DataError:
        if misfits:
            row = misfits[0]
            return DataError(
                f"{self.path}: row {self._row(row.number)} (the heading not counted) has {row.actual_columns} cells "
                f"instead of {row.expected_columns}; correct it, or check that {self.delimiter!r} is the delimiter and "
                "that quotation marks are closed"
            )
        if "UTF8" in problem:
            place = re.search(r"Row #(\d+)", problem)
            return self._undecodable(f" in row {self._row(int(place[1]))} (the heading not counted)" if place else "")
        if "straddl" in problem or "field limit" in problem:
            return DataError(
                f"{self.path} has a row longer than {BLOCK_BYTES >> 20} MB; most likely a quotation mark is not closed. "
                "Correct it, leave the long column out of the file, or save the table as Parquet"
            )
        return DataError(f"{self.path} cannot be read as CSV; check that it is one, or save it again")

    def _row(self, number: int) -> int:
        """Of Arrow's number, which counts the heading and what stands above it."""
        return number - 1 - self._heading.above

    def _undecodable(self, where: str = "") -> DataError:
        return DataError(
            f"{self.path} is not written in the encoding {self.style.encoding}{where}; name the one it is written in "
            "(often 'latin-1', 'cp1252' or 'utf-16'), or save it as UTF-8"
        )


@contextmanager
def _open_stream(path: Path) -> Iterator[tuple[Any, Any]]:
    """The file, and the stream of what is in it."""
    with pa.OSFile(str(path)) as file:
        if not is_gzipped(path):
            yield file, file
            return
        with pa.CompressedInputStream(file, "gzip") as stream:
            yield file, stream
