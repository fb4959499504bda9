"""Bootstrap replicates as files: written beside their summary, and collected at the coordinator."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedcdh._io.storage import naming_target, write_files_atomically
from fedcdh._io.text import abbreviate_list
from fedcdh.cli._console import Output
from fedcdh.cli._inputs import naming_file
from fedcdh.cli._keys import signature_path
from fedcdh.cli._outputs import check_replaceable
from fedcdh.cli._summaries import ReplicateFile, SummaryReader
from fedcdh.errors import SettingsError, SummaryError
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.messages.summary_file import SummaryMessage, read_summary_header
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.bootstrap import find_complete_replicates, iter_admitted_replicates
from fedcdh.summaries.summary import Summary

_SUMMARY_SUFFIX = ".summary"
_REPLICATE_PATTERN = r"\.boot-[0-9]{3,4}"


def refuse_replicate_name(target: Path) -> None:
    """Refuse a summary called north.boot-001.summary: that is the first replicate of north.summary."""
    if re.search(_REPLICATE_PATTERN + "$", _stem(target)):
        raise SettingsError(
            f"{target} is the name of a bootstrap replicate. Choose another name for the summary with -o."
        )


def replicate_paths(target: Path, replicates: int) -> list[Path]:
    """Return the places of replicates: north.boot-001.summary beside north.summary."""
    return [
        target.with_name(f"{_stem(target)}.boot-{number:03d}{_SUMMARY_SUFFIX}") for number in range(1, replicates + 1)
    ]


def find_replicates(target: Path, client: str) -> list[Path]:
    """Return the replicates that an earlier run left beside a summary; refuse other files of such a name."""
    pattern = re.compile(re.escape(_stem(target)) + _REPLICATE_PATTERN + re.escape(_SUMMARY_SUFFIX))
    if not target.parent.is_dir():
        return []
    found = sorted(path for path in target.parent.iterdir() if pattern.fullmatch(path.name))
    for path in found:
        check_replaceable(path, "summary")
        with naming_file(path):
            header = read_summary_header(path.read_bytes())
        if header.client != client or not header.replicate:
            raise SettingsError(
                f"{path} is not a bootstrap replicate of {client}. Move it away, or choose another name with -o."
            )
    return found


def write_with_replicates(
    target: Path, content: bytes, replicates: Sequence[bytes], older: Iterable[Path], key: SigningKey | None
) -> list[Path]:
    """Write a summary and its replicates in place of older ones, all or none.

    The old summary is removed first and the new one is written last. Where a summary exists, its replicates are
    complete, even if the process dies on the way.
    """
    gone = [place for path in (target, *older) for place in (path, signature_path(path))]
    contents = [*zip(replicate_paths(target, len(replicates)), replicates, strict=True), (target, content)]
    signed = [pair for path, each in contents for pair in _add_signature(path, each, key)]
    with naming_target(target):
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
    """The replicates that all sites sent, read and added up one number at a time.

    All of them together may be more than memory holds.
    """

    cohort: Cohort
    reader: SummaryReader
    paths: Mapping[int, Sequence[Path]]  # by number

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[Cohort]:
        numbered = ((number, self._read(paths)) for number, paths in self.paths.items())
        return iter_admitted_replicates(numbered, self.cohort)

    def _read(self, paths: Iterable[Path]) -> Iterator[Summary]:
        return (self.reader.read(path).summary for path in paths)


def collect_replicates(
    replicates: Sequence[ReplicateFile], cohort: Cohort, reader: SummaryReader, out: Output
) -> ReplicateFiles:
    """Check the replicates that all sites sent; say which ones are left out because a site did not send them."""
    numbered: dict[int, list[ReplicateFile]] = {}
    for replicate in replicates:
        numbered.setdefault(replicate.number, []).append(replicate)
    senders = {number: {replicate.client for replicate in sent} for number, sent in numbered.items()}
    used = find_complete_replicates(senders, cohort)
    found = ReplicateFiles(cohort, reader, {number: [each.path for each in numbered[number]] for number in used})
    with out.file_progress("checking bootstrap replicates", len(found)) as progress:
        for count, _ in enumerate(found, start=1):
            progress(count)
    if left := sorted({*senders} - {*used}):
        short = sorted({client for number in left for client in {*cohort.clients} - senders[number]})
        out.warn(
            f"bootstrap replicates {_format_ranges(left)} are left out, because {abbreviate_list(short)} did not send "
            f"them; {len(used)} are used"
        )
    return found


def check_replicates_have_summaries(replicates: Iterable[ReplicateFile], summaries: Iterable[SummaryMessage]) -> None:
    """Refuse replicates of a client whose summary is missing."""
    there = {client for message in summaries for client in message.summary.clients}
    if alone := sorted({replicate.client for replicate in replicates} - there):
        raise SummaryError(
            f"Only bootstrap replicates of {abbreviate_list(alone)} are here. They cannot replace the summary. Ask for "
            'the file without "boot" in its name, which was written with them.'
        )


def _stem(target: Path) -> str:
    return target.name.removesuffix(_SUMMARY_SUFFIX)


def _format_ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers in short.

    >>> _format_ranges([3, 7, 8, 9])
    '3, 7 to 9'
    """
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in zip(starts, ends, strict=True))
