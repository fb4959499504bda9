"""The skeleton search, first with a perfect test, then with tests that err or misbehave."""

import random
from itertools import combinations

import pytest
from oracle import RecordedTest, noise, random_dag, shuffled, true_knowledge

from fedcdh.errors import GraphError, KnowledgeError
from fedcdh.graphs.d_separation import make_d_separation_test
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN, Query
from fedcdh.search.conditioning_sets import select_most_independent
from fedcdh.search.edge_removal import remove_all, remove_consistent
from fedcdh.search.skeleton import SkeletonRules, find_skeleton


def test_queries_come_in_levels_without_repetition():
    for seed in range(30):
        rng = random.Random(seed)
        dag = random_dag(rng, 8, 3, rng.choice([0, 0.4]))
        test, progress = RecordedTest(noise(seed)), []
        found = find_skeleton(dag.nodes, test, 0.2, progress=lambda *seen, progress=progress: progress.append(seen))
        asked = [query for batch in test.batches for query in batch]
        assert len(asked) == len(set(asked)), f"seed {seed}"
        assert [{len(query.given) for query in batch} for batch in test.batches] == [
            {level} for level in range(len(test.batches))
        ], f"seed {seed}"
        assert found.queries_per_level == tuple(map(len, test.batches)), f"seed {seed}"
        assert progress == list(enumerate(found.queries_per_level)), f"seed {seed}"
        for query in asked:
            assert query.pair.isdisjoint(query.given), f"seed {seed}"
            assert query.y != DOMAIN, f"seed {seed}"
            assert query.x == DOMAIN or query.x < query.y, f"seed {seed}"
            assert not (DOMAIN in query.given and query.x == DOMAIN), f"seed {seed}"


def test_the_record_holds_the_largest_p_value():
    for seed in range(30):
        test = RecordedTest(noise(seed))
        found = find_skeleton([*"abcdef", DOMAIN], test, 0.3)
        answers = noise(seed)([query for batch in test.batches for query in batch])
        for pair, answer in (found.separators | found.strongest).items():
            assert answer == select_most_independent(other for other in answers if other.query.pair == pair), (
                f"seed {seed}"
            )
            assert (answer.p_value > 0.3) == (pair not in found.graph.lines), f"seed {seed}"
        assert found.separators.keys() | found.strongest.keys() == set(
            map(frozenset, combinations([*"abcdef", DOMAIN], 2))
        ), f"seed {seed}"


def test_the_order_of_nodes_does_not_matter():
    for seed in range(30):
        rng = random.Random(seed)
        dag = random_dag(rng, 7, 3, 0.4)
        knowledge = true_knowledge(rng, dag)
        test, again = RecordedTest(noise(seed)), RecordedTest(noise(seed))
        assert find_skeleton(dag.nodes, test, 0.2, knowledge) == find_skeleton(
            shuffled(dag, rng), again, 0.2, knowledge
        ), f"seed {seed}"
        assert test.batches == again.batches, f"seed {seed}"


@pytest.mark.parametrize("removal", [remove_all, remove_consistent])
def test_how_many_queries_are_asked_at_once_does_not_matter(removal):
    for seed in range(20):
        rng = random.Random(seed)
        dag = random_dag(rng, 7, 3, 0.4)
        knowledge, always = true_knowledge(rng, dag), frozenset({DOMAIN} & {*dag.nodes})
        whole = find_skeleton(dag.nodes, noise(seed), 0.2, knowledge, rules=SkeletonRules(always, removal))
        for at_once in (1, 7):
            test = RecordedTest(noise(seed))
            rules = SkeletonRules(always, removal, max_batch_queries=at_once)
            assert find_skeleton(dag.nodes, test, 0.2, knowledge, rules=rules) == whole, f"seed {seed}"
            assert max(map(len, test.batches)) <= at_once, f"seed {seed}"
            assert sum(map(len, test.batches)) == sum(whole.queries_per_level), f"seed {seed}"


def test_conditioning_sets_have_a_limit():
    test = RecordedTest(noise(1))
    find_skeleton("abcdef", test, 0.9, max_conditioning_size=1)
    assert len(test.batches) == 2
    assert find_skeleton("abcdef", noise(1), 0.9, max_conditioning_size=0).queries_per_level == (15,)


def test_the_domain_is_separated_by_neighbours_of_the_other_end_alone():
    dag = PartialGraph.from_dag([DOMAIN, *"abcd"], [(DOMAIN, "a"), (DOMAIN, "b"), ("a", "c"), ("c", "d")])
    test = RecordedTest(make_d_separation_test(dag))
    find_skeleton(dag.nodes, test, 0.05)
    about_d = [query for batch in test.batches for query in batch if query.pair == {DOMAIN, "d"}]
    assert {given for query in about_d for given in query.given} <= set("abc")
    assert any(DOMAIN in query.given for batch in test.batches for query in batch)


# Knowledge


def test_excluded_pairs_are_absent_and_not_asked_about():
    test = RecordedTest(noise(3))
    found = find_skeleton("abc", test, 0.9, Knowledge(forbidden=[("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")]))
    assert all(query.pair == frozenset("bc") for batch in test.batches for query in batch)
    assert found.graph.skeleton <= {frozenset("bc")}


def test_an_excluded_pair_is_separated_where_a_direction_hinges_on_it():
    dag = PartialGraph.from_dag("abc", [("a", "b"), ("c", "b")])
    apart = Knowledge(forbidden=[("a", "c"), ("c", "a")])
    found = find_skeleton("abc", make_d_separation_test(dag), 0.05, apart)
    assert found.separators[frozenset("ac")].query == Query("a", "c")
    settled = Knowledge(tiers=[["a", "c"], ["b"]], forbid_within_tier=[0])
    assert frozenset("ac") not in find_skeleton("abc", make_d_separation_test(dag), 0.05, settled).separators


def test_required_pairs_stay_and_their_evidence_is_recorded():
    empty = PartialGraph(("a", "b", "c"))
    found = find_skeleton("abc", make_d_separation_test(empty), 0.05, Knowledge(required=[("a", "b")]))
    assert found.graph.skeleton == {frozenset("ab")}
    assert found.strongest[frozenset("ab")].p_value == 1.0


def test_what_cannot_be_a_parent_is_not_conditioned_on():
    test = RecordedTest(noise(5))
    find_skeleton("abc", test, 0.99, Knowledge(tiers=[["a", "b"], ["c"]]))
    assert Query("a", "b", frozenset("c")) not in [query for batch in test.batches for query in batch]


def test_changes_known_and_known_to_be_absent():
    knowledge = Knowledge(required=[(DOMAIN, "a")], forbidden=[(DOMAIN, "b")])
    found = find_skeleton([DOMAIN, "a", "b"], make_d_separation_test(PartialGraph((DOMAIN, "a", "b"))), 0.05, knowledge)
    assert found.graph.skeleton == {frozenset((DOMAIN, "a"))}
    alone = find_skeleton("ab", make_d_separation_test(PartialGraph(("a", "b"))), 0.05, knowledge)
    assert alone.graph == PartialGraph(("a", "b"))


# Refusals


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="alpha is 5"):
        find_skeleton("ab", noise(0), 5)
    with pytest.raises(ValueError, match="size of a conditioning set is -1"):
        find_skeleton("ab", noise(0), 0.05, max_conditioning_size=-1)
    with pytest.raises(GraphError, match="more than once: a"):
        find_skeleton("aba", noise(0), 0.05)
    with pytest.raises(KnowledgeError, match="unknown variables: z"):
        find_skeleton("ab", noise(0), 0.05, Knowledge(required=[("a", "z")]))


@pytest.mark.parametrize("nodes", [(), ("a",), ("a", "b")])
def test_tiny_graphs(nodes):
    assert find_skeleton(nodes, make_d_separation_test(PartialGraph(nodes)), 0.05).graph == PartialGraph(nodes)


def test_a_hundred_variables_are_no_burden():
    dag = random_dag(random.Random(0), 100, 2.0, 0.1)
    assert find_skeleton(dag.nodes, make_d_separation_test(dag), 0.05, max_conditioning_size=0).queries_per_level == (
        5050,
    )
