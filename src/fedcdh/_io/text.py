"""Texts that can be read on one line: names, levels, keys, digests and JSON."""

from __future__ import annotations

import base64
import binascii
import difflib
import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

MAX_NAME_LENGTH = 200
"""Characters of a name or a level: few enough for a message, and for a quick comparison with others."""
_UNPRINTABLE_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"


def abbreviate_list(names: Iterable[str], most: int = 20) -> str:
    """Return names as a list in a sentence; of very many, the first ones and the number of the others.

    >>> abbreviate_list(["north", "south"])
    'north, south'
    >>> abbreviate_list(map(str, range(1, 10_001)), 3)
    '1, 2, 3 and 9997 more'
    """
    found = list(names)
    rest = len(found) - most
    return ", ".join(found) if rest <= 0 else f"{', '.join(found[:most])} and {rest} more"


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'bmi'?` for the nearest known name, ignoring case, or an empty text if none is near.

    Texts longer than a name are skipped: the time to compare two grows with the product of their lengths.
    """
    if len(name) > MAX_NAME_LENGTH:
        return ""
    by_fold = {_fold_name(one): one for one in known if len(one) <= MAX_NAME_LENGTH}
    near = difflib.get_close_matches(_fold_name(name), list(by_fold), n=1, cutoff=0.6)
    return f", did you mean {by_fold[near[0]]!r}?" if near else ""


def _fold_name(name: str) -> str:
    return name.casefold().replace("_", " ").strip()


def describe_text_problem(text: object) -> str:
    r"""Return why a name or a level cannot be read on one line, or the empty text if it can.

    All spaces are readable, also no-break spaces, and so are the joiners of Persian and Indic scripts. Control
    characters, marks that change the direction of writing, and halves of surrogate pairs are not.

    >>> describe_text_problem("größe\u00a0in cm")
    ''
    >>> describe_text_problem("size\u202e")
    "'size\\u202e' holds the character U+202E, which cannot be printed"
    """
    if not isinstance(text, str):
        return f"{cut_repr(text)} is not a text"
    if len(text) > MAX_NAME_LENGTH:
        return f"{cut_repr(text)} has {len(text)} characters, expected at most {MAX_NAME_LENGTH}"
    for letter in text:
        if unicodedata.category(letter) in _UNPRINTABLE_CATEGORIES and letter not in _JOINERS:
            return f"{cut_repr(text)} holds the character U+{ord(letter):04X}, which cannot be printed"
    return ""


def cut_repr(found: object) -> str:
    """Return the representation of a value, short enough for a message."""
    text = repr(found)
    return text if len(text) <= 200 else text[:197] + "..."


def to_readable_json(document: Any) -> str:
    """Return indented JSON, with one text per document."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def is_digest(found: object) -> bool:
    """Return whether this is a SHA-256 digest in hexadecimal digits, such as a fingerprint."""
    return isinstance(found, str) and re.fullmatch("[0-9a-f]{64}", found) is not None


def is_key(found: object) -> bool:
    """Return whether this is a public key: "ed25519:" and the canonical base64 of 32 bytes."""
    if not isinstance(found, str) or not found.startswith("ed25519:") or len(found) != 52:
        return False
    try:
        raw = base64.b64decode(found[8:].encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return False
    return len(raw) == 32 and base64.b64encode(raw).decode() == found[8:]


def is_name(found: object) -> bool:
    """Return whether this is a text that is not empty and can be read on one line."""
    return found != "" and not describe_text_problem(found)
