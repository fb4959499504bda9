"""TOML files that people write by hand: read strictly, with suggestions for misspelt keys.

An unknown key is refused with the nearest known one, because a misspelt rule must not be ignored.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Collection
from typing import Any

from fedcdh._io.text import suggest_name
from fedcdh.errors import FedCDHError

MAX_BYTES = 1_000_000
MAX_DOTS_PER_LINE = 200
"""Dots in one line: the time to read a dotted key is quadratic in its dots, 90 seconds for 49,000."""

Refuse = Callable[[str], FedCDHError]


def parse_toml(text: str | bytes, *, refuse: Refuse) -> dict[str, Any]:
    """Return the table of a TOML text; if anything is wrong with it, raise `refuse(reason)`."""
    if len(text) > MAX_BYTES:
        raise refuse(f"it is longer than {MAX_BYTES} letters")
    try:
        # `.encode` refuses half of a surrogate pair, which no file can hold.
        lines = (text if isinstance(text, bytes) else text.encode()).decode().replace("\r\n", "\n")
        if max(line.count(".") for line in lines.split("\n")) > MAX_DOTS_PER_LINE:
            raise ValueError(f"one of its lines holds more than {MAX_DOTS_PER_LINE} dots; break the line")
        return tomllib.loads(lines)
    except UnicodeError:
        reason = "it is not UTF-8 text"
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as problem:
        reason = f"it is not TOML ({str(problem)[:200]})"
    raise refuse(reason)


def expect_table(table: Any, known: Collection[str] | None, where: str, *, refuse: Refuse) -> dict[str, Any]:
    """Return the table, if it is one and all its keys are known; `known=None` allows any keys."""
    if not isinstance(table, dict):
        raise refuse(f"{where} should be a table, found {abbreviate(table)}")
    for key in table:
        if known is not None and key not in known:
            near = suggest_name(key, known)
            raise refuse(f"{where} has the unknown key {abbreviate(key)}{near}; known are {', '.join(known)}")
    return table


def expect_strings(found: Any, where: str, *, refuse: Refuse) -> tuple[str, ...]:
    """Return a list of texts as a tuple."""
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise refuse(f'{where} should be a list of texts such as ["north", "south"], found {abbreviate(found)}')
    return tuple(found)


def expect_number(found: Any, where: str, *, refuse: Refuse) -> float:
    """Return a finite number as a float; true and false are not numbers."""
    if not isinstance(found, int | float) or isinstance(found, bool) or not _is_finite(found):
        raise refuse(f"{where} should be a finite number, found {abbreviate(found)}")
    return float(found)


def expect_integer(found: Any, where: str, *, refuse: Refuse) -> int:
    """Return a whole number from 0 up to the largest 64-bit integer, written without a decimal point."""
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 1 << 63:
        raise refuse(f"{where} should be a whole number from 0 upwards, found {abbreviate(found)}")
    return found


def abbreviate(found: Any) -> str:
    """Return the representation of a value, cut to one line."""
    text = repr(found)
    return text if len(text) <= 80 else text[:77] + "..."


def _is_finite(found: float) -> bool:
    try:
        return math.isfinite(found)
    except OverflowError:  # an integer beyond all floats
        return False
