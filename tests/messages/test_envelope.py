"""Envelopes: what was changed on the way is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.errors import MessageFormatError
from fedcdh.messages.envelope import SUMMARY, Envelope


@given(st.binary(max_size=300), st.binary(max_size=50), st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_envelope_is_refused(content, signature, place, change):
    envelope = Envelope(SUMMARY, content, signature, "ab")
    blob = envelope.to_bytes()
    assert Envelope.from_bytes(blob) == envelope
    place %= len(blob)
    with pytest.raises(MessageFormatError):
        Envelope.from_bytes(blob[:place] + bytes([blob[place] ^ change]) + blob[place + 1 :])
    with pytest.raises(MessageFormatError):
        Envelope.from_bytes(blob + b"\0")
