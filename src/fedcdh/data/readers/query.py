"""The rows of a database query, read in batches.

DuckDB and ADBC connections give Arrow batches with declared types. Any other DB-API 2.0 connection, and engines of
SQLAlchemy, give Python values. All passes over the rows have to give the same rows: a query file is read in one
transaction, and every pass must give as many rows as the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from fedcdh.data.readers.arrow_columns import Content, column_content, read_typed_column
from fedcdh.data.readers.python_cells import cells_content, clear_missing, find_first_text, to_column
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table
from fedcdh.errors import DataError, FedCDHError


@dataclass(frozen=True)
class _Rows:
    """The rows that a query gives: names, Arrow types where they are declared, and blocks."""

    names: tuple[str, ...]
    types: Mapping[str, Any]
    blocks: Iterator[Any]


@dataclass(frozen=True, eq=False)
class Query:
    """The rows of a query, as a `TableFile`.

    Attributes
    ----------
    path : Path
        The file that holds the query, or words for it, for messages.
    connection : object
        A connection of ADBC, DuckDB or another DB-API 2.0 library, or an engine or connection of SQLAlchemy.
    sql : str
        The query.
    missing : collection of str
        Texts that mean "no value", where the database declares no types.
    """

    path: Path
    connection: Any
    sql: str
    missing: Collection[str] = ("",)
    _counts: list[int] = field(default_factory=list)  # rows of the first pass, once it is complete

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return self._header[0]

    @property
    def types(self) -> Mapping[str, Any]:
        """Return the Arrow types that the database declares; nothing where it gives Python values."""
        return self._header[1]

    @cached_property
    def _header(self) -> tuple[tuple[str, ...], Mapping[str, Any]]:
        with self._run(1) as rows:
            return rows.names, rows.types

    def state(self) -> tuple[int, int]:
        """Return a constant: the number of rows is compared after every pass."""
        return 1, 0

    @cached_property
    def _contents(self) -> dict[str, Content]:
        if self.types:
            return {name: column_content(declared) for name, declared in self.types.items()}
        found: dict[str, Content] = dict.fromkeys(self.names, "nothing")
        for block in self._blocks(65536):
            for name, cells in zip(self.names, self._columns(block), strict=True):
                found[name] = cells_content(cells, found[name])
        return found

    def contents(self) -> dict[str, Content]:
        """Return the content of each column: by its type, or over all rows where there are no types."""
        return dict(self._contents)

    def batches(self, kinds: Mapping[str, ColumnKind], rows: int) -> Iterator[tuple[Table, float]]:
        """Yield all rows in tables of at most `rows` rows; how many are still to come is not known."""
        before = 0
        for block in self._blocks(rows):
            table = self._typed(block, kinds) if self.types else self._untyped(block, kinds, before)
            for start in range(0, table.rows, rows):
                yield table.slice_rows(start, rows), 0.0
            before += table.rows

    def _typed(self, block: Any, kinds: Mapping[str, ColumnKind]) -> Table:
        return Table({name: read_typed_column(_to_plain(block.column(name)), kind) for name, kind in kinds.items()})

    def _untyped(self, block: Sequence[Any], kinds: Mapping[str, ColumnKind], before: int) -> Table:
        cells = dict(zip(self.names, self._columns(block), strict=True))
        for name, kind in kinds.items():
            self._check_cells(name, kind, cells[name], before)
        return Table({name: to_column(cells[name], kind) for name, kind in kinds.items()})

    def _columns(self, block: Sequence[Any]) -> list[list[Any]]:
        return [clear_missing(cells, self.missing) for cells in zip(*block, strict=True)]

    def _check_cells(self, name: str, kind: ColumnKind, cells: Sequence[Any], before: int) -> None:
        content = cells_content(cells)
        if content == "neither":
            raise DataError(
                f"{self.path}: column {name!r} holds dates, times or bytes; expected numbers or texts. Turn it into "
                "numbers in the query (a date, for example, into days since a fixed day), or leave it out",
                parameter="variables",
            )
        if kind == "continuous" and content == "labels":
            row = before + find_first_text(cells) + 1
            raise DataError(
                f"{self.path}: row {row} has no number in column {name!r}; expected numbers. Cast the column in the "
                "query, or make it categorical for all clients"
            )

    def _blocks(self, rows: int) -> Iterator[Any]:
        """Yield the blocks that are not empty; refuse a pass with another number of rows than the first."""
        done = 0
        with self._run(rows) as found:
            for block in found.blocks:
                done += len(block)
                if len(block):
                    yield block
        if not self._counts:
            self._counts.append(done)
        if self._counts[0] != done:
            raise DataError(
                f"{self.path} gave {self._counts[0]} rows at first and {done} rows now; expected the same rows every "
                "time. Read them in one transaction that sees one state of the database, or from a copied table"
            )

    @contextmanager
    def _run(self, rows: int) -> Iterator[_Rows]:
        with self._translate_errors(), _run_query(self.connection, self.sql, rows) as found:
            yield found

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (FedCDHError, GeneratorExit, KeyboardInterrupt):
            raise
        except Exception as problem:  # every library of a database has errors of its own
            said = str(problem).strip().splitlines()[:1] or [type(problem).__name__]
            raise DataError(
                f"{self.path}: the query failed ({said[0]}); correct the query, or check that the database can be read"
            ) from problem


@contextmanager
def _run_query(connection: Any, sql: str, rows: int) -> Iterator[_Rows]:
    """Run a query; its rows come in blocks of about `rows` rows, as far as the library allows."""
    if hasattr(connection, "exec_driver_sql"):
        with _run_sqlalchemy(connection, sql, rows) as found:
            yield found
    elif hasattr(connection, "connect") and hasattr(connection, "dialect"):
        with connection.connect() as opened, _run_sqlalchemy(opened, sql, rows) as found:
            yield found
    elif hasattr(connection, "sql"):
        yield _run_duckdb(connection, sql, rows)
    else:
        with closing(connection.cursor()) as cursor:
            cursor.execute(sql)
            if hasattr(cursor, "fetch_record_batch"):
                yield _arrow_rows(cursor.fetch_record_batch())
            else:
                names = tuple(str(column[0]) for column in cursor.description)
                yield _Rows(names, {}, iter(lambda: cursor.fetchmany(rows), []))


@contextmanager
def _run_sqlalchemy(connection: Any, sql: str, rows: int) -> Iterator[_Rows]:
    streaming = connection.execution_options(stream_results=True)  # otherwise drivers fetch all rows at once
    with closing(streaming.exec_driver_sql(sql)) as result:
        yield _Rows(tuple(map(str, result.keys())), {}, result.partitions(rows))


def _run_duckdb(connection: Any, sql: str, rows: int) -> _Rows:
    relation = connection.sql(sql)
    if relation is None:
        raise DataError("the query gives no rows; expected a SELECT. Correct the query")
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader  # the name before version 1.4
    return _arrow_rows(read(rows))


def _arrow_rows(reader: Any) -> _Rows:
    return _Rows(
        tuple(reader.schema.names),
        {column.name: pa.float64() if _is_numeric(column.type) else column.type for column in reader.schema},
        iter(reader),
    )


def _is_numeric(declared: Any) -> bool:
    """Return whether this is the type NUMERIC of PostgreSQL, which ADBC passes on as text, with all its digits."""
    return isinstance(declared, pa.BaseExtensionType) and getattr(declared, "type_name", "") == "numeric"


def _to_plain(cells: Any) -> Any:
    return cells.storage.cast(pa.float64()) if _is_numeric(cells.type) else cells
