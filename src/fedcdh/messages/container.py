"""The layout that answers and masked sums share: a header that says everything and carries a digest, then numbers.

It is that of a summary file (`summary_header`), and of safetensors: the length of the header, the header, the data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from fedcdh._io.format_version import find_format_mismatch
from fedcdh._io.strict_json import parse_json, to_canonical_json
from fedcdh._io.text import is_digest
from fedcdh.messages.summary_header import LENGTH_PREFIX


def render_container(said: Mapping[str, Any], name: str, dtype: str, shape: list[int], data: bytes) -> bytes:
    """The one file that says this, with its data under a name."""
    digest = hashlib.sha256(to_canonical_json(dict(said)).encode() + b"\0" + data).hexdigest()
    document = {
        "__metadata__": {"fedcdh": to_canonical_json({**said, "digest": digest})},
        name: {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]},
    }
    text = to_canonical_json(document).encode()
    text += b" " * (-len(text) % 8)
    return LENGTH_PREFIX.pack(len(text)) + text + data


def parse_container_header(
    text: bytes, form: str, kinds: Mapping[str, type], refuse: Callable[..., Exception], *others: Mapping[str, type]
) -> dict[str, Any]:
    """What a header says, in these kinds of values under these keys, or in one of the other sets of them.

    Whether that is the one way to say it is seen when it is rendered again.
    """
    outer = parse_json(text, refuse=refuse)
    inner = outer.get("__metadata__") if isinstance(outer, dict) else None
    said = parse_json(str(inner.get("fedcdh")) if isinstance(inner, dict) else "", refuse=refuse)
    if mismatch := find_format_mismatch(said.pop("format", None) if isinstance(said, dict) else None, form):
        raise refuse(*mismatch)
    if not is_digest(said.pop("digest", "")):
        raise refuse("its header has no digest")
    if {key: type(value) for key, value in said.items()} not in (kinds, *others):
        raise refuse("its header says too little, or too much")
    return {"format": form, **said}
