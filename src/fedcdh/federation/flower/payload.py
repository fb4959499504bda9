"""Bytes in Flower's messages: one array of bytes under one name, which Flower splits into chunks by itself.

The bytes are used unparsed: no shape or type that a message declares is relied on.
"""

from __future__ import annotations

from fedcdh._runtime.optional_imports import optional_import

with optional_import("Flower", extra="flower"):
    from flwr.app import Array, ArrayRecord, Message, RecordDict


RECORD_NAME = "fedcdh"
_UNREACHABLE_CODES = (3, 4, 5)  # flwr's ErrorCode: message unavailable, reply unavailable, node unavailable


def to_record(content: bytes) -> RecordDict:
    """Return the content of a message that carries bytes."""
    return RecordDict({RECORD_NAME: ArrayRecord({RECORD_NAME: Array("uint8", (len(content),), RECORD_NAME, content)})})


def is_unreachable(reply: Message) -> bool:
    """Return whether Flower did not reach the node, as opposed to an app that failed there."""
    return reply.has_error() and reply.error.code in _UNREACHABLE_CODES


def read_payload(message: Message) -> bytes | None:
    """Return the bytes of a message; None if Flower reports an error, no bytes if it carries something else."""
    if message.has_error():
        return None
    try:
        data = message.content[RECORD_NAME][RECORD_NAME].data
    except (KeyError, TypeError, AttributeError):
        return b""
    return data if isinstance(data, bytes) else b""
