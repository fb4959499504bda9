"""Bytes in Flower's messages arrive unchanged."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr")


from flwr.app import ConfigRecord, Message, RecordDict

from fedcdh.federation.flower.payload import read_payload, to_record


def test_bytes_arrive_unchanged():
    for content in (b"", b"\0\n\xff", bytes(range(256)) * 40_000):
        assert read_payload(Message(to_record(content), dst_node_id=1, message_type="query")) == content


def test_another_content_is_no_bytes():
    other = RecordDict({"settings": ConfigRecord({"a": 1})})
    assert read_payload(Message(other, dst_node_id=1, message_type="query")) == b""
