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

from fedcdh._io.storage import read_regular_file, write_atomically
from fedcdh.errors import FedCDHError, SecureAggregationError
from fedcdh.messages.aggregate_file import AggregateMessage
from fedcdh.messages.signing import SigningKey, sign
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation import server
from fedcdh.privacy.secure_aggregation.codec import max_message_bytes, read_message
from fedcdh.privacy.secure_aggregation.messages import (
    ConfirmedSurvivors,
    MaskedVector,
    PublicKeys,
    Roster,
    SealedShares,
    SecAggMessage,
    SecAggRequest,
    SecAggTerms,
    ShareDelivery,
    SignedMessage,
    SurvivorConfirmation,
    SurvivorList,
    UnmaskingShares,
)

RequestT = TypeVar("RequestT", bound=SecAggMessage)
ReplyT = TypeVar("ReplyT", bound=SignedMessage)
ReplyCheck = Callable[[Any], None]

REQUEST_FILE_NAMES: dict[type[SecAggMessage], str] = {
    SecAggTerms: "1-terms.json",
    Roster: "2-roster.json",
    ShareDelivery: "3-delivery.json",
    SurvivorList: "4-present.json",
    ConfirmedSurvivors: "5-confirmations.json",
}


@dataclass(frozen=True)
class SessionFolder:
    """Requests and answers of one attempt, as files."""

    folder: Path
    study: Study
    key: SigningKey | None = None  # signs requests

    def request(self, kind: type[RequestT]) -> RequestT | None:
        """The request of a round, if it has been made."""
        path = self.folder / REQUEST_FILE_NAMES[kind]
        return self._read(path, kind) if path.exists() else None

    def keep_request(self, message: SecAggMessage) -> Path:
        """Writes a request, before any site sees it."""
        path, content = self.folder / REQUEST_FILE_NAMES[type(message)], message.to_bytes()
        if self.key is not None:
            write_atomically(path.with_name(f"{path.name}.sig"), sign(self.key, "masking", content))
        write_atomically(path, content)
        return path

    def replies(self, kind: type[ReplyT], check: ReplyCheck) -> dict[str, ReplyT]:
        """What sites have answered in a round, each checked."""
        found = []
        for path in sorted(self.folder.glob(f"*.{kind.kind}")):
            answer = self._read(path, kind)
            with _naming_file(path):
                check(answer)
            found.append(answer)
        return server.index_by_client(found)

    def _read(self, path: Path, kind: type[RequestT]) -> RequestT:
        content = read_regular_file(path, max_message_bytes(self.study.plan, kind), "a message of a masked sum")
        with _naming_file(path):
            return read_message(content, self.study.plan, kind)


class SessionTransport(Protocol):
    """How a server asks: it waits for files, or sends messages."""

    @property
    def folder(self) -> SessionFolder:
        """Where requests and answers are kept."""

    def begun(self, path: Path) -> None:
        """A request was written that no site has seen yet."""

    def answers(
        self, kind: type[ReplyT], request: SecAggRequest, clients: Collection[str], check: ReplyCheck
    ) -> dict[str, ReplyT]:
        """The answers to a request, of all clients or of those with whom the sum goes on."""


def run_session(study: Study, proposed: SecAggTerms, rounds: SessionTransport) -> AggregateMessage:
    """The sum, from all rounds; what stops on the way leaves the folder to go on from."""
    course = _SessionRounds(study, rounds)
    terms = course.asked(SecAggTerms, lambda: proposed)
    terms.check(study)
    roster = course.asked(Roster, lambda: server.build_roster(study, terms, course.keys(terms)))
    roster.check(study)
    if roster.terms != terms:
        raise SecureAggregationError(
            f"{REQUEST_FILE_NAMES[SecAggTerms]} and {REQUEST_FILE_NAMES[Roster]} are of different attempts; put the files back"
        )
    delivery = course.asked(ShareDelivery, lambda: server.build_delivery(roster, course.shares(roster).values()))
    present = course.asked(SurvivorList, lambda: server.list_survivors(roster, course.masked(roster, delivery)))
    confirmations = course.asked(ConfirmedSurvivors, lambda: course.confirmations(roster, present))
    if confirmations.present != present:
        raise SecureAggregationError(
            f"{REQUEST_FILE_NAMES[SurvivorList]} and {REQUEST_FILE_NAMES[ConfirmedSurvivors]} hold different lists; put the files back"
        )
    opened = course.opened(roster, delivery, confirmations)
    shares = rounds.folder.replies(SealedShares, partial(server.check_shares, study, roster))
    masked = rounds.folder.replies(MaskedVector, partial(server.check_masked, study, roster, delivery))
    if gone := [client for client in present.clients if client not in masked or client not in shares]:
        raise SecureAggregationError(
            f"answers of {', '.join(gone)} are gone from {rounds.folder.folder}, but sites were asked to open the sum "
            "with them; put them back"
        )
    parts = [masked[client] for client in present.clients]
    aggregate = server.unmask_sum(study, roster, shares, parts, present, list(opened.values()))
    research = tuple(one.client for one in parts if one.research)
    return AggregateMessage(aggregate, roster.digest, terms.threshold, research)


@dataclass(frozen=True)
class _SessionRounds:
    study: Study
    rounds: SessionTransport

    def asked(self, kind: type[RequestT], make: Callable[[], RequestT]) -> RequestT:
        """The request of a round as it was written, or the one that is due now."""
        found = self.rounds.folder.request(kind)
        if found is None:
            found = make()
            self.rounds.begun(self.rounds.folder.keep_request(found))
        return found

    def keys(self, terms: SecAggTerms) -> list[PublicKeys]:
        check = partial(server.check_keys, self.study, terms)
        return list(self.rounds.answers(PublicKeys, terms, self.study.plan.clients, check).values())

    def shares(self, roster: Roster) -> dict[str, SealedShares]:
        return self.rounds.answers(
            SealedShares, roster, roster.clients, partial(server.check_shares, self.study, roster)
        )

    def masked(self, roster: Roster, delivery: ShareDelivery) -> dict[str, MaskedVector]:
        check = partial(server.check_masked, self.study, roster, delivery)
        return self.rounds.answers(MaskedVector, delivery, delivery.clients, check)

    def confirmations(self, roster: Roster, present: SurvivorList) -> ConfirmedSurvivors:
        check = partial(server.check_confirmed, self.study, roster, present)
        confirmed = self.rounds.answers(SurvivorConfirmation, present, present.clients, check)
        return server.collect_confirmations(self.study, roster, present, confirmed.values())

    def opened(
        self, roster: Roster, delivery: ShareDelivery, confirmations: ConfirmedSurvivors
    ) -> dict[str, UnmaskingShares]:
        check = partial(server.check_opened, self.study, roster, delivery, confirmations.present)
        before = self.rounds.folder.replies(UnmaskingShares, check)
        if len(before) >= roster.terms.threshold:
            return before
        return self.rounds.answers(UnmaskingShares, confirmations, tuple(confirmations.signatures), check)


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    """Says which file a refusal is about."""
    try:
        yield
    except FedCDHError as problem:
        raise type(problem)(f"{path}: {problem}") from None
