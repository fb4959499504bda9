"""Pairs CAUSE:OUTCOME on the command line."""

from __future__ import annotations

from collections.abc import Sequence

from fedcdh._io.text import abbreviate_list
from fedcdh.errors import SettingsError


def read_pair(text: str, names: Sequence[str], where: str = "the plan") -> tuple[str, str]:
    """Return cause and outcome of a text CAUSE:OUTCOME; names may hold colons, too."""
    parts = text.split(":")
    splits = [(":".join(parts[:cut]), ":".join(parts[cut:])) for cut in range(1, len(parts))]
    found = [pair for pair in splits if set(pair) <= set(names) and pair[0] != pair[1]]
    if len(found) != 1:
        raise SettingsError(
            f"--effect is {text!r}. Expected CAUSE:OUTCOME, two variables of {where} ({abbreviate_list(names)}). "
            "Correct it."
        )
    return found[0]
