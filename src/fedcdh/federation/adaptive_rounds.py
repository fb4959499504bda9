"""Adaptive rounds of a federated study: the tests request further sums from the clients.

Requests are numbered and stored before they are sent; answers are stored as they arrive. A search that starts again,
after a stop or without clients that dropped out, finds them there and requests nothing a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedcdh.errors import MessageFormatError
from fedcdh.federation.exchange import StudyConnection, check_signature, collect_replies
from fedcdh.federation.journal import Journal, StoredFile
from fedcdh.messages.envelope import ANSWER, Envelope
from fedcdh.messages.round_files import max_answer_bytes, request_to_json, unpack_answer
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.joint import JointRequest, JointSummary, plan_requests, select_answers

Answers = Sequence[JointSummary]


class ClientsDroppedError(Exception):
    """Clients did not answer a request: the study continues without them, so no caller sees this error."""

    def __init__(self, number: int, clients: Sequence[str]) -> None:
        super().__init__(number, clients)
        self.number, self.clients = number, clients


@dataclass(frozen=True)
class AdaptiveRounds:
    """A source of joint summaries: the clients of a cohort, reached by messages."""

    connection: StudyConnection
    journal: Journal
    cohort: Cohort
    _received: dict[tuple[int, str], Answers] = field(default_factory=dict)

    def ask(self, wanted: JointRequest, /) -> Mapping[str, Answers]:
        """Return the answers of all clients of the cohort, as far as the budget of the plan allows.

        Sets that earlier requests contain are taken from their answers. Raises `ClientsDroppedError` if a client does
        not answer.
        """
        plan, rows = self.connection.study.plan, max(self.cohort.client_rows)
        requests = plan_requests(wanted, self.journal.load_requests(plan), plan, rows)
        return select_answers(wanted, [self._answers(request) for request in requests])

    def _answers(self, request: JointRequest) -> dict[str, Answers]:
        self._load(request)
        link, number = self.connection, request.number
        stored = self.journal.load_request(number) or self._store(request)
        envelope = Envelope(ANSWER, link.with_plan(stored.content), stored.signature).to_bytes()

        def accept(address: str, reply: Envelope) -> Answers:
            client = link.client_at(address)
            file = StoredFile(reply.content, reply.signature)
            answers = self._check(request, client, file)
            self.journal.store(ANSWER, client, file, number)
            return answers

        def withdraw(address: str) -> None:
            self.journal.remove(ANSWER, link.client_at(address), number)

        requests = {link.addresses[c]: envelope for c in self.cohort.clients if (number, c) not in self._received}
        replies = collect_replies(
            link.transport,
            ANSWER,
            requests,
            link.timeout,
            accept,
            link.participation,
            withdraw=withdraw,
            round_=_round_name(request),
        )
        self._received.update({(number, link.client_at(address)): answers for address, answers in replies.items()})
        if lacking := [client for client in self.cohort.clients if (number, client) not in self._received]:
            raise ClientsDroppedError(number, lacking)
        return {client: self._received[number, client] for client in self.cohort.clients}

    def _load(self, request: JointRequest) -> None:
        """Read the answers that an earlier run stored."""
        link, number = self.connection, request.number
        max_bytes = max_answer_bytes(link.study.plan, request)
        for client in self.cohort.clients:
            if (number, client) in self._received:
                continue
            stored = self.journal.load(ANSWER, client, max_bytes, number)
            if stored is not None:
                with self.journal.naming_file(ANSWER, client, number):
                    self._received[number, client] = self._check(request, client, stored)
                link.participation.add(_round_name(request), link.addresses[client], "stored")

    def _store(self, request: JointRequest) -> StoredFile:
        content = request_to_json(request).encode()
        file = StoredFile(content, self.connection.sign("request", content))
        self.journal.store_request(request.number, file)
        return file

    def _check(self, request: JointRequest, client: str, file: StoredFile) -> Answers:
        """Return the answers in a file, after checking them against the summary of the same client."""
        study = self.connection.study
        message = unpack_answer(file.content, study.plan, request)
        if message.client != client:
            raise MessageFormatError(f"The site of {client!r} sent an answer of {message.client!r}. Ask the site.")
        check_signature(ANSWER, file.content, file.signature, study.keys.get(client), client)
        summary = self.cohort.summaries[self.cohort.clients.index(client)]
        for answer in message.answers:
            answer.check(study.plan, summary)
        return message.answers


def _round_name(request: JointRequest) -> str:
    """Return the name of a round in the record of participation."""
    return f"{ANSWER} {request.number}"
