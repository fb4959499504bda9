"""One round of requests and replies over a transport.

A client whose reply is wrong, late, contradictory or missing is recorded with the reason; the study continues with the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from fedcdh.errors import ExitCode, FedCDHError, MessageFormatError, SignatureError
from fedcdh.federation.journal import StoredFile
from fedcdh.federation.participation import Participation
from fedcdh.messages.envelope import REFUSAL, Envelope, RoundRequest, sha256_hex
from fedcdh.messages.signing import key_fingerprint, verify
from fedcdh.messages.study_file import Study

Reply = TypeVar("Reply")


class Transport(Protocol):
    """A connection that carries bytes to clients and back; a client is known by its address, a text."""

    def addresses(self, expected: int, timeout: float) -> Sequence[str]:
        """Return the addresses of the connected clients.

        Parameters
        ----------
        expected : int
            Return as soon as this many clients are connected.
        timeout : float
            Return after this many seconds at the latest.

        Returns
        -------
        sequence of str
            One address per client.
        """

    def exchange(self, requests: Mapping[str, bytes], timeout: float) -> Iterable[tuple[str, bytes | None]]:
        """Send each client its request and yield the replies as they arrive.

        Parameters
        ----------
        requests : mapping of str to bytes
            The request for each address.
        timeout : float
            Stop after this many seconds.

        Yields
        ------
        tuple of str and bytes
            An address and its reply; None instead of a reply if the network reports that the client failed.
        """


@dataclass(frozen=True)
class StudyConnection:
    """The clients of a planned study, as the coordinator reaches them."""

    transport: Transport
    participation: Participation
    study: Study
    plan: StoredFile  # as it was sent
    addresses: Mapping[str, str]  # by client
    timeout: float
    sign: Callable[[str, bytes], bytes]

    def with_plan(self, request: bytes) -> bytes:
        """Return a request together with the plan it belongs to, because clients keep no plans."""
        return RoundRequest(request, self.plan.content, self.plan.signature).to_bytes()

    def client_at(self, address: str) -> str:
        """Return the name of the client at an address."""
        return self.participation.clients[address]


def collect_replies(
    transport: Transport,
    kind: str,
    requests: Mapping[str, bytes],
    timeout: float,
    accept: Callable[[str, Envelope], Reply],
    participation: Participation,
    *,
    withdraw: Callable[[str], None] = lambda address: None,
    round_: str | None = None,
) -> dict[str, Reply]:
    """Send requests and return the accepted replies by address.

    The same reply twice counts once. Two different replies of one client both count as refused, because nobody can
    tell which of them holds. `accept` reads a reply or raises; `withdraw` undoes the acceptance of a reply that was
    contradicted later. `round_` names the round in the record, if it has another name than the kind of message.
    """
    name = round_ or kind
    for address, request in requests.items():
        participation.add(name, address, "sent", len(request))
    round_state = _Round(name, kind, requests, accept, participation, withdraw)
    for address, reply in transport.exchange(requests, timeout) if requests else ():
        round_state.receive(address, reply)
    for address in requests:
        if address not in round_state.received:
            participation.add(name, address, "missing", 0, "did not answer in time")
    return round_state.accepted


class _Round(Generic[Reply]):
    """The replies of one round so far."""

    def __init__(
        self,
        name: str,
        kind: str,
        requests: Mapping[str, bytes],
        accept: Callable[[str, Envelope], Reply],
        participation: Participation,
        withdraw: Callable[[str], None],
    ) -> None:
        self.name, self.kind = name, kind
        self.accept, self.withdraw, self.participation = accept, withdraw, participation
        self.expected = {address: sha256_hex(request) for address, request in requests.items()}
        self.accepted: dict[str, Reply] = {}
        self.received: dict[str, bytes | None] = {}

    def receive(self, address: str, reply: bytes | None) -> None:
        """Accept, ignore or refuse one reply, and record which."""
        size = len(reply or b"")
        if address not in self.expected:
            self.participation.add(self.name, address, "ignored", size, "was not asked")
        elif address not in self.received:
            self._read(address, reply, size)
        elif reply == self.received[address]:
            self.participation.add(self.name, address, "ignored", size, "answered twice, with the same reply")
        else:
            if self.accepted.pop(address, None) is not None:
                self.withdraw(address)
            reason = "answered twice, with different replies; ask the site which of them holds"
            self.participation.add(self.name, address, "refused", size, reason)

    def _read(self, address: str, reply: bytes | None, size: int) -> None:
        try:
            envelope = _open_reply(reply)
            if envelope.in_reply_to != self.expected[address]:
                self.participation.add(self.name, address, "ignored", size, "late: the reply to another request")
                return
            self.received[address] = reply
            self.accepted[address] = self.accept(address, _check_reply(envelope, self.kind))
            self.participation.add(self.name, address, "accepted", size)
        except OSError:  # a full disk of the coordinator is not the fault of a client
            raise
        except Exception as problem:  # no reply, whatever its content, may stop the coordinator
            self.received[address] = reply
            self.participation.add(self.name, address, "refused", size, _describe_problem(problem))


def check_signature(kind: str, content: bytes, signature: bytes, expected: str | None, client: str) -> None:
    """Check that a message is signed by the expected key, or not signed if no key is expected."""
    signer = verify(kind, content, signature) if signature else None
    if signer != expected:
        found = f"signed by {key_fingerprint(signer)}" if signer else "not signed"
        named = (
            f"a signature by {key_fingerprint(expected)}" if expected else "no signature, as its profile names no key"
        )
        raise SignatureError(f"The {kind} of {client!r} is {found}. Expected {named}. Ask the site.")


def _open_reply(reply: bytes | None) -> Envelope:
    if reply is None:
        raise MessageFormatError("The network reports that the site failed. Expected a reply. See the site's log.")
    return Envelope.from_bytes(reply)


def _check_reply(envelope: Envelope, kind: str) -> Envelope:
    if envelope.kind == REFUSAL:
        meaning = ExitCode(envelope.code).meaning if envelope.code in set(ExitCode) else "unknown here"
        raise MessageFormatError(f"The site refuses with code {envelope.code} ({meaning}). Its own log has the reason.")
    if envelope.kind != kind:
        raise MessageFormatError(
            f"The site answered with a {envelope.kind[:40]!r}. Expected a {kind!r}. Check that both run one version."
        )
    return envelope


def _describe_problem(problem: Exception) -> str:
    return str(problem) if isinstance(problem, FedCDHError) else f"cannot be read ({type(problem).__name__})"
