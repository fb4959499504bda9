"""Summaries and sums that reach the coordinator as files: opened, and checked against the plan and its keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fedcdh._io.storage import read_regular_file
from fedcdh._io.text import abbreviate_list
from fedcdh.cli._console import Output
from fedcdh.cli._inputs import naming_file, refuse_running_sum
from fedcdh.cli._keys import check_signer, find_signer
from fedcdh.errors import SummaryFormatError
from fedcdh.messages.aggregate_file import AggregateMessage, is_aggregate, max_aggregate_bytes, unpack_aggregate
from fedcdh.messages.signing import key_fingerprint
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, max_summary_bytes, unpack_summary
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.validation import admit_summaries

SUMMARY_PATTERN = "*.summary"
"""The files of a folder that are read."""
_MAX_SINGLE_NOTES = 5  # notes of one kind that are printed one by one


class ReplicateFile(NamedTuple):
    """A file with a bootstrap replicate."""

    path: Path
    client: str
    number: int
    disclosure_control: bool


@dataclass(frozen=True)
class SummaryReader:
    """A reader of summaries that collects what the coordinator should know about them."""

    study: Study
    unsigned: list[tuple[Path, str]] = field(default_factory=list)  # files and clients
    uncontrolled: list[tuple[Path, str]] = field(default_factory=list)  # made without disclosure control

    def read(self, path: Path) -> SummaryMessage:
        """Return the summary in a file."""
        most = max_summary_bytes(self.study.plan)
        content = read_regular_file(path, most, "a summary of this plan", refuse=SummaryFormatError)
        return self.unpack(path, content)

    def read_all(self, paths: list[Path], out: Output) -> tuple[list[SummaryMessage], list[ReplicateFile]]:
        """Return the summaries; of bootstrap replicates only the places, since there may be a thousand per site."""
        messages, replicates = [], []
        with out.file_progress("reading summaries", len(paths)) as progress:
            for count, path in enumerate(paths, start=1):
                message = self.read(path)
                if number := message.summary.replicate:
                    replicates.append(
                        ReplicateFile(path, message.summary.clients[0], number, message.disclosure_control)
                    )
                else:
                    messages.append(message)
                progress(count)
        self.warn(out)
        return messages, replicates

    def unpack(self, path: Path, content: bytes) -> SummaryMessage:
        """Return the summary in a file's content; the plan's key of its client must have signed it."""
        with naming_file(path):
            message = unpack_summary(content, self.study.plan)
        client = message.summary.clients[0]
        signer = check_signer(path, content, "summary", self.study.keys.get(client))
        if not message.summary.replicate:
            self.unsigned.extend([(path, client)] if signer is None else [])
            self.uncontrolled.extend([(path, client)] if not message.disclosure_control else [])
        return message

    def warn(self, out: Output) -> None:
        """Print the notes about the summaries that were read."""
        if len(self.unsigned) > _MAX_SINGLE_NOTES:
            out.warn(
                f"{len(self.unsigned)} summaries are not signed: nothing but the way they came shows that they are "
                f"from {_list_clients(self.unsigned)}"
            )
        else:
            for path, client in self.unsigned:
                out.warn(f"{path} is not signed: nothing but the way it came shows that it is from {client}")
        if len(self.uncontrolled) > _MAX_SINGLE_NOTES:
            out.warn(
                f"{len(self.uncontrolled)} summaries were made without disclosure control, by "
                f"{_list_clients(self.uncontrolled)}"
            )
        else:
            for path, client in self.uncontrolled:
                out.warn(f"{path} was made without disclosure control, by {client}")


def _list_clients(found: Iterable[tuple[Path, str]]) -> str:
    return abbreviate_list((client for _, client in found), _MAX_SINGLE_NOTES)


def leave_out(
    messages: list[SummaryMessage], replicates: list[ReplicateFile], clients: Collection[str], out: Output
) -> tuple[list[SummaryMessage], list[ReplicateFile]]:
    """Return the summaries and replicates of the other clients, and say whose were left out."""
    left = sorted({client for message in messages for client in message.summary.clients} & set(clients))
    if left:
        out.say(f"The summary of {abbreviate_list(left)} is here and is left out.")
    return (
        [message for message in messages if set(clients).isdisjoint(message.summary.clients)],
        [replicate for replicate in replicates if replicate.client not in clients],
    )


def admit_messages(
    messages: list[SummaryMessage], plan: StudyPlan, out: Output, without: Collection[str] = ()
) -> Cohort:
    """Check the summaries of all clients and return them as a cohort."""
    with out.file_progress("checking summaries", len(messages)) as progress:
        return admit_summaries(_report_each(messages, progress), plan, without=without)


def _report_each(messages: list[SummaryMessage], progress: Callable[[int], None]) -> Iterator[Summary]:
    for number, message in enumerate(messages):
        progress(number)
        yield message.summary


def read_aggregate(path: Path, study: Study, out: Output) -> AggregateMessage | None:
    """Return the sum in a file; None if the file is something else."""
    most = max(max_aggregate_bytes(study.plan), max_summary_bytes(study.plan))
    content = read_regular_file(path, most, "a summary of this plan, or a sum", refuse=SummaryFormatError)
    with naming_file(path):
        if not is_aggregate(content):
            refuse_running_sum(content)
            return None
        message = unpack_aggregate(content, study.plan)
        signer = find_signer(path, content, "aggregate")
    clients = abbreviate_list(message.aggregate.total.clients)
    by = f", signed by {key_fingerprint(signer)}" if signer else ""
    if message.masked:
        out.say(f"Secure sum of {clients}, session {message.session[:12]}{by}.")
    else:
        out.say(f"Sum of {clients}{by}.")
    if not message.masked and signer is None:
        out.warn(f"{path} is not signed: nothing but the way it came shows that it is the sum of what these sent")
    if message.without_disclosure_control:
        out.warn(f"{abbreviate_list(message.without_disclosure_control)} took part without disclosure control")
    return message
