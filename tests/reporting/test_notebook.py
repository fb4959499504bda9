"""The HTML of a notebook: closed tags, escaped names, every edge."""

from __future__ import annotations

import sys

from reports import ParsedPage

import fedcdh


def test_what_a_notebook_shows():
    study = fedcdh.simulate("linear", variables=4, clients=3, rows=200, seed=3, names=["<b>", "a & b", "c'\"", "d"])
    for method in ("evidence", "constraint"):
        result = fedcdh.discover(dict(study.tables), names=study.names, method=method)
        shown = result._repr_html_()
        page = ParsedPage(shown)  # every tag is closed
        assert "<b>" not in shown
        assert ("probability" in page.text) == (method == "evidence")
        for edge in result.edges():
            if edge.mark and edge.source != fedcdh.DOMAIN:
                assert "".join((edge.source, edge.mark, edge.target)) in page.text.replace("\n", "")


def test_without_igraph_the_notebook_says_what_to_install(monkeypatch):
    study = fedcdh.simulate("linear", variables=3, clients=2, rows=100, seed=3)
    result = fedcdh.discover(dict(study.tables), names=study.names)
    monkeypatch.setitem(sys.modules, "igraph", None)
    shown = result._repr_html_()
    assert "The graph cannot be drawn." in shown
    assert "fedcdh[report]" in shown
    assert result._repr_svg_() is None
