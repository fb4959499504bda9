"""Votes on local graphs: what a line is worth, and which of several ways decides."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.bench_votes import WAYS, count_votes, learn_by_ges, learn_exactly, main
from fedcdh.evaluation.baselines.graph_votes import run_na_yang
from fedcdh.graphs.partial_graph import PartialGraph

NAMES = ("a", "b")
FORTH, BACK = (PartialGraph(NAMES, arrows) for arrows in (frozenset({("a", "b")}), frozenset({("b", "a")})))
LINE, NONE = PartialGraph(NAMES, frozenset(), frozenset({frozenset(NAMES)})), PartialGraph(NAMES, frozenset())


def test_an_arrow_needs_more_votes_than_its_reverse_or_those_of_most_clients():
    graphs = [FORTH, FORTH, BACK, LINE, LINE]
    assert count_votes(graphs, NAMES, most_of_all=False).arrows == {("a", "b")}
    assert count_votes(graphs, NAMES, most_of_all=True) == LINE
    assert count_votes([FORTH, BACK], NAMES, most_of_all=False) == LINE
    assert count_votes([FORTH, NONE, NONE], NAMES, most_of_all=False) == NONE


def test_the_first_way_is_that_of_the_registry():
    x, y, z = np.random.default_rng(1).standard_normal((3, 400))
    table = np.column_stack([x, y, x + y + z])
    tables = {"north": table[:150], "south": table[150:300], "west": table[300:]}
    names = ("x", "y", "z")
    graphs = [learn_by_ges(rows, names) for rows in tables.values()]
    assert count_votes(graphs, names, most_of_all=False) == run_na_yang(tables, names).graph
    assert learn_exactly(table, names) == learn_by_ges(table, names)


def test_the_table_has_a_line_for_every_way(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench_votes", "--seeds", "1:2"])
    main()
    assert capsys.readouterr().out.count("\n") == 1 + len(WAYS)
