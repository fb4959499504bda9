"""One round: late, repeated, contradictory and foreign replies are recorded, and none stops the coordinator."""

from __future__ import annotations

import pytest

from fedcdh.errors import ExitCode, SignatureError
from fedcdh.federation.exchange import check_signature, collect_replies
from fedcdh.federation.participation import Participation
from fedcdh.messages.envelope import REFUSAL, SUMMARY, Envelope, sha256_hex
from fedcdh.messages.signing import SigningKey, sign

REQUEST = Envelope(SUMMARY, b"plan").to_bytes()


def reply(content: bytes = b"sums", **given) -> bytes:
    return Envelope(SUMMARY, content, **{"in_reply_to": sha256_hex(REQUEST), **given}).to_bytes()


class Replies:
    """A transport whose replies are given."""

    def __init__(self, *replies: tuple[str, bytes | None]) -> None:
        self.replies = replies

    def addresses(self, expected, timeout):
        return ["a", "b"]

    def exchange(self, requests, timeout):
        yield from self.replies


def collect(*replies: tuple[str, bytes | None], accept=lambda address, envelope: envelope.content):
    """Return the accepted replies, the withdrawn addresses and the events of a round with the clients a and b."""
    participation, withdrawn = Participation(), []
    accepted = collect_replies(
        Replies(*replies), SUMMARY, {"a": REQUEST, "b": REQUEST}, 1.0, accept, participation, withdraw=withdrawn.append
    )
    events = [(event.site, event.what) for event in participation.events if event.what != "sent"]
    return accepted, withdrawn, events


def test_a_client_without_a_reply_is_missing():
    accepted, withdrawn, events = collect(("a", reply()))
    assert (accepted, withdrawn) == ({"a": b"sums"}, [])
    assert events == [("a", "accepted"), ("b", "missing")]


def test_the_same_reply_twice_counts_once_and_different_ones_count_for_nothing():
    accepted, withdrawn, events = collect(("a", reply()), ("a", reply()), ("b", reply()), ("b", reply(b"other")))
    assert (accepted, withdrawn) == ({"a": b"sums"}, ["b"])
    assert events == [("a", "accepted"), ("a", "ignored"), ("b", "accepted"), ("b", "refused")]


def test_replies_to_other_requests_and_of_strangers_are_ignored():
    accepted, _, events = collect(("a", reply(in_reply_to=sha256_hex(b"before"))), ("c", reply()), ("a", reply()))
    assert accepted == {"a": b"sums"}
    assert events == [("a", "ignored"), ("c", "ignored"), ("a", "accepted"), ("b", "missing")]


@pytest.mark.parametrize("bad", [None, b"", b"garbled", reply()[:-1]])
def test_a_reply_that_cannot_be_read_is_refused(bad):
    accepted, _, events = collect(("a", bad), ("b", reply()))
    assert accepted == {"b": b"sums"}
    assert events == [("a", "refused"), ("b", "accepted")]


def test_a_refusal_is_recorded_with_the_meaning_of_its_code():
    refusal = Envelope(REFUSAL, in_reply_to=sha256_hex(REQUEST), code=ExitCode.POLICY).to_bytes()
    participation = Participation()
    collect_replies(Replies(("a", refusal)), SUMMARY, {"a": REQUEST}, 1.0, lambda *given: None, participation)
    assert f"code 7 ({ExitCode.POLICY.meaning})" in participation.missing["a"]


def test_an_error_while_accepting_is_the_fault_of_the_reply_unless_the_disk_fails():
    def raise_(error: Exception):
        raise error

    _, _, events = collect(("a", reply()), ("b", reply()), accept=lambda *given: raise_(ValueError("odd")))
    assert events == [("a", "refused"), ("b", "refused")]
    with pytest.raises(OSError, match="full"):
        collect(("a", reply()), accept=lambda *given: raise_(OSError("disk full")))


def test_a_signature_is_required_exactly_if_a_key_is_known():
    key, other = SigningKey.generate(), SigningKey.generate()
    signature = sign(key, "summary", b"sums").encode()
    check_signature("summary", b"sums", signature, key.public, "north")
    check_signature("summary", b"sums", b"", None, "north")
    for given, expected in ((b"", key.public), (signature, None), (signature, other.public)):
        with pytest.raises(SignatureError, match=r"The summary of 'north' is .* Expected .* Ask the site"):
            check_signature("summary", b"sums", given, expected, "north")
