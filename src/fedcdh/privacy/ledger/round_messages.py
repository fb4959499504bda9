"""Messages of secure aggregation, of which no second one may leave.

The state of a client between rounds is a file, which may be set back, for instance by a backup. The ledger is another
file, in another folder. It records which vector was masked, which list of survivors was signed, and which shares were
revealed, before these leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedcdh.errors import SecureAggregationError
from fedcdh.privacy.ledger._release_content import hash_document
from fedcdh.privacy.ledger.record import MIXTURES_KEY, LedgerEntry, Release


@dataclass(frozen=True)
class RoundMessage:
    """A message of a client in one round of secure aggregation, of which no second one may leave.

    Parameters
    ----------
    client : str
        Name of the client.
    plan : str
        Fingerprint of the plan.
    terms : str
        Digest of the terms, which name the attempt.
    kind : str
        What the client sends in this round.
    content : str
        SHA-256 of the message.
    request : str, default ""
        Text of the request whose answers are added; empty where summaries are.
    mixtures : int, default 0
        Number of mixtures of the clients that the sum opens in the place of each client's own sums of features.

    Examples
    --------
    >>> RoundMessage("north", "a" * 64, "b" * 64, "confirmed", "c" * 64).release.kind
    'round'
    """

    client: str
    plan: str
    terms: str
    kind: str
    content: str
    request: str = ""
    mixtures: int = 0

    @property
    def release(self) -> Release:
        """The message as an entry of the ledger."""
        details = {
            "terms": self.terms,
            "message": self.kind,
            "content": self.content,
            "sum": hash_document(self.request),
            **({MIXTURES_KEY: self.mixtures} if self.mixtures else {}),
        }
        digest = hash_document([self.client, details])
        return Release("round", self.client, self.plan, digest, 0, 0, details=details)

    def check(self, earlier: Sequence[LedgerEntry]) -> None:
        """Refuse this message if another one left in its place.

        Parameters
        ----------
        earlier : sequence of LedgerEntry
            Active entries of the ledger.

        Raises
        ------
        SecureAggregationError
            If there is such an entry.
        """
        for entry in earlier:
            release = entry.release
            place = release.client, release.details.get("terms"), release.details.get("message")
            if release.kind == "round" and place == (self.client, self.terms, self.kind):
                raise SecureAggregationError(
                    f"By release {entry.number} of the ledger this client has sent another message of this round "
                    f"({self.kind!r}). Expected the same message: from two of them, masks can be taken off. The state "
                    "of this client was set back, for instance by a backup, or its rows or the request have changed. "
                    "Restore the latest state; if it is lost, do not go on, and ask for another attempt"
                )


def check_attempt(entries: Sequence[LedgerEntry], plan: str, client: str, terms: str, request: str) -> None:
    """Refuse to begin another attempt at a sum that this client has helped to unmask.

    Parameters
    ----------
    entries : sequence of LedgerEntry
        Entries of the ledger.
    plan : str
        Fingerprint of the plan.
    client : str
        Name of the client.
    terms : str
        Digest of the terms of this attempt.
    request : str
        Text of the request whose answers are added; empty where summaries are.

    Raises
    ------
    SecureAggregationError
        If the ledger has shares of this client in another attempt at the same sum.

    Examples
    --------
    >>> check_attempt([], "a" * 64, "north", "b" * 64, "")  # nothing left before
    """
    place = "round", client, plan
    for entry in entries:
        release, details = entry.release, entry.release.details
        if (release.kind, release.client, release.plan) != place or details["message"] != "opened":
            continue
        if details["sum"] == hash_document(request) and details["terms"] != terms:
            raise SecureAggregationError(
                f"By release {entry.number} of the ledger this client has already helped to unmask this sum. "
                "Expected one sum per plan and request: the sums over two sets of clients differ by single "
                "clients. The state of this client was set back, for instance by a backup. If there has to be "
                "another sum, make a new plan, after asking the person responsible for data protection"
            )
