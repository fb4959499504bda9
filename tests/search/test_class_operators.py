"""Operators on equivalence classes: they reach all neighbours, and change the families that they name."""

from __future__ import annotations

import random

import pytest
from oracle import random_dag
from scored_graphs import all_dags, gaussian_bic, total

from fedcdh.graphs.equivalence import extend_to_dag, to_cpdag
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import Family
from fedcdh.search.class_operators import ClassState, list_deletions, list_insertions, list_turns


def test_operators_change_the_families_that_they_name():
    """The gain by the changed families is the difference of the totals of two DAGs, for every valid operator."""
    for seed in range(12):
        rng = random.Random(700 + seed)
        dag = random_dag(rng, 5, 2.5)
        score = gaussian_bic(dag, 200, seed)
        state = ClassState(tuple(sorted(dag.nodes)), to_cpdag(dag))
        operators = [*list_insertions(state, 5), *list_deletions(state), *list_turns(state, 5)]
        valid = [(operator, after) for operator in operators if (after := operator.apply(state)) is not None]
        assert valid
        for operator, after in valid:
            gain = 0.0
            for node, old, new in operator.changes:
                asked = [Family(state.nodes[node], frozenset(state.names(members))) for members in (old, new)]
                before, behind = score(asked)
                gain += behind - before
            expected = total(extend_to_dag(after), score) - total(dag, score)
            assert gain == pytest.approx(expected, abs=1e-6), f"seed {seed}: {operator}"


def test_operators_reach_all_neighbours_of_a_class():
    """Insertions and deletions lead to exactly the classes of DAGs that differ by one arrow from a DAG of the class."""
    nodes = tuple("abcd")
    classes: dict[PartialGraph, list[PartialGraph]] = {}
    for dag in all_dags(nodes):
        classes.setdefault(to_cpdag(dag), []).append(dag)
    for cpdag, dags in random.Random(1).sample(sorted(classes.items(), key=str), 60):
        state = ClassState(nodes, cpdag)
        larger = {to_cpdag(PartialGraph(nodes, d.arrows | {a})) for d in dags for a in possible_arrows(d)}
        assert {one.apply(state) for one in list_insertions(state, 4)} - {None} == larger
        smaller = {to_cpdag(PartialGraph(nodes, d.arrows - {a})) for d in dags for a in d.arrows}
        assert {one.apply(state) for one in list_deletions(state)} == smaller
        turned = {to_cpdag(t) for d in dags for a in d.arrows if (t := turn(d, a)).is_acyclic()} - {cpdag}
        assert {one.apply(state) for one in list_turns(state, 4)} - {None} == turned


def possible_arrows(dag):
    pairs = [(a, b) for a in dag.nodes for b in dag.nodes if a != b and not dag.is_adjacent(a, b)]
    return [(a, b) for a, b in pairs if not dag.has_path(b, a)]


def turn(dag, arrow):
    return PartialGraph(dag.nodes, dag.arrows - {arrow} | {arrow[::-1]})
