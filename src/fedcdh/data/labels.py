"""Levels that look like numbers."""

from __future__ import annotations

import re

_NUMBER_PATTERN = re.compile(r"\s*[+-]?(?=[.,]?[0-9])[0-9]*(?:[.,][0-9]*)?(?:[eE][+-]?[0-9]+)?\s*")
_GROUPED_DIGITS = re.compile(
    r"\s*[-+]?[0-9]{1,3}"
    r"(?:(?:,[0-9]{3})+(?:\.[0-9]*)?|(?:\.[0-9]{3})+(?:,[0-9]*)?|(?:[ '’\u00a0\u202f][0-9]{3})+(?:[.,][0-9]*)?)\s*"
)


def strip_zero_decimals(label: str) -> str:
    """Return the level "3" for "3.0", which some programs write for a whole number; other levels are unchanged."""
    whole, _, decimals = label.partition(".")
    return whole if decimals.strip("0") == "" and whole.lstrip("-").isdecimal() else label


def looks_like_number(label: str) -> bool:
    """Return whether a level may be meant as a number, with a decimal point or a comma."""
    return _NUMBER_PATTERN.fullmatch(label) is not None


def has_thousands_separators(label: str) -> bool:
    """Return whether a level is a number with thousands separators: 1,234.5, 1.234,5, 1 234,5 or 1'234.5."""
    return _GROUPED_DIGITS.fullmatch(label) is not None
