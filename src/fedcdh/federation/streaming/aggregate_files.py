"""Adding up the summaries of very many sites, or very large ones: one file at a time, and a stop loses little.

Every file is checked as `arrival` checks it, and added; then it is not needed any more. What is kept (`running_sum`) is
written to one file beside the result now and then, whole or not at all, and read again after a stop: files that are in
it are only compared with their digest.
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
from fedcdh.federation.streaming.running_sum import RunningSum, journal_error, max_journal_bytes
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage

JOURNAL_SUFFIX = ".adding"
SAVE_INTERVAL = 10.0
"""Seconds between two writings of what was added so far, if writing takes less than a twentieth of that."""
_WORK_PER_SAVE = 20.0  # of the time goes into adding for every one that goes into writing

MessageReader = Callable[[Path, bytes], SummaryMessage]
"""Gives the message in the bytes of a file, or refuses it: what a file and its signature tell is checked here."""


@dataclass(frozen=True)
class AggregationReport:
    """What became of the files that were named."""

    sums: RunningSum
    new: int = 0  # added now
    before: int = 0  # in the sum already
    copies: tuple[Path, ...] = ()  # bootstrap copies, which have no place in a sum
    refused: tuple[tuple[Path, FedCDHError], ...] = ()


@dataclass(frozen=True)
class StreamingAggregation:
    """One sum in the making, in a file beside the result."""

    journal: Path
    study: Study
    groups: Mapping[str, str] | None = None
    every: float = SAVE_INTERVAL  # seconds

    @classmethod
    def beside(cls, output: Path, study: Study, groups: Mapping[str, str] | None = None) -> StreamingAggregation:
        """The one for this result."""
        return cls(output.with_name(output.name + JOURNAL_SUFFIX), study, groups)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Refuses a second process that would add to the same sum."""
        busy = f"another process is adding to {self.journal}; wait for it, or choose another name for the sum"
        with hold_lock(self.journal.with_name(f".{self.journal.name}.lock"), if_locked=lambda: SettingsError(busy)):
            yield

    def begun(self) -> RunningSum:
        """The sum as it was left, or a new one."""
        if not self.journal.exists():
            return RunningSum(self.study, self.groups)
        try:
            blob = read_regular_file(
                self.journal, max_journal_bytes(self.study.plan), "a sum that was begun", refuse=journal_error
            )
            return RunningSum.from_bytes(blob, self.study, self.groups)
        except FedCDHError as problem:
            raise type(problem)(f"{self.journal} cannot be gone on from: {problem}") from None

    def of(
        self,
        paths: Iterable[Path],
        at_most: int,
        opened: MessageReader,
        progress: Callable[[int], None] = lambda files: None,
    ) -> AggregationReport:
        """Adds these files, each of at most so many bytes; those that are refused are named, and the others count.

        The order in which they are given is of no account. Whatever stops it, what was added is on disk.
        """
        pass_ = _Pass(self.begun(), opened)
        with single_blas_thread():
            self._take_all(pass_, paths, at_most, progress)
        return pass_.outcome()

    def _take_all(self, pass_: _Pass, paths: Iterable[Path], at_most: int, progress: Callable[[int], None]) -> None:
        saved, pause = time.monotonic(), self.every
        try:
            for number, path in enumerate(sorted(paths), start=1):
                pass_.take(path, at_most)
                progress(number)
                if pass_.sums.unsaved and (started := time.monotonic()) - saved >= pause:
                    self._save(pass_.sums)
                    saved = time.monotonic()
                    pause = max(self.every, _WORK_PER_SAVE * (saved - started))
        finally:
            if pass_.sums.unsaved and pass_.sums.whole:
                self._save(pass_.sums)

    def _save(self, sums: RunningSum) -> None:
        write_atomically(self.journal, sums.to_bytes())
        sums.unsaved = False

    def done(self) -> None:
        """The result is on disk, and says all that was remembered."""
        self.journal.unlink(missing_ok=True)


@dataclass
class _Pass:
    """One run through some files."""

    sums: RunningSum
    opened: MessageReader
    new: int = 0
    before: int = 0
    copies: list[Path] = field(default_factory=list)
    refused: list[tuple[Path, FedCDHError]] = field(default_factory=list)
    seen: dict[str, Path] = field(default_factory=dict)  # by digest

    def __post_init__(self) -> None:
        self.earlier = {added.digest for added in self.sums.added.values()}

    def take(self, path: Path, at_most: int) -> None:
        """One more file."""
        try:
            self._add(path, at_most)
        except FedCDHError as problem:
            self.refused.append((path, type(problem)(str(problem))))  # as it came, it would hold on to the content
        except OSError as problem:
            what = f"{problem.filename or path} cannot be read ({problem.strerror or problem}); see to its rights"
            self.refused.append((path, SummaryError(f"{what}, or ask for it again")))

    def _add(self, path: Path, at_most: int) -> None:
        content = read_regular_file(path, at_most, "a summary of this plan", refuse=SummaryError)
        digest = hashlib.sha256(content).hexdigest()
        if digest in self.seen:
            raise DuplicateClientError(
                f"{path} is the same, byte for byte, as {self.seen[digest]}; name one of them, once"
            )
        self.seen[digest] = path
        if digest in self.earlier:
            self.before += 1
            return
        message = self.opened(path, content)
        del content  # what is checked next takes as much memory again
        if message.summary.replicate:
            self.copies.append(path)
            return
        self.sums.add(message, digest)
        self.new += 1

    def outcome(self) -> AggregationReport:
        """Where it is not known which of two summaries holds, the one that was added is refused like the other."""
        added = [entry for client in self.sums.contested if (entry := self.sums.added.get(client))]
        contested = [
            (self.seen[entry.digest], self.sums.conflict_error(entry.client, entry.digest))
            for entry in added
            if entry.digest in self.seen
        ]
        refused = sorted([*self.refused, *contested], key=lambda one: one[0])
        return AggregationReport(self.sums, self.new, self.before, tuple(self.copies), tuple(refused))
