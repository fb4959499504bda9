"""Plots and pictures: everything is there, nothing overlaps, and the same graph gives the same file."""

import sys
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from strategies import graphs
from studies import mixed

import fedcdh
from fedcdh.errors import MissingDependencyError, SettingsError
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN
from fedcdh.reporting import plots
from fedcdh.reporting.graph_drawing import svg
from fedcdh.reporting.graph_drawing.scene import MAX_LABEL_CHARACTERS, build_scene, node_label

pytest.importorskip("igraph", reason="igraph is not installed; pip install 'fedcdh[plot]'")
matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'fedcdh[plot]'")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

CHAIN = PartialGraph((DOMAIN, "a", "b", "c"), frozenset({(DOMAIN, "a"), ("a", "b")}), frozenset({frozenset("bc")}))
SPACE = {"svg": "http://www.w3.org/2000/svg"}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


# The sketch


@given(graphs())
@settings(deadline=None)
def test_every_node_and_edge_is_drawn_once(graph):
    made = build_scene(graph)
    assert {node.name for node in made.nodes} == set(graph.nodes)
    assert {(curve.tail, curve.head) for curve in made.curves if curve.tip} == graph.arrows
    assert {frozenset((curve.tail, curve.head)) for curve in made.curves if not curve.tip} == graph.lines


@given(graphs())
@settings(deadline=None)
def test_boxes_do_not_overlap_and_stay_on_the_paper(graph):
    made = build_scene(graph)
    for one, other in combinations(made.nodes, 2):
        apart = abs(one.x - other.x) >= (one.width + other.width) / 2 - 1e-6
        assert apart or abs(one.y - other.y) >= (one.height + other.height) / 2 - 1e-6
    for node in made.nodes:
        assert node.width / 2 - 1e-6 <= node.x <= made.width - node.width / 2 + 1e-6
        assert node.height / 2 - 1e-6 <= node.y <= made.height - node.height / 2 + 1e-6


@given(graphs(directed_only=True))
@settings(deadline=None)
def test_causes_stand_on_the_left_of_effects(graph):
    place = {node.name: node.x for node in build_scene(graph).nodes}
    assert all(place[tail] < place[head] for tail, head in graph.arrows)


def test_arrows_in_a_circle_can_be_drawn():
    circle = PartialGraph(("a", "b", "c"), frozenset({("a", "b"), ("b", "c"), ("c", "a")}))
    assert len(build_scene(circle).curves) == 3


def test_the_domain_marks_its_children():
    marked = {node.name: (node.label, node.changing, len(node.outline)) for node in build_scene(CHAIN).nodes}
    assert marked["a"] == ("a", True, 8)
    assert marked["b"] == ("b", False, 4)
    assert marked[DOMAIN][0] == "℧"


def test_long_names_are_cut():
    assert node_label("x" * 100) == "x" * (int(MAX_LABEL_CHARACTERS) - 1) + "…"
    assert node_label("two\n lines") == "two lines"


# SVG without a drawing library


@given(graphs())
@settings(deadline=None)
def test_the_picture_is_xml_with_every_name(graph):
    text = svg.render_svg(graph, changing=graph.nodes[:1])
    read = ElementTree.fromstring(text)
    written = [element.text or "" for element in read.iterfind(".//svg:text", SPACE)]
    assert sorted(written) == sorted(node_label(name) for name in graph.nodes)
    assert text == svg.render_svg(graph, changing=graph.nodes[:1])


def test_names_cannot_break_out_of_the_picture():
    nasty = PartialGraph(("</text><script>alert(1)</script>", '" onload="alert(1)'))
    text = svg.render_svg(nasty)
    assert "<script" not in text
    assert 'onload="' not in text
    ElementTree.fromstring(text)


# matplotlib


@pytest.fixture(scope="module")
def result():
    return fedcdh.discover(mixed())


def test_a_result_is_plotted_with_its_names(result):
    axes = plots.plot(result)
    written = [text.get_text() for text in axes.texts]
    assert set(result.graph.nodes) <= set(written)
    assert ("differs between clients" in written) == bool(result.changing)


def test_text_fits_into_the_boxes_whatever_the_size_of_the_axes(result):
    for size in (3, 12):
        figure, axes = pyplot.subplots(figsize=(size, size))
        plots.plot(result, axes, legend=False)
        figure.canvas.draw()
        boxes = {node.name: node for node in build_scene(result).nodes}
        for text in axes.texts:
            extent = text.get_window_extent().transformed(axes.transData.inverted())
            assert abs(extent.width) <= boxes[text.get_text()].width
            assert abs(extent.height) <= boxes[text.get_text()].height


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_same_graph_gives_the_same_file(ending, result, tmp_path):
    one, other = plots.save(result, tmp_path / f"one.{ending}"), plots.save(result, str(tmp_path / f"other.{ending}"))
    assert one.read_bytes() == other.read_bytes()
    assert len(one.read_bytes()) > 1000
    assert not pyplot.get_fignums()


def test_svg_files_hold_text_that_can_be_searched(result, tmp_path):
    text = plots.save(result, tmp_path / "graph.svg").read_text(encoding="utf-8")
    assert all(f">{name}<" in text for name in result.graph.nodes)


def test_a_dollar_in_a_name_is_a_dollar(tmp_path):
    priced = PartialGraph(("price $", "cost $x_1$"), frozenset({("cost $x_1$", "price $")}))
    assert "cost $x_1$" in plots.save(priced, tmp_path / "graph.svg").read_text(encoding="utf-8")


def test_a_graph_without_edges_or_nodes(tmp_path):
    plots.save(PartialGraph(("a",)), tmp_path / "one.png")
    plots.save(PartialGraph(()), tmp_path / "none.png")
    ElementTree.fromstring(svg.render_svg(PartialGraph(())))


def test_other_formats_are_refused(result, tmp_path):
    with pytest.raises(SettingsError, match=r"expected one of \.svg, \.pdf, \.png"):
        plots.save(result, tmp_path / "graph.jpeg")


@pytest.mark.parametrize("module", ["matplotlib", "igraph"])
def test_what_is_not_installed_is_named_with_its_extra(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'fedcdh\[plot\]'"):
        plots.plot(CHAIN)
