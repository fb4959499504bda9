"""Ancestral graphs: marks, relations, visible arrows, and values that do not change."""

from __future__ import annotations

import random

import pytest
from ancestral_oracle import is_ancestral, random_hidden

from fedcdh.errors import GraphError
from fedcdh.graphs.ancestral_graph import AncestralGraph
from fedcdh.graphs.latent_projection import project_to_mag
from fedcdh.graphs.partial_graph import PartialGraph, find_reachable

MIXED = AncestralGraph(
    ("a", "b", "c", "d"),
    {
        ("a", "b"): "arrow",
        ("b", "a"): "circle",
        ("b", "c"): "arrow",
        ("c", "b"): "tail",
        ("d", "c"): "arrow",
        ("c", "d"): "arrow",
    },
)


def test_marks_and_relations_are_those_that_were_given():
    assert MIXED.marks("a", "b") == ("circle", "arrow")
    assert MIXED.marks("b", "a") == ("arrow", "circle")
    assert MIXED.marks("a", "c") is None
    assert (MIXED.parents("c"), MIXED.children("b"), MIXED.spouses("c")) == ({"b"}, {"c"}, {"d"})
    assert str(MIXED) == "a ○→ b\nb → c\nc ↔ d"
    assert MIXED.descendants("a") == {"a"}
    assert MIXED.possible_descendants("a") == {"a", "b", "c"}
    assert AncestralGraph(("d", "c", "b", "a"), dict(reversed(MIXED.end_marks.items()))) == MIXED


@pytest.mark.parametrize(
    ("nodes", "marks", "complaint"),
    [
        (("a", "a"), {}, "listed more than once: a"),
        (("a", "b"), {("a", "b"): "arrow"}, "has one mark only"),
        (("a",), {("a", "a"): "arrow"}, "expected two different nodes"),
        (("a", "b"), {("a", "b"): "head", ("b", "a"): "tail"}, "expected 'tail', 'arrow' or 'circle'"),
    ],
)
def test_graphs_that_cannot_be_are_refused(nodes, marks, complaint):
    with pytest.raises(GraphError, match=complaint):
        AncestralGraph(nodes, marks)


def test_the_marks_of_a_graph_cannot_be_changed():
    with pytest.raises(TypeError):
        MIXED.end_marks["a", "b"] = "tail"


def test_projections_are_ancestral_and_say_who_causes_whom():
    for seed in range(60):
        rng = random.Random(seed)
        dag, gone = random_hidden(rng, rng.randint(2, 8), rng.randint(0, 3), rng.uniform(1, 3))
        mag = project_to_mag(dag, gone)
        assert is_ancestral(mag)
        children = {node: dag.children(node) for node in dag.nodes}
        for tail in mag.nodes:
            assert mag.descendants(tail) == find_reachable(children, tail) - gone


def test_an_arrow_is_visible_if_no_hidden_cause_can_be_behind_it():
    arrows = [("z", "x"), ("x", "y")]
    assert project_to_mag(PartialGraph.from_dag("xyz", arrows), "").is_visible("x", "y")
    assert not project_to_mag(PartialGraph.from_dag("xyz", arrows[1:]), "").is_visible("x", "y")
    confounded = PartialGraph.from_dag("hxyz", [*arrows, ("h", "x"), ("h", "y")])
    assert not project_to_mag(confounded, "h").is_visible("x", "y")


def test_visible_arrows_have_no_hidden_common_cause():
    counted = 0
    for seed in range(120):
        rng = random.Random(seed)
        dag, gone = random_hidden(rng, rng.randint(3, 7), rng.randint(0, 2), rng.uniform(1, 3))
        mag = project_to_mag(dag, gone)
        for node in gone:
            below = find_reachable(
                {n: dag.children(n) - (frozenset() if n in gone else dag.children(n)) for n in dag.nodes}, node
            )
            for tail in below - gone:
                for head in mag.children(tail) & below:
                    counted += 1
                    assert not mag.is_visible(tail, head), f"seed {seed}"
    assert counted > 10
