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
    describe_probability,
    describe_strength,
    edge_facts,
    format_certainty,
    format_count,
    format_p_value,
    format_share,
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
    assert name_orientation(None) == "not decided"  # "open" is the word for the direction itself
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


def test_probabilities_have_words():
    words = [describe_probability(value) for value in (1.0, 0.99, 0.989, 0.95, 0.949, 0.8, 0.79, 0.5, 0.49, 0.1, 0.09)]
    assert words == [
        *["almost certain"] * 2,
        *["very likely"] * 2,
        *["likely"] * 2,
        *["more likely than not"] * 2,
        *["possible"] * 2,
        "unlikely",
    ]


def test_facts_about_probabilities_come_first():
    arrow = {"source": "a", "target": "b", "mark": "→", "probability": 0.97, "probability_forward": 0.86}
    known = [fact[:2] for fact in edge_facts({**arrow, "strength": 0.123, "log_bayes_presence": 4.0})]
    assert known[:3] == [
        ("Probability of a link", "0.97 (very likely)"),
        ("Probability of this direction", "0.86 (likely)"),
        ("Strength", "explains 12\N{NO-BREAK SPACE}% of the variance"),
    ]
    assert known[3] == ("Evidence for the link", "log Bayes factor +4.0")  # one word for certainty is enough
    line = {**arrow, "mark": "—", "probability_forward": 0.3}
    assert ("Likelier direction", "b → a (0.67)") in [fact[:2] for fact in edge_facts(line)]
    assert format_certainty(arrow) == "Probability 0.86, likely."
    assert format_certainty(line) == "Probability 0.97, very likely."
    change = {"source": DOMAIN, "target": "b", "mark": "", "probability": 0.15, "probability_forward": 0.15}
    assert [fact[:2] for fact in edge_facts(change)] == [("Probability of a difference", "0.15 (possible)")]


def test_small_shares_keep_a_digit():
    assert format_share(0.005) == "0.5\N{NO-BREAK SPACE}%"
    assert format_share(0.241) == "24\N{NO-BREAK SPACE}%"


def test_facts_depend_on_what_was_computed():
    edge = {"source": "a", "target": "b", "mark": "→", "p_value": 0.01, "oriented_by": "collider"}
    assert [fact[0] for fact in edge_facts(edge)] == ["p-value", "Direction from"]
    scored = {"source": "a", "target": "b", "mark": "—", "log_bayes_presence": 4.0, "log_bayes_direction": 0.1}
    assert [fact[:2] for fact in edge_facts(scored)] == [
        ("Evidence for the link", "log Bayes factor +4.0 (strong)"),
        ("Direction", "open"),
        ("Evidence for direction", "log Bayes factor +0.1 (undecided)"),
    ]
