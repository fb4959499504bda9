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

from fedcdh._io.strict_json import canonical
from fedcdh._io.text import LETTERS_AT_MOST, is_digest, is_name, some_of
from fedcdh.errors import DuplicateClient, PlanMismatch, SettingsError, SummaryError
from fedcdh.messages.aggregate_file import AggregateMessage
from fedcdh.messages.container import rendered, said_in
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage
from fedcdh.messages.summary_header import LENGTH
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.integer_vectors import Groups, from_triangle, grouped, words_of
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.summary import NOISY_AT_MOST, ROWS_AT_MOST, Integers, Summary, drawn_as, rows_of_triangle
from fedcdh.summaries.validation import check, mark_of, telling

FORMAT = "fedcdh-adding-3"
COUNT_AT_MOST = (1 << 63) - 1
_KINDS = {"plan": str, "study": str, "groups": str, "added": list, "aside": list, "differing": list, "shared": list}
_OLDER = rb"\"format\":\"fedcdh-adding-1\"", rb"\"format\":\"fedcdh-adding-2\""  # forgot what had come and was refused


@dataclass(frozen=True)
class Came:
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
        self.groups = _groups_of(study.plan, groups)
        self.added: dict[str, Came] = {}  # by client
        self.aside: dict[str, Came] = {}  # by digest: what cannot hold beside others, and is not in the sum
        self.differing: set[str] = set()  # clients of whom different summaries came
        self.shared: set[str] = set()  # clients whose sums came under the name of another client, too
        self.unsaved = False  # something has come that is not on disk
        self.whole = True  # no stop has left half of a summary in it
        self._place = {client: place for place, (_, group) in enumerate(self.groups) for client in group}
        self._digests: dict[str, set[str]] = {}  # of all that came, by client
        self._senders: dict[str, set[str]] = {}  # by mark
        self._triangle: Integers = np.zeros(self.plan.columns * (self.plan.columns + 1) // 2, dtype=np.int64)
        self._firsts: Integers = np.zeros((len(self.groups), self.plan.columns), dtype=np.int64)
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
                f"found a sum of {some_of(summary.clients) or 'nobody'}, expected the summary of one client; name the "
                "files that the sites sent"
            )
        if summary.copy:
            raise SummaryError(f"found {drawn_as(summary)}, expected the summary of the rows themselves: name that")
        client = summary.clients[0]
        check(summary, self.plan)  # what cannot be true contests nothing
        came = Came(client, digest, mark_of(summary).hex(), message.research)
        if self._contested_by(came, summary):
            self._set_aside(came)
            raise self.contest_of(client, digest)
        if client in self.added:
            raise DuplicateClient(f"this summary of client {client!r} is in the sum already; name it once")
        counts = self._counts_with(summary)
        self.whole = False
        for row, place in rows_of_triangle(self.plan.columns):
            self._triangle[place] += summary.moments[row, row:]
        self._firsts[self._place[client]] += summary.moments[0]
        self._counts = counts
        self._remember(came)
        self.added[client] = came
        self.whole = self.unsaved = True

    def _contested_by(self, came: Came, summary: Summary) -> bool:
        """Whether there is another summary of the client, or its sums are another client's; notes of whom it is so."""
        others = self._senders.get(came.mark, set()) - {came.client}
        if others and telling(summary, self.plan):
            self.shared |= {came.client, *others}
        if self._digests.get(came.client, set()) - {came.digest}:
            self.differing.add(came.client)
        return came.client in self.shared | self.differing

    def _set_aside(self, came: Came) -> None:
        self.unsaved = True
        if came.client not in self.added or self.added[came.client].digest != came.digest:
            self._remember(came)
            if len(self.aside) < _aside_at_most(self.plan):
                self.aside[came.digest] = came

    def _remember(self, came: Came) -> None:
        self._digests.setdefault(came.client, set()).add(came.digest)
        self._senders.setdefault(came.mark, set()).add(came.client)

    def contest_of(self, client: str, digest: str) -> DuplicateClient:
        """What is wrong with a file, with this digest, of a client of whom it is not known which summary holds."""
        if client not in self.differing:
            return DuplicateClient(
                f"the sums of client {client!r} came under the name of another client as well, to the last digit; ask "
                "both whose rows these are"
            )
        others = sorted(other[:12] for other in self._digests[client] - {digest})
        other = f", of others that came {some_of(others)}" if others else ""
        return DuplicateClient(
            f"different summaries of client {client!r} came, or its file was changed since it was added; the digest of "
            f"this one is {digest[:12]}{other}; ask the client which of them holds"
        )

    def _counts_with(self, summary: Summary) -> list[int]:
        """Refuses what would leave the numbers that sums are exact in."""
        missing = [summary.missing.get(name, 0) for name in self.plan.names]
        counts = [a + b for a, b in zip(self._counts, [summary.rows, summary.rows_read, *missing], strict=True)]
        if counts[0] > ROWS_AT_MOST or max(counts) > COUNT_AT_MOST:
            raise SummaryError(
                f"with the summary of client {some_of(summary.clients)} the sum has {counts[0]} rows of "
                f"{counts[1]}, more than the {ROWS_AT_MOST} whose sums are exact; let sites use a random part of them"
            )
        shape = (self.plan.columns, self.plan.columns)
        if summary.noise and summary.moments.shape == shape and not self._room_for(summary):
            raise SummaryError(
                f"with the summary of client {some_of(summary.clients)} an entry of the sum is larger than sums with "
                "noise may be; ask the client whether its numbers are true"
            )
        return counts

    def _room_for(self, summary: Summary) -> bool:
        rows = rows_of_triangle(self.plan.columns)
        sums = (self._triangle[place] + summary.moments[row, row:] for row, place in rows)
        return all(int(np.abs(row).max()) < NOISY_AT_MOST for row in sums)

    def message(self) -> AggregateMessage:
        """The sum of the clients that are in it, checked as a summary is, and which files it was made from."""
        if not self.added:
            raise SummaryError("there is no summary to add; name the files of the sites")
        if self.contested:
            raise DuplicateClient(
                f"which summary holds is not known of client {some_of(self.contested)}: different ones came, or the "
                "sums of one came under another name, too; ask them, and begin again with the right ones"
            )
        present = [place for place, (_, group) in enumerate(self.groups) if not self.added.keys().isdisjoint(group)]
        groups = [(name, tuple(client for client in group if client in self.added)) for name, group in self.groups]
        rows_read, missing = self._counts[1], dict(zip(self.plan.names, self._counts[2:], strict=True))
        clients, noise = tuple(sorted(self.added)), _noise_of_each(self.plan) * len(self.added)
        moments = from_triangle(self._triangle, self.plan.columns)
        moments.setflags(write=False)  # so that a summary need not copy it
        total = Summary(self.plan.fingerprint, clients, moments, rows_read, missing, noise=noise)
        check(total, self.plan)
        together = tuple(groups[place] for place in present)
        aggregate = Aggregate(self.plan, total, self._firsts[present], together)
        research = tuple(client for client in clients if self.added[client].research)
        digests = {client: self.added[client].digest for client in clients}
        return AggregateMessage(aggregate, research=research, summaries=digests)

    def to_bytes(self) -> bytes:
        """All of it as a file."""
        said = {
            "format": FORMAT,
            **self._belongs_to,
            "added": [_listed(came) for _, came in sorted(self.added.items())],
            "aside": [_listed(came) for _, came in sorted(self.aside.items())],
            "differing": sorted(self.differing),
            "shared": sorted(self.shared),
        }
        row = np.concatenate([np.array(self._counts, dtype=np.int64), self._triangle, self._firsts.ravel()])
        return _rendered(said, row.astype("<i8", copy=False).tobytes())

    @cached_property
    def _belongs_to(self) -> dict[str, str]:
        """Tells plan files apart, too: the keys of sites are no part of the plan itself."""
        return {
            "plan": self.plan.fingerprint,
            "study": hashlib.sha256(self.study.to_json().encode()).hexdigest(),
            "groups": hashlib.sha256(canonical(self.groups).encode()).hexdigest(),
        }

    @classmethod
    def from_bytes(cls, blob: bytes, study: Study, groups: Mapping[str, str] | None = None) -> RunningSum:
        """What `to_bytes` wrote, for the same study and groups; refuses everything else."""
        found = cls(study, groups)
        length = LENGTH.unpack_from(blob)[0] if len(blob) >= LENGTH.size else 0
        start = LENGTH.size + length
        if not 0 < length <= _header_at_most(study.plan) or start > len(blob):
            raise damaged("it is cut")
        if any(older in blob[:start] for older in _OLDER):
            raise SummaryError(
                "it was begun by an older version of this program, which forgot what had come and was refused; remove "
                "it to begin again"
            )
        said = said_in(blob[LENGTH.size : start], FORMAT, _KINDS, damaged)
        found._check_same(said)
        if len(blob) != start + 8 * words_of(study.plan, len(found.groups)) or _rendered(said, blob[start:]) != blob:
            raise damaged("its digest is not that of its content")
        found._restore(np.frombuffer(blob, dtype="<i8", offset=start).astype(np.int64, copy=False))
        found.added = {came.client: came for came in found._listed_in(said["added"])}
        found.aside = {came.digest: came for came in found._listed_in(said["aside"])}
        if (len(found.added), len(found.aside)) != (len(said["added"]), len(said["aside"])):
            raise damaged("it lists what is no summary")
        found.differing, found.shared = (found._clients_in(said[kind]) for kind in ("differing", "shared"))
        if not found.differing | found.shared <= found._digests.keys():
            raise damaged("it lists what is no client")
        return found

    def _clients_in(self, listed: list[Any]) -> set[str]:
        known = all(isinstance(client, str) and client in self.plan.client_set for client in listed)
        if not known or listed != sorted(set(listed)):
            raise damaged("it lists what is no client")
        return set(listed)

    def _check_same(self, said: Mapping[str, Any]) -> None:
        if said["plan"] != self.plan.fingerprint:
            raise PlanMismatch(
                f"it holds sums by the plan {said['plan'][:12]}, not by this plan ({self.plan.fingerprint[:12]}); go "
                "on with that plan, or choose another name for the sum"
            )
        if said["study"] != self._belongs_to["study"]:
            raise PlanMismatch(
                "it was begun with the same plan in another plan file, with other keys of sites or other knowledge; go "
                "on with that file, or choose another name for the sum"
            )
        if said["groups"] != self._belongs_to["groups"]:
            raise SettingsError("it was begun with other groups; name the same, or choose another name for the sum")

    def _listed_in(self, listed: Iterable[Any]) -> Iterator[Came]:
        for one in listed:
            if not isinstance(one, list) or [type(part) for part in one] != [str, str, str, bool]:
                raise damaged("it lists what is no summary")
            came = Came(*one)
            if came.client not in self.plan.client_set or not is_digest(came.digest) or not is_digest(came.mark):
                raise damaged("it lists what is no summary")
            self._remember(came)
            yield came

    def _restore(self, words: Integers) -> None:
        counts, firsts = len(self._counts), self._firsts.size
        self._counts = [int(count) for count in words[:counts]]
        self._triangle = words[counts : len(words) - firsts].copy()
        self._firsts = words[len(words) - firsts :].reshape(self._firsts.shape).copy()
        if not np.array_equal(self._firsts.sum(axis=0), self._triangle[: self.plan.columns]):
            raise damaged("its numbers do not add up")


def _groups_of(plan: StudyPlan, groups: Mapping[str, str] | None) -> Groups:
    """Each client by itself, unless groups are named, of every client; with noise, all together."""
    if plan.noise is not None:
        if groups is not None:
            raise SettingsError("first moments of groups have too much noise in this plan; leave the groups out")
        return (("all clients", tuple(sorted(plan.clients))),)
    if groups is not None and groups.keys() != plan.client_set:
        lacking, unknown = sorted(plan.client_set - groups.keys()), sorted(groups.keys() - plan.client_set)
        raise SettingsError(
            f"groups are for every client of the plan and nobody else; lacking: {some_of(lacking) or 'nobody'}, "
            f"not in the plan: {some_of(unknown) or 'nobody'}"
        )
    for name in sorted(set(groups.values() if groups else ())):
        if not is_name(name) or not name.strip():
            raise SettingsError(
                f"a group is called {name[:80]!r}; expected 1 to {LETTERS_AT_MOST} letters that can be read in one "
                "line: rename it"
            )
    return grouped(groups or {}, plan.clients)


def _noise_of_each(plan: StudyPlan) -> int:
    return 0 if plan.noise is None else plan.noise.deviation**2


def _aside_at_most(plan: StudyPlan) -> int:
    """Of summaries that cannot hold beside others: whoever sends ever more of them fills no disk."""
    return 20 + 2 * len(plan.clients)


def _header_at_most(plan: StudyPlan) -> int:
    """Names of clients, in a text within a text, each with two digests."""
    return 2000 + 4000 * (len(plan.clients) + _aside_at_most(plan))


def bytes_at_most(plan: StudyPlan) -> int:
    """No sum that was begun with this plan is longer."""
    return LENGTH.size + _header_at_most(plan) + 8 * words_of(plan, len(plan.clients))


def _listed(came: Came) -> list[str | bool]:
    return [came.client, came.digest, came.mark, came.research]


def _rendered(said: Mapping[str, Any], data: bytes) -> bytes:
    return rendered(said, "words", "I64", [len(data) // 8], data)


def damaged(reason: str) -> SummaryError:
    """Of what was left behind."""
    return SummaryError(f"it is not as it was left ({reason}); remove it to begin again")
