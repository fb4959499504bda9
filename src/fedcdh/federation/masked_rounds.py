"""Further rounds after a secure sum: the search requests sums of residuals, and only their total over clients is seen.

Every request has a session of secure aggregation of its own, whose files are in the journal beside the request. A
search that starts again finds complete sessions there, continues one that was interrupted, and requests nothing a
second time. A sum of answers is over all clients of the sum of summaries, because the difference of sums over two sets
of clients would tell the part of single ones. If a client drops out before its masked answer has arrived, the queries
of the request have no answer, and nothing more is requested. All summaries, and the answers before, stay in the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fedcdh.errors import SecureAggregationError, SettingsError, SummaryError
from fedcdh.federation.answering_clients import AnsweringSum
from fedcdh.federation.exchange import StudyConnection
from fedcdh.federation.journal import ROUNDS_FOLDER, Journal, StoredFile
from fedcdh.federation.participation import EventKind
from fedcdh.federation.secure_sum import SecureSumOptions, SecureSumRounds
from fedcdh.messages.envelope import MASKING
from fedcdh.messages.round_files import request_to_json
from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.secure_aggregation.session import (
    ANSWER_SESSION_NAME,
    SessionFolder,
    SummedAnswers,
    run_answer_session,
)
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.joint import JointRequest, JointSummary, select_residuals
from fedcdh.summaries.joint.round_budget import FurtherRequest
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualRequest, ResidualSums

ALL_CLIENTS = "all clients"
"""Stands for the clients of a sum in the answers of a source."""


@dataclass(frozen=True)
class MaskedRounds:
    """A source of answers: the clients of a secure sum, whose answers are added under masks."""

    connection: StudyConnection
    journal: Journal
    aggregate: Aggregate
    options: SecureSumOptions
    key: SigningKey | None = None  # signs requests and terms
    uncontrolled: frozenset[str] = frozenset()  # clients whose summaries were made without disclosure control
    _sums: dict[int, tuple[ResidualSums, ...]] = field(default_factory=dict)  # none for a session that failed

    def ask(self, wanted: JointRequest, /) -> Mapping[str, Sequence[JointSummary]]:
        """Refuse: tests need the joint features of every client."""
        raise joint_features_error(wanted)

    def ask_residuals(self, wanted: ResidualRequest, /) -> Mapping[str, Sequence[ResidualSums]]:
        """Return the sums of the answers of all clients, as one entry; queries of a failed session are left out."""
        requests = self._answering.plan_requests(wanted, self._load_requests())
        return select_residuals(wanted, [{ALL_CLIENTS: self._answers(request)} for request in requests])

    def select_affordable(
        self, queries: Sequence[ResidualQuery], coordinates: Mapping[str, Coordinates], /
    ) -> tuple[ResidualQuery, ...]:
        """Return the queries that all clients may answer, in the order of priority; after a failure, no new ones."""
        requests = self._load_requests()
        found = self._answering.select_affordable(queries, coordinates, requests)
        return select_answered(found, requests, self._sums)

    @cached_property
    def _answering(self) -> AnsweringSum:
        threshold = self.options.terms(self.connection.study).threshold
        return AnsweringSum(self.aggregate, threshold, self.uncontrolled)

    def _load_requests(self) -> tuple[ResidualRequest, ...]:
        found = self.journal.load_requests(self.connection.study.plan)
        return tuple(request for request in found if isinstance(request, ResidualRequest))

    def _answers(self, request: ResidualRequest) -> tuple[ResidualSums, ...]:
        """Return the sums over all clients; none if one of them has left the session."""
        if request.number not in self._sums:
            if self.journal.load_request(request.number) is None:
                content = request_to_json(request).encode()
                file = StoredFile(content, self.connection.sign("request", content))
                self.journal.store_request(request.number, file)
            try:
                self._sums[request.number] = self._run_session(request)
            except (SecureAggregationError, SummaryError) as problem:
                self._record(request, "stored", f"no sum of answers, its summary is in the result: {problem}")
                self._sums[request.number] = ()
        return self._sums[request.number]

    def _run_session(self, request: ResidualRequest) -> tuple[ResidualSums, ...]:
        study, clients = self.connection.study, self.aggregate.total.clients
        path = self.journal.folder / ROUNDS_FOLDER / ANSWER_SESSION_NAME.format(request.number)
        rounds = SecureSumRounds(self.connection, SessionFolder(path, study, self.key), _label(request))
        found = run_answer_session(study, self.options.answer_terms(study, request), rounds, clients)
        check_summed_rows(found, self.aggregate, request)
        self._record(request, "accepted")
        return found.answers

    def _record(self, request: ResidualRequest, what: EventKind, reason: str = "") -> None:
        """Record for all clients whether there is a sum of their answers."""
        for client in self.aggregate.total.clients:
            self.connection.participation.add(_label(request), self.connection.addresses[client], what, 0, reason)


def select_answered(
    queries: Sequence[ResidualQuery],
    requests: Sequence[FurtherRequest],
    sums: Mapping[int, Sequence[ResidualSums]],
) -> tuple[ResidualQuery, ...]:
    """Return the queries that may be asked: all, or those with an answer after a request that got none.

    Parameters
    ----------
    queries : sequence of ResidualQuery
        The affordable queries.
    requests : sequence of JointRequest or ResidualRequest
        All requests so far.
    sums : mapping from int to sequence of ResidualSums
        Sums of answers by number of the request; none for a request without an answer.

    Returns
    -------
    tuple of ResidualQuery
        The queries, in the given order.
    """
    if all(sums.values()):
        return tuple(queries)
    answered = {
        query.question
        for request in requests
        if isinstance(request, ResidualRequest) and sums.get(request.number)
        for query in request.queries
    }
    return tuple(query for query in queries if query.question in answered)


def check_summed_rows(found: SummedAnswers, aggregate: Aggregate, request: ResidualRequest) -> None:
    """Refuse a sum of answers that is not of the rows of the summaries.

    Parameters
    ----------
    found : SummedAnswers
        The sum of answers.
    aggregate : Aggregate
        The sum of summaries.
    request : ResidualRequest
        The request.

    Raises
    ------
    SummaryError
        If there are other rows in the sum of answers.
    """
    rows, expected = found.answers[0].rows, aggregate.total.rows
    if rows != expected:
        raise SummaryError(
            f"the sum of answers to request {request.number} is of {rows} rows; expected the {expected} of the "
            "summaries; a client sent something else than its answer, or its table has changed"
        )


def joint_features_error(wanted: JointRequest) -> SettingsError:
    """Return the error for a request that cannot be answered under masks."""
    return SettingsError(
        f"The search asks about {len(wanted.sets)} sets of variables. After a secure sum, only sums of residuals can "
        "be asked for. Use rounds = 'residuals'."
    )


def _label(request: ResidualRequest) -> str:
    """Return how the rounds of a session are named in the record of participation."""
    return f"{MASKING} {request.number}"
