"""One source of rows, read by several threads at once.

Every thread takes the next piece of rows as soon as it is done with the last one. No thread waits for another, only
the pieces in work are in memory, and the results of all threads are added up at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from fedcdh._runtime.cpu_count import MAX_WORKERS
from fedcdh._runtime.worker_pool import run_in_threads
from fedcdh.data.sources import ColumnKind, PartitionedSource, Result, TableSource, is_partitioned, to_source
from fedcdh.data.table import Table
from fedcdh.errors import SettingsError

_MAX_PIECE_ROWS, _MAX_PIECE_CELLS = 1 << 16, 1 << 20
"""Rows, and cells, that a thread takes at a time: few enough for all threads to end together."""


def partition(
    table: Any, owner: str, *, workers: int = 1, names: Sequence[str] | None = None, only: Collection[str] | None = None
) -> PartitionedSource:
    """Return the rows of a table in parts.

    A source that is partitioned already is returned as it is; any other table gets one part per worker.

    Parameters
    ----------
    table : data frame, mapping of columns, array, iterable of these, TableSource or PartitionedSource
        The rows.
    owner : str
        Name of the owner, such as a client, for error messages.
    workers : int, default 1
        Number of threads, from 1 to 256.
    names : sequence of str, optional
        Names of the columns where the table is a plain array.
    only : collection of str, optional
        Columns to read; the default is all of them.

    Returns
    -------
    PartitionedSource
        The rows, ready for `map_reduce`.

    Raises
    ------
    SettingsError
        If `workers` is not a whole number in its range.

    Examples
    --------
    >>> source = partition({"x": [1.0, 2.0, 3.0]}, "client 'north'", workers=2)
    >>> source.map_reduce(lambda part: sum(table.rows for table in part.batches({"x": "continuous"})), int.__add__)
    3
    """
    if not isinstance(workers, int) or not 1 <= workers <= MAX_WORKERS:
        raise SettingsError(
            f"the number of workers is {workers!r}; expected a whole number from 1 to {MAX_WORKERS}",
            parameter="workers",
        )
    return table if is_partitioned(table) else ThreadedSource(to_source(table, owner, names=names, only=only), workers)


@dataclass(frozen=True)
class ThreadedSource:
    """A source whose rows several threads share.

    Parameters
    ----------
    source : TableSource
        The rows.
    workers : int, default 1
        Number of threads. The calling thread is one of them.

    Examples
    --------
    >>> from fedcdh.data import to_source
    >>> source = ThreadedSource(to_source({"x": [1.0, 2.0]}, "client 'north'"), workers=2)
    >>> source.map_reduce(lambda part: sum(table.rows for table in part.batches({"x": "continuous"})), int.__add__)
    2
    """

    source: TableSource
    workers: int = 1

    def map_reduce(self, work: Callable[[TableSource], Result], add: Callable[[Result, Result], Result]) -> Result:
        """Return the sum of the results of all threads.

        If threads fail, the error is raised that a single thread would have met first.

        Parameters
        ----------
        work : callable
            The work on one part of the rows.
        add : callable
            Adds two results.

        Returns
        -------
        result
            The sum of all results.
        """
        rows = _SharedRows(self.source)
        shares = [_ThreadShare(rows) for _ in range(self.workers)]
        found: list[Result] = []

        def run(_: None, share: _ThreadShare) -> None:
            try:
                found.append(work(share))
            except BaseException as problem:
                rows.stopped, share.problem = True, problem

        try:
            run_in_threads(run, None, shares)
        except BaseException:  # ctrl-C while waiting
            rows.stopped = True
            raise
        rows.close()
        for share in sorted(shares, key=lambda share: (isinstance(share.problem, Exception), share.last)):
            if share.problem is not None:
                raise share.problem
        return reduce(add, found)


class _SharedRows:
    """The rows of a source, given in pieces to the thread that asks next."""

    def __init__(self, source: TableSource) -> None:
        self.source, self.lock, self.stopped, self.pieces_given = source, threading.Lock(), False, 0
        self._pieces: Generator[Table, None, None] | None = None

    def next_piece(self, kinds: Mapping[str, ColumnKind]) -> Table | None:
        """Return the next rows, or None at the end or after an error in another thread."""
        if self._pieces is None:
            self._pieces = _iterate_pieces(self.source, kinds)
        return None if self.stopped else next(self._pieces, None)

    def close(self) -> None:
        """Close files that were not read to their end."""
        if self._pieces is not None:
            self._pieces.close()


def _iterate_pieces(source: TableSource, kinds: Mapping[str, ColumnKind]) -> Generator[Table, None, None]:
    count = min(_MAX_PIECE_ROWS, max(1, _MAX_PIECE_CELLS // max(1, len(kinds))))
    for batch in source.batches(kinds):
        for start in range(0, batch.rows, count):
            yield batch.slice_rows(start, count)


class _ThreadShare:
    """The source of one thread: the pieces of rows that it takes."""

    def __init__(self, rows: _SharedRows) -> None:
        self._rows, self.last = rows, 0
        self.problem: BaseException | None = None

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Return the columns of the shared source, with their kinds."""
        return self._rows.source.kinds()

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """Yield pieces of rows until there are none left."""
        while True:
            with self._rows.lock:
                self._rows.pieces_given += 1
                self.last = self._rows.pieces_given  # other threads finish the earlier pieces
                piece = self._rows.next_piece(kinds)
            if piece is None:
                return
            yield piece
