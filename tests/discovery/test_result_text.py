"""Results as text: probabilities of edges and differences, and what is possible but not drawn."""

from __future__ import annotations

import pytest

import fedcdh
from fedcdh.discovery.result import Edge
from fedcdh.discovery.result_text import (
    MAX_POSSIBLE_PRINTED,
    describe_edge_probability,
    find_possible,
    format_changes,
    format_graph,
    format_possible,
    format_probability,
)
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN


def edge(source, target, mark, probability, forward):
    nothing = {"p_value": None, "separating_set": None, "oriented_by": None}
    nothing |= {"change_forward": None, "change_backward": None}
    return Edge(source, target, mark, **nothing, probability=probability, probability_forward=forward)


@pytest.mark.parametrize(
    ("probability", "shown"),
    [
        (0.0, "<0.01"),
        (0.0099, "<0.01"),
        (0.01, "0.01"),
        (0.29, "0.29"),
        (0.7999, "0.79"),
        (0.5, "0.50"),
        (0.9949, "0.99"),
        (1.0, ">0.99"),
    ],
)
def test_nothing_is_quite_certain(probability, shown):
    assert format_probability(probability) == shown


def test_arrows_have_their_own_probability_and_lines_also_that_of_the_likelier_direction():
    assert describe_edge_probability(edge("a", "b", "→", 0.99, 0.86)) == "0.86"
    assert describe_edge_probability(edge("a", "b", "—", 0.97, 0.62)) == "0.97 (→ 0.62)"
    assert describe_edge_probability(edge("a", "b", "—", 0.97, 0.27)) == "0.97 (← 0.70)"


def test_rows_are_those_of_the_graph_with_probabilities_in_one_column():
    graph = PartialGraph("abcd", frozenset({("c", "b")}), frozenset({frozenset("ab")}))
    edges = [edge("a", "b", "—", 0.97, 0.62), edge("c", "b", "→", 1.0, 0.9), edge(DOMAIN, "b", "→", 1.0, 1.0)]
    rows = format_graph(graph, edges).splitlines()
    assert rows == ["c → b   0.90", "a — b   0.97 (→ 0.62)", "d"]
    assert [row[:5].rstrip() for row in rows] == str(graph).splitlines()


def test_changes_have_probabilities():
    assert format_changes({"z", "b"}, {"a": 0.1, "b": 0.66, "z": 1.0}) == "b (0.66), z (>0.99)"


def test_what_is_possible_is_listed_the_likeliest_first():
    edges = [
        edge("a", "b", "→", 0.9, 0.9),
        edge("a", "c", "", 0.2, 0.1),
        edge(DOMAIN, "c", "", 0.4, 0.4),
        edge("b", "c", "", 0.0999, 0.05),
    ]
    assert list(format_possible(edges)) == ["possible: c differs 0.40, a — c 0.20"]
    assert list(format_possible(edges[:1])) == []
    many = [edge("a", f"v{number}", "", 0.3, 0.1) for number in range(MAX_POSSIBLE_PRINTED + 2)]
    assert next(format_possible(many)).endswith("v9 0.30 and 2 more")
    assert len(find_possible(many)) == len(many)


def test_a_search_by_tests_is_printed_without_probabilities():
    columns = fedcdh.simulate(seed=1).columns("site")
    by_tests = fedcdh.discover(columns, domain="site", method="constraint")
    assert str(by_tests.graph) in str(by_tests)
    assert "probabilities" not in str(by_tests)
    assert "possible" not in str(by_tests)
    found = fedcdh.discover(columns, domain="site")
    assert "probabilities, standardised slopes" in str(found).splitlines()[0]
    for one in found.edges():
        if one.mark == "→" and one.source != DOMAIN:
            (row,) = (row for row in str(found).splitlines() if row.startswith(f"{one.source} → {one.target} "))
            assert row.split()[3:] == [format_probability(one.probability_forward), f"{one.standardised_slope:+.2f}"]
