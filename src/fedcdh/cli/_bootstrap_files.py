"""Bootstrap copies as files: beside the summary they were made with, and sorted out from summaries on arrival."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedcdh._io.storage import write_files_atomically
from fedcdh._io.text import abbreviate_list
from fedcdh.cli._console import Output
from fedcdh.cli._inputs import check_replaceable, naming_file, naming_output, signature_path
from fedcdh.cli._summaries import ReplicateFile, SummaryReader
from fedcdh.errors import SettingsError, SummaryError
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.messages.summary_file import SummaryMessage, read_summary_header
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import find_complete_replicates, iter_admitted_replicates

_SUMMARY_SUFFIX = ".summary"
_REPLICATE_PATTERN = r"\.boot-[0-9]{3,4}"


def refuse_replicate_name(target: Path) -> None:
    """A summary called north.boot-001.summary would lie where the first copy of north.summary belongs."""
    if re.search(_REPLICATE_PATTERN + "$", _stem(target)):
        raise SettingsError(f"{target} is what a bootstrap copy is called; choose another name for the summary with -o")


def replicate_paths(target: Path, copies: int) -> list[Path]:
    """Where so many copies go: north.boot-001.summary beside north.summary."""
    return [target.with_name(f"{_stem(target)}.boot-{number:03d}{_SUMMARY_SUFFIX}") for number in range(1, copies + 1)]


def find_replicates(target: Path, client: str) -> list[Path]:
    """The copies that an earlier run left beside the summary; what has such a name and is something else is refused."""
    ours = re.compile(re.escape(_stem(target)) + _REPLICATE_PATTERN + re.escape(_SUMMARY_SUFFIX))
    if not target.parent.is_dir():
        return []
    found = sorted(path for path in target.parent.iterdir() if ours.fullmatch(path.name))
    for path in found:
        check_replaceable(path, "summary")
        with naming_file(path):
            header = read_summary_header(path.read_bytes())
        if header.client != client or not header.copy:
            raise SettingsError(
                f"{path} is not a bootstrap copy of {client}; move it away, or choose another name with -o"
            )
    return found


def write_with_replicates(
    target: Path, content: bytes, copies: Sequence[bytes], older: Iterable[Path], key: SigningKey | None
) -> list[Path]:
    """Writes the summary and its copies, all or none, in place of older ones.

    The summary goes first and comes last, so that where it is, the copies beside it are all there and were made with
    it, even if the process dies on the way.
    """
    gone = [place for path in (target, *older) for place in (path, signature_path(path))]
    contents = [*zip(replicate_paths(target, len(copies)), copies, strict=True), (target, content)]
    signed = [pair for path, each in contents for pair in _add_signature(path, each, key)]
    with naming_output(target):
        write_files_atomically(signed, gone)
    written = [path for path, _ in signed]
    own = len(_add_signature(target, content, key))
    return [*written[-own:], *written[:-own]]


def _add_signature(path: Path, content: bytes, key: SigningKey | None) -> list[tuple[Path, bytes]]:
    if key is None:
        return [(path, content)]
    return [(path, content), (signature_path(path), sign(key, "summary", content).encode("utf-8"))]


@dataclass(frozen=True)
class ReplicateFiles:
    """The copies that all sites sent: read, checked and added up one number at a time, as often as they are asked for.

    All of them together may be more than memory holds.
    """

    cohort: Cohort
    receiving: SummaryReader
    paths: Mapping[int, Sequence[Path]]  # by number

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[Cohort]:
        return iter_admitted_replicates(
            ((number, self._read(paths)) for number, paths in self.paths.items()), self.cohort
        )

    def _read(self, paths: Iterable[Path]) -> Iterator[Summary]:
        return (self.receiving.read(path).summary for path in paths)


def collect_replicates(
    copies: Sequence[ReplicateFile], cohort: Cohort, receiving: SummaryReader, out: Output
) -> ReplicateFiles:
    """The copies that all sites sent, each of them checked; says which are left out because some site did not."""
    numbered: dict[int, list[ReplicateFile]] = {}
    for copy in copies:
        numbered.setdefault(copy.number, []).append(copy)
    senders = {number: {copy.client for copy in sent} for number, sent in numbered.items()}
    used = find_complete_replicates(senders, cohort)
    found = ReplicateFiles(cohort, receiving, {number: [copy.path for copy in numbered[number]] for number in used})
    with out.counting("checking bootstrap copies", len(found)) as progress:
        for count, _ in enumerate(found, start=1):
            progress(count)
    if left := sorted({*senders} - {*used}):
        short = sorted({client for number in left for client in {*cohort.clients} - senders[number]})
        out.warn(
            f"bootstrap copies {_format_ranges(left)} are left out: not all sites sent them ({abbreviate_list(short)} did not); "
            f"{len(used)} are used"
        )
    return found


def check_replicates_have_summaries(copies: Iterable[ReplicateFile], summaries: Iterable[SummaryMessage]) -> None:
    """Copies tell nothing without the summary of the rows themselves."""
    there = {client for message in summaries for client in message.summary.clients}
    if alone := sorted({copy.client for copy in copies} - there):
        raise SummaryError(
            f"of {abbreviate_list(alone)} only bootstrap copies came; they cannot stand for the summary: ask for the file "
            'without "boot" in its name, which was written with them'
        )


def _stem(target: Path) -> str:
    return target.name.removesuffix(_SUMMARY_SUFFIX)


def _format_ranges(numbers: Sequence[int]) -> str:
    """Numbers in ascending order, in few words: 3, 7 to 20."""
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in zip(starts, ends, strict=True))
