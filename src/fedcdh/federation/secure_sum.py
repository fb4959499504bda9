"""Secure aggregation in a federated study: its rounds as messages to the clients.

The files are those of a secure sum by file (`fedcdh secure-sum`), in a folder of the journal. A coordinator that is
started again continues from them and asks only the clients whose replies are missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcdh._io.storage import write_atomically
from fedcdh.errors import MessageFormatError
from fedcdh.federation.exchange import StudyConnection, collect_replies
from fedcdh.federation.journal import safe_file_name
from fedcdh.messages.envelope import MASKING, Envelope
from fedcdh.messages.study_file import Study
from fedcdh.privacy.secure_aggregation.codec import read_message
from fedcdh.privacy.secure_aggregation.messages import SecAggRequest, SecAggTerms, ShareDelivery
from fedcdh.privacy.secure_aggregation.session import ReplyCheck, ReplyT, SessionFolder
from fedcdh.summaries.residuals import ResidualRequest


@dataclass(frozen=True)
class SecureSumOptions:
    """The options with which summaries, and answers about residuals, are added by secure aggregation.

    Parameters
    ----------
    threshold : int, optional
        Number of clients that must cooperate to reveal the sum. By default more than two thirds.
    groups : mapping of str
        Group of every client, for a sum per group. By default each client is a group of its own. Answers have no
        groups.
    attempt : int
        Number of the attempt to add the summaries; raise it after an attempt that failed.
    mixtures : int
        Number of mixtures of the clients' first moments that are revealed in the place of each client's own. Only
        "paper" finds changes from them. By default there are none.

    Examples
    --------
    >>> SecureSumOptions(threshold=5).attempt
    1
    """

    threshold: int | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    attempt: int = 1
    mixtures: int = 0

    def terms(self, study: Study) -> SecAggTerms:
        """Return the terms that the clients of a study agree to.

        Parameters
        ----------
        study : Study
            The planned study.

        Returns
        -------
        SecAggTerms
            Threshold, groups and attempt.
        """
        groups = {client: group for client, group in self.groups.items() if client in study.plan.clients}
        return SecAggTerms.of(
            study, threshold=self.threshold, groups=groups, attempt=self.attempt, mixtures=self.mixtures
        )

    def answer_terms(self, study: Study, request: ResidualRequest) -> SecAggTerms:
        """Return the terms of a sum of answers to a request, after the sum of summaries.

        Parameters
        ----------
        study : Study
            The planned study.
        request : ResidualRequest
            The request.

        Returns
        -------
        SecAggTerms
            The same threshold; no groups, since the answers of all clients are one sum.
        """
        return SecAggTerms.of(study, threshold=self.threshold, request=request)


@dataclass(frozen=True)
class SecureSumRounds:
    """The rounds of a secure sum over a transport; a client that misses a round is not asked in the next."""

    connection: StudyConnection
    folder: SessionFolder
    label: str = MASKING  # begins the names of the rounds in the record of participation

    def announce(self, path: Path) -> None:
        """Do nothing: the request is sent at once."""

    def answers(
        self, kind: type[ReplyT], request: SecAggRequest, clients: Collection[str], check: ReplyCheck
    ) -> dict[str, ReplyT]:
        """Return the stored replies and those of the clients that are asked now."""
        link = self.connection
        name = f"{self.label} {request.kind}"
        found = {client: one for client, one in self.folder.replies(kind, check).items() if client in clients}
        for client in found:
            link.participation.add(name, link.addresses[client], "stored")

        def accept(address: str, reply: Envelope) -> ReplyT:
            answer = read_message(reply.content, link.study.plan, kind)
            if answer.client != link.client_at(address):
                raise MessageFormatError(
                    f"The site of {link.client_at(address)!r} answered as {answer.client!r}. Ask the site."
                )
            check(answer)
            write_atomically(self._path(answer.client, kind), reply.content)
            return answer

        def withdraw(address: str) -> None:
            self._path(link.client_at(address), kind).unlink(missing_ok=True)

        lacking = [client for client in clients if client not in found and client in link.addresses]
        requests = {link.addresses[client]: self._envelope(request, client) for client in lacking}
        replies = collect_replies(
            link.transport, MASKING, requests, link.timeout, accept, link.participation, withdraw=withdraw, round_=name
        )
        return found | {link.client_at(address): answer for address, answer in replies.items()}

    def _envelope(self, request: SecAggRequest, client: str) -> bytes:
        """Return the request for one client, with the shares that are meant for it and no others."""
        own: Any = request.part_for(client) if isinstance(request, ShareDelivery) else request
        content = self.connection.with_plan(own.to_bytes())
        return Envelope(MASKING, content, self.connection.sign(MASKING, own.to_bytes())).to_bytes()

    def _path(self, client: str, kind: type[Any]) -> Path:
        return self.folder.folder / f"{safe_file_name(client)}.{kind.kind}"
