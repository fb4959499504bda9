"""One source of rows, worked on by several threads at once.

Every thread works on a share of its own, and takes the next rows whenever it has done with the last: none waits for
another, only as many rows are in memory as are being worked on, and what each found is added up at the end. numpy lets
other threads run while it computes. BLAS is held to one thread in each: several of them only get in each other's way,
the more so where other programs run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh._runtime.cpu_count import MAX_WORKERS
from fedcdh.data.sources import ColumnKind, PartitionedSource, Result, TableSource, is_partitioned, to_source
from fedcdh.data.table import Table
from fedcdh.errors import SettingsError

_MAX_PIECE_ROWS, _MAX_PIECE_CELLS = 1 << 16, 1 << 20
"""Rows, and cells, that a thread takes at a time: few enough for all threads to end together."""


def partition(
    table: Any, owner: str, *, workers: int = 1, names: Sequence[str] | None = None, only: Collection[str] | None = None
) -> PartitionedSource:
    """The rows in parts: those of a source that says itself where they lie, or one part for each of these workers."""
    if not isinstance(workers, int) or not 1 <= workers <= MAX_WORKERS:
        raise SettingsError(
            f"workers is {workers!r}; expected a whole number from 1 to {MAX_WORKERS}", parameter="workers"
        )
    return table if is_partitioned(table) else ThreadedSource(to_source(table, owner, names=names, only=only), workers)


@dataclass(frozen=True)
class ThreadedSource:
    """A source whose rows are shared out among threads; the one that calls is one of them."""

    source: TableSource
    workers: int = 1

    def spread(self, work: Callable[[TableSource], Result], add: Callable[[Result, Result], Result]) -> Result:
        """The sum of what all threads found; or the problem that one of them alone would have met first."""
        rows = _SharedRows(self.source)
        shares = [_ThreadShare(rows) for _ in range(self.workers)]
        found: list[Result] = []

        def run(share: _ThreadShare) -> None:
            try:
                found.append(work(share))
            except BaseException as problem:
                rows.stopped, share.problem = True, problem

        others = [threading.Thread(target=run, args=(share,), daemon=True) for share in shares[1:]]
        with single_blas_thread():
            try:
                for thread in others:
                    thread.start()
                run(shares[0])
                for thread in others:
                    thread.join()
            except BaseException:  # ctrl-C while waiting
                rows.stopped = True
                raise
        rows.close()
        for share in sorted(shares, key=lambda share: (isinstance(share.problem, Exception), share.last)):
            if share.problem is not None:
                raise share.problem
        return reduce(add, found)


class _SharedRows:
    """All rows of a source, a few at a time, for whichever thread asks next."""

    def __init__(self, source: TableSource) -> None:
        self.source, self.lock, self.stopped, self.given = source, threading.Lock(), False, 0
        self._pieces: Generator[Table, None, None] | None = None

    def following(self, kinds: Mapping[str, ColumnKind]) -> Table | None:
        """The next rows, if there are any and nothing went wrong elsewhere."""
        if self._pieces is None:
            self._pieces = _iterate_pieces(self.source, kinds)
        return None if self.stopped else next(self._pieces, None)

    def close(self) -> None:
        """Closes files that were not read to their end."""
        if self._pieces is not None:
            self._pieces.close()


def _iterate_pieces(source: TableSource, kinds: Mapping[str, ColumnKind]) -> Generator[Table, None, None]:
    count = min(_MAX_PIECE_ROWS, max(1, _MAX_PIECE_CELLS // max(1, len(kinds))))
    for batch in source.batches(kinds):
        for start in range(0, batch.rows, count):
            yield batch.slice_rows(start, count)


class _ThreadShare:
    """The rows that one thread gets to see."""

    def __init__(self, rows: _SharedRows) -> None:
        self._rows, self.last = rows, 0
        self.problem: BaseException | None = None

    def kinds(self) -> Mapping[str, ColumnKind]:
        """Those of the source."""
        return self._rows.source.kinds()

    def batches(self, kinds: Mapping[str, ColumnKind]) -> Iterator[Table]:
        """The next rows, and again the next, until there are none."""
        while True:
            with self._rows.lock:
                self._rows.given += 1
                self.last = self._rows.given  # the earlier rows are done with, or with other threads, which finish them
                piece = self._rows.following(kinds)
            if piece is None:
                return
            yield piece
