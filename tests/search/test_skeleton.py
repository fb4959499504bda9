"""The skeleton search, first with a perfect test, then with tests that err or misbehave."""

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import noise, random_dag, shuffled, true_knowledge

from fedcdh.errors import GraphError, InvalidAnswerError, KnowledgeError
from fedcdh.graphs.d_separation import is_d_separated, make_d_separation_test
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN, Answer, Query
from fedcdh.search.conditioning_sets import CachedTest, count_queries, generate_queries, select_most_independent
from fedcdh.search.edge_removal import remove_all, remove_consistent
from fedcdh.search.skeleton import find_skeleton


class Recorded:
    """A test that keeps the batches it was asked."""

    def __init__(self, test):
        self.test, self.batches = test, []

    def __call__(self, questions):
        self.batches.append(list(questions))
        return self.test(questions)


@pytest.mark.parametrize("seed", range(100))
def test_a_perfect_test_finds_the_skeleton(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, rng.randint(1, 12), rng.uniform(0.5, 4), rng.choice([0, 0.4]))
    knowledge = true_knowledge(rng, dag) if seed % 2 else Knowledge()
    found = find_skeleton(dag.nodes, make_d_separation_test(dag), 0.05, knowledge)
    assert found.graph.skeleton == dag.skeleton
    assert not found.graph.arrows
    assert found.strongest.keys() == dag.skeleton
    for pair, answer in found.separators.items():
        assert answer.query.pair == pair
        assert is_d_separated(dag, answer.query.x, answer.query.y, answer.query.given)


@pytest.mark.parametrize("seed", range(30))
def test_questions_come_in_levels_without_repetition(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, 8, 3, rng.choice([0, 0.4]))
    test, progress = Recorded(noise(seed)), []
    found = find_skeleton(dag.nodes, test, 0.2, progress=lambda *seen: progress.append(seen))
    asked = [question for batch in test.batches for question in batch]
    assert len(asked) == len(set(asked))
    assert [{len(question.given) for question in batch} for batch in test.batches] == [
        {level} for level in range(len(test.batches))
    ]
    assert found.queries_per_level == tuple(map(len, test.batches))
    assert progress == list(enumerate(found.queries_per_level))
    for question in asked:
        assert question.pair.isdisjoint(question.given)
        assert question.y != DOMAIN
        assert question.x == DOMAIN or question.x < question.y
        assert not (DOMAIN in question.given and question.x == DOMAIN)


@pytest.mark.parametrize("seed", range(30))
def test_the_record_holds_the_largest_p_value(seed):
    test = Recorded(noise(seed))
    found = find_skeleton([*"abcdef", DOMAIN], test, 0.3)
    answers = noise(seed)([question for batch in test.batches for question in batch])
    for pair, answer in (found.separators | found.strongest).items():
        assert answer == select_most_independent(other for other in answers if other.query.pair == pair)
        assert (answer.p_value > 0.3) == (pair not in found.graph.lines)
    assert found.separators.keys() | found.strongest.keys() == set(map(frozenset, combinations([*"abcdef", DOMAIN], 2)))


@pytest.mark.parametrize("seed", range(30))
def test_the_order_of_nodes_does_not_matter(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, 7, 3, 0.4)
    knowledge = true_knowledge(rng, dag)
    test, again = Recorded(noise(seed)), Recorded(noise(seed))
    assert find_skeleton(dag.nodes, test, 0.2, knowledge) == find_skeleton(shuffled(dag, rng), again, 0.2, knowledge)
    assert test.batches == again.batches


@pytest.mark.parametrize("removal", [remove_all, remove_consistent])
@pytest.mark.parametrize("seed", range(20))
def test_how_many_questions_are_asked_at_once_does_not_matter(seed, removal):
    rng = random.Random(seed)
    dag = random_dag(rng, 7, 3, 0.4)
    knowledge, always = true_knowledge(rng, dag), frozenset({DOMAIN} & {*dag.nodes})
    asked = {"knowledge": knowledge, "always_given": always, "removal": removal}
    whole = find_skeleton(dag.nodes, noise(seed), 0.2, **asked)
    for at_once in (1, 7):
        test = Recorded(noise(seed))
        assert find_skeleton(dag.nodes, test, 0.2, **asked, max_batch_queries=at_once) == whole
        assert max(map(len, test.batches)) <= at_once
        assert sum(map(len, test.batches)) == sum(whole.queries_per_level)


@given(st.frozensets(st.sampled_from("cdefgh")), st.frozensets(st.sampled_from("cdefgh")), st.integers(0, 4))
@pytest.mark.parametrize("few", [0, 10_000])
def test_questions_are_counted_without_being_listed(few, of_a, of_b, size):
    pair, parents = frozenset("ab"), {"a": of_a | {"b"}, "b": of_b | {"a"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedcdh.search.conditioning_sets._MAX_SORTED_SETS", few)
        listed = list(generate_queries(pair, parents, size, frozenset({"h"})))
    assert len(listed) == count_queries(pair, parents, size, frozenset({"h"}))
    sets = {frozenset(chosen) for members in (of_a, of_b) for chosen in combinations(members - {"h"}, size)}
    assert [question.given for question in listed] == sorted(
        (one | {"h"} for one in sets), key=lambda s: sorted(s - {"h"})
    )


@pytest.mark.parametrize("most", [0, 3, 1000])
def test_answers_are_the_same_however_many_are_remembered(most):
    test = Recorded(noise(4))
    remembering = CachedTest(test, most)
    questions = [Query("a", letter) for letter in "bcdefgb"]
    for _ in range(2):
        assert remembering(questions) == noise(4)(questions)
    assert [len(batch) for batch in test.batches] == ([6, 6 - most] if most < 6 else [6])


def test_most_independent_prefers_few_conditions_then_names():
    def answer(given, p_value):
        return Answer(Query("x", "y", frozenset(given)), 0.0, p_value, 1)

    answers = [answer("ab", 0.5), answer("b", 0.5), answer("a", 0.5), answer("", 0.4)]
    assert select_most_independent(answers).query.given == frozenset("a")


def test_conditioning_sets_have_a_limit():
    test = Recorded(noise(1))
    find_skeleton("abcdef", test, 0.9, max_conditioning_size=1)
    assert len(test.batches) == 2
    assert find_skeleton("abcdef", noise(1), 0.9, max_conditioning_size=0).queries_per_level == (15,)


def test_the_domain_is_separated_by_neighbours_of_the_other_end_alone():
    dag = PartialGraph.from_dag([DOMAIN, *"abcd"], [(DOMAIN, "a"), (DOMAIN, "b"), ("a", "c"), ("c", "d")])
    test = Recorded(make_d_separation_test(dag))
    find_skeleton(dag.nodes, test, 0.05)
    about_d = [question for batch in test.batches for question in batch if question.pair == {DOMAIN, "d"}]
    assert {given for question in about_d for given in question.given} <= set("abc")
    assert any(DOMAIN in question.given for batch in test.batches for question in batch)


# Knowledge


def test_excluded_pairs_are_absent_and_not_asked_about():
    test = Recorded(noise(3))
    found = find_skeleton("abc", test, 0.9, Knowledge(forbidden=[("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")]))
    assert all(question.pair == frozenset("bc") for batch in test.batches for question in batch)
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
    test = Recorded(noise(5))
    find_skeleton("abc", test, 0.99, Knowledge(tiers=[["a", "b"], ["c"]]))
    assert Query("a", "b", frozenset("c")) not in [question for batch in test.batches for question in batch]


def test_changes_known_and_known_to_be_absent():
    knowledge = Knowledge(required=[(DOMAIN, "a")], forbidden=[(DOMAIN, "b")])
    found = find_skeleton([DOMAIN, "a", "b"], make_d_separation_test(PartialGraph((DOMAIN, "a", "b"))), 0.05, knowledge)
    assert found.graph.skeleton == {frozenset((DOMAIN, "a"))}
    alone = find_skeleton("ab", make_d_separation_test(PartialGraph(("a", "b"))), 0.05, knowledge)
    assert alone.graph == PartialGraph(("a", "b"))


# Refusals


@pytest.mark.parametrize("p_value", [float("nan"), -0.1, 1.1])
def test_a_p_value_that_is_none_is_an_error(p_value):
    def broken(questions):
        return [Answer(question, 0.0, p_value, 1) for question in questions]

    with pytest.raises(InvalidAnswerError, match="p-value of a ⫫ b is"):
        find_skeleton("ab", broken, 0.05)


def test_missing_answers_are_an_error():
    with pytest.raises(InvalidAnswerError, match="asked 3 questions and gave 2"):
        find_skeleton("abc", lambda questions: noise(0)(questions[1:]), 0.05)


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="alpha is 5"):
        find_skeleton("ab", noise(0), 5)
    with pytest.raises(ValueError, match="max_conditioning_size is -1"):
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
