"""Further rounds by file after a secure sum: a folder of requests, and of the secure sums of the sites' answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from fedcdh.cli._outputs import check_replaceable, write_signed
from fedcdh.errors import PendingAnswersError, SecureAggregationError
from fedcdh.federation.answering_clients import AnsweringSum
from fedcdh.federation.masked_rounds import ALL_CLIENTS, check_summed_rows, joint_features_error, select_answered
from fedcdh.messages.aggregate_file import AggregateMessage
from fedcdh.messages.round_files import REQUEST_FILE_NAME, read_requests, request_to_json
from fedcdh.messages.signing import SigningKey
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation.messages import ConfirmedSurvivors, SecAggRequest, SecAggTerms
from fedcdh.privacy.secure_aggregation.session import (
    ANSWER_SESSION_NAME,
    ReplyCheck,
    ReplyT,
    SessionFolder,
    run_answer_session,
)
from fedcdh.summaries.joint import JointRequest, JointSummary, select_residuals
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualRequest, ResidualSums


@dataclass(frozen=True)
class MaskedAnswersFolder:
    """A folder with secure sums of answers; it gets a request for those that are missing."""

    folder: Path
    study: Study
    known: AggregateMessage
    key: SigningKey | None
    silent: frozenset[str] = frozenset()  # clients that do not answer; with one, there is no new sum
    _sums: dict[int, tuple[ResidualSums, ...]] = field(default_factory=dict)  # none for a request without a sum

    def ask(self, wanted: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        """Refuse: tests need the joint features of every client."""
        raise joint_features_error(wanted)

    def ask_residuals(self, wanted: ResidualRequest, /) -> Mapping[str, Sequence[ResidualSums]]:
        """Return the sums; raise PendingAnswersError, with a request written, while one is missing.

        If a client does not answer, nothing is written, and queries without a sum are left out.
        """
        before = self._read_requests()
        requests = self._answering.plan_requests(wanted, before)
        for request in requests:
            if request not in before and not self.silent:
                path = self.folder / REQUEST_FILE_NAME.format(request.number)
                check_replaceable(path, "request")
                write_signed(path, request_to_json(request).encode(), "request", self.key)
        return select_residuals(wanted, [{ALL_CLIENTS: self._answers(request)} for request in requests])

    def select_affordable(
        self, queries: Sequence[ResidualQuery], coordinates: Mapping[str, Coordinates], /
    ) -> tuple[ResidualQuery, ...]:
        """Return the queries that all clients may answer, in the order of priority; without a sum, no new ones."""
        requests = self._read_requests()
        return select_answered(self._answering.select_affordable(queries, coordinates, requests), requests, self._sums)

    @cached_property
    def _answering(self) -> AnsweringSum:
        uncontrolled = frozenset(self.known.without_disclosure_control)
        return AnsweringSum(self.known.aggregate, self.known.threshold, uncontrolled)

    def _read_requests(self) -> tuple[FurtherRequest, ...]:
        return read_requests(self.folder, self.study.plan)

    def _answers(self, request: ResidualRequest) -> tuple[ResidualSums, ...]:
        """Return the sum for a request; none if there is no sum, and a client does not answer."""
        if request.number not in self._sums:
            try:
                self._sums[request.number] = self._require_sum(request)
            except (PendingAnswersError, SecureAggregationError):
                if not self.silent:
                    raise
                self._sums[request.number] = ()
        return self._sums[request.number]

    def _require_sum(self, request: ResidualRequest) -> tuple[ResidualSums, ...]:
        """Return the sum of a session whose last round is answered."""
        session = SessionFolder(self.folder / ANSWER_SESSION_NAME.format(request.number), self.study)
        if session.request(ConfirmedSurvivors) is None:
            raise self._pending(request)
        transport = _CompleteSession(session, self._pending(request))
        terms = SecAggTerms.of(self.study, threshold=self.known.threshold, request=request)
        found = run_answer_session(self.study, terms, transport, self.known.aggregate.total.clients)
        check_summed_rows(found, self.known.aggregate, request)
        return found.answers

    def _pending(self, request: ResidualRequest) -> PendingAnswersError:
        path = self.folder / REQUEST_FILE_NAME.format(request.number)
        session = self.folder / ANSWER_SESSION_NAME.format(request.number)
        return PendingAnswersError(
            f"The secure sum of the answers to {path} is missing; it asks about the residuals of "
            f"{len(request.queries)} regressions. Run fedcdh secure-sum run PLAN {session} --request {path} until the "
            "sum is there, and then this command again. If a client does not answer, name it with --without-answers: "
            "the result then has the answers before."
        )


@dataclass(frozen=True)
class _CompleteSession:
    """A session that is only read: the answers of all rounds have to be there."""

    folder: SessionFolder
    pending: PendingAnswersError

    def announce(self, path: Path) -> None:
        """Do nothing: no request is written."""

    def answers(
        self, kind: type[ReplyT], request: SecAggRequest, clients: Collection[str], check: ReplyCheck
    ) -> dict[str, ReplyT]:
        """Raise PendingAnswersError."""
        raise self.pending
