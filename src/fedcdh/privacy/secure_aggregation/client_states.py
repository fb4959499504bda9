"""The states of a client in all sessions of one study: that of the summaries, and one for each request.

The file of a request has the number of the request in its name. A client answers a question in one request only: the
sums about the same question over two sets of clients would differ by single clients.
"""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path

from fedcdh.errors import SecureAggregationError
from fedcdh.messages.study_file import Study
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.round_messages import check_attempt
from fedcdh.privacy.secure_aggregation.client_state import ClientStateFile
from fedcdh.privacy.secure_aggregation.messages import ConfirmedSurvivors, Roster, SecAggRequest, SecAggTerms
from fedcdh.summaries.residuals import ResidualRequest


@dataclass(frozen=True)
class ClientStates:
    """The states of one client in one study, as files beside one another.

    Parameters
    ----------
    path : Path
        File of the state in the sum of summaries.

    Examples
    --------
    >>> ClientStates(Path("masking-state-north.json")).of_request(2).path.name
    'masking-state-north.request-002.json'
    """

    path: Path

    @property
    def of_summaries(self) -> ClientStateFile:
        """The state in the sum of summaries."""
        return ClientStateFile(self.path)

    def of_request(self, number: int) -> ClientStateFile:
        """Return the state in the sum of answers to a request.

        Parameters
        ----------
        number : int
            Number of the request.

        Returns
        -------
        ClientStateFile
            The state.
        """
        return ClientStateFile(self.path.with_name(f"{self.path.stem}.request-{number:03d}{self.path.suffix}"))

    def find(self, study: Study, client: str, request: SecAggRequest) -> ClientStateFile:
        """Return the state in the session that a request of the server belongs to.

        Parameters
        ----------
        study : Study
            The plan file.
        client : str
            Name of the client.
        request : SecAggRequest
            Terms, roster, delivery, list of survivors, or confirmations.

        Returns
        -------
        ClientStateFile
            The state; that of the summaries if the session is not known.
        """
        if isinstance(request, SecAggTerms | Roster):
            terms = request if isinstance(request, SecAggTerms) else request.terms
            return self.of_summaries if terms.residuals is None else self.of_request(terms.residuals.number)
        session = request.present.session if isinstance(request, ConfirmedSurvivors) else request.session
        for file in (self.of_summaries, *self._of_requests()):
            state = file.read(study, client)
            if state is not None and state.session == session:
                return file
        return self.of_summaries

    def check_terms(self, study: Study, client: str, terms: SecAggTerms, gate: ReleaseGate | None) -> None:
        """Refuse terms of a session whose state is lost, or whose request has a question of an earlier request.

        Parameters
        ----------
        study : Study
            The plan file.
        client : str
            Name of the client.
        terms : SecAggTerms
            The terms.
        gate : ReleaseGate or None
            The gate of the client, whose ledger knows what the client has masked.

        Raises
        ------
        SecureAggregationError
            If the terms do not fit the study, or the client must not begin this session.
        """
        terms.check(study)
        if gate is not None:
            gate.check_secure_sum_state(study.plan, client, self.find(study, client, terms).path, terms.residuals)
            check_attempt(gate.ledger.entries(), study.plan.fingerprint, client, terms.digest, terms.request)
        if terms.residuals is not None:
            self._check_new_questions(study, client, terms.residuals)

    def _check_new_questions(self, study: Study, client: str, request: ResidualRequest) -> None:
        asked = {query.question for query in request.queries}
        for file in self._of_requests():
            state = file.read(study, client)
            earlier = None if state is None else state.terms.residuals
            if earlier is None or earlier.number == request.number:
                continue
            if not asked.isdisjoint(query.question for query in earlier.queries):
                raise SecureAggregationError(
                    f"Request {request.number} has a question of request {earlier.number}. Expected new ones: the sums "
                    "about one question over two sets of clients differ by single clients. Do not go on, and ask the "
                    "coordinator"
                )

    def _of_requests(self) -> list[ClientStateFile]:
        pattern = f"{glob.escape(self.path.stem)}.request-*{glob.escape(self.path.suffix)}"
        return [ClientStateFile(path) for path in sorted(self.path.parent.glob(pattern))]
