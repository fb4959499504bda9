"""JSON in which every document has one text, with a reader that refuses what is ambiguous or hostile.

Python's reader takes the last of two equal keys, reads NaN as a number and 1e999 as infinity, and exhausts the stack on
deep nesting. All of these are refused here, deep nesting before anything is parsed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 32
MAX_DIGITS = 40
"""Digits in a row: 64-bit integers have up to 19, the shortest decimal of a float up to 21 after the point."""

Refuse = Callable[[str], Exception]

# Strings are matched whole, because brackets and digits in them do not count; possessively, so that none is read twice.
# The last quote may be missing: a string without an end reaches to the end of the text, and no quote in it is tried
# again. The time is therefore linear in the length of any text.
_TOKEN = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|(?P<opens>[\[{])|(?P<closes>[\]}])'
    rf"|(?P<digits>[0-9]{{{MAX_DIGITS + 1},}})",
    re.DOTALL,
)
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class _JsonRefusedError(Exception):
    """The error that carries a reason out of the callbacks of the JSON reader; it never leaves this module."""


def to_canonical_json(document: Any) -> str:
    """Return the canonical text of a document: keys sorted by code point, no spaces, no needless escapes."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def parse_json(text: str | bytes, *, refuse: Refuse) -> Any:
    """Return the document of a JSON text; if anything is wrong with it, raise `refuse(reason)`.

    >>> parse_json('{"rows": 3}', refuse=ValueError)
    {'rows': 3}
    >>> parse_json('{"rows": 3, "rows": 4}', refuse=ValueError)
    Traceback (most recent call last):
    ...
    ValueError: the key 'rows' stands twice in one object
    """
    try:
        return _load(_decode(text))
    except _JsonRefusedError as refused:
        reason = str(refused)
    except json.JSONDecodeError as problem:
        reason = f"it is not JSON ({problem})"
    # Raised outside of the handler, so that no inner traceback with parts of the text is attached.
    raise refuse(reason)


def _load(text: str) -> Any:
    _check_limits(text)
    document = json.loads(
        text, object_pairs_hook=_build_object, parse_float=_parse_finite, parse_constant=_refuse_constant
    )
    if _ESCAPED_SURROGATE.search(text):  # escaped pairs are fine; an escaped half is a text that no file can hold
        _check_unicode(to_canonical_json(document))
    return document


def _decode(text: str | bytes) -> str:
    if isinstance(text, str):
        _check_unicode(text)
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise _JsonRefusedError(f"it is not UTF-8 (byte {problem.start})") from None


def _check_unicode(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _JsonRefusedError("it holds half of a surrogate pair, which is not a character") from None


def _check_limits(text: str) -> None:
    """Check depth and digits without recursion: up to its first error, a text has the same tokens as in a parser."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token["opens"]:
            depth += 1
        elif token["closes"]:
            depth -= 1
        elif token["digits"]:
            raise _JsonRefusedError(
                f"it holds a number with {len(token['digits'])} digits, expected at most {MAX_DIGITS}"
            )
        if depth > MAX_DEPTH:
            raise _JsonRefusedError(f"it is nested more than {MAX_DEPTH} deep")


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _JsonRefusedError(f"the key {key[:40]!r} stands twice in one object")
        found[key] = value
    return found


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _JsonRefusedError("it holds a number beyond the range of 64-bit floats")
    return number


def _refuse_constant(name: str) -> None:
    raise _JsonRefusedError(f"it holds {name}, which is not a JSON number")
