"""Strict JSON takes time in proportion to the length of a text, whatever somebody has put into it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from effort import patience, steps

from fedcdh._io.strict_json import parse_json

HOSTILE: dict[str, Callable[[int], str]] = {
    "a string without end, full of quotes": lambda n: '{"' + '\\"' * (n // 2),
    "a string without end, full of strings": lambda n: '["' + '\\"a\\",' * (n // 6),
    "a string without end, full of brackets": lambda n: '["' + "[" * n,
    "backslashes in a string": lambda n: '"' + "\\" * n,
    "backslashes without a string": lambda n: "[" + "\\" * n,
    "quotes": lambda n: '"' * (n | 1),
    "quotes and backslashes": lambda n: '"\\' * (n // 2),
    "strings that go wrong at the end": lambda n: "[" + '"a",' * (n // 4) + '"',
    "opening brackets": lambda n: "[" * n,
    "objects in objects": lambda n: '{"a":' * (n // 5),
    "brackets side by side": lambda n: "[" + "[]," * (n // 3),
    "digits": lambda n: "9" * n,
    "digits, as many as may be": lambda n: "[" + ("9" * 40 + ",") * (n // 41),
    "halves of surrogate pairs": lambda n: '["' + "\\ud800" * (n // 6) + '"]',
    "one key again and again": lambda n: "{" + '"a":1,' * (n // 6) + '"a":1}',
    "spaces": lambda n: " " * n,
    "lines": lambda n: "[" + "1,\n" * (n // 3),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
def test_two_million_letters_are_refused_in_a_moment(hostile):
    """Work that grows with the square of the length would be four billion steps, or go on for hours."""

    def work(length: int) -> int:
        text = hostile(length)
        return steps(lambda: parse_json(text, refuse=ValueError), refused=ValueError)

    assert work(80_000) < 5 * work(20_000) + 100
    with patience(), pytest.raises(ValueError, match=r"^it |^the key "):
        parse_json(hostile(2_000_000), refuse=ValueError)


def test_a_string_without_end_is_for_the_parser_to_report():
    for text in ('{"a', '"', '["\\', '["\\"', '["[[[[[[[[', '"' + "9" * 50):
        with pytest.raises(ValueError, match="not JSON"):
            parse_json(text, refuse=ValueError)
