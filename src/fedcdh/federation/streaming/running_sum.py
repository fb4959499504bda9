"""The sum of the summaries so far, and what is remembered of those that came: what a stop leaves behind.

What is kept is the sum, the first moments of every client or group, and of each file who sent it and two digests. Sums
are of integers, so the result does not depend on order, stops or portions; nor does it where a client sent two
summaries, for then there is none until somebody has asked which of them holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedcdh._io.strict_json import to_canonical_json
from fedcdh._io.text import MAX_NAME_LENGTH, abbreviate_list, is_digest, is_name
from fedcdh.errors import DuplicateClientError, PlanMismatchError, SettingsError, SummaryError
from fedcdh.messages.aggregate_file import AggregateMessage
from fedcdh.messages.container import parse_container_header, render_container
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage
from fedcdh.messages.summary_header import LENGTH_PREFIX
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import Groups, from_triangle, group_clients, vector_length
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import MAX_NOISY_ENTRY, MAX_ROWS, Integers, Summary, describe_summary, iter_triangle_rows
from fedcdh.summaries.validation import fingerprint_of, is_distinctive, validate_summary

FORMAT = "fedcdh-adding-3"
MAX_COUNT = (1 << 63) - 1
_HEADER_TYPES = {
    "plan": str,
    "study": str,
    "groups": str,
    "added": list,
    "aside": list,
    "differing": list,
    "shared": list,
}
_OLD_FORMATS = (
    rb"\"format\":\"fedcdh-adding-1\"",
    rb"\"format\":\"fedcdh-adding-2\"",
)  # forgot what had come and was refused


@dataclass(frozen=True)
class ReceivedSummary:
    """What is kept of a summary that came, be it in the sum or set aside."""

    client: str
    digest: str  # SHA-256 of the file
    mark: str  # of its moments, to see one client's sums under another's name
    research: bool = False  # made without smallest numbers of rows


class RunningSum:
    """The sum of the summaries so far.

    >>> from fedcdh.summaries.plan import Continuous
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
        self.study, self.plan = study, study.plan
        self.groups = _resolve_groups(study.plan, groups)
        self.added: dict[str, ReceivedSummary] = {}  # by client
        self.aside: dict[str, ReceivedSummary] = {}  # by digest: what cannot hold beside others, and is not in the sum
        self.differing: set[str] = set()  # clients of whom different summaries came
        self.shared: set[str] = set()  # clients whose sums came under the name of another client, too
        self.unsaved = False  # something has come that is not on disk
        self.whole = True  # no stop has left half of a summary in it
        self._place = {client: place for place, (_, group) in enumerate(self.groups) for client in group}
        self._digests: dict[str, set[str]] = {}  # of all that came, by client
        self._senders: dict[str, set[str]] = {}  # by mark
        self._triangle: Integers = np.zeros(
            self.plan.layout.n_columns * (self.plan.layout.n_columns + 1) // 2, dtype=np.int64
        )
        self._firsts: Integers = np.zeros((len(self.groups), self.plan.layout.n_columns), dtype=np.int64)
        self._counts = [0] * (2 + len(self.plan.names))  # rows used, rows read, missing by variable

    @property
    def lacking(self) -> tuple[str, ...]:
        """The clients of the plan who are not in it."""
        return tuple(client for client in self.plan.clients if client not in self.added)

    @property
    def contested(self) -> tuple[str, ...]:
        """The clients of whom it is not known which summary holds: as long as there are some, there is no sum."""
        return tuple(sorted(self.differing | self.shared))

    def add(self, message: SummaryMessage, digest: str) -> None:
        """Checks a summary, whose file has this digest, as `admit` does, and adds it; or raises, and adds nothing.

        Of two that cannot both hold, the first is in the sum; that they came is remembered whichever it was, so that a
        third one is judged by both of them in any order.
        """
        summary = message.summary
        if len(summary.clients) != 1:
            raise SummaryError(
                f"found a sum of {abbreviate_list(summary.clients) or 'nobody'}, expected the summary of one client; name the "
                "files that the sites sent"
            )
        if summary.replicate:
            raise SummaryError(
                f"found {describe_summary(summary)}, expected the summary of the rows themselves: name that"
            )
        client = summary.clients[0]
        validate_summary(summary, self.plan)  # what cannot be true contests nothing
        came = ReceivedSummary(client, digest, fingerprint_of(summary).hex(), not message.disclosure_control)
        if self._has_conflict(came, summary):
            self._set_aside(came)
            raise self.conflict_error(client, digest)
        if client in self.added:
            raise DuplicateClientError(f"this summary of client {client!r} is in the sum already; name it once")
        counts = self._add_counts(summary)
        self.whole = False
        for row, place in iter_triangle_rows(self.plan.layout.n_columns):
            self._triangle[place] += summary.moments[row, row:]
        self._firsts[self._place[client]] += summary.moments[0]
        self._counts = counts
        self._remember(came)
        self.added[client] = came
        self.whole = self.unsaved = True

    def _has_conflict(self, came: ReceivedSummary, summary: Summary) -> bool:
        """Whether there is another summary of the client, or its sums are another client's; notes of whom it is so."""
        others = self._senders.get(came.mark, set()) - {came.client}
        if others and is_distinctive(summary, self.plan):
            self.shared |= {came.client, *others}
        if self._digests.get(came.client, set()) - {came.digest}:
            self.differing.add(came.client)
        return came.client in self.shared | self.differing

    def _set_aside(self, came: ReceivedSummary) -> None:
        self.unsaved = True
        if came.client not in self.added or self.added[came.client].digest != came.digest:
            self._remember(came)
            if len(self.aside) < _max_set_aside(self.plan):
                self.aside[came.digest] = came

    def _remember(self, came: ReceivedSummary) -> None:
        self._digests.setdefault(came.client, set()).add(came.digest)
        self._senders.setdefault(came.mark, set()).add(came.client)

    def conflict_error(self, client: str, digest: str) -> DuplicateClientError:
        """What is wrong with a file, with this digest, of a client of whom it is not known which summary holds."""
        if client not in self.differing:
            return DuplicateClientError(
                f"the sums of client {client!r} came under the name of another client as well, to the last digit; ask "
                "both whose rows these are"
            )
        others = sorted(other[:12] for other in self._digests[client] - {digest})
        other = f", of others that came {abbreviate_list(others)}" if others else ""
        return DuplicateClientError(
            f"different summaries of client {client!r} came, or its file was changed since it was added; the digest of "
            f"this one is {digest[:12]}{other}; ask the client which of them holds"
        )

    def _add_counts(self, summary: Summary) -> list[int]:
        """Refuses what would leave the numbers that sums are exact in."""
        missing = [summary.missing.get(name, 0) for name in self.plan.names]
        counts = [a + b for a, b in zip(self._counts, [summary.rows, summary.rows_read, *missing], strict=True)]
        if counts[0] > MAX_ROWS or max(counts) > MAX_COUNT:
            raise SummaryError(
                f"with the summary of client {abbreviate_list(summary.clients)} the sum has {counts[0]} rows of "
                f"{counts[1]}, more than the {MAX_ROWS} whose sums are exact; let sites use a random part of them"
            )
        shape = (self.plan.layout.n_columns, self.plan.layout.n_columns)
        if summary.noise and summary.moments.shape == shape and not self._has_room_for(summary):
            raise SummaryError(
                f"with the summary of client {abbreviate_list(summary.clients)} an entry of the sum is larger than sums with "
                "noise may be; ask the client whether its numbers are true"
            )
        return counts

    def _has_room_for(self, summary: Summary) -> bool:
        rows = iter_triangle_rows(self.plan.layout.n_columns)
        sums = (self._triangle[place] + summary.moments[row, row:] for row, place in rows)
        return all(int(np.abs(row).max()) < MAX_NOISY_ENTRY for row in sums)

    def message(self) -> AggregateMessage:
        """The sum of the clients that are in it, checked as a summary is, and which files it was made from."""
        if not self.added:
            raise SummaryError("there is no summary to add; name the files of the sites")
        if self.contested:
            raise DuplicateClientError(
                f"which summary holds is not known of client {abbreviate_list(self.contested)}: different ones came, or the "
                "sums of one came under another name, too; ask them, and begin again with the right ones"
            )
        present = [place for place, (_, group) in enumerate(self.groups) if not self.added.keys().isdisjoint(group)]
        groups = [(name, tuple(client for client in group if client in self.added)) for name, group in self.groups]
        rows_read, missing = self._counts[1], dict(zip(self.plan.names, self._counts[2:], strict=True))
        clients, noise = tuple(sorted(self.added)), _client_noise_variance(self.plan) * len(self.added)
        moments = from_triangle(self._triangle, self.plan.layout.n_columns)
        moments.setflags(write=False)  # so that a summary need not copy it
        total = Summary(self.plan.fingerprint, clients, moments, rows_read, missing, noise=noise)
        validate_summary(total, self.plan)
        together = tuple(groups[place] for place in present)
        aggregate = Aggregate(self.plan, total, self._firsts[present], together)
        research = tuple(client for client in clients if self.added[client].research)
        digests = {client: self.added[client].digest for client in clients}
        return AggregateMessage(aggregate, without_disclosure_control=research, summaries=digests)

    def to_bytes(self) -> bytes:
        """All of it as a file."""
        said = {
            "format": FORMAT,
            **self._belongs_to,
            "added": [_to_list(came) for _, came in sorted(self.added.items())],
            "aside": [_to_list(came) for _, came in sorted(self.aside.items())],
            "differing": sorted(self.differing),
            "shared": sorted(self.shared),
        }
        row = np.concatenate([np.array(self._counts, dtype=np.int64), self._triangle, self._firsts.ravel()])
        return _to_container(said, row.astype("<i8", copy=False).tobytes())

    @cached_property
    def _belongs_to(self) -> dict[str, str]:
        """Tells plan files apart, too: the keys of sites are no part of the plan itself."""
        return {
            "plan": self.plan.fingerprint,
            "study": hashlib.sha256(self.study.to_json().encode()).hexdigest(),
            "groups": hashlib.sha256(to_canonical_json(self.groups).encode()).hexdigest(),
        }

    @classmethod
    def from_bytes(cls, blob: bytes, study: Study, groups: Mapping[str, str] | None = None) -> RunningSum:
        """What `to_bytes` wrote, for the same study and groups; refuses everything else."""
        found = cls(study, groups)
        length = LENGTH_PREFIX.unpack_from(blob)[0] if len(blob) >= LENGTH_PREFIX.size else 0
        start = LENGTH_PREFIX.size + length
        if not 0 < length <= _max_header_bytes(study.plan) or start > len(blob):
            raise journal_error("it is cut")
        if any(older in blob[:start] for older in _OLD_FORMATS):
            raise SummaryError(
                "it was begun by an older version of this program, which forgot what had come and was refused; remove "
                "it to begin again"
            )
        said = parse_container_header(blob[LENGTH_PREFIX.size : start], FORMAT, _HEADER_TYPES, journal_error)
        found._check_same(said)
        if (
            len(blob) != start + 8 * vector_length(study.plan, len(found.groups))
            or _to_container(said, blob[start:]) != blob
        ):
            raise journal_error("its digest is not that of its content")
        found._restore(np.frombuffer(blob, dtype="<i8", offset=start).astype(np.int64, copy=False))
        found.added = {came.client: came for came in found._parse_received(said["added"])}
        found.aside = {came.digest: came for came in found._parse_received(said["aside"])}
        if (len(found.added), len(found.aside)) != (len(said["added"]), len(said["aside"])):
            raise journal_error("it lists what is no summary")
        found.differing, found.shared = (found._parse_clients(said[kind]) for kind in ("differing", "shared"))
        if not found.differing | found.shared <= found._digests.keys():
            raise journal_error("it lists what is no client")
        return found

    def _parse_clients(self, listed: list[Any]) -> set[str]:
        known = all(isinstance(client, str) and client in self.plan.client_set for client in listed)
        if not known or listed != sorted(set(listed)):
            raise journal_error("it lists what is no client")
        return set(listed)

    def _check_same(self, said: Mapping[str, Any]) -> None:
        if said["plan"] != self.plan.fingerprint:
            raise PlanMismatchError(
                f"it holds sums by the plan {said['plan'][:12]}, not by this plan ({self.plan.fingerprint[:12]}); go "
                "on with that plan, or choose another name for the sum"
            )
        if said["study"] != self._belongs_to["study"]:
            raise PlanMismatchError(
                "it was begun with the same plan in another plan file, with other keys of sites or other knowledge; go "
                "on with that file, or choose another name for the sum"
            )
        if said["groups"] != self._belongs_to["groups"]:
            raise SettingsError("it was begun with other groups; name the same, or choose another name for the sum")

    def _parse_received(self, listed: Iterable[Any]) -> Iterator[ReceivedSummary]:
        for one in listed:
            if not isinstance(one, list) or [type(part) for part in one] != [str, str, str, bool]:
                raise journal_error("it lists what is no summary")
            came = ReceivedSummary(*one)
            if came.client not in self.plan.client_set or not is_digest(came.digest) or not is_digest(came.mark):
                raise journal_error("it lists what is no summary")
            self._remember(came)
            yield came

    def _restore(self, words: Integers) -> None:
        counts, firsts = len(self._counts), self._firsts.size
        self._counts = [int(count) for count in words[:counts]]
        self._triangle = words[counts : len(words) - firsts].copy()
        self._firsts = words[len(words) - firsts :].reshape(self._firsts.shape).copy()
        if not np.array_equal(self._firsts.sum(axis=0), self._triangle[: self.plan.layout.n_columns]):
            raise journal_error("its numbers do not add up")


def _resolve_groups(plan: StudyPlan, groups: Mapping[str, str] | None) -> Groups:
    """Each client by itself, unless groups are named, of every client; with noise, all together."""
    if plan.noise is not None:
        if groups is not None:
            raise SettingsError("first moments of groups have too much noise in this plan; leave the groups out")
        return (("all clients", tuple(sorted(plan.clients))),)
    if groups is not None and groups.keys() != plan.client_set:
        lacking, unknown = sorted(plan.client_set - groups.keys()), sorted(groups.keys() - plan.client_set)
        raise SettingsError(
            f"groups are for every client of the plan and nobody else; lacking: {abbreviate_list(lacking) or 'nobody'}, "
            f"not in the plan: {abbreviate_list(unknown) or 'nobody'}"
        )
    for name in sorted(set(groups.values() if groups else ())):
        if not is_name(name) or not name.strip():
            raise SettingsError(
                f"a group is called {name[:80]!r}; expected 1 to {MAX_NAME_LENGTH} letters that can be read in one "
                "line: rename it"
            )
    return group_clients(groups or {}, plan.clients)


def _client_noise_variance(plan: StudyPlan) -> int:
    return 0 if plan.noise is None else plan.noise.deviation**2


def _max_set_aside(plan: StudyPlan) -> int:
    """Of summaries that cannot hold beside others: whoever sends ever more of them fills no disk."""
    return 20 + 2 * len(plan.clients)


def _max_header_bytes(plan: StudyPlan) -> int:
    """Names of clients, in a text within a text, each with two digests."""
    return 2000 + 4000 * (len(plan.clients) + _max_set_aside(plan))


def max_journal_bytes(plan: StudyPlan) -> int:
    """No sum that was begun with this plan is longer."""
    return LENGTH_PREFIX.size + _max_header_bytes(plan) + 8 * vector_length(plan, len(plan.clients))


def _to_list(came: ReceivedSummary) -> list[str | bool]:
    return [came.client, came.digest, came.mark, came.research]


def _to_container(said: Mapping[str, Any], data: bytes) -> bytes:
    return render_container(said, "words", "I64", [len(data) // 8], data)


def journal_error(reason: str) -> SummaryError:
    """Of what was left behind."""
    return SummaryError(f"it is not as it was left ({reason}); remove it to begin again")
