"""The scene: every node and edge once, no overlaps, and the same boxes for all back ends."""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from strategies import graphs

import fedcdh
from fedcdh.errors import MissingDependencyError
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.edge_style import EdgeStyle
from fedcdh.reporting.graph_drawing.scene import (
    MAX_LABEL_CHARACTERS,
    NARROW_LAYER_SIZE,
    build_narrow_scene,
    build_scene,
    fit_label,
    scene_of,
)
from fedcdh.reporting.html.graph_svg import draw_graph
from fedcdh.reporting.result_files import render_result_json

pytest.importorskip("igraph", reason="igraph is not installed; pip install 'fedcdh[report]'")
CHAIN = PartialGraph((DOMAIN, "a", "b", "c"), frozenset({(DOMAIN, "a"), ("a", "b")}), frozenset({frozenset("bc")}))


@given(graphs())
@settings(deadline=None)
def test_every_node_and_edge_is_drawn_once(graph):
    scene = scene_of(graph)
    assert {node.name for node in scene.nodes} == set(graph.nodes)
    assert {(curve.tail, curve.head) for curve in scene.curves if curve.directed} == graph.arrows
    assert {frozenset((curve.tail, curve.head)) for curve in scene.curves if not curve.directed} == graph.lines


@given(graphs())
@settings(deadline=None)
def test_boxes_do_not_overlap_and_stay_on_the_paper(graph):
    scene = scene_of(graph)
    for one, other in combinations(scene.nodes, 2):
        apart = abs(one.x - other.x) >= (one.width + other.width) / 2 - 1e-6
        assert apart or abs(one.y - other.y) >= (one.height + other.height) / 2 - 1e-6
    for node in scene.nodes:
        assert node.width / 2 - 1e-6 <= node.x <= scene.width - node.width / 2 + 1e-6
        assert node.height / 2 - 1e-6 <= node.y <= scene.height - node.height / 2 + 1e-6


@given(graphs(directed_only=True))
@settings(deadline=None)
def test_causes_stand_on_the_left_of_effects(graph):
    place = {node.name: node.x for node in scene_of(graph).nodes}
    assert all(place[tail] < place[head] for tail, head in graph.arrows)


def test_arrows_in_a_circle_can_be_drawn():
    circle = PartialGraph(("a", "b", "c"), frozenset({("a", "b"), ("b", "c"), ("c", "a")}))
    assert len(scene_of(circle).curves) == 3


def test_the_domain_marks_its_children():
    marked = {node.name: (node.label, node.changing, len(node.outline)) for node in scene_of(CHAIN).nodes}
    assert marked["a"] == ("a", True, 8)
    assert marked["b"] == ("b", False, 4)
    assert marked[DOMAIN][0] == "℧"


def test_long_names_are_cut():
    assert fit_label("x" * 100) == "x" * (int(MAX_LABEL_CHARACTERS) - 1) + "…"
    assert fit_label("two\n lines") == "two lines"


def test_the_order_of_the_edges_makes_no_difference_to_the_picture():
    arrows = [("a", "c"), ("b", "c"), ("c", "d"), ("a", "d"), ("b", "e")]
    one, other = (build_scene("abcde", edges, [("d", "e")]) for edges in (arrows, arrows[::-1]))
    assert one.nodes == other.nodes
    assert set(one.curves) == set(other.curves)


def test_the_report_and_the_plot_of_a_result_are_the_same_scene():
    result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    drawing = draw_graph(json.loads(render_result_json(result)))
    drawn = [(node["name"], node["x"], node["y"], node["width"], node["height"]) for node in drawing.nodes]
    scene = scene_of(result)
    places = [(n.name, round(n.x, 1), round(n.y, 1), round(n.width, 1), round(n.height, 1)) for n in scene.nodes]
    assert sorted(drawn) == sorted(places)
    assert drawing.svg.count("differs by site") == sum(node.changing for node in scene.nodes) == 2


def test_an_open_edge_is_drawn_from_the_given_end_along_the_dag():
    forward = build_scene("ab", [], [("a", "b")], dag=[("a", "b")]).curves[0]
    backward = build_scene("ab", [], [("b", "a")], dag=[("a", "b")]).curves[0]
    assert (forward.start, forward.stop) == (backward.stop, backward.start)
    assert (forward.facing, backward.facing) == (1, -1)
    assert forward.arrowhead is backward.arrowhead is None


def test_edges_are_fainter_where_they_are_less_likely_and_thinner_where_effects_are_small():
    pairs = [("a", "b"), ("b", "c"), ("c", "d")]
    known = {frozenset("ab"): EdgeStyle(0.5, 0.02), frozenset("bc"): EdgeStyle(0.92, 0.4)}
    styles = [curve.style for curve in build_scene("abcd", pairs, [], styles=known).curves]
    assert styles[0].opacity < styles[1].opacity < styles[2].opacity == 1
    assert styles[0].relative_width < 1 < styles[1].relative_width
    assert styles[2].relative_width == 1  # not known
    assert [style.is_tentative for style in styles] == [True, False, False]


def test_a_result_by_tests_is_drawn_without_grades():
    study = fedcdh.simulate("linear", variables=4, clients=3, rows=200, seed=3)
    by_tests = fedcdh.discover(dict(study.tables), names=study.names, method="constraint")
    assert {curve.style.probability for curve in scene_of(by_tests).curves} == {None}
    found = fedcdh.discover(dict(study.tables), names=study.names)
    for curve in scene_of(found).curves:
        assert (
            curve.style.probability == pytest.approx(found.posterior.arrows[curve.tail, curve.head])
            or not curve.directed
        )


def test_the_arrowhead_touches_the_box_of_the_effect():
    scene = build_scene(["cause", "effect"], [("cause", "effect")], [])
    (curve,), effect = scene.curves, scene.nodes[1]
    assert curve.arrowhead is not None
    assert curve.arrowhead[0] == (effect.x - effect.width / 2, effect.y)
    assert curve.pieces[-1][-1][0] < curve.arrowhead[0][0]


def test_without_igraph_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'fedcdh\[report\]'"):
        scene_of(CHAIN)


@given(graphs())
@settings(deadline=None)
def test_a_narrow_scene_grows_downwards_and_loses_nothing(graph):
    arrows, lines = sorted(graph.arrows), [tuple(sorted(line)) for line in graph.lines]
    scene = build_narrow_scene(graph.nodes, arrows, sorted(lines))
    assert {node.name for node in scene.nodes} == set(graph.nodes)
    assert len(scene.curves) == len(arrows) + len(lines)
    assert all(curve.downwards for curve in scene.curves)
    joined = {name for pair in (*arrows, *lines) for name in pair}
    heights = Counter(node.y for node in scene.nodes if node.name in joined)
    assert max(heights.values(), default=0) <= NARROW_LAYER_SIZE
    for one, other in combinations(scene.nodes, 2):
        apart = abs(one.x - other.x) >= (one.width + other.width) / 2 - 1e-6
        assert apart or abs(one.y - other.y) >= (one.height + other.height) / 2 - 1e-6


@given(graphs(directed_only=True))
@settings(deadline=None)
def test_in_a_narrow_scene_causes_stand_above_their_effects(graph):
    scene = build_narrow_scene(graph.nodes, sorted(graph.arrows), [])
    place = {node.name: node.y for node in scene.nodes}
    assert all(place[tail] < place[head] for tail, head in graph.arrows)
    for curve in scene.curves:
        tip, *_ = curve.arrowhead
        head = next(node for node in scene.nodes if node.name == curve.head)
        assert tip == curve.stop
        assert tip[1] == pytest.approx(head.y - head.height / 2)
        assert abs(tip[0] - head.x) <= head.width / 2
