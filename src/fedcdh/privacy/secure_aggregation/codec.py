"""Reading the messages of a masked sum: what is not written in the one way it can be is refused.

Lengths are bounded by the plan and compared before anything is parsed; a message that was read is written again, and
has to give the same bytes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from fedcdh._io.strict_json import canonical, parse
from fedcdh._io.text import is_digest, is_name
from fedcdh.errors import MaskingError
from fedcdh.privacy.secure_aggregation.masking import KEY, NONCE, TAG
from fedcdh.privacy.secure_aggregation.messages import (
    ATTEMPTS_AT_MOST,
    FORMAT,
    SITES_AT_MOST,
    Delivery,
    Keys,
    Masked,
    Message,
    Names,
    Present,
    Roster,
    Shares,
    Terms,
)
from fedcdh.privacy.secure_aggregation.secret_sharing import SHARE
from fedcdh.summaries.integer_vectors import words_of
from fedcdh.summaries.plan import StudyPlan

SIGNATURE = 64
SEALED = NONCE + 2 * SHARE + TAG
"""Bytes in which a site sends another its shares of two secrets."""

Some = TypeVar("Some", bound=Message)


def bytes_at_most(plan: StudyPlan, kind: type[Message]) -> int:
    """No message of this kind is longer in this study: what to read at most before looking at any of it."""
    sites = len(plan.clients)
    name = max(len(canonical(client).encode()) for client in plan.clients)
    terms = 1000 + sites * (name + 1000)  # names of groups
    each = {Terms: 0, Keys: 500, Roster: 500, Shares: 200, Delivery: 200 * sites, Masked: 0, Present: 0}
    numbers = 8 * words_of(plan, sites) if kind is Masked else 0
    return terms + sites * (sites if kind is Delivery else 1) * name + sites * each.get(kind, 300) + numbers


def read(blob: bytes, plan: StudyPlan, *kinds: type[Some]) -> Some:
    """The message in these bytes, if it is of one of these kinds; MaskingError for anything else."""
    if len(blob) > max(bytes_at_most(plan, kind) for kind in kinds):
        raise _refused(f"it has {len(blob)} bytes, which are too many for this plan")
    line, _, data = blob.partition(b"\n")
    document = parse(line, refuse=_refused)
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        raise _refused(f"it does not say that its format is {FORMAT!r}")
    kind = next((one for one in kinds if one.kind == document.get("round")), None)
    if kind is None:
        found, wanted = str(document.get("round"))[:40], " or ".join(one.kind for one in kinds)
        raise _refused(f"it is {found!r} of the rounds, expected {wanted}")
    try:
        message = _built(kind, document, data)
        same = message.to_bytes() == blob
    except (LookupError, TypeError, AttributeError, ValueError) as problem:
        raise _refused(f"a field is not what belongs there: {repr(problem)[:120]}") from None
    if not same:
        raise _refused("it was changed on the way, or is not written in the one way it can be")
    return message


def _built(kind: type[Some], document: Mapping[str, Any], data: bytes) -> Some:
    """From checked fields; whether they were written in the one way is seen when they are written again."""
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    if set(document) != names | {"round"} or document["round"] != kind.kind:
        raise _refused(f"expected the fields {', '.join(sorted(names))}")
    found = {name: _FIELDS[kind.kind, name](document[name]) for name in names if (kind.kind, name) in _FIELDS}
    found |= {name: _FIELDS["", name](document[name]) for name in names - found.keys() if name != "words"}
    if "words" in names:
        if len(data) % 8:
            raise ValueError("the numbers are not whole")
        found["words"] = np.frombuffer(data, dtype="<u8").astype(np.uint64)
    elif data:
        raise ValueError("something stands behind the line")
    return kind(**found)


def _digest(found: Any) -> str:
    if not is_digest(found):
        raise ValueError("no digest")
    return str(found)


def _name(found: Any) -> str:
    if not is_name(found):
        raise ValueError("no name")
    return str(found)


def _names(found: Any) -> Names:
    if not isinstance(found, list) or found != sorted(set(found)):
        raise ValueError("no sorted list of names")
    return tuple(map(_name, found))


def _bytes(length: int) -> Callable[[Any], bytes]:
    def read_them(found: Any) -> bytes:
        try:
            raw = base64.b64decode(found.encode("ascii"), validate=True)
        except (UnicodeEncodeError, binascii.Error):
            raw = b""
        if len(raw) != length:
            raise ValueError(f"not the base64 of {length} bytes")
        return raw

    return read_them


def _by_name(inner: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    def read_them(found: Any) -> dict[str, Any]:
        if not isinstance(found, dict):
            raise ValueError("no object")
        return {_name(name): inner(one) for name, one in found.items()}

    return read_them


def _whole(most: int) -> Callable[[Any], int]:
    def read_it(found: Any) -> int:
        if type(found) is not int or not 1 <= found <= most:
            raise ValueError("no such number")
        return found

    return read_it


def _truth(found: Any) -> bool:
    if type(found) is not bool:
        raise ValueError("neither true nor false")
    return found


def _message(kind: type[Some]) -> Callable[[Any], Some]:
    def read_it(found: Any) -> Some:
        document = dict(found)
        if document.pop("format", None) != FORMAT:
            raise ValueError("no message")
        return _built(kind, document, b"")

    return read_it


def _all_keys(found: Any) -> tuple[Keys, ...]:
    if not isinstance(found, list):
        raise ValueError("no list")
    return tuple(map(_message(Keys), found))


_FIELDS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("", "client"): _name,
    ("", "clients"): _names,
    ("", "plan"): _digest,
    ("", "study"): _digest,
    ("", "session"): _digest,
    ("", "terms"): _digest,
    ("", "present"): _digest,
    ("", "commitment"): _digest,
    ("", "signature"): _bytes(SIGNATURE),
    ("", "threshold"): _whole(SITES_AT_MOST),
    ("", "attempt"): _whole(ATTEMPTS_AT_MOST),
    ("", "groups"): _by_name(_name),
    ("", "sealing"): _bytes(KEY),
    ("", "masking"): _bytes(KEY),
    ("", "sealed"): _by_name(_bytes(SEALED)),
    ("", "boxes"): _by_name(_by_name(_bytes(SEALED))),
    ("", "masked_with"): _names,
    ("", "research"): _truth,
    ("", "signatures"): _by_name(_bytes(SIGNATURE)),
    ("", "seeds"): _by_name(_bytes(SHARE)),
    ("", "keys"): _by_name(_bytes(SHARE)),
    ("roster", "terms"): _message(Terms),
    ("roster", "keys"): _all_keys,
    ("confirmations", "present"): _message(Present),
}
"""How a field is read: of one kind of message, or of all."""


def _refused(reason: str) -> MaskingError:
    return MaskingError(
        f"this is no message of a masked sum ({reason}); ask for the file again, as it was written, and use the same "
        "version of fedcdh at all sites"
    )
