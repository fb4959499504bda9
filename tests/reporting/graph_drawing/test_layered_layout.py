"""The layered layout: causes on the left of their effects, in any graph."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.reporting.graph_drawing.layered_layout import BoxSize, compute_layout


@given(st.integers(2, 12).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.tuples(*[st.integers(0, n - 1)] * 2)))))
@settings(max_examples=60, deadline=None)
def test_any_graph_has_a_layout_with_causes_on_the_left(drawn):
    size, pairs = drawn
    edges = [(f"n{a}", f"n{b}") for a, b in sorted(pairs) if a < b]
    layout = compute_layout({f"n{at}": BoxSize(60, 30) for at in range(size)}, edges)
    assert set(layout.centres) == {f"n{at}" for at in range(size)}
    for tail, head in edges:
        assert layout.centres[tail][0] < layout.centres[head][0]
        points = layout.waypoints[tail, head]
        assert all(x0 <= x1 for (x0, _), (x1, _) in pairwise(points))
    circle = [(f"n{at}", f"n{(at + 1) % size}") for at in range(size)] if size > 2 else []
    assert len(compute_layout({f"n{at}": BoxSize(60, 30) for at in range(size)}, circle).centres) == size
