"""Summaries and sums that reach the coordinator as files: opened, and checked against the plan and its keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fedcdh._io.storage import read_regular_file
from fedcdh._io.text import abbreviate_list
from fedcdh.cli._console import Output
from fedcdh.cli._file_kinds import refuse_other_kind
from fedcdh.cli._inputs import naming_file, refuse_files, refuse_running_sum
from fedcdh.cli._keys import check_signer, find_signer
from fedcdh.errors import DuplicateClientError, FedCDHError, SummaryFormatError
from fedcdh.federation.streaming.received_files import describe_received_file
from fedcdh.messages.aggregate_file import AggregateMessage, is_aggregate, max_aggregate_bytes, unpack_aggregate
from fedcdh.messages.signing import key_fingerprint
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage, max_summary_bytes, read_summary_header, unpack_summary
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
        refuse_other_kind(path, "a summary", SummaryFormatError)
        most = max_summary_bytes(self.study.plan)
        content = read_regular_file(path, most, "a summary of this plan", refuse=SummaryFormatError)
        return self.unpack(path, content)

    def read_all(self, paths: list[Path], out: Output) -> tuple[list[SummaryMessage], list[ReplicateFile]]:
        """Return the summaries; of bootstrap replicates only the places, since there may be a thousand per site."""
        messages, replicates = [], []
        senders: dict[str, list[Path]] = {}
        refused: list[tuple[Path, FedCDHError]] = []
        with out.file_progress("reading summaries", len(paths)) as progress:
            for count, path in enumerate(paths, start=1):
                progress(count)
                try:
                    message = self.read(path)
                except FedCDHError as problem:
                    refused.append((path, problem))
                    continue
                if number := message.summary.replicate:
                    replicates.append(
                        ReplicateFile(path, message.summary.clients[0], number, message.disclosure_control)
                    )
                else:
                    messages.append(message)
                    senders.setdefault(message.summary.clients[0], []).append(path)
        refuse_files(refused)
        self.warn(out)
        refuse_resent(senders)
        return messages, replicates

    def unpack(self, path: Path, content: bytes) -> SummaryMessage:
        """Return the summary in a file's content; the plan's key of its client must have signed it."""
        refuse_other_kind(path, "a summary", SummaryFormatError)
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


def refuse_resent(senders: Mapping[str, Sequence[Path]]) -> None:
    """Refuse two summaries of one client; name both files and their dates, from which people see the latest."""
    if not (twice := {client: paths for client, paths in senders.items() if len(paths) > 1}):
        return
    lines = [
        f"{client!r}: {' and '.join(map(describe_received_file, paths))}" for client, paths in sorted(twice.items())
    ]
    raise DuplicateClientError(
        "More than one summary came of "
        + "; of ".join(lines)
        + ". Expected one of each client. Ask the client which one is valid (it has to add up parts of its rows "
        "itself), "
        "and move the other away"
    )


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


def drop_files(paths: list[Path], clients: Collection[str], most: int, out: Output) -> list[Path]:
    """Return the files that are not summaries of these clients, and say which ones are left out."""
    if not clients:
        return paths
    dropped = []
    for path in paths:
        try:
            sender = read_summary_header(read_regular_file(path, most, "a summary of this plan")).client
        except (FedCDHError, OSError):
            continue  # it is refused where it is read
        if sender in clients:
            dropped.append(path)
    if dropped:
        out.say(f"Left out: {abbreviate_list(map(str, dropped))}.")
    return [path for path in paths if path not in dropped]


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
    refuse_other_kind(path, "a summary or a sum", SummaryFormatError)
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
