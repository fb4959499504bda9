"""Adjustment sets, against regressions in random linear models and against all DAGs of a class."""

import random
from itertools import chain, combinations, permutations

import numpy as np
import pytest
from linear_models import asymptotic_variance, covariance, random_weights, regress, total_effects
from oracle import class_members, random_dag, true_knowledge
from scored_graphs import all_dags

from fedcdh.errors import GraphError
from fedcdh.graphs.adjustment import (
    describe_invalid_adjustment,
    find_forbidden_nodes,
    find_optimal_adjustment,
    find_possible_descendants,
    is_amenable,
    list_local_choices,
)
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.knowledge import NO_KNOWLEDGE
from fedcdh.graphs.partial_graph import PartialGraph


def subsets(names):
    names = sorted(names)
    return [frozenset(some) for some in chain.from_iterable(combinations(names, k) for k in range(len(names) + 1))]


def is_valid_by_regression(dag, cause, outcome, given, seed):
    """Return whether the coefficient is the total effect in linear models with random weights."""
    number = {name: i for i, name in enumerate(dag.nodes)}
    x, y, z = number[cause], number[outcome], [number[name] for name in sorted(given)]
    for trial in range(2):
        weights = random_weights(dag, 2 * seed + trial)
        coefficient = regress(covariance(weights, seed), y, [x, *z])[0]
        if abs(coefficient - total_effects(weights)[x, y]) > 1e-9:
            return False
    return True


def random_classes(count, most=5):
    for seed in range(count):
        rng = random.Random(seed)
        dag = random_dag(rng, rng.randint(2, most), rng.uniform(0.8, 3.5))
        knowledge = true_knowledge(rng, dag) if rng.random() < 0.5 else NO_KNOWLEDGE
        yield seed, dag, knowledge


def test_a_set_is_valid_in_a_dag_just_where_regression_gives_the_total_effect():
    for seed, dag in enumerate(all_dags(("a", "b", "c", "d"))):
        for given in subsets("cd"):
            valid = not describe_invalid_adjustment(dag, "a", "b", given)
            assert valid == is_valid_by_regression(dag, "a", "b", given, seed), (str(dag), given)


def test_the_same_with_five_variables():
    for seed in range(200):
        dag = random_dag(random.Random(seed), 5, 1.0 + seed % 4)
        for given in subsets(dag.nodes[2:]):
            valid = not describe_invalid_adjustment(dag, *dag.nodes[:2], given)
            assert valid == is_valid_by_regression(dag, *dag.nodes[:2], given, seed), (str(dag), given)


def test_a_set_is_valid_in_a_class_just_where_it_is_valid_in_all_its_dags():
    used = 0
    for seed, dag, knowledge in random_classes(250):
        graph, members = to_cpdag(dag, knowledge), class_members(dag, knowledge)
        used += bool(graph.lines)
        cause, outcome = dag.nodes[:2]
        for given in subsets(dag.nodes[2:]):
            valid = not describe_invalid_adjustment(graph, cause, outcome, given)
            everywhere = all(not describe_invalid_adjustment(one, cause, outcome, given) for one in members)
            assert valid == everywhere, (seed, str(graph), given)
    assert used > 80


def test_possible_descendants_and_forbidden_nodes_are_those_of_some_dag_of_the_class():
    for seed, dag, knowledge in random_classes(250):
        graph, members = to_cpdag(dag, knowledge), class_members(dag, knowledge)
        for node in dag.nodes:
            some = frozenset().union(*(find_possible_descendants(one, node) for one in members))
            assert find_possible_descendants(graph, node) == some, (seed, str(graph), node)
        cause, outcome = dag.nodes[:2]
        if is_amenable(graph, cause, outcome):
            some = frozenset().union(*(find_forbidden_nodes(one, cause, outcome) for one in members))
            assert find_forbidden_nodes(graph, cause, outcome) == some, (seed, str(graph))


def test_the_optimal_set_is_the_same_in_all_dags_and_has_the_smallest_variance():
    found = 0
    for seed, dag, knowledge in random_classes(120):
        graph, members = to_cpdag(dag, knowledge), class_members(dag, knowledge)
        cov = covariance(random_weights(dag, seed), seed)
        for x, y in permutations(range(len(dag.nodes)), 2):
            cause, outcome = dag.nodes[x], dag.nodes[y]
            if (optimal := find_optimal_adjustment(graph, cause, outcome)) is None:
                continue
            found += 1
            assert {find_optimal_adjustment(one, cause, outcome) for one in members} == {optimal}
            variances = {
                given: asymptotic_variance(cov, x, y, [dag.nodes.index(name) for name in given])
                for given in subsets({*dag.nodes} - {cause, outcome})
                if not describe_invalid_adjustment(graph, cause, outcome, given)
            }
            assert optimal in variances, (seed, str(graph), optimal)
            assert variances[optimal] <= min(variances.values()) * (1 + 1e-9), (seed, str(graph), optimal)
    assert found > 80


def test_local_choices_are_the_parents_that_some_dag_of_the_class_has():
    for seed, dag, knowledge in random_classes(250):
        graph, members = to_cpdag(dag, knowledge), class_members(dag, knowledge)
        for node in dag.nodes:
            choices = list_local_choices(graph, node, knowledge)
            assert {choice.parents for choice in choices} == {one.parents(node) for one in members}, (seed, node)
            assert len({choice.parents for choice in choices}) == len(choices)


def test_the_effects_of_the_choices_are_those_of_all_dags_of_the_class():
    for seed, dag, knowledge in random_classes(150):
        graph, members = to_cpdag(dag, knowledge), class_members(dag, knowledge)
        number = {name: i for i, name in enumerate(dag.nodes)}
        cause, outcome = dag.nodes[:2]
        cov = covariance(random_weights(dag, seed), seed)

        def effect(parents, number=number, cov=cov, cause=cause, outcome=outcome):
            if outcome in parents:
                return 0.0
            return round(float(regress(cov, number[outcome], [number[one] for one in (cause, *sorted(parents))])[0]), 8)

        local = {effect(choice.parents) for choice in list_local_choices(graph, cause, knowledge)}
        assert local == {effect(one.parents(cause)) for one in members}, seed


def test_where_no_dag_has_just_these_colliders_cycles_alone_are_excluded():
    square = PartialGraph(tuple("abcd"), lines=frozenset(map(frozenset, ["ab", "bc", "cd", "da"])))
    assert len(list_local_choices(square, "a")) == 4


def test_too_many_lines_at_one_variable_are_refused():
    star = PartialGraph(tuple(map(str, range(12))), lines=frozenset(frozenset(("0", str(k))) for k in range(1, 12)))
    with pytest.raises(GraphError, match="11 lines meet at 0; expected at most 10"):
        list_local_choices(star, "0")


def test_reasons_name_what_is_wrong():
    dag = PartialGraph.from_dag("xmyz", [("x", "m"), ("m", "y"), ("z", "x"), ("z", "y")])
    assert "m may be an effect of x" in describe_invalid_adjustment(dag, "x", "y", ["m", "z"])
    assert "stays open" in describe_invalid_adjustment(dag, "x", "y", [])
    line = PartialGraph(("x", "y"), lines=frozenset({frozenset("xy")}))
    assert "direction of a line at x" in describe_invalid_adjustment(line, "x", "y", [])
    assert np.isclose(total_effects(random_weights(dag, 0))[0, 0], 1.0)
