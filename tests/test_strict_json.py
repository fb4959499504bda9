"""Strict JSON takes time in proportion to the length of a text, whatever somebody has put into it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time

import pytest

from fedcdh.files.strict_json import parse

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


def seconds(text: str) -> float:
    """The time of the processor until the text is refused; without the walks over the garbage of other tests."""
    gc.disable()
    began = process_time()
    try:
        with pytest.raises(ValueError, match=r"^it |^the key "):
            parse(text, refuse=ValueError)
        return process_time() - began
    finally:
        gc.enable()


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
def test_four_times_the_length_takes_no_more_than_about_four_times_the_time(hostile):
    """The square would be 16 times. Short texts first, so that a failure does not take hours."""
    for length in (20_000, 500_000):
        assert seconds(hostile(4 * length)) < 8 * seconds(hostile(length)) + 1


def test_a_string_without_end_is_for_the_parser_to_report():
    for text in ('{"a', '"', '["\\', '["\\"', '["[[[[[[[[', '"' + "9" * 50):
        with pytest.raises(ValueError, match="not JSON"):
            parse(text, refuse=ValueError)
