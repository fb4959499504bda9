"""Of each message of secure aggregation, one content leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedcdh.errors import SecureAggregationError
from fedcdh.privacy.ledger.record import LedgerEntry
from fedcdh.privacy.ledger.round_messages import RoundMessage, check_attempt

FIRST = RoundMessage("north", "p" * 64, "t" * 64, "confirmed", "c" * 64)
OPENED = replace(FIRST, kind="opened")


def entry_of(message: RoundMessage) -> LedgerEntry:
    return LedgerEntry(1, "2026-01-01", message.release)


def test_another_content_in_the_same_round_is_refused():
    with pytest.raises(SecureAggregationError, match="By release 1 of the ledger"):
        replace(FIRST, content="d" * 64).check([entry_of(FIRST)])


@pytest.mark.parametrize("other", [{"client": "south"}, {"terms": "u" * 64}, {"kind": "masked"}])
def test_other_clients_attempts_and_rounds_have_messages_of_their_own(other):
    replace(FIRST, content="d" * 64, **other).check([entry_of(FIRST)])


def test_the_same_message_repeats_its_entry():
    assert FIRST.release.repeats(FIRST.release)
    assert not replace(FIRST, content="d" * 64).release.repeats(FIRST.release)


@pytest.mark.parametrize(
    ("plan", "client", "terms", "request_text", "refused"),
    [
        ("p", "north", "u", "", True),
        ("p", "north", "t", "", False),
        ("q", "north", "u", "", False),
        ("p", "south", "u", "", False),
        ("p", "north", "u", "a request", False),
    ],
)
def test_no_other_attempt_begins_at_a_sum_that_was_unmasked(plan, client, terms, request_text, refused):
    def begin(earlier: RoundMessage) -> None:
        check_attempt([entry_of(earlier)], plan * 64, client, terms * 64, request_text)

    begin(FIRST)
    if refused:
        with pytest.raises(SecureAggregationError, match="already helped to unmask"):
            begin(OPENED)
    else:
        begin(OPENED)
