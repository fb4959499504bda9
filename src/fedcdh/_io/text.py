"""Text that people can read in one line: names, levels, keys, digests and JSON."""

from __future__ import annotations

import base64
import binascii
import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

MAX_NAME_LENGTH = 200
"""Of a name or a label: what fits into a message, and can be compared with others in no time."""
_UNPRINTABLE_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"


def abbreviate_list(names: Iterable[str], most: int = 20) -> str:
    """Names in a sentence; of very many the first ones, and how many more there are.

    >>> abbreviate_list(["north", "south"])
    'north, south'
    >>> abbreviate_list(map(str, range(1, 10_001)), 3)
    '1, 2, 3 and 9997 more'
    """
    found = list(names)
    rest = len(found) - most
    return ", ".join(found) if rest <= 0 else f"{', '.join(found[:most])} and {rest} more"


def describe_text_problem(text: object) -> str:
    r"""What keeps people from reading a name or a label in one line; nothing if nothing does.

    All spaces count as readable, no-break spaces too, and so do the joiners of Persian and Indic scripts; control
    characters, marks that turn the direction of writing, and halves of surrogate pairs do not.

    >>> describe_text_problem("größe\u00a0in cm")
    ''
    >>> describe_text_problem("size\u202e")
    "'size\\u202e' holds the character U+202E, which cannot be printed"
    """
    if not isinstance(text, str):
        return f"{cut_repr(text)} is no text"
    if len(text) > MAX_NAME_LENGTH:
        return f"{cut_repr(text)} has {len(text)} letters, expected at most {MAX_NAME_LENGTH}"
    for letter in text:
        if unicodedata.category(letter) in _UNPRINTABLE_CATEGORIES and letter not in _JOINERS:
            return f"{cut_repr(text)} holds the character U+{ord(letter):04X}, which cannot be printed"
    return ""


def cut_repr(found: object) -> str:
    """What was found, short enough for a message."""
    text = repr(found)
    return text if len(text) <= 200 else text[:197] + "..."


def to_readable_json(document: Any) -> str:
    """JSON for people, and still one text per document."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def is_digest(found: object) -> bool:
    """Whether this is a SHA-256 in hexadecimal digits, as fingerprints are."""
    return isinstance(found, str) and re.fullmatch("[0-9a-f]{64}", found) is not None


def is_key(found: object) -> bool:
    """Whether this is a public key as "ed25519:" and the base64 of 32 bytes, in its one spelling."""
    if not isinstance(found, str) or not found.startswith("ed25519:") or len(found) != 52:
        return False
    try:
        raw = base64.b64decode(found[8:].encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return False
    return len(raw) == 32 and base64.b64encode(raw).decode() == found[8:]


def is_name(found: object) -> bool:
    """Whether this is a text that is not empty and that people can read in one line."""
    return found != "" and not describe_text_problem(found)
