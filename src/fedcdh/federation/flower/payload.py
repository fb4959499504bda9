"""Bytes in Flower's messages: one array of bytes under one name, which Flower splits into chunks by itself.

The bytes are used unparsed: no shape or type that a message declares is relied on.
"""

from __future__ import annotations

from fedcdh._runtime.optional_imports import optional_import

with optional_import("Flower", extra="flower"):
    from flwr.app import Array, ArrayRecord, Message, RecordDict


RECORD_NAME = "fedcdh"
# flwr's ErrorCode: message unavailable, reply unavailable, node unavailable, app no longer responding
_TRANSIENT_CODES = (3, 4, 5, 8)


def to_record(content: bytes) -> RecordDict:
    """Return the content of a message that carries bytes."""
    return RecordDict({RECORD_NAME: ArrayRecord({RECORD_NAME: Array("uint8", (len(content),), RECORD_NAME, content)})})


def is_transient(reply: Message) -> bool:
    """Return whether the node was unreachable or its app stopped responding, as opposed to an app that failed."""
    return reply.has_error() and reply.error.code in _TRANSIENT_CODES


def read_payload(message: Message) -> bytes | None:
    """Return the bytes of a message; None if Flower reports an error, no bytes if it carries something else."""
    if message.has_error():
        return None
    try:
        data = message.content[RECORD_NAME][RECORD_NAME].data
    except (KeyError, TypeError, AttributeError):
        return b""
    return data if isinstance(data, bytes) else b""
