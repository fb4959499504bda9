"""Levels that look like numbers."""

import pytest

from fedcdh.data.labels import looks_like_number, strip_zero_decimals


@pytest.mark.parametrize("level", ["3", "-3.5", "+1e5", " 2,5 ", ".5", "7.", "1E-3"])
def test_levels_that_may_be_meant_as_numbers(level):
    assert looks_like_number(level)


@pytest.mark.parametrize("level", ["", "three", "1.2.3", "2024-01-01", "-", "e5", "3 kg", "nan"])
def test_levels_that_are_words(level):
    assert not looks_like_number(level)


@pytest.mark.parametrize(
    ("level", "same"),
    [("3.0", "3"), ("-3.000", "-3"), ("3", "3"), ("3.5", "3.5"), ("x.0", "x.0"), ("3.", "3"), ("", "")],
)
def test_whole_numbers_lose_their_decimals(level, same):
    assert strip_zero_decimals(level) == same
