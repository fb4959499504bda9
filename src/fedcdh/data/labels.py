"""Levels that look like numbers."""

from __future__ import annotations

import re

_NUMBER_PATTERN = re.compile(r"\s*[+-]?(?=[.,]?[0-9])[0-9]*(?:[.,][0-9]*)?(?:[eE][+-]?[0-9]+)?\s*")


def strip_zero_decimals(label: str) -> str:
    """A whole number as programs write it that know only decimals: 3.0 is the label 3; other labels as they are."""
    whole, _, decimals = label.partition(".")
    return whole if decimals.strip("0") == "" and whole.lstrip("-").isdecimal() else label


def looks_like_number(label: str) -> bool:
    """Whether somebody may have meant a number, with a point or with a comma."""
    return _NUMBER_PATTERN.fullmatch(label) is not None
