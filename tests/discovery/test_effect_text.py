"""Effects in words."""

import pytest

from fedcdh.discovery.effect import ClientEffect, Effect, EffectTable, PossibleEffect
from fedcdh.discovery.effect_text import format_effect, format_number, render_effect_html, summarise_effect
from fedcdh.inference.effects.pooling import Heterogeneity


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


def test_tables_of_effects_have_a_word_for_what_is_not_known():
    effects = EffectTable(
        [
            Effect("dose", "stay", "total", 1.0, (0.5, 1.5), (), True, standardised=0.25),
            Effect("sex", "ward", "total", None, None, None, False, "a line", levels=("f", "m"), outcome_level="b"),
        ]
    )
    assert effects == tuple(effects)
    assert [line.split("  ")[0] for line in str(effects).splitlines()] == ["cause", "dose", "sex (f to m)"]
    assert "not identifiable" in str(effects)
    assert "<table>" in effects._repr_html_()
    assert str(EffectTable()) == "by the graph, no variable has an effect on another"


def test_a_notebook_shows_what_is_possible_and_how_sites_differ():
    possible = (PossibleEffect(0.0, (0.0, 0.0), None, 0.7), PossibleEffect(1.0, (0.5, 1.5), ("age",), 0.3))
    effect = Effect("x", "y", "total", None, None, None, False, "a line is open", possible=possible)
    html = render_effect_html(effect)
    assert "no path to the outcome" in html
    assert "0.5 to 1.5" in html
    assert "0.70" in html
    differing = Effect("x", "y", "total", 1.0, (0, 2), (), True, heterogeneity=Heterogeneity(6.6, 4, 0.16, 0.4, 0.1))
    assert "I² = 40%" in render_effect_html(differing)
