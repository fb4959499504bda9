"""The SVG of the graph: boxes do not overlap, and every edge is drawn."""

from __future__ import annotations

import re
from itertools import combinations

from reports import document

from fedcdh.protocols import DOMAIN
from fedcdh.reporting.html.graph_svg import MAX_NEG_LOG10_P, draw_graph, edge_strength

FIVE = document([f"v{at}" for at in range(5)])


def test_boxes_do_not_overlap():
    for size in (1, 2, 5, 30, 100):
        drawing = draw_graph(document([f"variable {at}" for at in range(size)], seed=size))
        for a, b in combinations(drawing.nodes, 2):
            apart = (
                abs(a["x"] - b["x"]) >= (a["width"] + b["width"]) / 2
                or abs(a["y"] - b["y"]) > (a["height"] + b["height"]) / 2
            )
            assert apart, (size, a, b)


def test_a_graph_without_a_dag_is_drawn():
    made = {**FIVE, "dag": None}
    assert draw_graph(made).svg.count('class="curve"') == draw_graph(FIVE).svg.count('class="curve"')


def test_every_edge_of_the_graph_has_a_curve_and_every_arrow_a_head():
    drawing = draw_graph(FIVE)
    marks = [edge["mark"] for edge in FIVE["edges"] if edge["mark"] and DOMAIN not in (edge["source"], edge["target"])]
    assert drawing.svg.count('class="curve"') == len(drawing.edges) == len(marks)
    assert drawing.svg.count('class="head"') == marks.count("→")


def test_wide_graphs_get_the_full_width_of_the_page():
    assert not draw_graph(FIVE).full_width
    assert draw_graph(document([f"variable {at}" for at in range(100)])).full_width


def test_the_strength_of_an_edge_is_its_evidence():
    assert edge_strength({"p_value": 0.0}) == MAX_NEG_LOG10_P
    assert edge_strength({"p_value": None}) is None
    assert edge_strength({"log_bayes_presence": -4.5, "p_value": 0.5}) == 4.5
    likely = {"log_bayes_presence": 4.5, "probability": 0.9, "probability_forward": 0.85}
    assert edge_strength({**likely, "mark": "→"}) == 0.85
    assert edge_strength({**likely, "mark": "—"}) == 0.9


def test_likely_edges_are_thicker_and_darker():
    drawn = []
    for probability in (0.55, 0.8, 0.999):
        made = document(["a", "b", "c"])
        made["graph"], made["dag"] = {"arrows": [["a", "b"]], "lines": []}, [["a", "b"]]
        edge = {"source": "a", "target": "b", "mark": "→", "probability": 1.0, "probability_forward": probability}
        svg = draw_graph({**made, "edges": [edge]}).svg
        (width,), opacity = re.findall(r' stroke-width="([\d.]+)"', svg), re.findall(r' stroke-opacity="([\d.]+)"', svg)
        drawn.append((float(width), float(opacity[0]) if opacity else 1.0))
    assert drawn == sorted(set(drawn))
    assert drawn[-1][1] == 1
