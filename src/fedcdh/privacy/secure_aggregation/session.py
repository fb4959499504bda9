"""A session of secure aggregation at the server, and the folder that keeps it; the same by file and online.

A request that was written is never written differently, since clients may have seen it. So a server that is started
again goes on with the messages in the folder, and asks for those that are missing.
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
from fedcdh.privacy.secure_aggregation.server import SecAggServer, index_by_client
from fedcdh.summaries.residuals import ResidualSums

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


ANSWER_SESSION_NAME = "sum-{:03d}"
"""Name of the folder of a session that adds answers, with the number of the request."""


@dataclass(frozen=True)
class SessionFolder:
    """Requests and answers of one session, as files.

    Parameters
    ----------
    folder : Path
        The folder.
    study : Study
        The plan file.
    key : SigningKey, optional
        Signs the requests.

    Examples
    --------
    >>> import tempfile
    >>> from fedcdh.summaries import Continuous, StudyPlan
    >>> study = Study(StudyPlan((Continuous("age", 60, 15),), ("east", "north", "west")))
    >>> SessionFolder(Path(tempfile.mkdtemp()), study).request(SecAggTerms) is None
    True
    """

    folder: Path
    study: Study
    key: SigningKey | None = None

    def request(self, kind: type[RequestT]) -> RequestT | None:
        """Return the request of a round, if it has been made.

        Parameters
        ----------
        kind : type
            Class of the request.

        Returns
        -------
        SecAggRequest or None
            The request.
        """
        path = self.folder / REQUEST_FILE_NAMES[kind]
        return self._read(path, kind) if path.exists() else None

    def keep_request(self, message: SecAggMessage) -> Path:
        """Write a request, before any client sees it.

        Parameters
        ----------
        message : SecAggRequest
            The request.

        Returns
        -------
        Path
            Its file.
        """
        path, content = self.folder / REQUEST_FILE_NAMES[type(message)], message.to_bytes()
        if self.key is not None:
            write_atomically(path.with_name(f"{path.name}.sig"), sign(self.key, "masking", content))
        write_atomically(path, content)
        return path

    def replies(self, kind: type[ReplyT], check: ReplyCheck) -> dict[str, ReplyT]:
        """Return the answers of a round by client, each of them checked.

        Parameters
        ----------
        kind : type
            Class of the answers.
        check : callable
            Called with each answer; refuses it by raising.

        Returns
        -------
        dict from str to SecAggReply
            The answers.

        Raises
        ------
        SecureAggregationError
            If an answer cannot be used; the message names its file.
        """
        found = []
        for path in sorted(self.folder.glob(f"*.{kind.kind}")):
            answer = self._read(path, kind)
            with _naming_file(path):
                check(answer)
            found.append(answer)
        return index_by_client(found)

    def _read(self, path: Path, kind: type[RequestT]) -> RequestT:
        limit = max_message_bytes(self.study.plan, kind)
        content = read_regular_file(path, limit, "a message of secure aggregation")
        with _naming_file(path):
            return read_message(content, self.study.plan, kind)


class SessionTransport(Protocol):
    """The way in which a server reaches the clients: it waits for files, or sends messages."""

    @property
    def folder(self) -> SessionFolder:
        """The folder of the session."""

    def announce(self, path: Path) -> None:
        """Report that a request was written which no client has seen yet."""

    def answers(
        self, kind: type[ReplyT], request: SecAggRequest, clients: Collection[str], check: ReplyCheck
    ) -> dict[str, ReplyT]:
        """Return the answers to a request, of all clients or of those with which the session goes on."""


def run_session(  # numpydoc ignore=EX01
    study: Study, proposed: SecAggTerms, transport: SessionTransport
) -> AggregateMessage:
    """Run all rounds of secure aggregation, and return the sum.

    If a round stops with an error, the folder keeps what is needed to go on.

    Parameters
    ----------
    study : Study
        The plan file.
    proposed : SecAggTerms
        The terms, if the session is new.
    transport : SessionTransport
        How the clients are reached.

    Returns
    -------
    AggregateMessage
        The sum.

    Raises
    ------
    SecureAggregationError
        If the session cannot be completed.

    See Also
    --------
    SecAggServer : The rounds one by one.
    run_answer_session : The same for answers about residuals.
    """
    server = SecAggServer(study)
    found = _run_rounds(server, proposed, transport, study.plan.clients)
    aggregate = server.unmask_sum(found.roster, found.shares, found.vectors, found.survivors, found.unmasking)
    return AggregateMessage(aggregate, found.roster.digest, found.roster.terms.threshold, found.uncontrolled)


@dataclass(frozen=True)
class SummedAnswers:
    """The sum of the answers of several clients to one request.

    Parameters
    ----------
    answers : tuple of ResidualSums
        One sum per query, in the order of the request.
    clients : tuple of str
        The clients in the sum.
    session : str
        Digest of the roster.
    without_disclosure_control : tuple of str
        Clients that answered without disclosure control.

    Examples
    --------
    >>> SummedAnswers((), ("east", "north", "west"), "0" * 64).clients
    ('east', 'north', 'west')
    """

    answers: tuple[ResidualSums, ...]
    clients: tuple[str, ...]
    session: str
    without_disclosure_control: tuple[str, ...] = ()


def run_answer_session(  # numpydoc ignore=EX01
    study: Study, proposed: SecAggTerms, transport: SessionTransport, clients: Collection[str]
) -> SummedAnswers:
    """Run all rounds of a sum of answers to the request in the terms, over all clients of the sum of summaries.

    If one of them is missing, there is no sum: the difference of the two sums would be its part. If a round stops with
    an error, the folder keeps what is needed to go on.

    Parameters
    ----------
    study : Study
        The plan file.
    proposed : SecAggTerms
        The terms, with a request.
    transport : SessionTransport
        How the clients are reached.
    clients : collection of str
        The clients in the sum of summaries.

    Returns
    -------
    SummedAnswers
        The sum over all of these clients.

    Raises
    ------
    SecureAggregationError
        If the session cannot be completed, a client is missing, or the folder holds another request.

    See Also
    --------
    run_session : The sum of summaries.
    """
    server = SecAggServer(study)
    found = _run_rounds(server, proposed, transport, clients, complete=True)
    if found.roster.terms.request != proposed.request:
        raise SecureAggregationError(
            f"The folder {transport.folder.folder} holds the sum of answers to another request. Expected this one. "
            "Choose another folder"
        )
    answers = server.unmask_answers(found.roster, found.shares, found.vectors, found.survivors, found.unmasking)
    return SummedAnswers(answers, found.survivors.clients, found.roster.digest, found.uncontrolled)


@dataclass(frozen=True)
class _Completed:
    """All that is needed to unmask a sum."""

    roster: Roster
    shares: dict[str, SealedShares]
    vectors: list[MaskedVector]
    survivors: SurvivorList
    unmasking: list[UnmaskingShares]

    @property
    def uncontrolled(self) -> tuple[str, ...]:
        return tuple(one.client for one in self.vectors if not one.disclosure_control)


def _run_rounds(
    server: SecAggServer,
    proposed: SecAggTerms,
    transport: SessionTransport,
    clients: Collection[str],
    *,
    complete: bool = False,
) -> _Completed:
    """Run all rounds with these clients; if the sum has to be complete, without a sum over some of them."""
    study, rounds = server.study, _SessionRounds(server, transport, clients, complete)
    terms = rounds.request(SecAggTerms, lambda: proposed)
    terms.check(study)
    roster = rounds.request(Roster, lambda: server.build_roster(terms, rounds.keys(terms)))
    roster.check(study)
    if roster.terms != terms:
        raise _mixed_files(SecAggTerms, Roster)
    delivery = rounds.request(ShareDelivery, lambda: server.build_delivery(roster, rounds.shares(roster).values()))
    survivors = rounds.request(SurvivorList, lambda: server.list_survivors(roster, rounds.masked(roster, delivery)))
    rounds.check_complete(survivors.clients, "masked vectors")
    confirmed = rounds.request(ConfirmedSurvivors, lambda: rounds.confirmations(roster, survivors))
    if confirmed.present != survivors:
        raise _mixed_files(SurvivorList, ConfirmedSurvivors)
    unmasking = rounds.unmasking(roster, delivery, confirmed)
    shares = transport.folder.replies(SealedShares, partial(server.check_shares, roster))
    masked = transport.folder.replies(MaskedVector, partial(server.check_masked, roster, delivery))
    if gone := [client for client in survivors.clients if client not in masked or client not in shares]:
        raise SecureAggregationError(
            f"Answers of {', '.join(gone)} are missing in {transport.folder.folder}. Expected those of all survivors: "
            "clients were asked to unmask a sum with them. Put the files back"
        )
    vectors = [masked[client] for client in survivors.clients]
    return _Completed(roster, shares, vectors, survivors, list(unmasking.values()))


@dataclass(frozen=True)
class _SessionRounds:
    """The rounds of a session: requests as they were written, and the answers to them."""

    server: SecAggServer
    transport: SessionTransport
    clients: Collection[str]
    complete: bool  # whether the sum is over all clients or there is none

    def check_complete(self, clients: Collection[str], what: str) -> None:
        """Refuse to go on without one of the clients, before the request that leaves it out is written."""
        missing = [client for client in self.clients if client not in clients]
        if self.complete and missing:
            raise SecureAggregationError(
                f"There are no {what} of {', '.join(missing)}. Expected those of all clients of the sum of summaries, "
                "because a sum of answers without one of them would tell its part. Ask for them again, or use the "
                f"answers to earlier requests (by file: fedcdh discover --without-answers {missing[0]})"
            )

    def request(self, kind: type[RequestT], make: Callable[[], RequestT]) -> RequestT:
        """Return the request of a round as it was written, or write the one that is due now."""
        found = self.transport.folder.request(kind)
        if found is None:
            found = make()
            self.transport.announce(self.transport.folder.keep_request(found))
        return found

    def keys(self, terms: SecAggTerms) -> list[PublicKeys]:
        check = partial(self.server.check_keys, terms)
        found = self.transport.answers(PublicKeys, terms, self.clients, check)
        self.check_complete(found, "keys")
        return list(found.values())

    def shares(self, roster: Roster) -> dict[str, SealedShares]:
        check = partial(self.server.check_shares, roster)
        found = self.transport.answers(SealedShares, roster, roster.clients, check)
        self.check_complete(found, "shares")
        return found

    def masked(self, roster: Roster, delivery: ShareDelivery) -> dict[str, MaskedVector]:
        check = partial(self.server.check_masked, roster, delivery)
        found = self.transport.answers(MaskedVector, delivery, delivery.clients, check)
        self.check_complete(found, "masked vectors")
        return found

    def confirmations(self, roster: Roster, survivors: SurvivorList) -> ConfirmedSurvivors:
        check = partial(self.server.check_confirmation, roster, survivors)
        found = self.transport.answers(SurvivorConfirmation, survivors, survivors.clients, check)
        return self.server.collect_confirmations(roster, survivors, found.values())

    def unmasking(
        self, roster: Roster, delivery: ShareDelivery, confirmed: ConfirmedSurvivors
    ) -> dict[str, UnmaskingShares]:
        check = partial(self.server.check_unmasking, roster, delivery, confirmed.present)
        before = self.transport.folder.replies(UnmaskingShares, check)
        if len(before) >= roster.terms.threshold:
            return before
        return self.transport.answers(UnmaskingShares, confirmed, tuple(confirmed.signatures), check)


def _mixed_files(one: type[SecAggMessage], other: type[SecAggMessage]) -> SecureAggregationError:
    return SecureAggregationError(
        f"{REQUEST_FILE_NAMES[one]} and {REQUEST_FILE_NAMES[other]} do not belong together. Expected files of one "
        "session. Put the files back"
    )


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    """Put the name of the file before the text of an error."""
    try:
        yield
    except FedCDHError as problem:
        raise type(problem)(f"{path}: {problem.message}", parameter=problem.parameter) from None
