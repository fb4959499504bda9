"""Further rounds of a federated study: the search requests further sums from the clients.

A client that does not answer about joint features is not in the result, because a test needs the answers of all whose
summaries it uses. Sums of residuals may be over fewer clients, so one that does not answer about residuals stays in the
result with its summary.

Requests are numbered and stored before they are sent; answers are stored as they arrive. A search that starts again,
after a stop or without clients that dropped out, finds them there and requests nothing a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fedcdh.errors import MessageFormatError
from fedcdh.federation.answering_clients import AnsweringClients
from fedcdh.federation.exchange import StudyConnection, check_signature, collect_replies
from fedcdh.federation.journal import Journal, StoredFile
from fedcdh.messages.answer_file import max_answer_bytes, unpack_answer
from fedcdh.messages.envelope import ANSWER, Envelope
from fedcdh.messages.round_files import request_to_json
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.joint import JointRequest, JointSummary, plan_requests, select_answers, select_residuals
from fedcdh.summaries.joint.answer import check_answers
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualRequest, ResidualSums
from fedcdh.summaries.residuals.asked import can_answer


class ClientsDroppedError(Exception):
    """Clients did not answer a request: the study continues without them, so no caller sees this error."""

    def __init__(self, request: FurtherRequest, clients: Sequence[str]) -> None:
        super().__init__(request.number, clients)
        self.number, self.clients = request.number, clients
        self.is_about_residuals = isinstance(request, ResidualRequest)


@dataclass(frozen=True)
class AdaptiveRounds:
    """A source of answers: the clients of a cohort, reached by messages."""

    connection: StudyConnection
    journal: Journal
    cohort: Cohort
    uncontrolled: frozenset[str] = frozenset()  # clients whose summaries were made without disclosure control
    silent: frozenset[str] = frozenset()  # clients that did not answer about residuals
    _received: dict[tuple[int, str], Sequence[Any]] = field(default_factory=dict)

    def ask(self, wanted: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        """Return the answers of all clients of the cohort, as far as the budget of the plan allows.

        Sets that earlier requests contain are taken from their answers. Raises `ClientsDroppedError` if a client does
        not answer.
        """
        plan, rows = self.connection.study.plan, max(self.cohort.client_rows)
        requests = plan_requests(wanted, self.journal.load_requests(plan), plan, rows)
        return select_answers(wanted, [self._answers(request, self.cohort.clients) for request in requests])

    def ask_residuals(self, wanted: ResidualRequest, /) -> Mapping[str, Sequence[ResidualSums]]:
        """Return the answers of all clients that may answer about residuals.

        Raises `ClientsDroppedError` if one of them does not answer.
        """
        plan, clients = self.connection.study.plan, self._answering
        requests = clients.plan_requests(wanted, self.journal.load_requests(plan))
        return select_residuals(wanted, [self._answers(request, clients.names) for request in requests])

    def select_affordable(
        self, queries: Sequence[ResidualQuery], coordinates: Mapping[str, Coordinates], /
    ) -> tuple[ResidualQuery, ...]:
        """Return the queries that all of these clients may answer, in the order of priority."""
        earlier = self.journal.load_requests(self.connection.study.plan)
        return self._answering.select_affordable(queries, coordinates, earlier)

    @cached_property
    def _answering(self) -> AnsweringClients:
        return AnsweringClients(self.cohort, self.uncontrolled, self.silent)

    def _answers(self, request: FurtherRequest, clients: Sequence[str]) -> dict[str, Sequence[Any]]:
        plan = self.connection.study.plan
        unable = {client: () for client in clients if not can_answer(request, plan.for_client(client))}
        clients = [client for client in clients if client not in unable]
        self._load(request, clients)
        link, number = self.connection, request.number
        stored = self.journal.load_request(number) or self._store(request)
        envelope = Envelope(ANSWER, link.with_plan(stored.content), stored.signature).to_bytes()

        def accept(address: str, reply: Envelope) -> Sequence[Any]:
            client = link.client_at(address)
            file = StoredFile(reply.content, reply.signature)
            answers = self._check(request, client, file)
            self.journal.store(ANSWER, client, file, number)
            return answers

        def withdraw(address: str) -> None:
            self.journal.remove(ANSWER, link.client_at(address), number)

        requests = {link.addresses[c]: envelope for c in clients if (number, c) not in self._received}
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
        if lacking := [client for client in clients if (number, client) not in self._received]:
            raise ClientsDroppedError(request, lacking)
        return {client: self._received[number, client] for client in clients} | unable

    def _load(self, request: FurtherRequest, clients: Sequence[str]) -> None:
        """Read the answers that an earlier run stored."""
        link, number = self.connection, request.number
        max_bytes = max_answer_bytes(link.study.plan, request)
        for client in clients:
            if (number, client) in self._received:
                continue
            stored = self.journal.load(ANSWER, client, max_bytes, number)
            if stored is not None:
                with self.journal.naming_file(ANSWER, client, number):
                    self._received[number, client] = self._check(request, client, stored)
                link.participation.add(_round_name(request), link.addresses[client], "stored")

    def _store(self, request: FurtherRequest) -> StoredFile:
        content = request_to_json(request).encode()
        file = StoredFile(content, self.connection.sign("request", content))
        self.journal.store_request(request.number, file)
        return file

    def _check(self, request: FurtherRequest, client: str, file: StoredFile) -> Sequence[Any]:
        """Return the answers in a file, after checking them against the summary of the same client."""
        study = self.connection.study
        message = unpack_answer(file.content, study.plan, request)
        if message.client != client:
            raise MessageFormatError(f"The site of {client!r} sent an answer of {message.client!r}. Ask the site.")
        check_signature(ANSWER, file.content, file.signature, study.keys.get(client), client)
        summary = self.cohort.summaries[self.cohort.clients.index(client)]
        check_answers(message.answers, request, study.plan, summary, client)
        return message.answers


def _round_name(request: FurtherRequest) -> str:
    """Return the name of a round in the record of participation."""
    return f"{ANSWER} {request.number}"
