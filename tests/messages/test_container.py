"""The container of answers and sums: a header with a digest, then data."""

from __future__ import annotations

import json

import pytest

from fedcdh.messages.container import parse_container_header, render_container
from fedcdh.messages.summary_header import LENGTH_PREFIX

KEYS = {"rows": int, "client": str}
SAID = {"format": "fedcdh-test-2", "rows": 3, "client": "north"}


def header_of(blob: bytes) -> bytes:
    return blob[LENGTH_PREFIX.size : LENGTH_PREFIX.size + LENGTH_PREFIX.unpack_from(blob)[0]]


def refuse(reason: str) -> ValueError:
    return ValueError(reason)


def test_what_is_rendered_is_parsed():
    blob = render_container(SAID, "words", "U8", [2], b"ab")
    assert blob.endswith(b"ab")
    assert len(header_of(blob)) % 8 == 0
    assert parse_container_header(header_of(blob), "fedcdh-test-2", KEYS, refuse) == SAID


def test_the_layout_is_that_of_safetensors():
    outer = json.loads(header_of(render_container(SAID, "words", "U8", [2], b"ab")))
    assert outer["words"] == {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({**SAID, "rows": True}, "other keys, or values of other types"),
        ({**SAID, "more": 1}, "other keys, or values of other types"),
        ({"format": "fedcdh-test-2", "rows": 3}, "other keys, or values of other types"),
        ({**SAID, "format": "fedcdh-test-1"}, "earlier version.*make it again with this version"),
        ({**SAID, "format": "other"}, "names the format 'other'"),
    ],
)
def test_other_keys_types_and_formats_are_refused(said, reason):
    blob = render_container(said, "words", "U8", [2], b"ab")
    with pytest.raises(ValueError, match=reason):
        parse_container_header(header_of(blob), "fedcdh-test-2", KEYS, refuse)


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"__metadata__":{}}', b'{"__metadata__":{"fedcdh":"7"}}'])
def test_what_is_no_header_is_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        parse_container_header(text, "fedcdh-test-2", KEYS, refuse)
