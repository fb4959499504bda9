"""Names and numbers in plain English."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fedcdh.graphs.meek_rules import MEEK_RULES
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.phrases import (
    ORIENTATION_REASONS,
    clean_text,
    describe_edge,
    describe_strength,
    edge_facts,
    format_count,
    format_p_value,
    format_signed,
    name_orientation,
    to_html_name,
)


def test_numbers_are_written_as_in_articles():
    assert format_p_value(0.0) == "< 10⁻³⁰⁰"
    assert format_p_value(0.0314) == "0.031"
    assert format_p_value(2.93e-14) == "2.9 × 10⁻¹⁴"
    assert format_p_value(1.0) == "1.000"
    assert format_signed(-0.02) == "0.0"
    assert format_signed(-12.34) == "−12.3"
    assert format_count(1, "mechanism differs", "mechanisms differ") == "1 mechanism differs"
    assert format_count(2, "mechanism differs", "mechanisms differ") == "2 mechanisms differ"


def test_every_reason_for_a_direction_is_explained():
    reasons = {"domain", "knowledge", "collider", "evidence", "noise", "independent-change", *MEEK_RULES}
    assert set(ORIENTATION_REASONS) == reasons
    assert name_orientation(None) == "open"
    assert name_orientation("something new") == "something new"


def test_the_strength_of_evidence_has_five_words():
    words = [describe_strength(factor) for factor in (-1.01, -1, 0.99, 1, 2.99, 3, 9.99, 10)]
    assert words == ["against", "undecided", "undecided", "weak", "weak", "strong", "strong", "very strong"]


@given(st.text())
def test_names_have_no_control_characters_and_no_markup(name):
    cleaned = clean_text(name)
    assert not any(letter in cleaned for letter in "\n\r\t\x00\u202e\u2066")
    assert len(cleaned) == len(name)
    assert "<" not in to_html_name(name).removeprefix("<bdi>").removesuffix("</bdi>")


def test_a_sentence_for_every_kind_of_edge():
    edge = {"source": "a", "target": "b"}
    assert describe_edge({**edge, "mark": "→"}) == "a is a direct cause of b."
    assert describe_edge({**edge, "mark": "—"}) == "a and b are directly linked; the direction is open."
    assert describe_edge({**edge, "mark": ""}) == "No direct link between a and b."
    assert describe_edge({"source": DOMAIN, "target": "b", "mark": "→"}) == "The mechanism of b differs between sites."


def test_facts_depend_on_what_was_computed():
    edge = {"source": "a", "target": "b", "mark": "→", "p_value": 0.01, "oriented_by": "collider"}
    assert [fact[0] for fact in edge_facts(edge)] == ["p-value", "Direction from"]
    scored = {"source": "a", "target": "b", "mark": "—", "log_bayes_presence": 4.0, "log_bayes_direction": 0.1}
    assert [fact[:2] for fact in edge_facts(scored)] == [
        ("Evidence for the link", "log Bayes factor +4.0 (strong)"),
        ("Direction", "open"),
        ("Evidence for direction", "log Bayes factor +0.1 (undecided)"),
    ]
