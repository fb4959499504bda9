"""Aggregation of many or large summary files, one file at a time, that survives interruptions.

Every file is validated, added and then no longer needed. The running sum is written to one journal beside the result
from time to time, atomically, and read again after an interruption. Files that are already in it are recognised by
their digest.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fedcdh._io.storage import hold_lock, read_regular_file, write_atomically
from fedcdh._runtime.blas_threads import single_blas_thread
from fedcdh.errors import DuplicateClientError, FedCDHError, SettingsError, SummaryError
from fedcdh.federation.streaming.received_files import describe_received_file
from fedcdh.federation.streaming.running_sum import RunningSum
from fedcdh.federation.streaming.sum_journal import journal_error, max_journal_bytes
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage

JOURNAL_SUFFIX = ".adding"
SAVE_INTERVAL = 10.0
"""Seconds between two writes of the journal, if a write takes less than a twentieth of that."""
_WORK_PER_SAVE = 20.0
"""Time spent on adding for every unit of time spent on writing the journal."""

MessageReader = Callable[[Path, bytes], SummaryMessage]
"""Reads the message in the bytes of a file, or raises; it checks the signature as well."""


@dataclass(frozen=True)
class AggregationReport:
    """The outcome of one run over files.

    Parameters
    ----------
    sums : RunningSum
        The sum so far.
    n_added : int
        Number of files added in this run.
    n_known : int
        Number of files that were in the sum before.
    replicates : tuple of Path
        Files of bootstrap replicates, which do not belong in a sum.
    refused : tuple of tuple
        Refused files with the error of each.

    Examples
    --------
    >>> from fedcdh import Continuous, StudyPlan
    >>> AggregationReport(RunningSum(Study(StudyPlan((Continuous("age"),), ("north",))))).n_added
    0
    """

    sums: RunningSum
    n_added: int = 0
    n_known: int = 0
    replicates: tuple[Path, ...] = ()
    refused: tuple[tuple[Path, FedCDHError], ...] = ()


@dataclass(frozen=True)
class StreamingAggregation:
    """The aggregation of summary files into one sum, with a journal.

    Parameters
    ----------
    journal : Path
        The file that keeps the sum between runs.
    study : Study
        The study that the summaries belong to.
    groups : mapping of str, optional
        Group of every client. By default each client is by itself.
    save_interval : float
        Seconds between two writes of the journal.

    Examples
    --------
    >>> import tempfile
    >>> from fedcdh import Continuous, StudyPlan, summarize
    >>> from fedcdh.messages.summary_file import pack_summary, unpack_summary
    >>> plan = StudyPlan((Continuous("age", 60, 15),), ("north",))
    >>> folder = Path(tempfile.mkdtemp())
    >>> content = pack_summary(SummaryMessage(summarize({"age": [50, 61]}, plan, "north")), plan)
    >>> _ = (folder / "north.summary").write_bytes(content)
    >>> aggregation = StreamingAggregation.for_output(folder / "study.aggregate", Study(plan))
    >>> paths = [folder / "north.summary"]
    >>> aggregation.add_files(paths, 10_000, lambda path, blob: unpack_summary(blob, plan)).n_added
    1
    """

    journal: Path
    study: Study
    groups: Mapping[str, str] | None = None
    save_interval: float = SAVE_INTERVAL

    @classmethod
    def for_output(cls, output: Path, study: Study, groups: Mapping[str, str] | None = None) -> StreamingAggregation:
        """Return the aggregation whose journal lies beside a result.

        Parameters
        ----------
        output : Path
            The file of the result.
        study : Study
            The study that the summaries belong to.
        groups : mapping of str, optional
            Group of every client.

        Returns
        -------
        StreamingAggregation
            The aggregation.
        """
        return cls(output.with_name(output.name + JOURNAL_SUFFIX), study, groups)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from adding to the same sum.

        Yields
        ------
        None
            The lock is held until the context ends.

        Raises
        ------
        SettingsError
            If another process holds the lock.
        """

        def busy() -> SettingsError:
            return SettingsError(
                f"Another process is adding to {self.journal}. Expected only one. Wait until it has finished, or "
                "choose another name for the sum."
            )

        with hold_lock(self.journal.with_name(f".{self.journal.name}.lock"), if_locked=busy):
            yield

    def resume(self) -> RunningSum:
        """Return the sum of the journal, or a new one.

        Returns
        -------
        RunningSum
            The sum so far.

        Raises
        ------
        FedCDHError
            If the journal is damaged, or belongs to another study or other groups.
        """
        if not self.journal.exists():
            return RunningSum(self.study, self.groups)
        limit = max_journal_bytes(self.study.plan)
        try:
            blob = read_regular_file(self.journal, limit, "the journal of a sum", refuse=journal_error)
            return RunningSum.from_bytes(blob, self.study, self.groups)
        except FedCDHError as problem:
            raise type(problem)(f"The sum in {self.journal} cannot be continued. {problem}") from None

    def add_files(
        self,
        paths: Iterable[Path],
        max_bytes: int,
        read: MessageReader,
        progress: Callable[[int], None] = lambda files: None,
    ) -> AggregationReport:
        """Add summary files to the sum; refused files are reported, the others are added.

        The order of the files makes no difference. Whatever interrupts it, what was added is in the journal.

        Parameters
        ----------
        paths : iterable of Path
            The files.
        max_bytes : int
            Size of the largest file that is read.
        read : callable
            Reads the message in the bytes of a file, or raises.
        progress : callable, optional
            Called with the number of files read so far.

        Returns
        -------
        AggregationReport
            The sum, and the files that were added or refused.
        """
        run = _Run(self.resume(), read)
        with single_blas_thread():
            self._add_all(run, paths, max_bytes, progress)
        return run.report()

    def _add_all(self, run: _Run, paths: Iterable[Path], max_bytes: int, progress: Callable[[int], None]) -> None:
        saved, pause = time.monotonic(), self.save_interval
        try:
            for number, path in enumerate(sorted(paths), start=1):
                run.take(path, max_bytes)
                progress(number)
                if run.sums.unsaved and (started := time.monotonic()) - saved >= pause:
                    self._save(run.sums)
                    saved = time.monotonic()
                    pause = max(self.save_interval, _WORK_PER_SAVE * (saved - started))
        finally:
            if run.sums.unsaved and run.sums.whole:
                self._save(run.sums)

    def _save(self, sums: RunningSum) -> None:
        write_atomically(self.journal, sums.to_bytes())
        sums.unsaved = False

    def finish(self) -> None:
        """Remove the journal, once the result is on disk."""
        self.journal.unlink(missing_ok=True)


@dataclass
class _Run:
    """One run through some files."""

    sums: RunningSum
    read: MessageReader
    n_added: int = 0
    n_known: int = 0
    replicates: list[Path] = field(default_factory=list)
    refused: list[tuple[Path, FedCDHError]] = field(default_factory=list)
    seen: dict[str, Path] = field(default_factory=dict)  # by digest

    def __post_init__(self) -> None:
        self.earlier = {added.digest for added in self.sums.added.values()}

    def take(self, path: Path, max_bytes: int) -> None:
        """Add one file, or note why it is refused."""
        try:
            self._add(path, max_bytes)
        except FedCDHError as problem:
            self.refused.append((path, type(problem)(str(problem))))  # a copy, which does not keep the content alive
        except OSError as problem:
            self.refused.append(
                (
                    path,
                    SummaryError(
                        f"{problem.filename or path} cannot be read ({problem.strerror or problem}). Expected a file "
                        "that this program may read. Change its permissions, or ask the site to send it again."
                    ),
                )
            )

    def _add(self, path: Path, max_bytes: int) -> None:
        content = read_regular_file(path, max_bytes, "a summary of this plan", refuse=SummaryError)
        digest = hashlib.sha256(content).hexdigest()
        if digest in self.seen:
            other = describe_received_file(self.seen[digest])
            raise DuplicateClientError(
                f"{describe_received_file(path)} and {other} are the same, byte for byte. Expected each summary "
                "once. Name only one of them."
            )
        self.seen[digest] = path
        if digest in self.earlier:
            self.n_known += 1
            return
        message = self.read(path, content)
        del content  # validation needs as much memory again
        if message.summary.replicate:
            self.replicates.append(path)
            return
        try:
            self.sums.add(message, digest)
        except DuplicateClientError as problem:
            raise _naming_received_file(path, problem) from None
        self.n_added += 1

    def report(self) -> AggregationReport:
        """Return what became of the files; of two conflicting summaries, also the one in the sum is refused."""
        added = [entry for client in self.sums.contested if (entry := self.sums.added.get(client))]
        contested = [
            (path, _naming_received_file(path, self.sums.conflict_error(entry.client, entry.digest)))
            for entry in added
            if (path := self.seen.get(entry.digest))
        ]
        refused = sorted([*self.refused, *contested], key=lambda one: one[0])
        return AggregationReport(self.sums, self.n_added, self.n_known, tuple(self.replicates), tuple(refused))


def _naming_received_file(path: Path, problem: DuplicateClientError) -> DuplicateClientError:
    """Return the error with the file and its date, from which people see which of two summaries is the latest."""
    return DuplicateClientError(f"{describe_received_file(path)}: {problem}")
