"""Reads the messages of secure aggregation, and refuses any that are not in canonical form.

The plan bounds the length of a message, which is compared before anything is parsed. A message that was read is written
again, and has to give the same bytes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh._io.text import is_digest, is_name
from fedcdh.errors import SecureAggregationError
from fedcdh.messages.round_files import MAX_TEXT_BYTES
from fedcdh.privacy.secure_aggregation.masking import KEY_BYTES, NONCE_BYTES, TAG_BYTES
from fedcdh.privacy.secure_aggregation.messages import (
    FORMAT,
    MAX_ATTEMPTS,
    MAX_CLIENTS,
    ClientNames,
    MaskedVector,
    PublicKeys,
    Roster,
    SealedShares,
    SecAggMessage,
    SecAggTerms,
    ShareDelivery,
    SurvivorList,
)
from fedcdh.privacy.secure_aggregation.secret_sharing import SHARE_BYTES
from fedcdh.summaries.domain_mixtures import MAX_MIXTURES
from fedcdh.summaries.integer_vectors import vector_length
from fedcdh.summaries.joint.request import bytes_per_entry
from fedcdh.summaries.plan import StudyPlan

SIGNATURE_BYTES = 64
SEALED_SHARES_BYTES = NONCE_BYTES + 2 * SHARE_BYTES + TAG_BYTES
"""Number of bytes in which a client sends another its shares of two secrets."""

MessageT = TypeVar("MessageT", bound=SecAggMessage)


def max_message_bytes(plan: StudyPlan, kind: type[SecAggMessage]) -> int:
    """Return the largest number of bytes that a message of this kind can have in this study.

    Parameters
    ----------
    plan : StudyPlan
        The plan of the study.
    kind : type
        Class of the message.

    Returns
    -------
    int
        Number of bytes.
    """
    clients = len(plan.clients)
    name = max(len(to_canonical_json(client).encode()) for client in plan.clients)
    terms = 1000 + clients * (name + 1000)  # names of groups
    each = {
        SecAggTerms: 0,
        PublicKeys: 500,
        Roster: 500,
        SealedShares: 200,
        ShareDelivery: 200 * clients,
        MaskedVector: 0,
        SurvivorList: 0,
    }
    numbers = 8 * _max_words(plan) if kind is MaskedVector else 0
    names = clients * (clients if kind is ShareDelivery else 1) * name
    request = 2 * MAX_TEXT_BYTES if plan.max_rounds and kind in (SecAggTerms, Roster) else 0  # a text in a text
    return terms + request + names + clients * each.get(kind, 300) + numbers


def _max_words(plan: StudyPlan) -> int:
    """Return the length of the longest vector: that of a summary, or as many sums as the plan lets a client answer."""
    sums = plan.max_bytes // bytes_per_entry(1, 1) if plan.max_rounds else 0
    return max(*(vector_length(plan, len(plan.clients), mixtures) for mixtures in (0, MAX_MIXTURES)), 1 + sums)


def read_message(blob: bytes, plan: StudyPlan, *kinds: type[MessageT]) -> MessageT:
    """Read a message of one of these kinds.

    Parameters
    ----------
    blob : bytes
        The bytes of the message.
    plan : StudyPlan
        The plan of the study.
    *kinds : type
        Classes of messages that are expected.

    Returns
    -------
    SecAggMessage
        The message.

    Raises
    ------
    SecureAggregationError
        If the bytes are anything else.
    """
    if len(blob) > max(max_message_bytes(plan, kind) for kind in kinds):
        raise _format_error(f"it has {len(blob)} bytes, more than this plan allows")
    line, _, data = blob.partition(b"\n")
    document = parse_json(line, refuse=_format_error)
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        raise _format_error(f"it does not say that its format is {FORMAT!r}")
    kind = next((one for one in kinds if one.kind == document.get("round")), None)
    if kind is None:
        found, wanted = str(document.get("round"))[:40], " or ".join(one.kind for one in kinds)
        raise _format_error(f"it is of the round {found!r}, expected {wanted}")
    try:
        message = _build_message(kind, document, data)
        same = message.to_bytes() == blob
    except (LookupError, TypeError, AttributeError, ValueError) as problem:
        raise _format_error(f"a field has a wrong value: {repr(problem)[:120]}") from None
    if not same:
        raise _format_error("it was changed on the way, or is not in canonical form")
    return message


def _build_message(kind: type[MessageT], document: Mapping[str, Any], data: bytes) -> MessageT:
    """Build a message from checked fields; writing it again shows whether they were in canonical form."""
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    names -= {name for name in names if (kind.kind, name) in _OPTIONAL_FIELDS and name not in document}
    if set(document) != names | {"round"} or document["round"] != kind.kind:
        raise _format_error(f"expected the fields {', '.join(sorted(names))}")
    found = {
        name: _FIELD_READERS[kind.kind, name](document[name]) for name in names if (kind.kind, name) in _FIELD_READERS
    }
    found |= {name: _FIELD_READERS["", name](document[name]) for name in names - found.keys() if name != "words"}
    if "words" in names:
        if len(data) % 8:
            raise ValueError("the numbers are not of 8 bytes each")
        found["words"] = np.frombuffer(data, dtype="<u8").astype(np.uint64)
    elif data:
        raise ValueError("there are bytes after the line")
    return kind(**found)


def _read_digest(found: Any) -> str:
    if not is_digest(found):
        raise ValueError("not a digest")
    return str(found)


def _read_name(found: Any) -> str:
    if not is_name(found):
        raise ValueError("not a name")
    return str(found)


def _read_text(found: Any) -> str:
    if not isinstance(found, str):
        raise ValueError("not a text")
    return found


def _read_names(found: Any) -> ClientNames:
    if not isinstance(found, list) or found != sorted(set(found)):
        raise ValueError("not a sorted list of names")
    return tuple(map(_read_name, found))


def _bytes_reader(length: int) -> Callable[[Any], bytes]:
    def read_them(found: Any) -> bytes:
        try:
            raw = base64.b64decode(found.encode("ascii"), validate=True)
        except (UnicodeEncodeError, binascii.Error):
            raw = b""
        if len(raw) != length:
            raise ValueError(f"not the base64 of {length} bytes")
        return raw

    return read_them


def _mapping_reader(inner: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    def read_them(found: Any) -> dict[str, Any]:
        if not isinstance(found, dict):
            raise ValueError("not an object")
        return {_read_name(name): inner(one) for name, one in found.items()}

    return read_them


def _integer_reader(most: int) -> Callable[[Any], int]:
    def read_it(found: Any) -> int:
        if type(found) is not int or not 1 <= found <= most:
            raise ValueError("a number out of range")
        return found

    return read_it


def _read_bool(found: Any) -> bool:
    if type(found) is not bool:
        raise ValueError("neither true nor false")
    return found


def _message_reader(kind: type[MessageT]) -> Callable[[Any], MessageT]:
    def read_it(found: Any) -> MessageT:
        document = dict(found)
        if document.pop("format", None) != FORMAT:
            raise ValueError("not a message")
        return _build_message(kind, document, b"")

    return read_it


def _read_public_keys(found: Any) -> tuple[PublicKeys, ...]:
    if not isinstance(found, list):
        raise ValueError("not a list")
    return tuple(map(_message_reader(PublicKeys), found))


_FIELD_READERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("", "client"): _read_name,
    ("", "clients"): _read_names,
    ("", "plan"): _read_digest,
    ("", "study"): _read_digest,
    ("", "session"): _read_digest,
    ("", "terms"): _read_digest,
    ("", "present"): _read_digest,
    ("", "commitment"): _read_digest,
    ("", "signature"): _bytes_reader(SIGNATURE_BYTES),
    ("", "threshold"): _integer_reader(MAX_CLIENTS),
    ("", "attempt"): _integer_reader(MAX_ATTEMPTS),
    ("", "groups"): _mapping_reader(_read_name),
    ("", "request"): _read_text,
    ("", "mixtures"): _integer_reader(MAX_MIXTURES),
    ("", "sealing"): _bytes_reader(KEY_BYTES),
    ("", "masking"): _bytes_reader(KEY_BYTES),
    ("", "sealed"): _mapping_reader(_bytes_reader(SEALED_SHARES_BYTES)),
    ("", "boxes"): _mapping_reader(_mapping_reader(_bytes_reader(SEALED_SHARES_BYTES))),
    ("", "masked_with"): _read_names,
    ("", "disclosure_control"): _read_bool,
    ("", "signatures"): _mapping_reader(_bytes_reader(SIGNATURE_BYTES)),
    ("", "seeds"): _mapping_reader(_bytes_reader(SHARE_BYTES)),
    ("", "keys"): _mapping_reader(_bytes_reader(SHARE_BYTES)),
    ("roster", "terms"): _message_reader(SecAggTerms),
    ("roster", "keys"): _read_public_keys,
    ("confirmations", "present"): _message_reader(SurvivorList),
}
"""Reader of a field, by kind of message and name of the field; the kind is empty for all messages."""
_OPTIONAL_FIELDS = {("terms", "request"), ("terms", "mixtures")}
"""Fields that a message may lack, by kind of message and name of the field."""


def _format_error(reason: str) -> SecureAggregationError:
    return SecureAggregationError(
        f"A message of secure aggregation cannot be read: {reason}. Expected the bytes that fedcdh wrote. Ask for the "
        "file again, and use the same version of fedcdh at all clients"
    )
