"""The rows of one client in any number of files, with the variable names of the study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from fedcdh._io.text import suggest_name
from fedcdh.data.readers.arrow_columns import Content, column_content
from fedcdh.data.readers.arrow_file import ArrowFile
from fedcdh.data.readers.csv_dialect import CsvStyle
from fedcdh.data.readers.csv_file import CsvFile
from fedcdh.data.readers.excel_file import ExcelFile
from fedcdh.data.readers.parquet_file import ParquetFile
from fedcdh.data.readers.paths import (
    ARROW_SUFFIXES,
    EXCEL_SUFFIXES,
    PARQUET_SUFFIXES,
    QUERY_SUFFIX,
    STATISTICS_SUFFIXES,
    expand_paths,
    split_sheet,
    table_suffix,
)
from fedcdh.data.readers.query import Query
from fedcdh.data.readers.query_file import open_query_file
from fedcdh.data.readers.statistics_file import StatisticsFile
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table
from fedcdh.errors import DataError, SettingsError

MAX_BATCH_CELLS = 1 << 22
"""Cells of a batch, 32 MB of numbers: a batch with very many columns has fewer rows."""

ReadProgress: TypeAlias = Callable[[int, float], None]
"""A function that is called after each batch, with its number of rows and the share of all rows read so far."""


class TableFile(Protocol):
    """The rows of one file, with the names that the file uses."""

    @property
    def path(self) -> Path:
        """Return the path of the file."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""

    @property
    def types(self) -> Mapping[str, Any]:
        """Return the declared Arrow types of the columns; nothing where columns have no types."""

    def state(self) -> tuple[int, int]:
        """Return the size of the file, and a number that changes when its rows do."""

    def contents(self) -> dict[str, Content]:
        """Return the content of each column."""

    def batches(self, kinds: Mapping[str, ColumnKind], rows: int) -> Iterator[tuple[Table, float]]:
        """Yield all rows in tables of at most `rows` rows, each with the share of the file read so far."""


def open_tables(
    paths: str | Path | Sequence[str | Path],
    *,
    rename: Mapping[str, str] | None = None,
    style: CsvStyle | None = None,
    progress: ReadProgress | None = None,
    batch_rows: int = 65536,
) -> TableFiles:
    r"""Open table files as one source of rows; they are read when the rows are needed.

    Parameters
    ----------
    paths : str, Path or sequence of these
        Files, folders or patterns such as `data/*.parquet`: CSV (also with .gz), Parquet, Arrow, Excel (one sheet:
        `"north.xlsx#Patients"`), SPSS, Stata and SAS, or a query of a database in a file that ends in `.query.toml`.
    rename : mapping from str to str, optional
        From the names of the columns to those of the study's variables.
    style : CsvStyle, optional
        How CSV files are written; the default is UTF-8 with commas and decimal points. Its missing values count in
        spreadsheets and files of statistics programs, too.
    progress : callable, optional
        Called after each batch with its number of rows and the share of all rows read so far (by bytes in CSV files).
    batch_rows : int, default 65536
        The largest number of rows in memory at a time.

    Returns
    -------
    TableFiles
        A source of rows for `profile`, `summarize`, `release` and `discover`.

    Raises
    ------
    DataError
        If there is no such file, or a name is not that of a table file.
    SettingsError
        If `batch_rows` is below 1.

    See Also
    --------
    CsvStyle : How a CSV file is written.
    read_column_map : Reads the names for `rename` from a file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "north.csv").write_text("Alter,dose\n61,0.5\n47,1.5\n")
    ...     rows = open_tables(Path(folder, "north.csv"), rename={"Alter": "age"})
    ...     rows.kinds()
    {'age': 'continuous', 'dose': 'continuous'}
    """
    if batch_rows < 1:
        raise SettingsError(
            f"the number of rows in a batch is {batch_rows}; expected at least 1", parameter="batch_rows"
        )
    files = tuple(_open_table_file(path, style or CsvStyle()) for path in expand_paths(paths))
    return TableFiles(files, dict(rename or {}), progress, batch_rows)


def open_query(
    connection: Any,
    query: str,
    *,
    rename: Mapping[str, str] | None = None,
    missing: Sequence[str] = ("",),
    progress: ReadProgress | None = None,
    batch_rows: int = 65536,
) -> TableFiles:
    """Open a database query as a source of rows; the query runs whenever the rows are needed.

    Parameters
    ----------
    connection : object
        A connection of ADBC, DuckDB or another DB-API 2.0 library, or an engine or connection of SQLAlchemy. Drivers
        that fetch all rows at once (such as psycopg without a server-side cursor) need memory for all of them.
    query : str
        A SELECT. Without ORDER BY, a database may return its rows in another order each time.
    rename : mapping from str to str, optional
        From the names of the columns to those of the study's variables.
    missing : sequence of str, default ("",)
        Texts that mean "no value", besides NULL, where the library declares no types.
    progress : callable, optional
        Called after each batch with its number of rows and 0, since the number of all rows is not known.
    batch_rows : int, default 65536
        The largest number of rows in memory at a time, as far as the library allows.

    Returns
    -------
    TableFiles
        A source of rows for `profile`, `summarize`, `release` and `discover`.

    Raises
    ------
    DataError
        If the query fails.

    See Also
    --------
    open_tables : Opens files; a file that ends in .query.toml names a database and a query.

    Notes
    -----
    A study reads the rows several times. Use a transaction that sees one state of the database (in PostgreSQL,
    REPEATABLE READ) if rows may change meanwhile; another number of rows is an error.

    Examples
    --------
    >>> import sqlite3
    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.executescript("CREATE TABLE p (age REAL, sex TEXT); INSERT INTO p VALUES (61, 'f'), (47, NULL);")
    >>> open_query(connection, "SELECT * FROM p").kinds()
    {'age': 'continuous', 'sex': 'categorical'}
    """
    return TableFiles((Query(Path("the query"), connection, query, missing),), dict(rename or {}), progress, batch_rows)


def _open_table_file(path: Path, style: CsvStyle) -> TableFile:
    suffix = table_suffix(path)
    if suffix in PARQUET_SUFFIXES:
        return ParquetFile(path)
    if suffix in ARROW_SUFFIXES:
        return ArrowFile(path)
    if suffix in EXCEL_SUFFIXES:
        return ExcelFile(*split_sheet(path), style)
    if suffix in STATISTICS_SUFFIXES:
        return StatisticsFile(path, style)
    return open_query_file(path) if suffix == QUERY_SUFFIX else CsvFile(path, style)


@dataclass(frozen=True)
class TableFiles:
    r"""Files with the same columns, read one after the other as one `TableSource`.

    Parameters
    ----------
    files : tuple of files
        The files, as `open_tables` opens them.
    rename : mapping from str to str
        From the names of the columns to those of the study's variables.
    progress : callable, optional
        Called after each batch with its number of rows and the share of all rows read so far.
    batch_rows : int, default 65536
        The largest number of rows in memory at a time.

    See Also
    --------
    open_tables : Makes such a source from paths.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "north.csv").write_text("sex\nf\nm\n")
    ...     rows = open_tables(Path(folder, "north.csv"))
    ...     sum(table.rows for table in rows.batches({"sex": "categorical"}))
    2
    """

    files: tuple[TableFile, ...]
    rename: Mapping[str, str] = field(default_factory=dict)
    progress: ReadProgress | None = None
    batch_rows: int = 65536

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Return the kind of every column: continuous if all values are numbers or missing, else categorical.

        Columns of CSV files are decided over all rows, those of Parquet and Arrow by their types. Dates, times and
        lists count as categorical here, because no column is left out silently, but `batches` refuses them. Columns
        without a name in the header have the empty name here, and `batches` refuses them too.

        Returns
        -------
        mapping from str to {"continuous", "categorical"}
            The kind of each column, by its name in the study.
        """
        return dict(self._kinds)

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Return an iterator over all rows, in the order of the files.

        Fractions of a typed file that are read as categorical come as numbers.

        Parameters
        ----------
        kinds : mapping from str to {"continuous", "categorical"}
            The columns to read, and the kind of each.

        Returns
        -------
        iterator of Table
            The batches.
        """
        theirs = {name: self._column(name) for name in kinds}
        for name, kind in kinds.items():
            self._check_header(name, theirs[name])
            self._check_types(theirs[name], kind)
        return self._batches({theirs[name]: kind for name, kind in kinds.items()}, tuple(kinds)) if kinds else iter(())

    def _batches(self, kinds: Mapping[str, ColumnKind], names: Sequence[str]) -> Iterator[Table]:
        whole = sum(size for size, _ in self._states)
        rows = min(self.batch_rows, max(1, MAX_BATCH_CELLS // len(kinds)))
        done, share = 0, 0.0
        for file, state in zip(self.files, self._states, strict=True):
            size, _ = state
            _check_unchanged(file, state)
            for table, part in file.batches(kinds, rows):
                yield Table(dict(zip(names, table.columns.values(), strict=True)))
                share = min(1.0, (done + part * size) / whole)
                if self.progress:
                    self.progress(table.rows, share)
            _check_unchanged(file, state)
            done += size
        if self.progress and share < 1:
            self.progress(0, 1.0)

    @cached_property
    def _kinds(self) -> dict[str, ColumnKind]:
        columns = self._columns  # first, because it refuses files that do not fit together
        contents = [file.contents() for file in self.files]
        return {
            name: "continuous" if {found[theirs] for found in contents} <= {"numbers", "nothing"} else "categorical"
            for name, theirs in columns.items()
        }

    @cached_property
    def _states(self) -> list[tuple[int, int]]:
        """Return the states of all files when the first is read: some work takes several passes over the rows."""
        return [file.state() for file in self.files]

    @cached_property
    def _columns(self) -> dict[str, str]:
        """Return the names in the files, by those in the study."""
        first, _ = self.files[0], self._states
        for file in self.files:
            _check_names(file, first)
        for theirs in self.rename.keys() - set(first.names):
            problem = _describe_missing_column(theirs, first.names, first.path)
            raise DataError(f"column {theirs!r} is to be renamed, but {problem}; correct the mapping of columns")
        columns: dict[str, str] = {}
        for theirs in dict.fromkeys(first.names):
            ours = self.rename.get(theirs, theirs)
            if ours in columns:
                raise DataError(
                    f"{first.path}: both {columns[ours]!r} and {theirs!r} would be called {ours!r}; expected different "
                    "names. Rename one of them to another name"
                )
            columns[ours] = theirs
        return columns

    def _column(self, name: str) -> str:
        if name not in self._columns:
            missing = _describe_missing_column(name, tuple(self._columns), self.files[0].path)
            raise DataError(f"{missing}; add it to the mapping of columns, or leave the variable out of the study")
        return self._columns[name]

    def _check_header(self, name: str, theirs: str) -> None:
        """Refuse to read a column without a name in the header, unless a mapping of columns gives it one."""
        for file in self.files if not theirs else ():
            nameless = [place for place, header in enumerate(file.names, start=1) if not header]
            if not name or len(nameless) > 1:
                raise DataError(
                    f"column {nameless[0]} of {file.path} has no name in the header; name it there, save the file "
                    "without its index (and without a delimiter at the end of each line), or name the variables of the "
                    "study without it",
                    parameter="variables",
                )

    def _check_types(self, theirs: str, kind: ColumnKind) -> None:
        """Refuse columns of other types, types that differ between files, and text where numbers are expected."""
        typed = {file: file.types[theirs] for file in self.files if theirs in file.types}
        by_content: dict[Content, TableFile] = {}
        for file, declared in typed.items():
            by_content.setdefault(column_content(declared), file)
        if odd := by_content.get("neither"):
            raise DataError(
                f"{odd.path}: column {theirs!r} holds {typed[odd]}, which is neither a number nor a text; turn it "
                "into one (a date, for example, into days since a fixed day) or leave it out of the study"
            )
        labels, numbers = by_content.get("labels"), by_content.get("numbers")
        if labels and numbers:
            raise DataError(
                f"column {theirs!r} is {typed[numbers]} in {numbers.path} and {typed[labels]} in {labels.path}; "
                "expected one type. Save it with one type in all files"
            )
        if labels and kind == "continuous":
            raise DataError(
                f"{labels.path}: column {theirs!r} is of type {typed[labels]}, but the study expects numbers. Columns "
                "with types are never converted by guessing: save it as numbers, or make it categorical for all clients"
            )


def _check_unchanged(file: TableFile, state: tuple[int, int]) -> None:
    if file.state() != state:
        raise DataError(f"{file.path} changed while it was read; wait until it is complete, then try again")


def _check_names(file: TableFile, first: TableFile) -> None:
    if twins := sorted(name for name, times in Counter(file.names).items() if name and times > 1):
        raise DataError(f"{file.path}: two columns are called {_quote_names(twins)}; rename one of them")
    for one, other in ((file, first), (first, file)):
        if lacking := sorted(set(other.names) - set(one.names)):
            raise DataError(
                f"{one.path} has no column {_quote_names(lacking)}, but {other.path} has; expected the same columns in "
                "all files of a site. Add them, or read only the files that have them"
            )


def _describe_missing_column(name: str, names: Sequence[str], path: Path) -> str:
    """Return a text that says that there is no such column, and which one may be meant."""
    if near := suggest_name(name, names):
        return f"there is no column {name!r} in {path}{near}"
    return f"there is no column {name!r} in {path}, which has {_quote_names(names)}"


def _quote_names(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"
