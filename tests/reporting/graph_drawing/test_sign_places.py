"""Places for signs: on their curves, apart from boxes and from other curves where there is room."""

from __future__ import annotations

import math
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.reporting.graph_drawing.sign_places import SIGN_RADIUS, place_signs


def straight(start, stop):
    return start, [(start, stop, stop)]


def test_only_signed_curves_have_places():
    curves = [straight((0.0, 0.0), (100.0, 0.0)), straight((0.0, 50.0), (100.0, 50.0))]
    assert place_signs(curves, [False, False], []) == [None, None]
    first, second = place_signs(curves, [True, False], [])
    assert first is not None
    assert second is None


@given(st.integers(2, 6))
@settings(deadline=None)
def test_signs_of_parallel_curves_do_not_overlap(count):
    curves = [straight((0.0, 9.0 * at), (300.0, 9.0 * at)) for at in range(count)]
    places = place_signs(curves, [True] * count, [])
    assert all(math.dist(a, b) >= SIGN_RADIUS for a, b in combinations(places, 2))
    assert [place[1] for place in places] == [9.0 * at for at in range(count)]


def test_a_sign_keeps_away_from_a_box_on_its_way():
    (place,) = place_signs([straight((0.0, 0.0), (200.0, 0.0))], [True], [(100.0, 0.0, 30.0, 16.0)])
    assert not 70 - SIGN_RADIUS < place[0] < 130 + SIGN_RADIUS


def test_where_curves_cross_no_sign_stands():
    curves = [straight((0.0, 0.0), (100.0, 100.0)), straight((0.0, 100.0), (100.0, 0.0))]
    places = place_signs(curves, [True, True], [])
    assert all(math.dist(place, (50.0, 50.0)) > 2 * SIGN_RADIUS for place in places)
