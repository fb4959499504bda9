"""Plots with matplotlib: every name is there, text fits, and the same graph gives the same file."""

from __future__ import annotations

import sys

import pytest
from studies import mixed

import fedcdh
from fedcdh.errors import MissingDependencyError, SettingsError
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN
from fedcdh.reporting import plots
from fedcdh.reporting.graph_drawing.scene import CHANGING_NOTE, scene_of

pytest.importorskip("igraph", reason="igraph is not installed; pip install 'fedcdh[report]'")
matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'fedcdh[report]'")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

CHAIN = PartialGraph((DOMAIN, "a", "b", "c"), frozenset({(DOMAIN, "a"), ("a", "b")}), frozenset({frozenset("bc")}))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def result():
    return fedcdh.discover(mixed())


def test_a_result_is_plotted_with_its_names(result):
    axes = plots.plot(result)
    written = [text.get_text() for text in axes.texts]
    assert set(result.graph.nodes) <= set(written)
    assert ("mechanism differs between sites" in written) == bool(result.changing)


def test_text_fits_into_the_boxes_whatever_the_size_of_the_axes(result):
    for size in (3, 12):
        figure, axes = pyplot.subplots(figsize=(size, size))
        plots.plot(result, axes, legend=False)
        figure.canvas.draw()
        boxes = {node.name: node for node in scene_of(result).nodes}
        for text in axes.texts:
            if text.get_text() == CHANGING_NOTE:
                continue
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


def test_other_formats_are_refused(result, tmp_path):
    with pytest.raises(SettingsError, match=r"Expected one of \.svg, \.pdf, \.png"):
        plots.save(result, tmp_path / "graph.jpeg")


@pytest.mark.parametrize(("module", "extra"), [("matplotlib", "plot"), ("igraph", "report")])
def test_what_is_not_installed_is_named_with_its_extra(module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'fedcdh\[{extra}\]'"):
        plots.plot(CHAIN)
