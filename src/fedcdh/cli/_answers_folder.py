"""Adaptive rounds by file at the coordinator: a folder of requests and of the answers that sites sent back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedcdh._io.storage import read_regular_file
from fedcdh.cli._console import Output
from fedcdh.cli._inputs import naming_file
from fedcdh.cli._keys import check_signer
from fedcdh.cli._outputs import check_replaceable, write_signed
from fedcdh.errors import PendingAnswersError, SummaryFormatError
from fedcdh.messages.round_files import (
    ANSWER_SUFFIX,
    REQUEST_FILE_NAME,
    AnswerMessage,
    max_answer_bytes,
    read_requests,
    request_to_json,
    unpack_answer,
)
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.joint import JointRequest, JointSummary, plan_requests, select_answers

ClientAnswers = Sequence[JointSummary]


@dataclass(frozen=True)
class AnswersFolder:
    """A folder with the clients' answers; it gets a request for those that are missing."""

    folder: Path
    study: Study
    cohort: Cohort
    key: SigningKey | None
    out: Output

    def ask(self, wanted: JointRequest, /) -> Mapping[str, ClientAnswers]:
        """Return the answers; raise PendingAnswersError, with a request written, while some are missing."""
        before, rows = read_requests(self.folder, self.study.plan), max(self.cohort.client_rows)
        requests = plan_requests(wanted, before, self.study.plan, rows)
        for request in requests:
            if request not in before:
                path = self._path(request)
                check_replaceable(path, "request")
                write_signed(path, request_to_json(request).encode(), "request", self.key)
        received = [self._read_answers(request) for request in requests]
        for request, found in zip(requests, received, strict=True):
            if missing := [client for client in self.cohort.clients if client not in found]:
                raise PendingAnswersError(self._describe_missing(request, missing))
        return select_answers(wanted, received)

    def _read_answers(self, request: JointRequest) -> dict[str, ClientAnswers]:
        found: dict[str, ClientAnswers] = {}
        for path in sorted(self.folder.glob(f"*{ANSWER_SUFFIX.format(request.number)}")):
            message = self._read(path, request)
            if message.client in found:
                raise SummaryFormatError(
                    f"{path} is a second answer of {message.client} to one request. Expected one. Remove one of them."
                )
            found[message.client] = message.answers
        return {client: answers for client, answers in found.items() if client in self.cohort.clients}

    def _read(self, path: Path, request: JointRequest) -> AnswerMessage:
        most = max_answer_bytes(self.study.plan, request)
        content = read_regular_file(path, most, "an answer to this request", refuse=SummaryFormatError)
        with naming_file(path):
            message = unpack_answer(content, self.study.plan, request)
        if check_signer(path, content, "answer", self.study.keys.get(message.client)) is None:
            self.out.warn(f"{path} is not signed: nothing but the way it came shows that it is from {message.client}")
        if not message.disclosure_control:
            self.out.warn(f"{path} was made without disclosure control")
        return message

    def _path(self, request: JointRequest) -> Path:
        return self.folder / REQUEST_FILE_NAME.format(request.number)

    def _describe_missing(self, request: JointRequest, missing: Sequence[str]) -> str:
        return (
            f"Answers of {', '.join(missing)} to {self._path(request)} are missing; it asks about "
            f"{len(request.sets)} sets of variables. Send it to these sites, put their answers "
            f"(NAME{ANSWER_SUFFIX.format(request.number)}) into {self.folder}, and run this command again."
        )
