"""How edges are drawn: the sign of the slope, weak and uncertain ones dotted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fedcdh.reporting.graph_drawing.edge_style import (
    MIN_CLEAR_PROBABILITY,
    MIN_CLEAR_STRENGTH,
    TENTATIVE_OPACITY,
    EdgeStyle,
    style_edge,
)

SHARES = st.floats(0, 1)


def test_the_sign_is_that_of_the_slope_unless_its_interval_has_both():
    edge = {"mark": "→", "probability": 1.0, "probability_forward": 1.0, "strength": 0.2}
    assert style_edge(edge).sign == ""
    assert style_edge({**edge, "slope": 2.0, "slope_low": 1.0, "slope_high": 3.0}).sign == "+"
    assert style_edge({**edge, "slope": -2.0, "slope_low": -3.0, "slope_high": -1.0}).sign == "\N{MINUS SIGN}"
    assert style_edge({**edge, "slope": 2.0, "slope_low": -1.0, "slope_high": 5.0}).sign == ""
    assert style_edge({**edge, "slope": None}).sign == ""


@given(SHARES, SHARES)
def test_weak_and_uncertain_edges_are_tentative_and_lighter(probability, strength):
    style = EdgeStyle(probability, strength)
    assert style.is_tentative == (probability < MIN_CLEAR_PROBABILITY or strength < MIN_CLEAR_STRENGTH)
    assert style.opacity <= (TENTATIVE_OPACITY if style.is_tentative else 1.0)


@given(SHARES, SHARES)
def test_larger_effects_are_thicker_and_likelier_edges_darker(one, other):
    low, high = sorted((one, other))
    assert EdgeStyle(0.99, low).relative_width <= EdgeStyle(0.99, high).relative_width
    assert EdgeStyle(low, 0.3).opacity <= EdgeStyle(high, 0.3).opacity


def test_an_edge_of_a_search_by_tests_has_the_usual_width_and_is_not_tentative():
    style = style_edge({"mark": "→", "p_value": 0.01})
    assert (style.opacity, style.relative_width, style.is_tentative) == (1.0, 1.0, False)
