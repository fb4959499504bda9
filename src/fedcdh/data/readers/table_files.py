"""The rows of one client in any number of files, under the names of the study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from fedcdh.data.readers.arrow_columns import Content, column_content
from fedcdh.data.readers.arrow_file import ArrowFile
from fedcdh.data.readers.csv_dialect import CsvStyle
from fedcdh.data.readers.csv_file import CsvFile
from fedcdh.data.readers.parquet_file import ParquetFile
from fedcdh.data.readers.paths import (
    ARROW_SUFFIXES,
    PARQUET_SUFFIXES,
    expand_paths,
    table_suffix,
    unreadable_file_error,
)
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table
from fedcdh.errors import DataError, SettingsError

MAX_BATCH_CELLS = 1 << 22
"""Cells of a batch, 32 MB of numbers: a batch of very many columns has fewer rows."""

ReadProgress = Callable[[int, float], None]


class TableFile(Protocol):
    """One file, by the names it uses itself."""

    @property
    def path(self) -> Path: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def types(self) -> Mapping[str, Any]: ...
    def contents(self) -> dict[str, Content]: ...
    def batches(self, kinds: Mapping[str, ColumnKind], rows: int) -> Iterator[tuple[Table, float]]: ...


def open_tables(
    paths: str | Path | Sequence[str | Path],
    *,
    rename: Mapping[str, str] | None = None,
    style: CsvStyle | None = None,
    progress: ReadProgress | None = None,
    batch_rows: int = 65536,
) -> TableFiles:
    """The rows of these files, folders and patterns (`data/*.parquet`) as one source; files are opened when read.

    `rename` leads from the names of the columns to those of the study. `progress` is called after each batch, with the
    number of rows in it and the share of all rows (by bytes in CSV files) that have been read.
    """
    if batch_rows < 1:
        raise SettingsError(f"batch_rows is {batch_rows}; expected at least 1", parameter="batch_rows")
    files = tuple(_open_table_file(path, style or CsvStyle()) for path in expand_paths(paths))
    return TableFiles(files, dict(rename or {}), progress, batch_rows)


def _open_table_file(path: Path, style: CsvStyle) -> TableFile:
    if table_suffix(path) in PARQUET_SUFFIXES:
        return ParquetFile(path)
    return ArrowFile(path) if table_suffix(path) in ARROW_SUFFIXES else CsvFile(path, style)


@dataclass(frozen=True)
class TableFiles:
    """A `TableSource` of files with the same columns, read one after the other."""

    files: tuple[TableFile, ...]
    rename: Mapping[str, str] = field(default_factory=dict)
    progress: ReadProgress | None = None
    batch_rows: int = 65536

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Every column: continuous if all its values are numbers, or if it has none; categorical otherwise.

        Columns of CSV files are decided over all rows, those of Parquet and Arrow by their types. Dates, times, lists
        and the like there stand here as categorical, for a column is not left out in silence; `batches` refuses them,
        and columns without a heading, which stand here under the empty name.
        """
        return dict(self._kinds)

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """All rows, once, in the order of the files; a categorical column of typed fractions comes as numbers."""
        theirs = {name: self._column(name) for name in kinds}
        for name, kind in kinds.items():
            self._check_heading(name, theirs[name])
            self._check_types(theirs[name], kind)
        return self._batches({theirs[name]: kind for name, kind in kinds.items()}, tuple(kinds)) if kinds else iter(())

    def _batches(self, kinds: Mapping[str, ColumnKind], names: Sequence[str]) -> Iterator[Table]:
        whole = sum(size for size, _ in self._states)
        rows = min(self.batch_rows, max(1, MAX_BATCH_CELLS // len(kinds)))
        done, share = 0, 0.0
        for file, state in zip(self.files, self._states, strict=True):
            size, _ = state
            _check_unchanged(file.path, state)
            for table, part in file.batches(kinds, rows):
                yield Table(dict(zip(names, table.columns.values(), strict=True)))
                share = min(1.0, (done + part * size) / whole)
                if self.progress:
                    self.progress(table.rows, share)
            _check_unchanged(file.path, state)
            done += size
        if self.progress and share < 1:
            self.progress(0, 1.0)

    @cached_property
    def _kinds(self) -> dict[str, ColumnKind]:
        columns = self._columns  # first, for it refuses files that do not fit together
        contents = [file.contents() for file in self.files]
        return {
            name: "continuous" if {found[theirs] for found in contents} <= {"numbers", "nothing"} else "categorical"
            for name, theirs in columns.items()
        }

    @cached_property
    def _states(self) -> list[tuple[int, int]]:
        """Of all files, as they are when one is first looked into: some work takes several passes over their rows."""
        return [_file_state(file.path) for file in self.files]

    @cached_property
    def _columns(self) -> dict[str, str]:
        """From the study's names to those in the files."""
        first, _ = self.files[0], self._states
        for file in self.files:
            _check_names(file, first)
        for theirs in self.rename.keys() - set(first.names):
            problem = _describe_missing_column(theirs, first.names, first.path)
            raise DataError(f"column {theirs!r} is to be renamed, but {problem}; correct the renaming")
        columns: dict[str, str] = {}
        for theirs in dict.fromkeys(first.names):
            ours = self.rename.get(theirs, theirs)
            if ours in columns:
                raise DataError(
                    f"{first.path}: both {columns[ours]!r} and {theirs!r} would be called {ours!r}; rename one of them "
                    "to another name"
                )
            columns[ours] = theirs
        return columns

    def _column(self, name: str) -> str:
        if name not in self._columns:
            missing = _describe_missing_column(name, tuple(self._columns), self.files[0].path)
            raise DataError(
                f"{missing}; name the site's column for it in the renaming, or leave the variable out of the study"
            )
        return self._columns[name]

    def _check_heading(self, name: str, theirs: str) -> None:
        """A column without a heading may be there, but cannot be asked for unless a renaming gives it a name."""
        for file in self.files if not theirs else ():
            nameless = [place for place, heading in enumerate(file.names, start=1) if not heading]
            if not name or len(nameless) > 1:
                raise DataError(
                    f"column {nameless[0]} of {file.path} has no heading; name it there, save the file without its "
                    "index (and without a delimiter at the end of each line), or choose the columns to read",
                    parameter="variables",
                )

    def _check_types(self, theirs: str, kind: ColumnKind) -> None:
        """Refuses what is neither number nor label, what changes between files, and text where numbers are wanted."""
        typed = {file: file.types[theirs] for file in self.files if theirs in file.types}
        by_content: dict[Content, TableFile] = {}
        for file, declared in typed.items():
            by_content.setdefault(column_content(declared), file)
        if odd := by_content.get("neither"):
            raise DataError(
                f"{odd.path}: column {theirs!r} holds {typed[odd]}, which is neither a number nor a label; turn it "
                "into one (a date, for example, into days since a fixed day) or leave it out of the study"
            )
        labels, numbers = by_content.get("labels"), by_content.get("numbers")
        if labels and numbers:
            raise DataError(
                f"column {theirs!r} is {typed[numbers]} in {numbers.path} and {typed[labels]} in {labels.path}; save "
                "it with one type in all files"
            )
        if labels and kind == "continuous":
            raise DataError(
                f"{labels.path}: column {theirs!r} is of type {typed[labels]}, but the study expects numbers; columns "
                "with types are never turned into numbers by guessing, so save it as numbers, or make it categorical "
                "for all clients"
            )


def _file_state(path: Path) -> tuple[int, int]:
    """By which a file is known to be the same: how long it is, and when it was written last."""
    try:
        status = path.stat()
    except OSError as problem:
        raise unreadable_file_error(path, problem, "it went away") from None
    return status.st_size, status.st_mtime_ns


def _check_unchanged(path: Path, state: tuple[int, int]) -> None:
    if _file_state(path) != state:
        raise DataError(f"{path} changed while it was read; wait until it is complete, then try again")


def _check_names(file: TableFile, first: TableFile) -> None:
    if twins := sorted(name for name, times in Counter(file.names).items() if name and times > 1):
        raise DataError(f"{file.path}: two columns are called {_quote_names(twins)}; rename one of them")
    for one, other in ((file, first), (first, file)):
        if lacking := sorted(set(other.names) - set(one.names)):
            raise DataError(
                f"{one.path} has no column {_quote_names(lacking)}, but {other.path} has; give all files of a site the same "
                "columns, or read only those that have them"
            )


def _describe_missing_column(name: str, names: Sequence[str], path: Path) -> str:
    """That there is no such column, and which one may be meant."""
    plain = {other.casefold().replace("_", " ").strip(): other for other in names}
    near = get_close_matches(name.casefold().replace("_", " ").strip(), plain, n=2)
    if near:
        return f"there is no column {name!r} in {path}; did you mean {_quote_names([plain[one] for one in near])}?"
    return f"there is no column {name!r} in {path}, which has {_quote_names(names)}"


def _quote_names(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"
