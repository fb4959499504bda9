"""Lines of a ledger file: their text, their signatures, and what was read from a whole file."""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass
from typing import Any

from fedcdh._io.strict_json import to_canonical_json
from fedcdh.errors import SignatureError
from fedcdh.messages.signing import SigningKey, is_signed_by, sign_raw
from fedcdh.privacy.ledger.record import LedgerEntry


@dataclass(frozen=True)
class LedgerContent:
    """A ledger file that was read. `marks` holds its size and the digest of its last line after each line."""

    secret: bytes
    entries: tuple[LedgerEntry, ...]
    marks: tuple[tuple[int, str], ...]
    rest: bytes  # bytes after the last end of a line

    @property
    def size(self) -> int:
        """Number of bytes of the whole lines."""
        return self.marks[-1][0]

    @property
    def last(self) -> str:
        """Digest of the last line."""
        return self.marks[-1][1]

    def up_to(self, n_releases: int) -> LedgerContent:
        """Return the content as it was after this number of releases."""
        return LedgerContent(self.secret, self.entries[:n_releases], self.marks[: n_releases + 1], b"")


def sign_line(document: dict[str, Any], key: SigningKey | None) -> dict[str, Any]:
    """Return the document with the public key and the signature of a line, if there is a key."""
    if key is None:
        return document
    document = {**document, "key": key.public}
    signature = sign_raw(key, "release", to_canonical_json(document).encode("utf-8"))
    return {**document, "signature": base64.b64encode(signature).decode("ascii")}


def is_signature_valid(document: dict[str, Any]) -> bool:
    """Return whether the line is signed by the key that it names, or names none."""
    if "key" not in document and "signature" not in document:
        return True
    signed = {name: value for name, value in document.items() if name != "signature"}
    signature = base64.b64decode(document["signature"], validate=True)
    try:
        return is_signed_by(document["key"], "release", to_canonical_json(signed).encode("utf-8"), signature)
    except SignatureError:  # the named key is not a key
        return False


def to_line(document: dict[str, Any]) -> bytes:
    """Return the document as one line of canonical JSON."""
    return to_canonical_json(document).encode("utf-8") + b"\n"


def hash_line(line: bytes) -> str:
    """Return the SHA-256 of a line."""
    return hashlib.sha256(line).hexdigest()


def write_all(handle: int, data: bytes) -> None:
    """Write all bytes to an open file, however many calls that takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
