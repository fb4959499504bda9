"""Equivalence classes, against the agreement of all members, and extensions to DAGs."""

import random
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import class_by_enumeration, class_by_extension, random_dag, true_knowledge
from strategies import dags, partial_graphs

from fedcdh.errors import GraphError, KnowledgeError, NoConsistentExtensionError
from fedcdh.graphs import meek_rules
from fedcdh.graphs.equivalence import extend_to_dag, find_consistent_extension, to_cpdag
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair

SQUARE = PartialGraph(
    ("a", "b", "c", "d"), lines=frozenset(map(frozenset, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]))
)


def test_class_of_a_chain_and_of_a_collider():
    chain = PartialGraph.from_dag("abc", [("a", "b"), ("b", "c")])
    assert to_cpdag(chain).arrows == frozenset()
    assert to_cpdag(chain, Knowledge(required=[("a", "b")])) == chain
    collider = PartialGraph.from_dag("abc", [("a", "b"), ("c", "b")])
    assert to_cpdag(collider) == collider
    with pytest.raises(KnowledgeError, match="contradicts the knowledge: a → b"):
        to_cpdag(chain, Knowledge(forbidden=[("a", "b")]))
    with pytest.raises(GraphError, match="expected a DAG"):
        to_cpdag(to_cpdag(chain))


def test_class_is_what_all_its_members_share():
    for seed in range(150):
        rng = random.Random(seed)
        dag = random_dag(rng, rng.randint(1, 5), rng.uniform(0.5, 3), rng.choice([0, 0.4]))
        knowledge = true_knowledge(rng, dag)
        assert to_cpdag(dag) == class_by_enumeration(dag) == class_by_extension(dag), f"seed {seed}"
        assert to_cpdag(dag, knowledge) == class_by_enumeration(dag, knowledge) == class_by_extension(dag, knowledge), (
            f"seed {seed}"
        )


@pytest.mark.parametrize("size", [6, 7, 8])
def test_class_of_dense_dags_with_a_few_arrows_known(size):
    # Dense graphs with hardly any collider: the only place where rules 3 and 4 have much to do.
    rng, used = random.Random(size), Counter()
    for _ in range(100):
        dag = random_dag(rng, size, rng.uniform(0.6, 1.0) * size)
        knowledge = Knowledge(required=rng.sample(sorted(dag.arrows), 2))
        found = to_cpdag(dag, knowledge)
        assert found == class_by_extension(dag, knowledge)
        known = frozenset(knowledge.required).union((a, middle) for pair, middle in dag.colliders for a in pair)
        pattern = PartialGraph(dag.nodes, known, dag.skeleton - {frozenset(arrow) for arrow in known})
        closed, reasons = meek_rules.apply_meek_rules(pattern)
        assert closed == found
        used.update(reasons.values())
    assert set(meek_rules.MEEK_RULES) <= used.keys()


@given(dags())
@settings(max_examples=80, deadline=None)
def test_extension_of_a_class_is_one_of_its_members(dag):
    found = to_cpdag(dag)
    member = find_consistent_extension(found)
    assert member.is_dag()
    assert found.arrows <= member.arrows
    assert to_cpdag(member) == found


@given(partial_graphs(), st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_extend_always_finds_a_dag_whatever_the_order_of_nodes(graph, rng):
    dag = extend_to_dag(graph)
    assert dag.is_dag()
    assert dag.skeleton == graph.skeleton
    assert graph.arrows <= dag.arrows
    assert (
        extend_to_dag(PartialGraph(tuple(rng.sample(graph.nodes, len(graph.nodes))), graph.arrows, graph.lines)) == dag
    )


@given(partial_graphs(most=5))
@settings(max_examples=80, deadline=None)
def test_extension_without_new_colliders_is_found_iff_there_is_one(graph):
    dags_along_orders = (_directed_along(graph, order) for order in permutations(graph.nodes))
    possible = any(dag.colliders == graph.colliders and graph.arrows <= dag.arrows for dag in dags_along_orders)
    try:
        assert find_consistent_extension(graph).colliders == graph.colliders
        assert possible
    except NoConsistentExtensionError:
        assert not possible


def _directed_along(graph, order):
    place = {node: position for position, node in enumerate(order)}
    arrows = frozenset((a, b) if place[a] < place[b] else (b, a) for a, b in map(sort_pair, graph.skeleton))
    return PartialGraph(graph.nodes, arrows)


def test_a_square_has_no_extension_without_a_new_collider():
    with pytest.raises(NoConsistentExtensionError, match="new collider"):
        find_consistent_extension(SQUARE)
    assert len(extend_to_dag(SQUARE).colliders) == 1


def test_a_cycle_has_no_extension():
    circle = PartialGraph(("a", "b", "c"), frozenset({("a", "b"), ("b", "c"), ("c", "a")}))
    with pytest.raises(NoConsistentExtensionError, match="directed cycle"):
        extend_to_dag(circle)
