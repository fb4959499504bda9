"""Texts that can be read on one line."""

import base64
import hashlib
import json
import re

import pytest

from fedcdh._io.text import (
    MAX_NAME_LENGTH,
    abbreviate_list,
    cut_repr,
    describe_text_problem,
    is_digest,
    is_key,
    is_name,
    to_readable_json,
)


@pytest.mark.parametrize(
    "text", ["x", "gr\u00f6\u00dfe in cm", "a\u00a0b", "\u0646\u200c\u0647", "x" * MAX_NAME_LENGTH]
)
def test_names_that_can_be_read(text):
    assert describe_text_problem(text) == ""
    assert is_name(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a\nb", "U\\+000A"),
        ("a\u202e", "U\\+202E"),
        ("\ud800", "U\\+D800"),
        ("\u2028", "U\\+2028"),
        ("x" * (MAX_NAME_LENGTH + 1), "has 201 characters"),
        (3, "3 is not a text"),
    ],
)
def test_names_that_cannot_be_read(text, problem):
    assert re.search(problem, describe_text_problem(text))
    assert not is_name(text)


def test_the_empty_text_can_be_a_level_but_not_a_name():
    assert describe_text_problem("") == ""
    assert not is_name("")


def test_lists_and_values_are_shortened():
    assert abbreviate_list("abc", 3) == "a, b, c"
    assert abbreviate_list("abcd", 3) == "a, b, c and 1 more"
    assert cut_repr("x" * 198) == repr("x" * 198)
    assert len(cut_repr("x" * 199)) == 200


def test_digests_and_keys_have_one_spelling():
    digest = hashlib.sha256(b"").hexdigest()
    assert is_digest(digest)
    assert not any(map(is_digest, [digest.upper(), digest[:-1], digest + "0", 3, None]))
    key = "ed25519:" + base64.b64encode(bytes(32)).decode()
    assert is_key(key)
    assert not any(map(is_key, [key[8:], key[:-2] + "B=", key[:-1], key + "=", "ed25519:" + "\u00e9" * 44, 3]))


def test_readable_json_has_one_text():
    text = to_readable_json({"b": "\u00e9", "a": [1]})
    assert json.loads(text) == {"a": [1], "b": "\u00e9"}
    assert text == to_readable_json({"a": [1], "b": "\u00e9"})
    assert text.endswith("}\n")
    with pytest.raises(ValueError, match="JSON"):
        to_readable_json(float("nan"))
