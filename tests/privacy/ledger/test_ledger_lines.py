"""Lines of a ledger: canonical bytes and signatures."""

from __future__ import annotations

import os

import pytest

from fedcdh.messages.signing import SigningKey
from fedcdh.privacy.ledger._ledger_lines import (
    LedgerContent,
    hash_line,
    is_signature_valid,
    sign_line,
    to_line,
    write_all,
)


def test_a_signature_is_of_all_fields_and_of_the_key_it_names():
    key, other = SigningKey.generate(), SigningKey.generate()
    signed = sign_line({"number": 1, "rows": 500}, key)
    assert is_signature_valid(signed)
    assert not is_signature_valid({**signed, "rows": 501})
    assert not is_signature_valid({**signed, "key": other.public})
    assert not is_signature_valid({**signed, "key": "no key"})


def test_without_a_key_nothing_is_signed():
    document = {"number": 1}
    assert sign_line(document, None) == document
    assert is_signature_valid(document)
    with pytest.raises(KeyError):
        is_signature_valid({**document, "key": SigningKey.generate().public})


def test_lines_have_one_order_of_keys():
    assert to_line({"b": 1, "a": 2}) == to_line({"a": 2, "b": 1}) == b'{"a":2,"b":1}\n'


def test_the_content_up_to_a_release_has_its_size_and_digest():
    content = LedgerContent(b"secret", (), ((10, "a"), (30, "b"), (60, "c")), b"rest")
    assert (content.size, content.last) == (60, "c")
    assert (content.up_to(1).size, content.up_to(1).last, content.up_to(1).rest) == (30, "b", b"")


def test_all_bytes_are_written_however_few_a_call_takes(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data[:3])))
    with (tmp_path / "file").open("wb", buffering=0) as file:
        write_all(file.fileno(), b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"
    assert len(hash_line(b"line")) == 64
