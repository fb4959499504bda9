"""The course of a masked sum at a server, and the folder it is kept in; by file and online it is the same.

A request that was written is never written otherwise: sites may have seen it. So a server that is started again goes on
with what is in the folder, and asks for what is missing there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fedcdh._io.storage import read_regular, write_whole
from fedcdh.errors import FedCDHError, MaskingError
from fedcdh.messages.aggregate_file import AggregateMessage
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation import server
from fedcdh.privacy.secure_aggregation.codec import bytes_at_most, read
from fedcdh.privacy.secure_aggregation.messages import (
    Confirmations,
    Confirmed,
    Delivery,
    Keys,
    Masked,
    Message,
    Opened,
    Present,
    Request,
    Roster,
    Shares,
    Signed,
    Terms,
)

Asked = TypeVar("Asked", bound=Message)
Answer = TypeVar("Answer", bound=Signed)
Check = Callable[[Any], None]

NAMES: dict[type[Message], str] = {
    Terms: "1-terms.json",
    Roster: "2-roster.json",
    Delivery: "3-delivery.json",
    Present: "4-present.json",
    Confirmations: "5-confirmations.json",
}


@dataclass(frozen=True)
class RoundsFolder:
    """Requests and answers of one attempt, as files."""

    folder: Path
    study: Study
    key: SigningKey | None = None  # signs requests

    def request(self, kind: type[Asked]) -> Asked | None:
        """The request of a round, if it has been made."""
        path = self.folder / NAMES[kind]
        return self._read(path, kind) if path.exists() else None

    def keep_request(self, message: Message) -> Path:
        """Writes a request, before any site sees it."""
        path, content = self.folder / NAMES[type(message)], message.to_bytes()
        if self.key is not None:
            write_whole(path.with_name(f"{path.name}.sig"), sign(self.key, "masking", content))
        write_whole(path, content)
        return path

    def replies(self, kind: type[Answer], check: Check) -> dict[str, Answer]:
        """What sites have answered in a round, each checked."""
        found = []
        for path in sorted(self.folder.glob(f"*.{kind.kind}")):
            answer = self._read(path, kind)
            with _blaming(path):
                check(answer)
            found.append(answer)
        return server.one_each(found)

    def _read(self, path: Path, kind: type[Asked]) -> Asked:
        content = read_regular(path, bytes_at_most(self.study.plan, kind), "a message of a masked sum")
        with _blaming(path):
            return read(content, self.study.plan, kind)


class Rounds(Protocol):
    """How a server asks: it waits for files, or sends messages."""

    @property
    def folder(self) -> RoundsFolder:
        """Where requests and answers are kept."""

    def begun(self, path: Path) -> None:
        """A request was written that no site has seen yet."""

    def answers(
        self, kind: type[Answer], request: Request, clients: Collection[str], check: Check
    ) -> dict[str, Answer]:
        """The answers to a request, of all clients or of those with whom the sum goes on."""


def conducted(study: Study, proposed: Terms, rounds: Rounds) -> AggregateMessage:
    """The sum, from all rounds; what stops on the way leaves the folder to go on from."""
    course = _Course(study, rounds)
    terms = course.asked(Terms, lambda: proposed)
    terms.check(study)
    roster = course.asked(Roster, lambda: server.roster_of(study, terms, course.keys(terms)))
    roster.check(study)
    if roster.terms != terms:
        raise MaskingError(f"{NAMES[Terms]} and {NAMES[Roster]} are of different attempts; put the files back")
    delivery = course.asked(Delivery, lambda: server.delivery_of(roster, course.shares(roster).values()))
    present = course.asked(Present, lambda: server.present_of(roster, course.masked(roster, delivery)))
    confirmations = course.asked(Confirmations, lambda: course.confirmations(roster, present))
    if confirmations.present != present:
        raise MaskingError(f"{NAMES[Present]} and {NAMES[Confirmations]} hold different lists; put the files back")
    opened = course.opened(roster, delivery, confirmations)
    shares = rounds.folder.replies(Shares, partial(server.check_shares, study, roster))
    masked = rounds.folder.replies(Masked, partial(server.check_masked, study, roster, delivery))
    if gone := [client for client in present.clients if client not in masked or client not in shares]:
        raise MaskingError(
            f"answers of {', '.join(gone)} are gone from {rounds.folder.folder}, but sites were asked to open the sum "
            "with them; put them back"
        )
    parts = [masked[client] for client in present.clients]
    aggregate = server.sum_of(study, roster, shares, parts, present, list(opened.values()))
    research = tuple(one.client for one in parts if one.research)
    return AggregateMessage(aggregate, roster.digest, terms.threshold, research)


@dataclass(frozen=True)
class _Course:
    study: Study
    rounds: Rounds

    def asked(self, kind: type[Asked], make: Callable[[], Asked]) -> Asked:
        """The request of a round as it was written, or the one that is due now."""
        found = self.rounds.folder.request(kind)
        if found is None:
            found = make()
            self.rounds.begun(self.rounds.folder.keep_request(found))
        return found

    def keys(self, terms: Terms) -> list[Keys]:
        check = partial(server.check_keys, self.study, terms)
        return list(self.rounds.answers(Keys, terms, self.study.plan.clients, check).values())

    def shares(self, roster: Roster) -> dict[str, Shares]:
        return self.rounds.answers(Shares, roster, roster.clients, partial(server.check_shares, self.study, roster))

    def masked(self, roster: Roster, delivery: Delivery) -> dict[str, Masked]:
        check = partial(server.check_masked, self.study, roster, delivery)
        return self.rounds.answers(Masked, delivery, delivery.clients, check)

    def confirmations(self, roster: Roster, present: Present) -> Confirmations:
        check = partial(server.check_confirmed, self.study, roster, present)
        confirmed = self.rounds.answers(Confirmed, present, present.clients, check)
        return server.confirmations_of(self.study, roster, present, confirmed.values())

    def opened(self, roster: Roster, delivery: Delivery, confirmations: Confirmations) -> dict[str, Opened]:
        check = partial(server.check_opened, self.study, roster, delivery, confirmations.present)
        before = self.rounds.folder.replies(Opened, check)
        if len(before) >= roster.terms.threshold:
            return before
        return self.rounds.answers(Opened, confirmations, tuple(confirmations.signatures), check)


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    """Says which file a refusal is about."""
    try:
        yield
    except FedCDHError as problem:
        raise type(problem)(f"{path}: {problem}") from None
