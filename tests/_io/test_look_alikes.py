"""Names that look alike, and names that do not."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcdh._io.look_alikes import (
    _LATIN,
    _OTHER,
    describe_look_alike,
    find_look_alikes,
    look_alike_keys,
)

ALIKE = [
    ("north", "n\u043erth"),  # Cyrillic o
    ("North", "\u039dorth"),  # Greek Nu
    ("north", "NORTH"),
    ("north", "north "),
    ("north", "\u00a0north"),
    ("north", "nor\u200cth"),
    ("north", "nor\u200bth"),
    ("north", "nor\u00adth"),
    ("north", "ｎｏｒｔｈ"),
    ("St. Anna", "St.  Anna"),
    ("a-b", "a\u2013b"),
    ("Köln", "Ko\u0308ln"),
    ("\u0412\u0435\u0440\u0430", "\u0432\u0435\u0440\u0430"),  # capitals in another script
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_names_that_look_alike_are_found(one, other):
    assert find_look_alikes(["south", one, "east", other]) == (one, other)
    said = describe_look_alike(other, ["south", one])
    assert ascii(one) in said
    assert ascii(other) in said
    assert said.isascii()


def test_names_that_differ_visibly_are_not():
    names = ["north", "south", "site1", "site10", "site l", "Köln", "Koln", "a-b", "a_b", "север", "юг", "東京", "大阪"]
    assert find_look_alikes(names) is None
    assert describe_look_alike("north", ["north"]) == ""
    assert find_look_alikes(f"site{k}" for k in range(2000)) is None


@given(st.text(max_size=20))
def test_capitals_blanks_and_forms_make_no_difference(name):
    assert look_alike_keys(name) & look_alike_keys(f" {name}\u200b")
    assert look_alike_keys(name) & look_alike_keys(unicodedata.normalize("NFD", name))


def test_letters_of_two_scripts_are_paired_one_by_one():
    assert len(_LATIN) == len(_OTHER)
    for latin, other in zip(_LATIN, _OTHER, strict=True):
        assert latin.isascii()
        assert not other.isascii()
        assert latin.isupper() == unicodedata.name(other).split(" LETTER ")[0].endswith("CAPITAL")
