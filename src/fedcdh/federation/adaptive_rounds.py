"""Further rounds of an online study: what the tests want to know, asked of the sites that are still there.

Requests are numbered as they are sent, and kept before they are; answers are kept as they come. A search that starts
over, after a stop or without sites that are gone, finds them there and asks for nothing a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fedcdh.errors import MessageFormatError
from fedcdh.federation.exchange import Transport, check_signature, collect_replies
from fedcdh.federation.journal import Journal, StoredFile
from fedcdh.federation.participation import Participation
from fedcdh.messages.envelope import ANSWER, Envelope, RoundRequest
from fedcdh.messages.round_files import max_answer_bytes, request_to_json, unpack_answer
from fedcdh.messages.study_file import Study
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.joint import JointRequest, JointSummary, plan_requests, select_answers

Answers = Sequence[JointSummary]


class ClientsDroppedError(Exception):
    """Sites did not answer a request as they should: what follows is to be found without them."""

    def __init__(self, number: int, clients: Sequence[str]) -> None:
        super().__init__(number, clients)
        self.number, self.clients = number, clients


@dataclass(frozen=True)
class AdaptiveRounds:
    """A source of joint summaries: the sites of a cohort, by messages."""

    transport: Transport
    journal: Journal
    record: Participation
    study: Study
    plan: StoredFile  # as it was sent
    sites: Mapping[str, str]  # addresses of clients
    timeout: float
    sign: Callable[[str, bytes], bytes]
    cohort: Cohort
    _received: dict[tuple[int, str], Answers] = field(default_factory=dict)

    def ask(self, wanted: JointRequest, /) -> Mapping[str, Answers]:
        """What all sites of the cohort answer about these sets, as far as the budget goes; Dropped where one does not.

        Sets that earlier requests have asked about are asked for by these, and only of who has not answered them.
        """
        plan, rows = self.study.plan, max(self.cohort.client_rows)
        requests = plan_requests(wanted, self.journal.requests(plan), plan, rows)
        return select_answers(wanted, [self._answers(request) for request in requests])

    def _answers(self, request: JointRequest) -> dict[str, Answers]:
        self._load(request)
        number, name = request.number, _round_name(request)
        kept = self.journal.request(number) or self._kept(request)
        content = RoundRequest(kept.content, self.plan.content, self.plan.signature).to_bytes()
        envelope = Envelope(ANSWER, content, kept.signature).to_bytes()

        def accept(site: str, reply: Envelope) -> Answers:
            client = self.record.clients[site]
            answers = self._checked(request, client, reply.content, reply.signature)
            self.journal.keep(ANSWER, client, reply.content, reply.signature, number)
            return answers

        def withdraw(site: str) -> None:
            self.journal.forget(ANSWER, self.record.clients[site], number)

        asked = {self.sites[c]: envelope for c in self.cohort.clients if (number, c) not in self._received}
        found = collect_replies(
            self.transport, ANSWER, asked, self.timeout, accept, self.record, withdraw=withdraw, round_=name
        )
        self._received.update({(number, self.record.clients[site]): answers for site, answers in found.items()})
        if lacking := [client for client in self.cohort.clients if (number, client) not in self._received]:
            raise ClientsDroppedError(number, lacking)
        return {client: self._received[number, client] for client in self.cohort.clients}

    def _load(self, request: JointRequest) -> None:
        """What was stored by an earlier run."""
        number, most = request.number, max_answer_bytes(self.study.plan, request)
        for client in self.cohort.clients:
            if (number, client) in self._received:
                continue
            stored = self.journal.stored(ANSWER, client, most, number)
            if stored is not None:
                with self.journal.naming_file(ANSWER, client, number):
                    self._received[number, client] = self._checked(request, client, stored.content, stored.signature)
                self.record.note(_round_name(request), self.sites[client], "stored")

    def _kept(self, request: JointRequest) -> StoredFile:
        content = request_to_json(request).encode()
        return self.journal.keep_request(request.number, content, self.sign("request", content))

    def _checked(self, request: JointRequest, client: str, content: bytes, signature: bytes) -> Answers:
        message = unpack_answer(content, self.study.plan, request)
        if message.client != client:
            raise MessageFormatError(f"the site of {client!r} sent an answer of {message.client!r}")
        check_signature(ANSWER, content, signature, self.study.keys.get(client), client)
        summary = self.cohort.summaries[self.cohort.clients.index(client)]
        for answer in message.answers:
            answer.check(self.study.plan, summary)
        return message.answers


def _round_name(request: JointRequest) -> str:
    """What the record calls a round."""
    return f"{ANSWER} {request.number}"
