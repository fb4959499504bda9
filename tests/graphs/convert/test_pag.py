"""Ancestral graphs go to other programs and come back unchanged."""

from __future__ import annotations

import random

import pytest
from ancestral_oracle import pag_of_mag, random_hidden

from fedcdh.errors import GraphError
from fedcdh.graphs import convert
from fedcdh.graphs.ancestral_graph import AncestralGraph
from fedcdh.graphs.latent_projection import project_to_mag

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")

ODD = AncestralGraph.from_pairs(('a "b"\\', "ß\nc"), [frozenset(('a "b"\\', "ß\nc"))], "tail")


def graphs():
    for seed in range(40):
        rng = random.Random(seed)
        dag, gone = random_hidden(rng, rng.randint(2, 7), rng.randint(0, 2), rng.uniform(1, 3))
        yield pag_of_mag(project_to_mag(dag, gone))


@pytest.mark.parametrize("form", ["json", "tetrad", "dot", "causal_learn"])
def test_round_trips(form):
    if form in ("dot", "causal_learn"):
        pytest.importorskip({"dot": "pydot", "causal_learn": "causallearn"}[form])
    there, back = getattr(convert, f"pag_to_{form}"), getattr(convert, f"pag_from_{form}")
    for graph in graphs():
        found = back(there(graph))
        assert found == graph
        assert found.nodes == graph.nodes


@pytest.mark.parametrize("form", ["json", "dot"])
def test_names_may_hold_anything(form):
    if form == "dot":
        pytest.importorskip("pydot")
    assert getattr(convert, f"pag_from_{form}")(getattr(convert, f"pag_to_{form}")(ODD)) == ODD


def test_pcalg_matrices_come_back():
    for graph in graphs():
        assert convert.pag_from_pcalg(graph.nodes, convert.pag_to_pcalg(graph)) == graph
    with pytest.raises(GraphError, match="expected a row and a column per name"):
        convert.pag_from_pcalg(("x",), [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "its format is None"),
        ('{"format": "fedcdh-pag-1", "nodes": [1], "edges": []}', "nodes should be a list of names"),
        (
            '{"format": "fedcdh-pag-1", "nodes": ["x", "y"], "edges": [["x", "=>", "y"]]}',
            "expected two marks such as o->",
        ),
        ('{"format": "fedcdh-pag-1", "nodes": ["x", "y"], "edges": ["x"]}', "edges should be a list of lists"),
        (
            '{"format": "fedcdh-pag-1", "nodes": ["x", "y"], "edges": [["x", "o-o", "y"], ["y", "-->", "x"]]}',
            "found two edges",
        ),
    ],
)
def test_json_that_is_no_graph_is_refused(text, complaint):
    with pytest.raises(GraphError, match=complaint):
        convert.pag_from_json(text)


def test_tetrad_texts_that_are_no_graph_are_refused():
    with pytest.raises(GraphError, match=r'such as "1. a o-> b"'):
        convert.pag_from_tetrad("Graph Nodes:\nx;y\n\nGraph Edges:\nx o-> y\n")
    with pytest.raises(GraphError, match="cannot read names with spaces"):
        convert.pag_to_tetrad(AncestralGraph(("a b",), {}))
