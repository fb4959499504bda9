"""Summaries as they come to the coordinator, as files: opened, and held to the plan and its keys, one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fedcdh._io.storage import read_regular_file
from fedcdh._io.text import abbreviate_list
from fedcdh.cli._console import Output
from fedcdh.cli._inputs import check_signer, naming_file
from fedcdh.errors import SummaryFormatError
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, max_summary_bytes, unpack_summary

SUMMARY_PATTERN = "*.summary"
"""What is read of a folder."""
_MAX_SINGLE_NOTES = 5  # as many notes of one kind are given one by one


class ReplicateFile(NamedTuple):
    """Where a bootstrap copy is, whose, and which; and whether it says that nothing was held back."""

    path: Path
    client: str
    number: int
    research: bool


@dataclass(frozen=True)
class SummaryReader:
    """What came, and what there is to note about it; about a site once, at its summary."""

    study: Study
    unsigned: list[tuple[Path, str]] = field(default_factory=list)  # files and clients
    research: list[tuple[Path, str]] = field(default_factory=list)

    def read(self, path: Path) -> SummaryMessage:
        """One site's message."""
        content = read_regular_file(
            path, max_summary_bytes(self.study.plan), "a summary of this plan", refuse=SummaryFormatError
        )
        return self.opened(path, content)

    def read_all(self, paths: list[Path], out: Output) -> tuple[list[SummaryMessage], list[ReplicateFile]]:
        """The messages in these files; of bootstrap copies only where they are, for there may be a thousand a site."""
        messages, copies = [], []
        with out.counting("reading summaries", len(paths)) as progress:
            for count, path in enumerate(paths, start=1):
                message = self.read(path)
                if number := message.summary.copy:
                    copies.append(ReplicateFile(path, message.summary.clients[0], number, message.research))
                else:
                    messages.append(message)
                progress(count)
        self.note(out)
        return messages, copies

    def opened(self, path: Path, content: bytes) -> SummaryMessage:
        """The message in a file with this content; by the key that the plan names for the site, if it does."""
        with naming_file(path):
            message = unpack_summary(content, self.study.plan)
        client = message.summary.clients[0]
        signer = check_signer(path, content, "summary", self.study.keys.get(client))
        if not message.summary.copy:
            self.unsigned.extend([(path, client)] if signer is None else [])
            self.research.extend([(path, client)] if message.research else [])
        return message

    def note(self, out: Output) -> None:
        """Says what there is to note."""
        if len(self.unsigned) > _MAX_SINGLE_NOTES:
            out.warn(
                f"{len(self.unsigned)} summaries are not signed: that they come from {_list_clients(self.unsigned)} is "
                "known only by the way they came"
            )
        elif self.unsigned:
            for path, client in self.unsigned:
                out.warn(f"{path} is not signed: that it comes from {client} is known only by the way it came")
        without = "did not enforce smallest numbers of rows"
        if len(self.research) > _MAX_SINGLE_NOTES:
            out.warn(
                f"{len(self.research)} summaries were made for research, without privacy: {_list_clients(self.research)} "
                f"{without}"
            )
        else:
            for path, client in self.research:
                out.warn(f"{path} was made for research, without privacy: {client} {without}")


def _list_clients(found: Iterable[tuple[Path, str]]) -> str:
    return abbreviate_list((client for _, client in found), _MAX_SINGLE_NOTES)
