"""Bytes in Flower's messages: one array of bytes under one name, which Flower cuts into chunks by itself.

The bytes are taken as they are: no array is parsed, no shape or type of anybody's is believed.
"""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, Message, RecordDict

RECORD_NAME = "fedcdh"
_UNREACHABLE_CODES = (3, 4, 5)  # flwr's ErrorCode: message unavailable, reply unavailable, node unavailable


def to_record(content: bytes) -> RecordDict:
    """The content of a message."""
    return RecordDict({RECORD_NAME: ArrayRecord({RECORD_NAME: Array("uint8", (len(content),), RECORD_NAME, content)})})


def is_unreachable(reply: Message) -> bool:
    """Whether Flower reports that it did not reach the node, rather than that the app there failed."""
    return reply.has_error() and reply.error.code in _UNREACHABLE_CODES


def read_payload(message: Message) -> bytes | None:
    """What a message carries: None if Flower reports an error, no bytes at all if it carries something else."""
    if message.has_error():
        return None
    try:
        data = message.content[RECORD_NAME][RECORD_NAME].data
    except (KeyError, TypeError, AttributeError):
        return b""
    return data if isinstance(data, bytes) else b""
