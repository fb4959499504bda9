"""The file of a sum has unique bytes."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_studies import Room, a_study, groups_of, same

from fedcdh.errors import FedCDHError, PlanMismatchError, SummaryError, SummaryFormatError
from fedcdh.messages.aggregate_file import (
    AggregateMessage,
    is_aggregate,
    max_aggregate_bytes,
    pack_aggregate,
    read_plan_fingerprint,
    unpack_aggregate,
)
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.summaries.aggregation import Aggregate


def test_a_sum_has_one_file(tmp_path):
    room = Room.of(6, groups=groups_of(a_study(6)[0], 2))
    message = AggregateMessage(room.plain(room.cohort.clients), "ab" * 32, 5, ("site1",))
    blob = pack_aggregate(message)
    found = unpack_aggregate(blob, room.study.plan)
    assert pack_aggregate(found) == blob
    assert same(found.aggregate, message.aggregate)
    assert len(blob) <= max_aggregate_bytes(room.study.plan)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_sum_that_was_changed_is_refused(data):
    room = Room.of(3)
    blob = pack_aggregate(AggregateMessage(room.plain(room.cohort.clients), "ab" * 32, 3))
    place = data.draw(st.integers(0, len(blob) - 1))
    changed = blob[:place] + bytes([blob[place] ^ data.draw(st.integers(1, 255))]) + blob[place + 1 :]
    for damaged in (changed, blob[:place], blob + b"\0"):
        with pytest.raises(FedCDHError):
            unpack_aggregate(damaged, room.study.plan)


COHORT = studies.cohort_of(studies.mixed(0, (60, 50, 40)))


PLAN = COHORT.plan


SECURE = AggregateMessage(Aggregate.of(COHORT), "a" * 64, 2, without_disclosure_control=(COHORT.clients[1],))


OPEN = AggregateMessage(Aggregate.of(COHORT), summaries=dict.fromkeys(COHORT.clients, "b" * 64))


def equal_messages(one: AggregateMessage, other: AggregateMessage) -> bool:
    numbers = np.array_equal(one.aggregate.first_moments, other.aggregate.first_moments)
    return numbers and one.aggregate.total == other.aggregate.total and pack_aggregate(one) == pack_aggregate(other)


@pytest.mark.parametrize("message", [SECURE, OPEN], ids=["secure", "open"])
def test_what_is_packed_is_unpacked(message):
    blob = pack_aggregate(message)
    found = unpack_aggregate(blob, PLAN)
    assert equal_messages(found, message)
    assert (found.masked, found.session, found.threshold) == (message.masked, message.session, message.threshold)
    assert found.without_disclosure_control == message.without_disclosure_control
    assert len(blob) <= max_aggregate_bytes(PLAN)
    assert read_plan_fingerprint(blob) == PLAN.fingerprint


def test_a_sum_is_told_from_a_summary():
    assert is_aggregate(pack_aggregate(OPEN))
    assert not is_aggregate(pack_summary(SummaryMessage(COHORT.summaries[0]), PLAN))
    assert not is_aggregate(b"")


def test_every_changed_byte_is_refused():
    blob, rng = pack_aggregate(SECURE), np.random.default_rng(0)
    for place in rng.integers(0, len(blob), 300):
        changed = bytearray(blob)
        changed[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(FedCDHError):
            unpack_aggregate(bytes(changed), PLAN)


@pytest.mark.parametrize("blob", [b"", b"\0" * 40, b"\x08" + b"\0" * 7 + b"{}      ", pack_aggregate(OPEN)[:-1]])
def test_what_is_no_sum_is_refused(blob):
    with pytest.raises(SummaryFormatError, match=r"make it again from what the sites sent|was expected"):
        unpack_aggregate(blob, PLAN)


def test_a_sum_of_another_plan_is_refused():
    other = studies.plan_of(studies.mixed(1, (60, 50, 40)))
    with pytest.raises(PlanMismatchError, match="not this plan"):
        unpack_aggregate(pack_aggregate(SECURE), other)


def test_an_open_sum_names_the_file_of_every_client():
    with pytest.raises(SummaryError, match="names the file of every client"):
        pack_aggregate(AggregateMessage(Aggregate.of(COHORT), summaries={COHORT.clients[0]: "b" * 64}))
