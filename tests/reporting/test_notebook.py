"""Notebooks show every kind of value with closed tags, escaped names, no script, no colours of its own."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from reports import HOSTILE, ParsedPage

import fedcdh
from fedcdh._io.text import describe_text_problem
from fedcdh.reporting import render_html

NAMES = [name for name in HOSTILE if not describe_text_problem(name)]
"""Names that a plan admits; it refuses the others."""


@pytest.fixture(scope="module")
def shown():
    """Every kind of value of a study whose names, levels and clients try to break out of the page."""
    rng, count = np.random.default_rng(4), 80
    clients = NAMES[:3]
    tables = {}
    for client in clients:
        columns = rng.standard_normal((len(NAMES), count)).cumsum(axis=0)
        table = dict(zip(NAMES, columns, strict=True))
        table["label"] = np.array(["<b>no</b>", "yes & more"])[(columns[-1] > 0).astype(int)]
        tables[client] = table
    plan = fedcdh.StudyPlan.from_tables(tables)
    result = fedcdh.discover(tables, rounds="one")
    return {
        "Discovery": result,
        "Stability": result.stability(),
        "PartialGraph": result.graph,
        "StudyPlan": plan,
        "Profile": fedcdh.profile(tables[clients[0]], clients[0]),
        "Summary": fedcdh.summarize(tables[clients[0]], plan, clients[0]),
        "Drift": result.drift(NAMES),
        "Effect": next(iter(result.effects())),
    }


KINDS = ("Discovery", "Stability", "PartialGraph", "StudyPlan", "Profile", "Summary", "Drift", "Effect")


@pytest.mark.parametrize("kind", KINDS)
def test_html_is_closed_escaped_and_without_scripts(kind, shown):
    html = shown[kind]._repr_html_()
    page = ParsedPage(html)
    assert not {"script", "img", "style", "link", "iframe"} & {tag for tag, _ in page.elements}
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
    assert "<b>no" not in html
    assert not set("\u202a\u202b\u202d\u202e\u2066\u2067") & set(html)
    assert len(html) < 120_000


@pytest.mark.parametrize("kind", KINDS)
def test_text_has_no_colours_of_its_own_outside_of_pictures(kind, shown):
    """On a dark page the text of tables is that of the page; a picture brings its own paper."""
    html = re.sub(r"<svg.*?</svg>", "", shown[kind]._repr_html_(), flags=re.DOTALL)
    assert not re.search(r"(?<![-\w])(color|background)[-\w]*\s*:", html)
    for svg in re.findall(r"<svg.*?</svg>", shown[kind]._repr_html_(), flags=re.DOTALL):
        assert re.search(r"<rect[^>]*fill=", svg) or "currentColor" in svg


@pytest.mark.parametrize("kind", KINDS)
def test_at_a_prompt_a_value_is_short(kind, shown):
    if kind != "Drift":  # a tuple, which shows its records
        assert len(repr(shown[kind])) < 3000
    assert str(shown[kind]).strip()


def test_names_are_in_what_is_shown(shown):
    for kind in ("StudyPlan", "Profile", "Summary"):
        text = ParsedPage(shown[kind]._repr_html_()).text
        assert all(name in text for name in NAMES), kind
        assert all(name in str(shown[kind]) for name in NAMES), kind


def test_a_graph_without_a_layout_is_text(monkeypatch):
    graph = fedcdh.PartialGraph(("<a>", "b"), frozenset({("<a>", "b")}))
    assert "<svg" in graph._repr_html_()
    monkeypatch.setitem(sys.modules, "igraph", None)
    assert "&lt;a&gt; → b" in graph._repr_html_()
    assert repr(graph) == "<PartialGraph: <a> → b>"


def test_saved_and_found_look_the_same(shown, tmp_path):
    fedcdh.write_result(shown["Discovery"], tmp_path)
    assert render_html(fedcdh.read_result(tmp_path)) == render_html(shown["Discovery"])


def test_long_tables_say_how_much_is_hidden():
    rows = {f"v{k}": np.arange(3.0) + k for k in range(60)}
    text = str(fedcdh.profile(rows, "north"))
    assert "... and 20 more rows" in text
    assert "v59" not in text


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
