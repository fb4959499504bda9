"""What somebody does who changes a summary file on purpose: he makes its digest right again."""

from __future__ import annotations

import hashlib
import struct

from fedcdh._io.strict_json import parse_json, to_canonical_json


def redigested(blob: bytes) -> bytes:
    """The file with the digest of what it says now."""
    start = 8 + struct.unpack("<Q", blob[:8])[0]
    header = parse_json(blob[8:start], refuse=ValueError)
    inner = parse_json(header["__metadata__"]["fedcdh"], refuse=ValueError)
    inner.pop("digest", None)
    inner["digest"] = hashlib.sha256(to_canonical_json(inner).encode() + b"\0" + blob[start:]).hexdigest()
    text = to_canonical_json({**header, "__metadata__": {"fedcdh": to_canonical_json(inner)}}).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + blob[start:]
