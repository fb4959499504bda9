"""One round of questions and answers: who answers wrongly, late, twice or not at all is named, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from fedcdh.errors import ExitCode, FedCDHError, MessageFormatError, SignatureError
from fedcdh.federation.participation import Participation
from fedcdh.messages.envelope import REFUSAL, Envelope, sha256_hex
from fedcdh.messages.signing import key_fingerprint, verify

Answer = TypeVar("Answer")


class Transport(Protocol):
    """Whatever carries bytes to sites and back; a site is known by its address there, which is a text."""

    def sites(self, expected: int, timeout: float) -> Sequence[str]:
        """The sites that are there, as soon as they are as many as expected, or when the seconds have passed."""

    def ask(self, requests: Mapping[str, bytes], timeout: float) -> Iterable[tuple[str, bytes | None]]:
        """Sends each site its request; gives what comes back as it comes, for so many seconds at most.

        None stands for a site that the network reports as failed.
        """


def collect_replies(
    transport: Transport,
    kind: str,
    requests: Mapping[str, bytes],
    timeout: float,
    accept: Callable[[str, Envelope], Answer],
    record: Participation,
    *,
    withdraw: Callable[[str], None] = lambda site: None,
    round_: str | None = None,
) -> dict[str, Answer]:
    """The accepted answers by site. `accept` reads one, or raises; `withdraw` forgets one that was contradicted.

    The same answer twice counts once. Two that differ count as none: nobody can tell which of them holds. The record
    calls the round by the kind of its messages, unless there are several of a kind.
    """
    called = round_ or kind
    answers: dict[str, Answer] = {}
    heard: dict[str, bytes | None] = {}
    expected = {site: sha256_hex(request) for site, request in requests.items()}
    for site, request in requests.items():
        record.note(called, site, "sent", len(request))
    for site, reply in transport.ask(requests, timeout) if requests else ():
        size = len(reply or b"")
        if site not in requests:
            record.note(called, site, "ignored", size, "was not asked")
        elif site in heard and reply == heard[site]:
            record.note(called, site, "ignored", size, "answered twice, with the same")
        elif site in heard:
            if answers.pop(site, None) is not None:
                withdraw(site)
            record.note(
                called, site, "refused", size, "answered twice, and not with the same; ask the site which holds"
            )
        else:
            try:
                envelope = _open_reply(reply)
                if envelope.in_reply_to != expected[site]:
                    record.note(called, site, "ignored", size, "late: the answer to another request")
                    continue
                heard[site] = reply
                answers[site] = accept(site, _check_reply(envelope, kind))
                record.note(called, site, "accepted", size)
            except OSError:  # a full disk of ours is not the fault of a site
                raise
            except Exception as problem:  # no reply, however made, brings the server down
                heard[site] = reply
                record.note(called, site, "refused", size, _describe_problem(problem))
    for site in requests:
        if site not in heard:
            record.note(called, site, "missing", 0, "did not answer in time")
    return answers


def check_signature(kind: str, content: bytes, signature: bytes, expected: str | None, client: str) -> None:
    """Whoever has a key has signed with it; a signature by a key that nobody named is none."""
    signer = verify(kind, content, signature) if signature else None
    if signer != expected:
        found = f"signed by {key_fingerprint(signer)}" if signer else "not signed"
        named = f"by {key_fingerprint(expected)}" if expected else "no signature, as its profile names no key"
        raise SignatureError(f"the {kind} of {client!r} is {found}, expected {named}; ask the site")


def _open_reply(reply: bytes | None) -> Envelope:
    if reply is None:
        raise MessageFormatError("the network reports that the site failed; look into the log of the site")
    return Envelope.from_bytes(reply)


def _check_reply(envelope: Envelope, kind: str) -> Envelope:
    if envelope.kind == REFUSAL:
        meaning = ExitCode(envelope.code).meaning if envelope.code in set(ExitCode) else "unknown here"
        raise MessageFormatError(
            f"the site refuses with code {envelope.code} ({meaning}); its log says more, to the site"
        )
    if envelope.kind != kind:
        raise MessageFormatError(f"answered with a {envelope.kind[:40]!r}, expected a {kind!r}")
    return envelope


def _describe_problem(problem: Exception) -> str:
    return str(problem) if isinstance(problem, FedCDHError) else f"cannot be read ({type(problem).__name__})"
