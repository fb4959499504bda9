"""The running sum of summaries, and its journal, which survives interruptions.

The journal holds the sum, the first moments of every client or group, and for each file its client and two digests.
Sums are of integers, so the result does not depend on the order or on interruptions. If a client sent two different
summaries, there is no sum until somebody has asked which of them holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedcdh._io.strict_json import to_canonical_json
from fedcdh._io.text import abbreviate_list, is_digest
from fedcdh.errors import DuplicateClientError, PlanMismatchError, SettingsError, SummaryError
from fedcdh.federation.streaming.client_groups import resolve_groups
from fedcdh.federation.streaming.sum_journal import FORMAT, journal_error, max_set_aside, read_header, to_container
from fedcdh.messages.aggregate_file import AggregateMessage
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import from_triangle, vector_length
from fedcdh.summaries.plan import StudyPlan, check_equal_columns
from fedcdh.summaries.summary import MAX_NOISY_ENTRY, MAX_ROWS, Integers, Summary, describe_summary, iter_triangle_rows
from fedcdh.summaries.validation import fingerprint_of, is_distinctive, validate_summary

MAX_COUNT = (1 << 63) - 1


@dataclass(frozen=True)
class ReceivedSummary:
    """The record of a summary that was received, whether it is in the sum or set aside.

    Parameters
    ----------
    client : str
        The client of the summary.
    digest : str
        SHA-256 of the file.
    fingerprint : str
        Fingerprint of the moments, which reveals the sums of one client under the name of another.
    uncontrolled : bool
        The summary was made without disclosure control.

    Examples
    --------
    >>> ReceivedSummary("north", "0" * 64, "1" * 64).uncontrolled
    False
    """

    client: str
    digest: str
    fingerprint: str
    uncontrolled: bool = False


class RunningSum:
    """The sum of the summaries received so far.

    Parameters
    ----------
    study : Study
        The study that the summaries belong to.
    groups : mapping of str, optional
        Group of every client. By default each client is by itself; with noise, all clients are together.

    Attributes
    ----------
    added : dict of str to ReceivedSummary
        Summaries in the sum, by client.
    set_aside : dict of str to ReceivedSummary
        Summaries that conflict with others and are not in the sum, by digest.
    differing : set of str
        Clients that sent different summaries.
    shared : set of str
        Clients whose sums were also received under the name of another client.
    unsaved : bool
        Something was received that the journal does not hold yet.
    whole : bool
        False while a summary is being added.

    Raises
    ------
    SettingsError
        If the groups are not those of all clients of the plan.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous
    >>> from fedcdh.summaries.accumulator import summarize
    >>> study = Study(StudyPlan((Continuous("age", 60, 15),), ("north", "south")))
    >>> sums = RunningSum(study)
    >>> sums.add(SummaryMessage(summarize({"age": [50, 61]}, study.plan, "north")), "0" * 64)
    >>> sums.lacking
    ('south',)
    >>> sums.add(SummaryMessage(summarize({"age": [70]}, study.plan, "south")), "1" * 64)
    >>> sums.message().aggregate.client_rows
    (2, 1)
    """

    def __init__(self, study: Study, groups: Mapping[str, str] | None = None) -> None:
        check_equal_columns(study.plan, "a sum of summaries")
        self.study, self.plan = study, study.plan
        self.groups = resolve_groups(study.plan, groups)
        self.added: dict[str, ReceivedSummary] = {}  # by client
        self.set_aside: dict[str, ReceivedSummary] = {}  # by digest
        self.differing: set[str] = set()
        self.shared: set[str] = set()
        self.unsaved = False
        self.whole = True
        self._place = {client: place for place, (_, group) in enumerate(self.groups) for client in group}
        self._digests: dict[str, set[str]] = {}  # of all received summaries, by client
        self._senders: dict[str, set[str]] = {}  # clients by fingerprint
        self._triangle: Integers = np.zeros(
            self.plan.layout.n_columns * (self.plan.layout.n_columns + 1) // 2, dtype=np.int64
        )
        self._firsts: Integers = np.zeros((len(self.groups), self.plan.layout.n_columns), dtype=np.int64)
        self._counts = [0] * (2 + len(self.plan.names))  # rows used, rows read, missing by variable

    @property
    def lacking(self) -> tuple[str, ...]:
        """Return the clients of the plan that are not in the sum."""
        return tuple(client for client in self.plan.clients if client not in self.added)

    @property
    def contested(self) -> tuple[str, ...]:
        """Return the clients with conflicting summaries; while there are any, there is no sum."""
        return tuple(sorted(self.differing | self.shared))

    def add(self, message: SummaryMessage, digest: str) -> None:
        """Validate a summary and add it to the sum.

        Of two conflicting summaries, the first is in the sum. Both are recorded, so that a third one is compared with
        both of them in any order.

        Parameters
        ----------
        message : SummaryMessage
            The summary of one client.
        digest : str
            SHA-256 of its file.

        Raises
        ------
        SummaryError
            If the summary is not valid, or if the sum would be too large to be exact. Nothing is added.
        DuplicateClientError
            If the client is in the sum already, or if there are conflicting summaries.
        """
        summary = message.summary
        if len(summary.clients) != 1:
            raise SummaryError(
                f"The file holds a sum of {abbreviate_list(summary.clients) or 'no client'}. Expected the summary of "
                "one client. Name the files that the sites sent."
            )
        if summary.replicate:
            raise SummaryError(
                f"The file holds {describe_summary(summary)}. Expected the summary of the original rows. Name that "
                "file."
            )
        client = summary.clients[0]
        validate_summary(summary, self.plan)  # an impossible summary conflicts with nothing
        received = ReceivedSummary(client, digest, fingerprint_of(summary).hex(), not message.disclosure_control)
        if self._has_conflict(received, summary):
            self._set_aside(received)
            raise self.conflict_error(client, digest)
        if client in self.added:
            raise DuplicateClientError(
                f"The summary of client {client!r} is in the sum already. Expected it once. Leave this file out."
            )
        counts = self._add_counts(summary)
        self.whole = False
        for row, place in iter_triangle_rows(self.plan.layout.n_columns):
            self._triangle[place] += summary.moments[row, row:]
        self._firsts[self._place[client]] += summary.moments[0]
        self._counts = counts
        self._remember(received)
        self.added[client] = received
        self.whole = self.unsaved = True

    def _has_conflict(self, received: ReceivedSummary, summary: Summary) -> bool:
        """Record conflicts with earlier summaries, and return whether the client has one."""
        others = self._senders.get(received.fingerprint, set()) - {received.client}
        if others and is_distinctive(summary, self.plan):
            self.shared |= {received.client, *others}
        if self._digests.get(received.client, set()) - {received.digest}:
            self.differing.add(received.client)
        return received.client in self.shared | self.differing

    def _set_aside(self, received: ReceivedSummary) -> None:
        self.unsaved = True
        if received.client not in self.added or self.added[received.client].digest != received.digest:
            self._remember(received)
            if len(self.set_aside) < max_set_aside(self.plan):
                self.set_aside[received.digest] = received

    def _remember(self, received: ReceivedSummary) -> None:
        self._digests.setdefault(received.client, set()).add(received.digest)
        self._senders.setdefault(received.fingerprint, set()).add(received.client)

    def conflict_error(self, client: str, digest: str) -> DuplicateClientError:
        """Return the error for a file of a client with conflicting summaries.

        Parameters
        ----------
        client : str
            The client.
        digest : str
            SHA-256 of the file.

        Returns
        -------
        DuplicateClientError
            What conflicts, and whom to ask.
        """
        if client not in self.differing:
            return DuplicateClientError(
                f"The sums of client {client!r} were also received under the name of another client. Expected other "
                "sums from other rows. Ask both sites whose rows these are."
            )
        others = sorted(other[:12] for other in self._digests[client] - {digest})
        known = f", that of the others is {abbreviate_list(others)}" if others else ""
        return DuplicateClientError(
            f"There are different summaries of client {client!r}, or its file was changed after it was added. The "
            f"digest of this file is {digest[:12]}{known}. Expected one summary. Ask the site which of them holds."
        )

    def _add_counts(self, summary: Summary) -> list[int]:
        """Return the counts with one more summary; raise if sums would no longer be exact."""
        missing = [summary.missing.get(name, 0) for name in self.plan.names]
        counts = [a + b for a, b in zip(self._counts, [summary.rows, summary.rows_read, *missing], strict=True)]
        if counts[0] > MAX_ROWS or max(counts) > MAX_COUNT:
            raise SummaryError(
                f"With the summary of client {abbreviate_list(summary.clients)} the sum has {counts[0]} rows of "
                f"{counts[1]}. Expected at most {MAX_ROWS}, for which sums are exact. Let sites use a random sample."
            )
        shape = (self.plan.layout.n_columns, self.plan.layout.n_columns)
        if summary.noise and summary.moments.shape == shape and not self._has_room_for(summary):
            raise SummaryError(
                f"With the summary of client {abbreviate_list(summary.clients)} an entry of the sum is larger than "
                "sums with noise can be. Ask the site whether its data are right."
            )
        return counts

    def _has_room_for(self, summary: Summary) -> bool:
        rows = iter_triangle_rows(self.plan.layout.n_columns)
        sums = (self._triangle[place] + summary.moments[row, row:] for row, place in rows)
        return all(int(np.abs(row).max()) < MAX_NOISY_ENTRY for row in sums)

    def message(self) -> AggregateMessage:
        """Return the sum of the clients that are in it, with the digests of their files.

        Returns
        -------
        AggregateMessage
            The sum, validated like a summary.

        Raises
        ------
        SummaryError
            If the sum is empty or impossible.
        DuplicateClientError
            If there are conflicting summaries.
        """
        if not self.added:
            raise SummaryError(
                "There is no summary in the sum. Expected at least one. Name the files that the sites sent."
            )
        if self.contested:
            raise DuplicateClientError(
                f"There are conflicting summaries of client {abbreviate_list(self.contested)}: different ones, or the "
                "sums of one client under another name. Expected one summary of each client. Ask the sites, and start "
                "again with the right files."
            )
        present = [place for place, (_, group) in enumerate(self.groups) if not self.added.keys().isdisjoint(group)]
        groups = [(name, tuple(client for client in group if client in self.added)) for name, group in self.groups]
        rows_read, missing = self._counts[1], dict(zip(self.plan.names, self._counts[2:], strict=True))
        clients, noise = tuple(sorted(self.added)), _client_noise_variance(self.plan) * len(self.added)
        moments = from_triangle(self._triangle, self.plan.layout.n_columns)
        moments.setflags(write=False)  # a summary copies only writable arrays
        total = Summary(self.plan.fingerprint, clients, moments, rows_read, missing, noise=noise)
        validate_summary(total, self.plan)
        together = tuple(groups[place] for place in present)
        aggregate = Aggregate(self.plan, total, self._firsts[present], together)
        uncontrolled = tuple(client for client in clients if self.added[client].uncontrolled)
        digests = {client: self.added[client].digest for client in clients}
        return AggregateMessage(aggregate, without_disclosure_control=uncontrolled, summaries=digests)

    def to_bytes(self) -> bytes:
        """Return the content of the journal.

        Returns
        -------
        bytes
            The sum and the records of all received summaries.
        """
        header = {
            "format": FORMAT,
            **self._belongs_to,
            "added": [_to_list(received) for _, received in sorted(self.added.items())],
            "aside": [_to_list(received) for _, received in sorted(self.set_aside.items())],
            "differing": sorted(self.differing),
            "shared": sorted(self.shared),
        }
        row = np.concatenate([np.array(self._counts, dtype=np.int64), self._triangle, self._firsts.ravel()])
        return to_container(header, row.astype("<i8", copy=False).tobytes())

    @cached_property
    def _belongs_to(self) -> dict[str, str]:
        """Return the digests of plan, study file and groups; the keys of sites are in the study file only."""
        return {
            "plan": self.plan.fingerprint,
            "study": hashlib.sha256(self.study.to_json().encode()).hexdigest(),
            "groups": hashlib.sha256(to_canonical_json(self.groups).encode()).hexdigest(),
        }

    @classmethod
    def from_bytes(cls, blob: bytes, study: Study, groups: Mapping[str, str] | None = None) -> RunningSum:
        """Return the sum of a journal.

        Parameters
        ----------
        blob : bytes
            What `to_bytes` returned.
        study : Study
            The study that the summaries belong to.
        groups : mapping of str, optional
            Group of every client.

        Returns
        -------
        RunningSum
            The sum so far.

        Raises
        ------
        SummaryError
            If the journal is damaged or of an older version.
        PlanMismatchError
            If the journal belongs to another study.
        SettingsError
            If the journal belongs to other groups.
        """
        found = cls(study, groups)
        header, start = read_header(blob, study.plan)
        found._check_same(header)
        if (
            len(blob) != start + 8 * vector_length(study.plan, len(found.groups))
            or to_container(header, blob[start:]) != blob
        ):
            raise journal_error("its digest is not that of its content")
        found._restore(np.frombuffer(blob, dtype="<i8", offset=start).astype(np.int64, copy=False))
        found.added = {received.client: received for received in found._parse_received(header["added"])}
        found.set_aside = {received.digest: received for received in found._parse_received(header["aside"])}
        if (len(found.added), len(found.set_aside)) != (len(header["added"]), len(header["aside"])):
            raise journal_error("a record of a summary is not valid")
        found.differing, found.shared = (found._parse_clients(header[kind]) for kind in ("differing", "shared"))
        if not found.differing | found.shared <= found._digests.keys():
            raise journal_error("it names an unknown client")
        return found

    def _parse_clients(self, listed: list[Any]) -> set[str]:
        known = all(isinstance(client, str) and client in self.plan.client_set for client in listed)
        if not known or listed != sorted(set(listed)):
            raise journal_error("it names an unknown client")
        return set(listed)

    def _check_same(self, header: Mapping[str, Any]) -> None:
        if header["plan"] != self.plan.fingerprint:
            raise PlanMismatchError(
                f"The journal holds sums by the plan {header['plan'][:12]}. Expected the plan "
                f"{self.plan.fingerprint[:12]}. Continue with the former plan, or choose another name for the sum."
            )
        if header["study"] != self._belongs_to["study"]:
            raise PlanMismatchError(
                "The journal belongs to another plan file of the same plan, with other keys of sites or other "
                "background knowledge. Expected this plan file. Continue with the former one, or choose another name "
                "for the sum."
            )
        if header["groups"] != self._belongs_to["groups"]:
            raise SettingsError(
                "The journal belongs to other groups. Expected the same groups. Name them, or choose another name for "
                "the sum."
            )

    def _parse_received(self, listed: Iterable[Any]) -> Iterator[ReceivedSummary]:
        for one in listed:
            if not isinstance(one, list) or [type(part) for part in one] != [str, str, str, bool]:
                raise journal_error("a record of a summary is not valid")
            received = ReceivedSummary(*one)
            if (
                received.client not in self.plan.client_set
                or not is_digest(received.digest)
                or not is_digest(received.fingerprint)
            ):
                raise journal_error("a record of a summary is not valid")
            self._remember(received)
            yield received

    def _restore(self, words: Integers) -> None:
        counts, firsts = len(self._counts), self._firsts.size
        self._counts = [int(count) for count in words[:counts]]
        self._triangle = words[counts : len(words) - firsts].copy()
        self._firsts = words[len(words) - firsts :].reshape(self._firsts.shape).copy()
        if not np.array_equal(self._firsts.sum(axis=0), self._triangle[: self.plan.layout.n_columns]):
            raise journal_error("its numbers do not add up")


def _client_noise_variance(plan: StudyPlan) -> int:
    return 0 if plan.noise is None else plan.noise.deviation**2


def _to_list(received: ReceivedSummary) -> list[str | bool]:
    return [received.client, received.digest, received.fingerprint, received.uncontrolled]
