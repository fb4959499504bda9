"""The file of a sum has unique bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_studies import Room, a_study, groups_of, same

from fedcdh.errors import FedCDHError
from fedcdh.messages.aggregate_file import AggregateMessage, max_aggregate_bytes, pack_aggregate, unpack_aggregate


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
