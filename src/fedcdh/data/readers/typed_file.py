"""The part that Parquet and Arrow files have in common: columns with declared types."""

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
from fedcdh.data.readers.paths import file_state, unreadable_file_error
from fedcdh.data.sources import ColumnKind
from fedcdh.data.table import Table
from fedcdh.errors import DataError


@dataclass(frozen=True)
class TypedFile(ABC):
    """A file whose columns have types; only columns at the top level count."""

    format: ClassVar[str]
    path: Path

    @abstractmethod
    def _open(self) -> AbstractContextManager[Any]:
        """Open the file with its library."""

    @abstractmethod
    def _schema_of(self, file: Any) -> Any:
        """Return the Arrow schema of the open file."""

    @abstractmethod
    def _read(self, file: Any, columns: Sequence[str], rows: int) -> Iterator[tuple[Any, float]]:
        """Yield Arrow batches of these columns with at most `rows` rows, and the share of the file read so far."""

    @cached_property
    def _schema(self) -> Any:
        with self._open_checked() as file:
            return self._schema_of(file)

    @cached_property
    def _notes(self) -> PandasMetadata:
        return read_pandas_metadata(self._schema)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the columns, without an index that pandas added by itself."""
        return tuple(name for name in self._schema.names if name not in self._notes.index)

    @cached_property
    def types(self) -> Mapping[str, Any]:
        """Return the Arrow types of the columns."""
        return {field.name: field.type for field in self._schema if field.name not in self._notes.index}

    def state(self) -> tuple[int, int]:
        """Return the size of the file and the time it was written last."""
        return file_state(self.path)

    def contents(self) -> dict[str, Content]:
        """Return the content of each column by its type and the metadata of pandas; no row is read."""
        return {name: self._content(name, declared) for name, declared in self.types.items()}

    def _content(self, name: str, declared: Any) -> Content:
        """Return the content of a column; numbers of dtype category are labels, which Parquet itself forgets."""
        found = column_content(declared)
        return "labels" if found == "numbers" and name in self._notes.categories else found

    def batches(self, kinds: Mapping[str, ColumnKind], rows: int) -> Iterator[tuple[Table, float]]:
        """Yield all rows in tables of at most `rows` rows, each with the share of the file read so far."""
        with self._open_checked() as file:
            for batch, share in self._read(file, list(kinds), rows):
                if batch.num_rows:
                    yield (
                        Table({name: read_typed_column(batch.column(name), kind) for name, kind in kinds.items()}),
                        share,
                    )

    @contextmanager
    def _open_checked(self) -> Iterator[Any]:
        """Open the file; turn every problem while it is opened or read into a DataError."""
        try:
            if not self.path.stat().st_size:
                raise DataError(f"{self.path} is empty; expected a {self.format} file. Save or copy it again")
            with self._open() as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
            reason = f"it is not a {self.format} file, or it is damaged"
            raise unreadable_file_error(self.path, problem, reason, f" as {self.format}") from None
