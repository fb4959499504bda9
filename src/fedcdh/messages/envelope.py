"""The messages of an online study: an envelope around the same files that a study by file would send.

A request of some kind is answered by a reply of the same kind, or by a refusal, which carries a code and nothing else.
The content of a request for a profile is a `ProfileRequest`, for a summary the plan, and for an answer in an adaptive
round or a round of a secure sum a `RoundRequest`.
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
from fedcdh.data.recipe_file import NO_RECIPES, Recipes, parse_recipes
from fedcdh.data.sources import ColumnKind
from fedcdh.errors import MessageFormatError
from fedcdh.messages.signing import MAX_SIGNATURE_BYTES

FORMAT = "fedcdh-online-2"
PROFILE, SUMMARY, ANSWER, MASKING, REFUSAL = "profile", "summary", "answer", "masking", "refusal"
MAX_ENVELOPE_HEADER_BYTES = 1024
_KEYS = {"format", "kind", "in_reply_to", "code", "content", "signature", "digest"}


@dataclass(frozen=True)
class Envelope:
    """A message: a line that describes it, then the file and its signature.

    Attributes
    ----------
    kind : str
        Kind of the content.
    content : bytes, default b""
        The file.
    signature : bytes, default b""
        Signature document, or nothing.
    in_reply_to : str, default ""
        Digest of the request that a reply answers.
    code : int, default 0
        Exit code of a refusal (`fedcdh.errors.ExitCode`).

    Examples
    --------
    >>> Envelope.from_bytes(Envelope("profile", b"file").to_bytes()).content
    b'file'
    """

    kind: str
    content: bytes = b""
    signature: bytes = b""
    in_reply_to: str = ""
    code: int = 0

    def to_bytes(self) -> bytes:
        """Write the message in its one way.

        Returns
        -------
        bytes
            The message.
        """
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
        """Read a message that `to_bytes` wrote.

        Parameters
        ----------
        blob : bytes
            The message.

        Returns
        -------
        Envelope
            The message.

        Raises
        ------
        MessageFormatError
            If the bytes are not those of a message, or were changed.
        """
        end = blob.find(b"\n", 0, MAX_ENVELOPE_HEADER_BYTES)
        if end < 0:
            raise _format_error("it does not begin with a header line")
        header = parse_json(blob[:end], refuse=_format_error)
        if mismatch := find_format_mismatch(header.get("format") if isinstance(header, dict) else None, FORMAT):
            raise _format_error(mismatch[0])
        if header.keys() != _KEYS:
            raise _format_error(f"its header has other keys than {', '.join(sorted(_KEYS))}")
        _check_types(header)
        start, split = end + 1, end + 1 + header["content"]
        found = cls(header["kind"], blob[start:split], blob[split:], header["in_reply_to"], header["code"])
        if len(found.signature) != header["signature"] or len(found.signature) > MAX_SIGNATURE_BYTES:
            raise _format_error("its length is not the one in its header")
        if found.to_bytes() != blob or (found.code and (found.content or found.signature)):
            raise _format_error("it was changed on the way: its digest is not that of its content")
        return found


def sha256_hex(blob: bytes) -> str:
    """Return the SHA-256 in hexadecimal digits: it names a request in its reply, and finds changed bytes."""
    return hashlib.sha256(blob).hexdigest()


@dataclass(frozen=True)
class ProfileRequest:
    """A coordinator's request for a profile: which variables, their kinds, and what is done with them first.

    >>> ProfileRequest.from_bytes(ProfileRequest(("age", "sex"), {"sex": "categorical"}).to_bytes()).variables
    ('age', 'sex')
    """

    variables: tuple[str, ...] | None = None
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)
    recipes: Recipes = NO_RECIPES

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", MappingProxyType(dict(self.kinds)))

    def to_bytes(self) -> bytes:
        """Write the request as canonical JSON."""
        recipes = {"recipes": self.recipes.to_document()} if self.recipes else {}
        return to_canonical_json({"variables": self.variables, "kinds": dict(self.kinds), **recipes}).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> ProfileRequest:
        """Read a request that `to_bytes` wrote; raise a MessageFormatError for anything else."""
        found = parse_json(content, refuse=_format_error)
        if not isinstance(found, dict) or found.keys() - {"recipes"} != {"variables", "kinds"}:
            raise _format_error("a request for a profile names variables, kinds and recipes, and nothing else")
        names, kinds = found["variables"], found["kinds"]
        if names is not None and (not isinstance(names, list) or any(map(describe_text_problem, names))):
            raise _format_error(f"variables should be a list of names, found {abbreviate(names)}")
        if not isinstance(kinds, dict) or any(kind not in get_args(ColumnKind) for kind in kinds.values()):
            raise _format_error(
                f"kinds should be one of {', '.join(get_args(ColumnKind))} each, found {abbreviate(kinds)}"
            )
        recipes = parse_recipes(found.get("recipes", {}), {}, refuse=_format_error)
        return cls(None if names is None else tuple(names), kinds, recipes)


@dataclass(frozen=True)
class RoundRequest:
    """A request of an adaptive round or a secure sum, and again the plan that it belongs to, with its signature.

    The signature of the envelope is that of the request. So a site does not have to keep plans, only what it released
    by which plan.

    >>> RoundRequest.from_bytes(RoundRequest(b"request", b"plan", b"signature").to_bytes()).plan
    b'plan'
    """

    request: bytes
    plan: bytes
    plan_signature: bytes = b""

    def to_bytes(self) -> bytes:
        """Write the request as canonical JSON."""
        return to_canonical_json({name: getattr(self, name).decode() for name in _ROUND_KEYS}).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> RoundRequest:
        """Read a request that `to_bytes` wrote; raise a MessageFormatError for anything else."""
        found = parse_json(content, refuse=_format_error)
        if not isinstance(found, dict) or found.keys() != set(_ROUND_KEYS):
            raise _format_error(f"a request of a round has {', '.join(_ROUND_KEYS)}, and nothing else")
        if not all(isinstance(text, str) for text in found.values()):
            raise _format_error(f"{', '.join(_ROUND_KEYS)} should be texts")
        return cls(**{name: text.encode() for name, text in found.items()})


def describe_round(asked: Envelope) -> str:
    """Return the name of a request's round in the journal: its kind, and its number where there are several."""
    if asked.kind not in (ANSWER, MASKING):
        return asked.kind
    request = parse_json(RoundRequest.from_bytes(asked.content).request, refuse=_format_error)
    return f"{asked.kind} {request['number' if asked.kind == ANSWER else 'round']}"


_ROUND_KEYS = ("request", "plan", "plan_signature")


def _check_types(header: Mapping[str, Any]) -> None:
    for name, kind in (("kind", str), ("in_reply_to", str), ("code", int), ("content", int), ("signature", int)):
        if type(header[name]) is not kind or (kind is int and header[name] < 0):
            raise _format_error(f"its {name} is {json.dumps(header[name])[:40]}, which is not of the expected type")


def _format_error(reason: str) -> MessageFormatError:
    return MessageFormatError(
        f"this is not a message of an online study ({reason}); expected one as this version writes it; use the same "
        "version of fedcdh at both ends"
    )
