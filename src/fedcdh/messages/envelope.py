"""The messages of an online study: an envelope around the very files that a study by file would mail.

A request of some kind is answered by a reply of the same kind, or by a refusal, which carries a code and nothing else.
What is asked: for a profile, `ProfileRequest`; for a summary, the plan; for an answer in a further round, or
in a round of a masked sum, `RoundRequest`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, get_args

from fedcdh._io.format_version import find_format_mismatch
from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh._io.strict_toml import abbreviate
from fedcdh._io.text import describe_text_problem
from fedcdh.data.sources import ColumnKind
from fedcdh.errors import MessageFormatError
from fedcdh.messages.signing import MAX_SIGNATURE_BYTES

FORMAT = "fedcdh-online-2"
PROFILE, SUMMARY, ANSWER, MASKING, REFUSAL = "profile", "summary", "answer", "masking", "refusal"
MAX_ENVELOPE_HEADER_BYTES = 1024
_KEYS = {"format", "kind", "in_reply_to", "code", "content", "signature", "digest"}


@dataclass(frozen=True)
class Envelope:
    """What travels: a line that says what it is, then the file and its signature.

    >>> Envelope.from_bytes(Envelope("profile", b"file").to_bytes()).content
    b'file'
    """

    kind: str
    content: bytes = b""
    signature: bytes = b""  # a signature document, or nothing
    in_reply_to: str = ""  # of a reply: the digest of the request
    code: int = 0  # of a refusal: one of `fedcdh.errors`

    def to_bytes(self) -> bytes:
        """The one way to write it."""
        header = {
            "format": FORMAT,
            "kind": self.kind,
            "in_reply_to": self.in_reply_to,
            "code": self.code,
            "content": len(self.content),
            "signature": len(self.signature),
        }
        rest = b"\n" + self.content + self.signature
        return (
            to_canonical_json({**header, "digest": sha256_hex(to_canonical_json(header).encode() + rest)}).encode()
            + rest
        )

    @classmethod
    def from_bytes(cls, blob: bytes) -> Envelope:
        """The envelope that `to_bytes` wrote; MessageFormatError for anything else."""
        end = blob.find(b"\n", 0, MAX_ENVELOPE_HEADER_BYTES)
        if end < 0:
            raise _format_error("it does not begin with a line that says what it is")
        header = parse_json(blob[:end], refuse=_format_error)
        if mismatch := find_format_mismatch(header.get("format") if isinstance(header, dict) else None, FORMAT):
            raise _format_error(mismatch[0])
        if header.keys() != _KEYS:
            raise _format_error(f"its header has other keys than {', '.join(sorted(_KEYS))}")
        _check_types(header)
        start, split = end + 1, end + 1 + header["content"]
        found = cls(header["kind"], blob[start:split], blob[split:], header["in_reply_to"], header["code"])
        if len(found.signature) != header["signature"] or len(found.signature) > MAX_SIGNATURE_BYTES:
            raise _format_error("its length is not the one it names")
        if found.to_bytes() != blob or (found.code and (found.content or found.signature)):
            raise _format_error("it was changed on the way: its digest is not that of its content")
        return found


def sha256_hex(blob: bytes) -> str:
    """What a reply names its request by, and what tells that bytes are as they were sent."""
    return hashlib.sha256(blob).hexdigest()


@dataclass(frozen=True)
class ProfileRequest:
    """What a coordinator asks for before there is a plan: which variables, and which of them are labels or numbers.

    >>> ProfileRequest.from_bytes(ProfileRequest(("age", "sex"), {"sex": "categorical"}).to_bytes()).variables
    ('age', 'sex')
    """

    variables: tuple[str, ...] | None = None  # None: what the site brings along
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", MappingProxyType(dict(self.kinds)))

    def to_bytes(self) -> bytes:
        """Canonical: the same wishes, the same bytes."""
        return to_canonical_json({"variables": self.variables, "kinds": dict(self.kinds)}).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> ProfileRequest:
        """What `to_bytes` wrote; MessageFormatError for anything else."""
        found = parse_json(content, refuse=_format_error)
        if not isinstance(found, dict) or found.keys() != {"variables", "kinds"}:
            raise _format_error("a request for a profile names variables and kinds, and nothing else")
        names, kinds = found["variables"], found["kinds"]
        if names is not None and (not isinstance(names, list) or any(map(describe_text_problem, names))):
            raise _format_error(f"variables should be a list of names, found {abbreviate(names)}")
        if not isinstance(kinds, dict) or any(kind not in get_args(ColumnKind) for kind in kinds.values()):
            raise _format_error(
                f"kinds should be one of {', '.join(get_args(ColumnKind))} each, found {abbreviate(kinds)}"
            )
        return cls(None if names is None else tuple(names), kinds)


@dataclass(frozen=True)
class RoundRequest:
    """What a site is asked in a further round: the request, and once more the plan that it belongs to, with signature.

    The signature of the envelope is that of the request. So a site need not keep plans, only what it has told by which.

    >>> RoundRequest.from_bytes(RoundRequest(b"request", b"plan", b"signature").to_bytes()).plan
    b'plan'
    """

    request: bytes
    plan: bytes
    plan_signature: bytes = b""

    def to_bytes(self) -> bytes:
        """Canonical: the same files, the same bytes."""
        return to_canonical_json({name: getattr(self, name).decode() for name in _ROUND_KEYS}).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> RoundRequest:
        """What `to_bytes` wrote; MessageFormatError for anything else."""
        found = parse_json(content, refuse=_format_error)
        if not isinstance(found, dict) or found.keys() != set(_ROUND_KEYS):
            raise _format_error(f"in a further round, {', '.join(_ROUND_KEYS)} are asked with, and nothing else")
        if not all(isinstance(text, str) for text in found.values()):
            raise _format_error(f"{', '.join(_ROUND_KEYS)} should be texts")
        return cls(**{name: text.encode() for name, text in found.items()})


def describe_round(asked: Envelope) -> str:
    """What the record calls the round of a request: its kind, and which of them it is where there are several."""
    if asked.kind not in (ANSWER, MASKING):
        return asked.kind
    request = parse_json(RoundRequest.from_bytes(asked.content).request, refuse=_format_error)
    return f"{asked.kind} {request['number' if asked.kind == ANSWER else 'round']}"


_ROUND_KEYS = ("request", "plan", "plan_signature")


def _check_types(header: Mapping[str, Any]) -> None:
    for name, kind in (("kind", str), ("in_reply_to", str), ("code", int), ("content", int), ("signature", int)):
        if type(header[name]) is not kind or (kind is int and header[name] < 0):
            raise _format_error(f"{name} is {json.dumps(header[name])[:40]}")


def _format_error(reason: str) -> MessageFormatError:
    return MessageFormatError(
        f"this is not a message of an online study ({reason}); check that both ends have one version"
    )
