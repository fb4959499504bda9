"""Orientation: exact with a perfect test; acyclic, obedient and order-blind with any test."""

import random
from dataclasses import replace

import pytest
from oracle import (
    class_by_enumeration,
    class_by_extension,
    noise,
    noisy_change,
    random_dag,
    renamed,
    shuffled,
    true_change,
    true_knowledge,
)

from fedcdh.errors import GraphError, InvalidAnswerError, KnowledgeError
from fedcdh.graphs import meek_rules
from fedcdh.graphs.d_separation import make_d_separation_test
from fedcdh.graphs.equivalence import extend_to_dag
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN, Answer, ModuleDependence, Query
from fedcdh.search.colliders import TripleDecision, make_largest_p_rule, separating_set_rule
from fedcdh.search.edge_removal import remove_consistent
from fedcdh.search.orientation import Conflict, Orientation, orient_colliders, orient_skeleton
from fedcdh.search.skeleton import Skeleton, find_skeleton

RULES = {"largest p": make_largest_p_rule, "separating set": lambda test: separating_set_rule}


def search(nodes, test, rule, knowledge=NO_KNOWLEDGE, change=None, alpha=0.05):
    return orient_skeleton(find_skeleton(nodes, test, alpha, knowledge), RULES[rule](test), knowledge, change)


# A perfect test


@pytest.mark.parametrize("seed", range(200))
def test_a_perfect_test_finds_the_class(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, rng.randint(1, 12), rng.uniform(0.5, 3.5), rng.choice([0, 0.2, 0.4]))
    test = make_d_separation_test(dag)
    always = frozenset({DOMAIN} & {*dag.nodes})
    for known in (NO_KNOWLEDGE, true_knowledge(rng, dag)):
        expected = class_by_extension(dag, known)
        plain = find_skeleton(dag.nodes, test, 0.05, known)
        careful = find_skeleton(dag.nodes, test, 0.05, known, always_given=always, removal=remove_consistent)
        for skeleton, rule in (
            (plain, separating_set_rule),
            (plain, make_largest_p_rule(test)),
            (careful, make_largest_p_rule(test)),
        ):
            found = orient_skeleton(skeleton, rule, known)
            assert found.graph == expected
            assert found.reasons.keys() == found.graph.arrows
            assert found.conflicts == ()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(60))
def test_a_perfect_test_finds_the_class_by_enumeration(seed, rule):
    rng = random.Random(seed)
    dag = random_dag(rng, rng.randint(2, 5), rng.uniform(1, 3.5), rng.choice([0, 0.5]))
    knowledge = true_knowledge(rng, dag)
    assert search(dag.nodes, make_d_separation_test(dag), rule).graph == class_by_enumeration(dag)
    assert search(dag.nodes, make_d_separation_test(dag), rule, knowledge).graph == class_by_enumeration(dag, knowledge)


@pytest.mark.parametrize("seed", range(40))
def test_names_and_their_order_change_nothing_but_names(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, 8, 3, 0.3)
    names = dict(zip(dag.nodes, (DOMAIN if node == DOMAIN else f"w{rng.random()}" for node in dag.nodes), strict=True))
    other = renamed(dag, names)
    found = search(dag.nodes, make_d_separation_test(dag), "largest p")
    again = search(shuffled(other, rng), make_d_separation_test(other), "largest p")
    assert again.graph == renamed(found.graph, names)
    assert again.reasons == {(names[a], names[b]): reason for (a, b), reason in found.reasons.items()}


@pytest.mark.parametrize("seed", range(40))
def test_true_independent_change_directs_all_edges_between_changing_variables(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, 7, 3, 0.6)
    found = search(dag.nodes, make_d_separation_test(dag), "largest p", change=true_change(dag))
    without = search(dag.nodes, make_d_separation_test(dag), "largest p")
    assert without.graph.arrows <= found.graph.arrows <= dag.arrows
    assert not any(line <= dag.children(DOMAIN) for line in found.graph.lines)
    assert found.dependences.keys() == {line for line in without.graph.lines if line <= dag.children(DOMAIN)}
    assert found.conflicts == ()


# A test that errs


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(100))
def test_noise_never_makes_a_cycle_or_breaks_knowledge(seed, rule):
    rng = random.Random(seed)
    dag = random_dag(rng, rng.randint(2, 9), 3, rng.choice([0, 0.5]))
    knowledge = true_knowledge(rng, dag) if seed % 3 else NO_KNOWLEDGE
    test, change, alpha = noise(seed), noisy_change(seed), rng.choice([0.3, 0.6, 0.9])
    found = search(dag.nodes, test, rule, knowledge, change, alpha)
    assert found.graph.is_acyclic()
    assert not any(knowledge.forbids(*arrow) for arrow in found.graph.arrows)
    assert {arrow for arrow in knowledge.required if set(arrow) <= set(dag.nodes)} <= found.graph.arrows
    assert found.reasons.keys() == found.graph.arrows
    assert meek_rules.apply_meek_rules(found.graph, knowledge) == (found.graph, {})
    assert extend_to_dag(found.graph).is_dag()
    assert found == search(shuffled(dag, rng), test, rule, knowledge, change, alpha)


@pytest.mark.parametrize("seed", range(30))
def test_noise_is_not_decided_by_names(seed):
    rng = random.Random(seed)
    nodes = [*(f"v{i}" for i in range(7)), DOMAIN]
    names = dict(zip(nodes, (*rng.sample("abcdefg", 7), DOMAIN), strict=True))
    back = {new: old for old, new in names.items()}

    def translated(questions):
        asked = [
            Query(*sort_pair(frozenset((back[q.x], back[q.y]))), frozenset(map(back.get, q.given))) for q in questions
        ]
        return [replace(answer, query=q) for q, answer in zip(questions, noise(seed)(asked), strict=True)]

    found = search(nodes, noise(seed), "largest p", alpha=0.5)
    assert search(names.values(), translated, "largest p", alpha=0.5).graph == renamed(found.graph, names)


# Single steps


def skeleton_of(nodes, lines, separators=()):
    """A skeleton with these lines; separators as (x, y, set, p-value)."""
    answers = [Answer(Query(x, y, frozenset(given)), 0.0, p_value, 10) for x, y, given, p_value in separators]
    graph = PartialGraph(tuple(nodes), lines=frozenset(map(frozenset, lines)))
    return Skeleton(graph, {answer.query.pair: answer for answer in answers}, {}, (1, 1))


def decision(a, middle, b, strength, collider=True):
    return TripleDecision((a, b), middle, collider, strength, None, None)


def test_reasons_tell_the_steps():
    lines = [(DOMAIN, "a"), ("a", "b"), ("b", "c"), ("c", "d"), ("e", "d")]
    separators = [(DOMAIN, "b", "a", 0.9), ("a", "c", "b", 0.9), ("b", "d", "c", 0.9), ("c", "e", "", 0.9)]
    found = orient_skeleton(
        skeleton_of([DOMAIN, *"abcde"], lines, separators), separating_set_rule, Knowledge([("b", "c")])
    )
    assert found.reasons == {
        (DOMAIN, "a"): "domain",
        ("b", "c"): "knowledge",
        ("c", "d"): "collider",
        ("e", "d"): "collider",
        ("a", "b"): "meek-1",
    }
    decided = [(triple.middle, triple.collider) for triple in found.triples]
    assert decided == [("a", False), ("c", False), ("d", True)]  # b is settled by knowledge


def test_one_changing_module_directs_its_edges_both_ways():
    lines = [(DOMAIN, "x"), ("x", "y")]
    effect = skeleton_of([DOMAIN, "x", "y"], lines, [(DOMAIN, "y", "x", 0.9)])
    assert orient_skeleton(effect, separating_set_rule).graph.arrows == {(DOMAIN, "x"), ("x", "y")}
    cause = skeleton_of([DOMAIN, "x", "y"], lines, [(DOMAIN, "y", "", 0.9)])
    assert orient_skeleton(cause, separating_set_rule).graph.arrows == {(DOMAIN, "x"), ("y", "x")}


def test_the_surer_collider_wins_and_the_other_is_dropped_whole():
    graph = PartialGraph(tuple("abcd"), lines=frozenset(map(frozenset, ("ab", "bc", "cd"))))
    sure, less = decision("a", "b", "c", 0.8), decision("b", "c", "d", 0.3)
    for decisions in ((sure, less), (less, sure)):
        found = orient_colliders(Orientation(graph), decisions, NO_KNOWLEDGE)
        assert found.graph.arrows == {("a", "b"), ("c", "b")}
        assert found.graph.has_line("c", "d")
        assert found.conflicts == (Conflict((("b", "c"), ("d", "c")), "collider", "opposite arrow"),)
        assert str(found.conflicts[0]) == "b → c and d → c (collider) refused: opposite arrow"


def test_equally_sure_colliders_that_contradict_each_other_are_both_dropped():
    graph = PartialGraph(tuple("abcd"), lines=frozenset(map(frozenset, ("ab", "bc", "cd"))))
    decisions = (decision("a", "b", "c", 0.5), decision("b", "c", "d", 0.5))
    found = orient_colliders(Orientation(graph), decisions, NO_KNOWLEDGE)
    assert found.graph == graph
    assert [conflict.obstacle for conflict in found.conflicts] == ["equal claims"] * 2


def test_a_collider_never_closes_a_cycle_or_breaks_knowledge():
    ring = PartialGraph(tuple("abcd"), frozenset({("a", "b"), ("b", "c")}), frozenset(map(frozenset, ("ac", "ad"))))
    found = orient_colliders(Orientation(ring), (decision("c", "a", "d", 1.0),), NO_KNOWLEDGE)
    assert (found.graph, found.conflicts[0].obstacle) == (ring, "directed cycle")
    found = orient_colliders(Orientation(ring), (decision("c", "a", "d", 1.0),), Knowledge(forbidden=[("d", "a")]))
    assert (found.graph, found.conflicts[0].obstacle) == (ring, "knowledge")


def test_forbidden_directions_that_run_in_a_circle_leave_lines():
    knowledge = Knowledge(forbidden=[("a", "b"), ("b", "c"), ("c", "a")])
    found = orient_skeleton(skeleton_of("abc", ["ab", "bc", "ca"]), separating_set_rule, knowledge)
    assert found.graph.lines == set(map(frozenset, ("ab", "bc", "ca")))
    assert {conflict.reason for conflict in found.conflicts} == {"knowledge"}


def test_largest_p_overrules_an_unlucky_separating_set():
    def test(questions):
        return [Answer(q, 0.0, {"": 0.06, "z": 0.9}.get("".join(sorted(q.given)), 0.0), 10) for q in questions]

    skeleton = find_skeleton("xyz", test, 0.05)
    chain = skeleton_of("xyz", ["xz", "yz"], [("x", "y", "", 0.06)])
    assert skeleton.graph.skeleton == frozenset()  # in this world every pair passes for independent
    assert orient_skeleton(chain, separating_set_rule).graph.arrows == {("x", "z"), ("y", "z")}
    (triple,) = make_largest_p_rule(test)(chain, NO_KNOWLEDGE)
    assert not triple.collider
    assert triple.strength == pytest.approx(0.84)
    assert (triple.without_middle.p_value, triple.with_middle.p_value) == (0.06, 0.9)
    assert orient_skeleton(chain, make_largest_p_rule(test)).graph.lines == chain.graph.lines


def test_equal_p_values_are_no_collider():
    def flat(questions):
        return [Answer(question, 0.0, 0.5, 10) for question in questions]

    (triple,) = make_largest_p_rule(flat)(skeleton_of("xyz", ["xz", "yz"], [("x", "y", "", 0.5)]), NO_KNOWLEDGE)
    assert (triple.collider, triple.strength) == (False, 0.0)


def test_largest_p_asks_one_batch_and_spares_hubs():
    hub = ["h", *(f"v{i:02}" for i in range(30)), "w"]
    lines = [("h", name) for name in hub[1:31]] + [("v00", "w")]
    batches = []

    def counting(questions):
        batches.append(questions)
        return noise(0)(questions)

    skeleton = Skeleton(PartialGraph(tuple(hub), lines=frozenset(map(frozenset, lines))), {}, {}, (1,) * 20)
    make_largest_p_rule(counting)(skeleton, NO_KNOWLEDGE)
    about = [question for question in batches[0] if question.pair == frozenset(("h", "w"))]
    assert len(batches) == 1
    assert len(about) == 1 + 30 + 435
    assert max(len(question.given) for question in about) == 2
    make_largest_p_rule(counting, max_conditioning_size=1)(skeleton, NO_KNOWLEDGE)
    assert max(len(question.given) for question in batches[1]) == 1


# Independent change


TRIANGLE = [(DOMAIN, "a"), (DOMAIN, "b"), (DOMAIN, "c"), ("a", "b"), ("b", "c"), ("a", "c")]


def measured(values, calls=None):
    def measure(pairs):
        if calls is not None:
            calls.append(pairs)
        return [ModuleDependence(a, b, *values[a + b]) for a, b in pairs]

    return measure


def test_independent_change_takes_the_widest_margin_first_and_meek_follows():
    calls = []
    values = {"ab": (0.1, 0.9), "bc": (0.2, 0.8), "ac": (0.5, 0.4)}
    found = orient_skeleton(
        skeleton_of([DOMAIN, *"abc"], TRIANGLE), separating_set_rule, independent_change=measured(values, calls)
    )
    assert calls == [[("a", "b"), ("a", "c"), ("b", "c")]]
    assert found.reasons["a", "b"] == found.reasons["b", "c"] == "independent-change"
    assert found.reasons["a", "c"] == "meek-2"  # its own measure would have said c → a
    assert found.dependences[frozenset("ac")] == ModuleDependence("a", "c", 0.5, 0.4)


def test_independent_change_obeys_knowledge_and_leaves_ties():
    skeleton = skeleton_of([DOMAIN, "a", "b"], [*TRIANGLE[:2], ("a", "b")])
    tie = orient_skeleton(skeleton, separating_set_rule, independent_change=measured({"ab": (0.3, 0.3)}))
    assert tie.graph.has_line("a", "b")
    known = Knowledge(forbidden=[("a", "b")])
    obedient = orient_skeleton(skeleton, separating_set_rule, known, measured({"ab": (0.1, 0.9)}))
    assert obedient.reasons["b", "a"] == "knowledge"
    assert obedient.dependences == {}


def test_equally_clear_changes_that_run_in_a_circle_leave_lines():
    values = {"ab": (0.1, 0.6), "bc": (0.1, 0.6), "ac": (0.6, 0.1)}
    found = orient_skeleton(
        skeleton_of([DOMAIN, *"abc"], TRIANGLE), separating_set_rule, independent_change=measured(values)
    )
    assert len(found.graph.lines) == 3
    assert [conflict.obstacle for conflict in found.conflicts] == ["equal claims"] * 3


def test_only_pairs_that_both_change_are_measured():
    calls = []
    skeleton = skeleton_of([DOMAIN, *"abc"], [(DOMAIN, "a"), ("b", "c")])
    orient_skeleton(skeleton, separating_set_rule, independent_change=measured({}, calls))
    alone = skeleton_of("ab", ["ab"])
    assert orient_skeleton(alone, separating_set_rule, independent_change=measured({}, calls)).graph == alone.graph
    assert calls == []


# Refusals


def test_unusable_measures_are_refused():
    skeleton = skeleton_of([DOMAIN, "a", "b"], [*TRIANGLE[:2], ("a", "b")])
    with pytest.raises(InvalidAnswerError, match="not a number"):
        orient_skeleton(skeleton, separating_set_rule, independent_change=measured({"ab": (float("nan"), 0.1)}))
    with pytest.raises(InvalidAnswerError, match="asked about 1 pairs and gave 0"):
        orient_skeleton(skeleton, separating_set_rule, independent_change=lambda pairs: [])


def test_a_skeleton_found_with_other_knowledge_is_refused():
    skeleton = skeleton_of("abc", ["ab", "bc"])
    with pytest.raises(KnowledgeError, match="differ in a — b"):
        orient_skeleton(skeleton, separating_set_rule, Knowledge(forbidden=[("a", "b"), ("b", "a")]))
    with pytest.raises(KnowledgeError, match="differ in a — c"):
        orient_skeleton(skeleton, separating_set_rule, Knowledge(required=[("a", "c")]))
    with pytest.raises(GraphError, match="no answer on record for a and c"):
        orient_skeleton(skeleton, separating_set_rule)
