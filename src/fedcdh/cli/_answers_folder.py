"""Further rounds by file at the coordinator: a folder of requests and of the answers that sites sent back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedcdh._io.storage import read_regular_file
from fedcdh.cli._console import Output
from fedcdh.cli._inputs import naming_file
from fedcdh.cli._keys import check_signer
from fedcdh.cli._outputs import check_replaceable, write_signed
from fedcdh.errors import PendingAnswersError, SummaryFormatError
from fedcdh.federation.answering_clients import AnsweringClients
from fedcdh.messages.answer_file import AnswerMessage, max_answer_bytes, unpack_answer
from fedcdh.messages.round_files import ANSWER_SUFFIX, REQUEST_FILE_NAME, read_requests, request_to_json
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.joint import JointRequest, JointSummary, plan_requests, select_answers, select_residuals
from fedcdh.summaries.joint.answer import check_answers
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualRequest, ResidualSums
from fedcdh.summaries.residuals.asked import can_answer


@dataclass(frozen=True)
class AnswersFolder:
    """A folder with the clients' answers; it gets a request for those that are missing."""

    folder: Path
    study: Study
    cohort: Cohort
    key: SigningKey | None
    out: Output
    uncontrolled: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()

    def ask(self, wanted: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        """Return the answers; raise PendingAnswersError, with a request written, while some are missing."""
        before, rows = self._read_requests(), max(self.cohort.client_rows)
        requests = plan_requests(wanted, before, self.study.plan, rows)
        self._write_new(requests, before)
        return select_answers(wanted, self._require_answers(requests, self.cohort.clients))

    def ask_residuals(self, wanted: ResidualRequest, /) -> Mapping[str, Sequence[ResidualSums]]:
        """Return the answers; raise PendingAnswersError, with a request written, while some are missing."""
        before, clients = self._read_requests(), self._answering
        requests = clients.plan_requests(wanted, before)
        self._write_new(requests, before)
        return select_residuals(wanted, self._require_answers(requests, clients.names))

    def select_affordable(
        self, queries: Sequence[ResidualQuery], coordinates: Mapping[str, Coordinates], /
    ) -> tuple[ResidualQuery, ...]:
        """Return the queries that all clients may answer, in the order of priority."""
        return self._answering.select_affordable(queries, coordinates, self._read_requests())

    @cached_property
    def _answering(self) -> AnsweringClients:
        return AnsweringClients(self.cohort, self.uncontrolled, self.silent)

    def _read_requests(self) -> tuple[FurtherRequest, ...]:
        return read_requests(self.folder, self.study.plan)

    def _write_new(self, requests: Sequence[FurtherRequest], before: Sequence[FurtherRequest]) -> None:
        for request in requests:
            if request not in before:
                path = self._path(request)
                check_replaceable(path, "request")
                write_signed(path, request_to_json(request).encode(), "request", self.key)

    def _require_answers(
        self, requests: Sequence[FurtherRequest], clients: Sequence[str]
    ) -> list[dict[str, Sequence[Any]]]:
        """Return the answers of these clients to each request."""
        received = [self._read_answers(request, clients) for request in requests]
        for request, found in zip(requests, received, strict=True):
            asked = [client for client in clients if can_answer(request, self.study.plan.for_client(client))]
            if missing := [client for client in asked if client not in found]:
                raise PendingAnswersError(self._describe_missing(request, missing))
        return received

    def _read_answers(self, request: FurtherRequest, clients: Sequence[str]) -> dict[str, Sequence[Any]]:
        found: dict[str, Sequence[Any]] = {}
        for path in sorted(self.folder.glob(f"*{ANSWER_SUFFIX.format(request.number)}")):
            message = self._read(path, request)
            if message.client in found:
                raise SummaryFormatError(
                    f"{path} is a second answer of {message.client} to one request. Expected one. Remove one of them."
                )
            found[message.client] = message.answers
        return {client: found[client] for client in clients if client in found}

    def _read(self, path: Path, request: FurtherRequest) -> AnswerMessage[Any]:
        most = max_answer_bytes(self.study.plan, request)
        content = read_regular_file(path, most, "an answer to this request", refuse=SummaryFormatError)
        with naming_file(path):
            message = unpack_answer(content, self.study.plan, request)
            self._check(message, request)
        if check_signer(path, content, "answer", self.study.keys.get(message.client)) is None:
            self.out.warn(f"{path} is not signed: nothing but the way it came shows that it is from {message.client}")
        if not message.disclosure_control:
            self.out.warn(f"{path} was made without disclosure control")
        return message

    def _check(self, message: AnswerMessage[Any], request: FurtherRequest) -> None:
        """Check an answer about residuals against the summary; tests check those about joint features themselves."""
        if isinstance(request, ResidualRequest) and message.client in self.cohort.clients:
            summary = self.cohort.summaries[self.cohort.clients.index(message.client)]
            check_answers(message.answers, request, self.study.plan, summary, message.client)

    def _path(self, request: FurtherRequest) -> Path:
        return self.folder / REQUEST_FILE_NAME.format(request.number)

    def _describe_missing(self, request: FurtherRequest, missing: Sequence[str]) -> str:
        return (
            f"Answers of {', '.join(missing)} to {self._path(request)} are missing; it asks about "
            f"{describe_content(request)}. Send it to these sites, put their answers "
            f"(NAME{ANSWER_SUFFIX.format(request.number)}) into {self.folder}, and run this command again."
        )


def describe_content(request: FurtherRequest) -> str:
    """Return in words how much a request asks for."""
    if isinstance(request, JointRequest):
        return f"{len(request.sets)} sets of variables"
    count = len(request.queries)
    return f"the residuals of {count} regression{'s' if count != 1 else ''}"
