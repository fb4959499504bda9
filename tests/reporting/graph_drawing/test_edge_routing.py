"""Routing: edges leave and reach the borders of their boxes side by side, and labels fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fedcdh.reporting.graph_drawing.edge_routing import PORT_SPACING, Route, route_edges, shorten, text_width
from fedcdh.reporting.graph_drawing.layered_layout import BoxSize, LayeredLayout

BOXES = {name: BoxSize(60.0, 40.0) for name in "abcd"}
LAYOUT = LayeredLayout(
    {"a": (30.0, 20.0), "b": (30.0, 100.0), "c": (30.0, 180.0), "d": (200.0, 100.0)},
    {("a", "d"): (), ("b", "d"): (), ("c", "d"): (), ("d", "a"): ()},
    230.0,
    200.0,
)


@given(st.text(max_size=30), st.integers(2, 20))
def test_a_shortened_text_fits(text, limit):
    short = shorten(text, limit)
    assert text_width(short) <= limit
    assert (short == text) == (text_width(text) <= limit)


def test_wide_characters_take_more_room_and_accents_none():
    assert text_width("血圧") == 3.6
    assert text_width("e\u0301") == 1.0


def test_edges_reach_a_box_in_the_order_in_which_they_come():
    routes = route_edges([("c", "d"), ("a", "d"), ("b", "d")], LAYOUT, BOXES)
    arrivals = {route.points[0][1]: route.points[-1] for route in routes}
    assert [arrivals[height] for height in sorted(arrivals)] == [
        (170.0, 100.0 - PORT_SPACING),
        (170.0, 100.0),
        (170.0, 100.0 + PORT_SPACING),
    ]
    assert all(route.facing == 1 for route in routes)


def test_an_edge_against_the_layers_leaves_on_the_left():
    (route,) = route_edges([("d", "a")], LAYOUT, BOXES)
    assert (route.points, route.facing) == (((170.0, 100.0), (60.0, 20.0)), -1)


def test_a_route_reversed_twice_is_itself():
    route = Route(((0.0, 1.0), (2.0, 3.0), (4.0, 5.0)), (1.0, -2.0), 1)
    assert route.reverse().points == route.points[::-1]
    assert route.reverse().reverse() == route
