"""Laws of PartialGraph, of the extensions to a DAG, and of the perfect test."""

import random
from collections import Counter
from itertools import combinations, permutations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import class_by_enumeration, class_by_extension, random_dag, true_knowledge

from fedcdh.errors import FedCDHError, GraphError, KnowledgeError, NoConsistentExtensionError, UndirectedEdgeError
from fedcdh.graphs import meek_rules
from fedcdh.graphs.d_separation import is_d_separated, make_d_separation_test
from fedcdh.graphs.equivalence import extend_to_dag, find_consistent_extension, to_cpdag
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN, Query

SQUARE = PartialGraph(
    ("a", "b", "c", "d"), lines=frozenset(map(frozenset, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]))
)


@st.composite
def dags(draw, most: int = 8, changing: float = 0.3) -> PartialGraph:
    rng = random.Random(draw(st.integers(0, 2**32)))
    return random_dag(rng, draw(st.integers(1, most)), draw(st.floats(0, 5)), changing)


@st.composite
def partial_graphs(draw, most: int = 7) -> PartialGraph:
    """Acyclic arrows and any lines: what a noisy search may hand over."""
    dag = draw(dags(most))
    forgotten = draw(st.sets(st.sampled_from(sorted(dag.arrows)))) if dag.arrows else set()
    return PartialGraph(dag.nodes, dag.arrows - forgotten, frozenset(map(frozenset, forgotten)))


# The graph itself


@pytest.mark.parametrize(
    ("nodes", "arrows", "lines", "message"),
    [
        (("a", "a"), [], [], "more than once"),
        (("a",), [("a", "a")], [], "two different nodes"),
        (("a",), [], [("a",)], "two different nodes"),
        (("a", "b", "c"), [], [("a", "b", "c")], "two different nodes"),
        (("a",), [("a", "b")], [], "not in the graph: b"),
        (("a",), [], [("a", "b")], "not in the graph: b"),
        (("a", "b"), [("a", "b"), ("b", "a")], [], "one edge at most"),
        (("a", "b"), [("a", "b")], [("a", "b")], "one edge at most"),
    ],
)
def test_refuses_what_is_no_graph(nodes, arrows, lines, message):
    with pytest.raises(GraphError, match=message):
        PartialGraph(nodes, frozenset(arrows), frozenset(map(frozenset, lines)))


def test_reads_edges():
    graph = PartialGraph(("a", "b", "c", "d"), frozenset({("a", "b"), ("b", "c")}), frozenset({frozenset("cd")}))
    assert graph.parents("b") == {"a"}
    assert graph.children("b") == {"c"}
    assert graph.neighbours("c") == {"b", "d"}
    assert graph.adjacent("c", "b")
    assert not graph.adjacent("a", "c")
    assert graph.has_line("d", "c")
    assert not graph.has_line("a", "b")
    assert graph.has_path("a", "c")
    assert not graph.has_path("c", "a")
    assert not graph.has_path("a", "d")
    assert graph.skeleton == set(map(frozenset, ("ab", "bc", "cd")))
    assert graph.unshielded_triples == {(frozenset("ac"), "b"), (frozenset("bd"), "c")}
    assert graph.is_acyclic()
    assert not graph.is_dag()


def test_operations_return_new_graphs():
    graph = PartialGraph.complete(("a", "b", "c"))
    directed = graph.orient("a", "b")
    assert directed.arrows == {("a", "b")}
    assert len(graph.lines) == 3
    assert directed.without(frozenset("ab"), frozenset("bc")).skeleton == {frozenset("ac")}
    assert directed.drop("c") == PartialGraph(("a", "b"), frozenset({("a", "b")}))
    assert directed.orient("c", "b") == graph.orient_all([("a", "b"), ("c", "b")])
    assert graph.orient_all([]) == graph
    with pytest.raises(UndirectedEdgeError, match="b — a"):
        directed.orient("b", "a")
    with pytest.raises(GraphError, match="'z' is not a node"):
        directed.drop("z")


def test_equality_ignores_the_order_of_nodes():
    one, other = PartialGraph.complete(("a", "b")), PartialGraph.complete(("b", "a"))
    assert one == other
    assert hash(one) == hash(other)
    assert one != PartialGraph(("a", "b"))
    assert PartialGraph(("a",)) != PartialGraph(("a", "b"))
    assert one != "a — b"


def test_shows_one_edge_per_line():
    graph = PartialGraph(
        ("z", "b", "a", DOMAIN, "c"), frozenset({("b", "a"), (DOMAIN, "b")}), frozenset({frozenset((DOMAIN, "c"))})
    )
    assert str(graph) == "℧ → b\nb → a\n℧ — c\nz"


def test_from_dag_refuses_cycles():
    with pytest.raises(GraphError, match="directed cycle"):
        PartialGraph.from_dag("abc", [("a", "b"), ("b", "c"), ("c", "a")])


@given(partial_graphs())
@settings(max_examples=50, deadline=None)
def test_to_networkx_keeps_everything(graph):
    converted = graph.to_networkx()
    arrows = {(a, b) for a, b, mark in converted.edges(data="mark") if mark == "arrow"}
    lines = {frozenset((a, b)) for a, b, mark in converted.edges(data="mark") if mark == "line"}
    assert (set(converted), arrows, lines) == (set(graph.nodes), graph.arrows, graph.lines)
    assert networkx.is_directed_acyclic_graph(networkx.DiGraph(sorted(arrows))) == graph.is_acyclic()


# Classes and extensions


def test_class_of_a_chain_and_of_a_collider():
    chain = PartialGraph.from_dag("abc", [("a", "b"), ("b", "c")])
    assert to_cpdag(chain).arrows == frozenset()
    assert to_cpdag(chain, Knowledge(required=[("a", "b")])) == chain
    collider = PartialGraph.from_dag("abc", [("a", "b"), ("c", "b")])
    assert to_cpdag(collider) == collider
    with pytest.raises(KnowledgeError, match="not true of this DAG: a → b"):
        to_cpdag(chain, Knowledge(forbidden=[("a", "b")]))
    with pytest.raises(GraphError, match="not a DAG"):
        to_cpdag(to_cpdag(chain))


@pytest.mark.parametrize("seed", range(150))
def test_class_is_what_all_its_members_share(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, rng.randint(1, 5), rng.uniform(0.5, 3), rng.choice([0, 0.4]))
    knowledge = true_knowledge(rng, dag)
    assert to_cpdag(dag) == class_by_enumeration(dag) == class_by_extension(dag)
    assert to_cpdag(dag, knowledge) == class_by_enumeration(dag, knowledge) == class_by_extension(dag, knowledge)


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


@given(partial_graphs(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_meek_closure_is_idempotent_acyclic_and_blind_to_order(graph, rng):
    closed, reasons = meek_rules.apply_meek_rules(graph)
    assert closed.is_acyclic()
    assert closed.arrows == graph.arrows | reasons.keys()
    assert meek_rules.apply_meek_rules(closed) == (closed, {})
    reordered = PartialGraph(tuple(rng.sample(graph.nodes, len(graph.nodes))), graph.arrows, graph.lines)
    assert meek_rules.apply_meek_rules(reordered) == (closed, reasons)


def test_meek_leaves_a_line_that_is_demanded_both_ways():
    graph = PartialGraph(("a", "b", "c", "d"), frozenset({("a", "b"), ("d", "c")}), frozenset({frozenset("bc")}))
    assert meek_rules.find_implied_arrows(graph) == {("b", "c"): "meek-1", ("c", "b"): "meek-1"}
    assert meek_rules.apply_meek_rules(graph) == (graph, {})


def test_each_of_meeks_rules():
    cases = {
        "meek-1": (["ca"], ["ab"]),
        "meek-2": (["ac", "cb"], ["ab"]),
        "meek-3": (["cb", "db"], ["ab", "ac", "ad"]),
        "meek-4": (["dc", "cb"], ["ab", "ad", "ac"]),
    }
    for rule, (arrows, lines) in cases.items():
        graph = PartialGraph(tuple("abcd"), frozenset(map(tuple, arrows)), frozenset(map(frozenset, lines)))
        assert meek_rules.find_implied_arrows(graph).get(("a", "b")) == rule


# The perfect test


@given(dags(most=6), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_separation_agrees_with_networkx(dag, rng):
    reference = dag.to_networkx()
    for x, y in combinations(dag.nodes, 2):
        others = [node for node in dag.nodes if node not in (x, y)]
        condition = frozenset(rng.sample(others, rng.randint(0, len(others))))
        expected = networkx.is_d_separator(reference, {x}, {y}, set(condition))
        assert is_d_separated(dag, x, y, condition) == is_d_separated(dag, y, x, condition) == expected
        (answer,) = make_d_separation_test(dag)([Query(x, y, condition)])
        assert answer.p_value == float(expected)
        assert answer.query == Query(x, y, condition)


def test_separation_needs_a_dag():
    with pytest.raises(GraphError, match="read off a DAG"):
        make_d_separation_test(SQUARE)


def test_every_refusal_is_one_family():
    assert issubclass(NoConsistentExtensionError, GraphError)
    assert issubclass(GraphError, FedCDHError)
    assert issubclass(KnowledgeError, ValueError)
    assert not issubclass(GraphError, ValueError)
