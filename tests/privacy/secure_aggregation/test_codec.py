"""Messages have unique bytes; anything else is refused."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_studies import a_study
from secure_sum_studies import Course, said

from fedcdh._io.strict_json import to_canonical_json
from fedcdh.errors import FedCDHError, SecureAggregationError
from fedcdh.privacy.secure_aggregation import codec
from fedcdh.privacy.secure_aggregation.messages import (
    MaskedVector,
    PublicKeys,
    Roster,
    SealedShares,
    SecAggTerms,
    ShareDelivery,
    UnmaskingShares,
)
from fedcdh.summaries.plan import StudyPlan


def test_every_message_has_one_way_to_be_written():
    course = Course.until("opened")
    for message in said(course):
        blob = message.to_bytes()
        found = codec.read_message(blob, course.room.study.plan, type(message))
        assert found.to_bytes() == blob
        assert len(blob) <= codec.max_message_bytes(course.room.study.plan, type(message))
        others = [
            kind
            for kind in (SecAggTerms, PublicKeys, Roster, SealedShares, ShareDelivery, MaskedVector, UnmaskingShares)
            if kind is not type(message)
        ]
        with pytest.raises(SecureAggregationError):
            codec.read_message(blob, course.room.study.plan, *others[:3])
        for changed in (blob[:-1], blob + b" ", blob[:1] + b" " + blob[1:], b"", b"\n", blob.replace(b'"', b"", 1)):
            with pytest.raises(SecureAggregationError):
                codec.read_message(changed, course.room.study.plan, type(message))


def test_changed_bytes_are_refused_or_no_longer_signed():
    """Whatever byte of whatever answer is changed: it does not parse, or its signature is false."""
    course = Course.until("opened")
    rng = np.random.default_rng(0)
    for message in said(course)[5:]:
        blob = message.to_bytes()
        for place in rng.integers(0, len(blob), 60):
            changed = blob[:place] + bytes([blob[place] ^ int(rng.integers(1, 256))]) + blob[place + 1 :]
            with pytest.raises(FedCDHError):
                codec.read_message(changed, course.room.study.plan, type(message)).check_signature(course.room.study)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@lru_cache
def requests_said() -> tuple[StudyPlan, tuple[Any, ...]]:
    course = Course.until("opened")
    return course.room.study.plan, (course.roster.terms, course.roster, course.delivery, course.confirmations)


@settings(max_examples=150, deadline=None)
@given(st.data(), ANYTHING)
def test_whatever_stands_in_a_field_is_taken_as_it_was_written_or_refused(data, value):
    plan, said = requests_said()
    message = data.draw(st.sampled_from(said))
    field = data.draw(st.sampled_from(sorted(message.document())))
    blob = to_canonical_json({**message.document(), field: value}).encode()
    with contextlib.suppress(SecureAggregationError):
        assert codec.read_message(blob, plan, type(message)).to_bytes() == blob


def test_a_long_message_is_refused_before_it_is_parsed():
    plan = a_study(3)[0].plan
    with pytest.raises(SecureAggregationError, match="more than this plan allows"):
        codec.read_message(b"[" * (codec.max_message_bytes(plan, SecAggTerms) + 1), plan, SecAggTerms)
