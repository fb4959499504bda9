"""Effects in words."""

import pytest

from fedcdh.discovery.effect import ClientEffect, Effect, PossibleEffect
from fedcdh.discovery.effect_text import format_effect, format_number, render_effect_html, summarise_effect


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, "unknown"), (0.0, "0"), (-0.0, "0"), (12345.6, "12300"), (0.000123, "0.000123"), (-1.239, "-1.24")],
)
def test_numbers(number, text):
    assert format_number(number) == text


def test_what_is_not_identifiable_is_said_and_what_is_possible_listed():
    possible = (
        PossibleEffect(0.0, (0.0, 0.0), None, 0.7),
        PossibleEffect(1.0, (0.5, 1.5), (), 0.2),
        *(PossibleEffect(float(k), (k - 1.0, k + 1.0), (f"z{k}",), 0.01) for k in range(6)),
    )
    effect = Effect("x", "y", "total", None, None, None, False, "a line is open", possible=possible)
    text = format_effect(effect)
    assert text.startswith("total effect of x on y: not identifiable, because a line is open\n")
    assert "0: no path from x to y, probability 0.70" in text
    assert "1 (0.5 to 1.5), adjusted for nothing, probability 0.20" in text
    assert text.endswith("and 2 more")


def test_names_are_escaped_and_sites_without_a_value_have_a_word():
    effect = Effect(
        "<x>",
        "y",
        "direct",
        1.0,
        (0.0, 2.0),
        (),
        True,
        by_client={"north": ClientEffect(None, None, None, 3, "too few rows for this regression")},
        levels=("no", "yes"),
        outcome_level="dead",
        units="u",
    )
    assert summarise_effect(effect) == "direct effect of <x> (no to yes) on y = dead: 1 (0 to 2)"
    page = render_effect_html(effect)
    assert "<x>" not in page
    assert "&lt;x&gt;" in page
    assert "unknown" in page
    assert "north: too few rows for this regression, 3 rows" in format_effect(effect)
