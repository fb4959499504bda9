"""The layout that answers and sums share: a header that describes everything and carries a digest, then numbers.

It is the layout of a summary file (`summary_header`) and of safetensors: the length of the header, the header, the
data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from fedcdh._io.format_version import find_format_mismatch
from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh._io.text import is_digest
from fedcdh.messages.summary_header import LENGTH_PREFIX


def render_container(description: Mapping[str, Any], name: str, dtype: str, shape: list[int], data: bytes) -> bytes:
    """Return the one file with this description, and its data under a name."""
    digest = hashlib.sha256(to_canonical_json(dict(description)).encode() + b"\0" + data).hexdigest()
    document = {
        "__metadata__": {"fedcdh": to_canonical_json({**description, "digest": digest})},
        name: {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]},
    }
    text = to_canonical_json(document).encode()
    text += b" " * (-len(text) % 8)
    return LENGTH_PREFIX.pack(len(text)) + text + data


def parse_container_header(
    text: bytes, form: str, kinds: Mapping[str, type], refuse: Callable[[str], Exception], *others: Mapping[str, type]
) -> dict[str, Any]:
    """Return the description in a header, which has values of these types under these keys, or one of the others.

    Whether the file is written in its one way is checked when it is rendered again.
    """
    outer = parse_json(text, refuse=refuse)
    inner = outer.get("__metadata__") if isinstance(outer, dict) else None
    description = parse_json(str(inner.get("fedcdh")) if isinstance(inner, dict) else "", refuse=refuse)
    if mismatch := find_format_mismatch(
        description.pop("format", None) if isinstance(description, dict) else None, form
    ):
        raise refuse("; ".join(mismatch))
    if not is_digest(description.pop("digest", "")):
        raise refuse("its header has no digest")
    if {key: type(value) for key, value in description.items()} not in (kinds, *others):
        raise refuse("its header has other keys, or values of other types, than this format")
    return {"format": form, **description}
