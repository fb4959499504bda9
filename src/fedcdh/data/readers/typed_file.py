"""What Parquet and Arrow files have in common: columns with types, which are believed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa  # type: ignore[import-untyped]

from fedcdh.data.readers.arrow_columns import Content, column_content, read_typed_column
from fedcdh.data.readers.pandas_metadata import PandasMetadata, read_pandas_metadata
from fedcdh.data.readers.paths import unreadable_file_error
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table
from fedcdh.errors import DataError


@dataclass(frozen=True)
class TypedFile(ABC):
    """A file whose columns have types; only columns at the top level count."""

    format: ClassVar[str]
    path: Path

    @abstractmethod
    def _opened(self) -> AbstractContextManager[Any]:
        """The file as its library opens it."""

    @abstractmethod
    def _schema_of(self, file: Any) -> Any:
        """The Arrow schema of the open file."""

    @abstractmethod
    def _read(self, file: Any, columns: Sequence[str], rows: int) -> Iterator[tuple[Any, float]]:
        """Arrow batches of these columns, at most so many rows each, with the share of the file that has been read."""

    @cached_property
    def _schema(self) -> Any:
        with self._sound() as file:
            return self._schema_of(file)

    @cached_property
    def _notes(self) -> PandasMetadata:
        return read_pandas_metadata(self._schema)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns, without an index that pandas added by itself."""
        return tuple(name for name in self._schema.names if name not in self._notes.index)

    @cached_property
    def types(self) -> Mapping[str, Any]:
        """The Arrow types of the columns."""
        return {field.name: field.type for field in self._schema if field.name not in self._notes.index}

    def contents(self) -> dict[str, Content]:
        """What each column holds by its type, and by what pandas notes about it; no row is looked at."""
        return {name: self._content(name, declared) for name, declared in self.types.items()}

    def _content(self, name: str, declared: Any) -> Content:
        """Numbers of the dtype category are labels; Parquet keeps that dtype for texts only."""
        found = column_content(declared)
        return "labels" if found == "numbers" and name in self._notes.categories else found

    def batches(self, kinds: Mapping[str, ColumnKind], rows: int) -> Iterator[tuple[Table, float]]:
        """All rows, at most so many at a time, each batch with the share of the file that has been read."""
        with self._sound() as file:
            for batch, share in self._read(file, list(kinds), rows):
                if batch.num_rows:
                    yield (
                        Table({name: read_typed_column(batch.column(name), kind) for name, kind in kinds.items()}),
                        share,
                    )

    @contextmanager
    def _sound(self) -> Iterator[Any]:
        """The open file; whatever is wrong with it, while it is opened or read, is told in one way."""
        try:
            if not self.path.stat().st_size:
                raise DataError(f"{self.path} is empty, not even a table without rows; save or copy it again")
            with self._opened() as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
            raise unreadable_file_error(self.path, problem, "it is none, or damaged", f" as {self.format}") from None
