"""The state of a client between its answers, in a file that only its owner may read.

The file is written before an answer leaves. During a session it holds private keys and the shares of others. When the
client has revealed its shares, the file holds none of them, but stays, so that nothing is revealed twice.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcdh._io.storage import hold_lock, read_regular_file, write_atomically
from fedcdh._io.strict_json import parse_json
from fedcdh._io.text import to_readable_json
from fedcdh.errors import SecureAggregationError
from fedcdh.messages.signing import is_private_file
from fedcdh.messages.study_file import Study
from fedcdh.privacy.ledger.gate import ReleaseGate
from fedcdh.privacy.ledger.round_messages import RoundMessage
from fedcdh.privacy.secure_aggregation.client import ClientSecrets, SecAggClient, SecAggMember, SummaryProvider
from fedcdh.privacy.secure_aggregation.codec import max_message_bytes, read_message
from fedcdh.privacy.secure_aggregation.messages import (
    MaskedVector,
    PublicKeys,
    Roster,
    SealedShares,
    SecAggReply,
    SecAggRequest,
    SecAggTerms,
    SurvivorConfirmation,
    SurvivorList,
    UnmaskingShares,
    hash_study,
)

FORMAT = "fedcdh-masking-state-2"
_MESSAGES = {
    "terms": SecAggTerms,
    "keys": PublicKeys,
    "roster": Roster,
    "shares": SealedShares,
    "present": SurvivorList,
    "opened": UnmaskingShares,
}
_SECRETS = ("sealing", "masking", "seed")


@dataclass(frozen=True)
class ClientStateFile:
    """The state of one client in one session of a study, as a file.

    Parameters
    ----------
    path : Path
        Where the file is, or will be.

    Examples
    --------
    >>> ClientStateFile(Path("north.masking-state.json")).path.exists()
    False
    """

    path: Path

    def answer(
        self,
        client: SecAggClient,
        request: SecAggRequest,
        provide: SummaryProvider,
        gate: ReleaseGate | None = None,
    ) -> SecAggReply:
        """Answer a request, and write the state before the answer leaves.

        The ledger records which vector was masked and which list of survivors was signed, so that a state that was set
        back does not lead to a second one.

        Parameters
        ----------
        client : SecAggClient
            The client.
        request : SecAggRequest
            The request of the server.
        provide : callable
            Returns the summary, and whether disclosure control was on.
        gate : ReleaseGate, optional
            The gate of the client. Default: nothing notices a state that was set back.

        Returns
        -------
        SecAggReply
            The answer.

        Raises
        ------
        SecureAggregationError
            If the file cannot be used, or the request does not follow the protocol.
        """
        with hold_lock(self.path.with_name(f"{self.path.name}.lock")):
            before = self.read(client.study, client.client)
            after, reply = client.answer(request, before, provide)
            message = _describe_message(after, reply) if gate is not None else None
            if gate is not None and message is not None:
                gate.check_round(message)  # before the state is replaced
            if after != before:
                write_atomically(self.path, write_state(after), private=True)
            if gate is not None and message is not None:
                gate.record_round(message)
            return reply

    def read(self, study: Study, client: str) -> SecAggMember | None:
        """Return the state; None if there is no file.

        Parameters
        ----------
        study : Study
            The plan file.
        client : str
            Name of the client.

        Returns
        -------
        SecAggMember or None
            The state.

        Raises
        ------
        SecureAggregationError
            If the file cannot be used.
        """
        if not self.path.exists():
            return None
        kinds = (*_MESSAGES.values(), MaskedVector)
        limit = 1000 * len(study.plan.clients) + 2 * sum(max_message_bytes(study.plan, kind) for kind in kinds)
        content = read_regular_file(self.path, limit, "the state of secure aggregation", refuse=SecureAggregationError)
        if not is_private_file(self.path):
            raise self._refuse(
                f"others may read it. Expected a file that only its owner may read: it holds secrets. Run chmod 600 "
                f"{self.path}"
            )
        state = read_state(content, study, self._refuse)
        if state.client != client or state.terms.study != hash_study(study):
            raise self._refuse(
                f"it is of another study or another client. Expected {client} in this study. Name another file with "
                "--state"
            )
        return state

    def _refuse(self, reason: str) -> SecureAggregationError:
        return SecureAggregationError(f"The file {self.path} cannot be used: {reason}")


def _describe_message(state: SecAggMember, reply: SecAggReply) -> RoundMessage | None:
    """Return what the ledger keeps of a reply; None if a second one would disclose nothing."""
    if not isinstance(reply, MaskedVector | SurvivorConfirmation | UnmaskingShares):
        return None
    terms, content = state.terms, hashlib.sha256(reply.to_bytes()).hexdigest()
    return RoundMessage(state.client, terms.plan, terms.digest, reply.kind, content, terms.request, terms.mixtures)


def write_state(state: SecAggMember) -> str:
    """Return the text of a state."""
    messages = {name: getattr(state, name) for name in _MESSAGES}
    return to_readable_json(
        {
            "format": FORMAT,
            **{name: one and one.to_bytes().decode() for name, one in messages.items()},
            "secrets": _secrets_to_json(state.secrets),
            "masked": state.masked and _to_base64(state.masked.to_bytes()),
        }
    )


def read_state(content: bytes, study: Study, refuse: Any = SecureAggregationError) -> SecAggMember:
    """Read a state that `write_state` wrote; raise what `refuse` returns for anything else."""
    found = parse_json(content, refuse=refuse)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise refuse(f"it does not say that its format is {FORMAT!r}. Name another file with --state")
    try:
        messages: dict[str, Any] = {
            name: None if found[name] is None else read_message(found[name].encode(), study.plan, kind)
            for name, kind in _MESSAGES.items()
        }
        numbers = found["masked"] and base64.b64decode(found["masked"])
        masked = None if numbers is None else read_message(numbers, study.plan, MaskedVector)
        state = SecAggMember(**messages, secrets=_secrets_from_json(found["secrets"]), masked=masked)
        same = write_state(state).encode() == content
    except (LookupError, TypeError, AttributeError, ValueError):
        same = False
    if not same:
        raise refuse(
            "it was changed. Expected what this program wrote. Restore it; if it is lost, begin another attempt"
        )
    return state


def _secrets_to_json(secrets: ClientSecrets | None) -> dict[str, Any] | None:
    if secrets is None:
        return None
    held = {client: _to_base64(part) for client, part in secrets.held.items()}
    return {**{name: _to_base64(getattr(secrets, name)) for name in _SECRETS}, "held": held}


def _secrets_from_json(found: Any) -> ClientSecrets | None:
    if found is None:
        return None
    held = {client: base64.b64decode(part) for client, part in found["held"].items()}
    return ClientSecrets(**{name: base64.b64decode(found[name]) for name in _SECRETS}, held=held)


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
