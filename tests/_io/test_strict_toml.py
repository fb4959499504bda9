"""TOML that people write by hand is read strictly, with advice."""

import pytest

from fedcdh._io.strict_toml import (
    MAX_BYTES,
    MAX_DOTS_PER_LINE,
    abbreviate,
    expect_integer,
    expect_number,
    expect_strings,
    expect_table,
    parse_toml,
    suggest_name,
)
from fedcdh.errors import PlanError


def test_a_table_is_read_from_text_and_from_bytes():
    for text in ("rows = 3\r\n[a]\nb = [1.5]", b"rows = 3\n[a]\nb = [1.5]"):
        assert parse_toml(text, refuse=PlanError) == {"rows": 3, "a": {"b": [1.5]}}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"\xff", "not UTF-8"),
        ("a = \ud800", "not UTF-8"),
        ("a = ", "not TOML"),
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply|not TOML"),
        ("#" * (MAX_BYTES + 1), "longer than"),
        (".".join("a" * (MAX_DOTS_PER_LINE + 2)) + " = 1", "more than 200 dots"),
    ],
)
def test_what_is_not_toml_is_refused(text, reason):
    with pytest.raises(PlanError, match=reason):
        parse_toml(text, refuse=PlanError)


def test_limits_are_met_exactly():
    assert parse_toml("#" * MAX_BYTES, refuse=PlanError) == {}
    assert parse_toml(".".join("a" * (MAX_DOTS_PER_LINE + 1)) + " = 1", refuse=PlanError)["a"]


def test_an_unknown_key_is_refused_with_the_nearest_known_one():
    assert expect_table({"rows": 1}, ["rows"], "it", refuse=PlanError) == {"rows": 1}
    assert expect_table({"anything": 1}, None, "it", refuse=PlanError) == {"anything": 1}
    with pytest.raises(PlanError, match="it has the unknown key 'rwos', did you mean 'rows'\\?; known are rows"):
        expect_table({"rwos": 1}, ["rows"], "it", refuse=PlanError)
    with pytest.raises(PlanError, match="it should be a table, found 3"):
        expect_table(3, ["rows"], "it", refuse=PlanError)


def test_near_names_are_suggested_whatever_their_case():
    assert suggest_name("BMI ", ["bmi", "age"]) == ", did you mean 'bmi'?"
    assert suggest_name("postcode", ["bmi", "age"]) == ""


@pytest.mark.parametrize(
    ("expect", "good", "bad"),
    [
        (expect_strings, ["a", "b"], [["a", 1], "a", 3]),
        (expect_number, 1.5, [True, "1", float("inf"), 10**400]),
        (expect_integer, (1 << 63) - 1, [True, 1.0, -1, 1 << 63]),
    ],
)
def test_values_of_another_kind_are_refused(expect, good, bad):
    assert expect(good, "it", refuse=PlanError) in (good, tuple(good) if isinstance(good, list) else good)
    for one in bad:
        with pytest.raises(PlanError, match="it should be"):
            expect(one, "it", refuse=PlanError)


def test_long_values_are_cut_to_a_line():
    assert abbreviate("x") == "'x'"
    assert abbreviate("x" * 78) == repr("x" * 78)
    assert len(abbreviate("x" * 79)) == 80
