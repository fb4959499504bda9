"""The SVG for notebooks: well-formed, escaped, and the same for the same graph."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from strategies import graphs

from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.reporting.graph_drawing.scene import CHANGING_NOTE, fit_label
from fedcdh.reporting.graph_drawing.svg import render_svg

pytest.importorskip("igraph", reason="igraph is not installed; pip install 'fedcdh[report]'")
SPACE = {"svg": "http://www.w3.org/2000/svg"}


@given(graphs())
@settings(deadline=None)
def test_the_picture_is_xml_with_every_name(graph):
    text = render_svg(graph, changing=graph.nodes[:1])
    read = ElementTree.fromstring(text)
    written = [element.text or "" for element in read.iterfind(".//svg:text", SPACE)]
    notes = [CHANGING_NOTE for _ in graph.nodes[:1]]
    assert sorted(written) == sorted([*(fit_label(name) for name in graph.nodes), *notes])
    assert text == render_svg(graph, changing=graph.nodes[:1])


def test_names_cannot_break_out_of_the_picture():
    nasty = PartialGraph(("</text><script>alert(1)</script>", '" onload="alert(1)'))
    text = render_svg(nasty)
    assert "<script" not in text
    assert 'onload="' not in text
    ElementTree.fromstring(text)


def test_an_open_edge_is_dashed_and_has_no_head():
    line = render_svg(PartialGraph(("a", "b"), frozenset(), frozenset({frozenset("ab")})))
    arrow = render_svg(PartialGraph(("a", "b"), frozenset({("a", "b")})))
    assert (line.count("stroke-dasharray"), line.count("<path")) == (1, 3)
    assert (arrow.count("stroke-dasharray"), arrow.count("<path")) == (0, 4)


def test_an_empty_graph_is_a_picture():
    ElementTree.fromstring(render_svg(PartialGraph(())))
