"""An Arrow file (also called Feather, or Arrow IPC), read in batches of rows.

The file is mapped into memory: pages are read when they are needed, and may be dropped again. A compressed batch has to
be decompressed as a whole, for the columns that are read; the program that wrote it decided its size. Where nothing is
compressed, columns are not selected by the reader, because Arrow would then copy the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import ipc

from fedcdh.data.readers.arrow_columns import is_memory_mapped
from fedcdh.data.readers.typed_file import TypedFile
from fedcdh.errors import DataError

_FEATHER_V1_MAGIC = b"FEA1"  # the first version of Feather, which Arrow no longer writes
_STREAM_MAGIC = b"\xff" * 4  # the first bytes of every message of a stream


@dataclass(frozen=True)
class ArrowFile(TypedFile):
    """An Arrow file; streams, which have no table of contents, are refused."""

    format: ClassVar[str] = "Arrow"

    def _open(self) -> AbstractContextManager[Any]:
        return self._open_mapped(None)

    @contextmanager
    def _open_mapped(self, columns: Sequence[int] | None) -> Iterator[Any]:
        with pa.memory_map(str(self.path)) as source:
            beginning = source.read(len(_FEATHER_V1_MAGIC))
            if beginning == _FEATHER_V1_MAGIC:
                raise DataError(
                    f"{self.path} is a Feather file of version 1; expected an Arrow file. Save it again as Arrow or "
                    "Parquet"
                )
            if beginning == _STREAM_MAGIC:
                raise DataError(
                    f"{self.path} is an Arrow stream, which has no table of contents; expected an Arrow file. Save it "
                    "with pyarrow.ipc.new_file, as Feather or as Parquet"
                )
            options = None if columns is None else ipc.IpcReadOptions(included_fields=list(columns), use_threads=False)
            with ipc.open_file(source, options=options) as file:
                yield file

    def _schema_of(self, file: Any) -> Any:
        return file.schema

    def _read(self, file: Any, columns: Sequence[str], rows: int) -> Iterator[tuple[Any, float]]:
        compressed = bool(file.num_record_batches) and not any(map(is_memory_mapped, file.get_batch(0).columns))
        wanted = [file.schema.get_field_index(name) for name in columns] if compressed else None
        with self._open_mapped(wanted) as source:
            count, size = source.num_record_batches, self.path.stat().st_size
            for number in range(count):
                self._check_not_truncated(size)
                batch = source.get_batch(number).select(columns)
                batch.validate(full=True)  # offsets of a damaged file may point anywhere
                for start in range(0, batch.num_rows, rows):
                    self._check_not_truncated(size)
                    part = batch.slice(start, rows)
                    yield part, (number + (start + part.num_rows) / batch.num_rows) / count

    def _check_not_truncated(self, size: int) -> None:
        """Refuse a file that became shorter: reading the missing part of a mapped file would kill the process."""
        if self.path.stat().st_size < size:
            raise DataError(f"{self.path} became shorter while it was read; wait until it is complete, then try again")
