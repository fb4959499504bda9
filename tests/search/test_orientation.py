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

from fedcdh.errors import AnswerError, GraphError, KnowledgeError
from fedcdh.graphs import meek_rules
from fedcdh.graphs.d_separation import separation_in
from fedcdh.graphs.equivalence import extend
from fedcdh.graphs.knowledge import NOTHING_KNOWN, Knowledge
from fedcdh.graphs.partial_graph import PartialGraph, ends
from fedcdh.protocols import DOMAIN, Answer, ModuleDependence, Question
from fedcdh.search.colliders import TripleDecision, by_largest_p, by_separating_set
from fedcdh.search.edge_removal import without_contradiction
from fedcdh.search.orientation import Conflict, Orientation, orient, point_into_colliders
from fedcdh.search.skeleton import Skeleton, find_skeleton

RULES = {"largest p": by_largest_p, "separating set": lambda test: by_separating_set}


def search(nodes, test, rule, knowledge=NOTHING_KNOWN, change=None, alpha=0.05):
    return orient(find_skeleton(nodes, test, alpha, knowledge), RULES[rule](test), knowledge, change)


# A perfect test


@pytest.mark.parametrize("seed", range(200))
def test_a_perfect_test_finds_the_class(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, rng.randint(1, 12), rng.uniform(0.5, 3.5), rng.choice([0, 0.2, 0.4]))
    test = separation_in(dag)
    always = frozenset({DOMAIN} & {*dag.nodes})
    for known in (NOTHING_KNOWN, true_knowledge(rng, dag)):
        expected = class_by_extension(dag, known)
        plain = find_skeleton(dag.nodes, test, 0.05, known)
        careful = find_skeleton(dag.nodes, test, 0.05, known, always_given=always, removal=without_contradiction)
        for skeleton, rule in ((plain, by_separating_set), (plain, by_largest_p(test)), (careful, by_largest_p(test))):
            found = orient(skeleton, rule, known)
            assert found.graph == expected
            assert found.reasons.keys() == found.graph.arrows
            assert found.conflicts == ()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(60))
def test_a_perfect_test_finds_the_class_by_enumeration(seed, rule):
    rng = random.Random(seed)
    dag = random_dag(rng, rng.randint(2, 5), rng.uniform(1, 3.5), rng.choice([0, 0.5]))
    knowledge = true_knowledge(rng, dag)
    assert search(dag.nodes, separation_in(dag), rule).graph == class_by_enumeration(dag)
    assert search(dag.nodes, separation_in(dag), rule, knowledge).graph == class_by_enumeration(dag, knowledge)


@pytest.mark.parametrize("seed", range(40))
def test_names_and_their_order_change_nothing_but_names(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, 8, 3, 0.3)
    names = dict(zip(dag.nodes, (DOMAIN if node == DOMAIN else f"w{rng.random()}" for node in dag.nodes), strict=True))
    other = renamed(dag, names)
    found = search(dag.nodes, separation_in(dag), "largest p")
    again = search(shuffled(other, rng), separation_in(other), "largest p")
    assert again.graph == renamed(found.graph, names)
    assert again.reasons == {(names[a], names[b]): reason for (a, b), reason in found.reasons.items()}


@pytest.mark.parametrize("seed", range(40))
def test_true_independent_change_directs_all_edges_between_changing_variables(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, 7, 3, 0.6)
    found = search(dag.nodes, separation_in(dag), "largest p", change=true_change(dag))
    without = search(dag.nodes, separation_in(dag), "largest p")
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
    knowledge = true_knowledge(rng, dag) if seed % 3 else NOTHING_KNOWN
    test, change, alpha = noise(seed), noisy_change(seed), rng.choice([0.3, 0.6, 0.9])
    found = search(dag.nodes, test, rule, knowledge, change, alpha)
    assert found.graph.is_acyclic()
    assert not any(knowledge.forbids(*arrow) for arrow in found.graph.arrows)
    assert {arrow for arrow in knowledge.required if set(arrow) <= set(dag.nodes)} <= found.graph.arrows
    assert found.reasons.keys() == found.graph.arrows
    assert meek_rules.close(found.graph, knowledge) == (found.graph, {})
    assert extend(found.graph).is_dag()
    assert found == search(shuffled(dag, rng), test, rule, knowledge, change, alpha)


@pytest.mark.parametrize("seed", range(30))
def test_noise_is_not_decided_by_names(seed):
    rng = random.Random(seed)
    nodes = [*(f"v{i}" for i in range(7)), DOMAIN]
    names = dict(zip(nodes, (*rng.sample("abcdefg", 7), DOMAIN), strict=True))
    back = {new: old for old, new in names.items()}

    def translated(questions):
        asked = [
            Question(*ends(frozenset((back[q.x], back[q.y]))), frozenset(map(back.get, q.given))) for q in questions
        ]
        return [replace(answer, question=q) for q, answer in zip(questions, noise(seed)(asked), strict=True)]

    found = search(nodes, noise(seed), "largest p", alpha=0.5)
    assert search(names.values(), translated, "largest p", alpha=0.5).graph == renamed(found.graph, names)


# Single steps


def skeleton_of(nodes, lines, separators=()):
    """A skeleton with these lines; separators as (x, y, set, p-value)."""
    answers = [Answer(Question(x, y, frozenset(given)), 0.0, p_value, 10) for x, y, given, p_value in separators]
    graph = PartialGraph(tuple(nodes), lines=frozenset(map(frozenset, lines)))
    return Skeleton(graph, {answer.question.pair: answer for answer in answers}, {}, (1, 1))


def decision(a, middle, b, strength, collider=True):
    return TripleDecision((a, b), middle, collider, strength, None, None)


def test_reasons_tell_the_steps():
    lines = [(DOMAIN, "a"), ("a", "b"), ("b", "c"), ("c", "d"), ("e", "d")]
    separators = [(DOMAIN, "b", "a", 0.9), ("a", "c", "b", 0.9), ("b", "d", "c", 0.9), ("c", "e", "", 0.9)]
    found = orient(skeleton_of([DOMAIN, *"abcde"], lines, separators), by_separating_set, Knowledge([("b", "c")]))
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
    assert orient(effect, by_separating_set).graph.arrows == {(DOMAIN, "x"), ("x", "y")}
    cause = skeleton_of([DOMAIN, "x", "y"], lines, [(DOMAIN, "y", "", 0.9)])
    assert orient(cause, by_separating_set).graph.arrows == {(DOMAIN, "x"), ("y", "x")}


def test_the_surer_collider_wins_and_the_other_is_dropped_whole():
    graph = PartialGraph(tuple("abcd"), lines=frozenset(map(frozenset, ("ab", "bc", "cd"))))
    sure, less = decision("a", "b", "c", 0.8), decision("b", "c", "d", 0.3)
    for decisions in ((sure, less), (less, sure)):
        found = point_into_colliders(Orientation(graph), decisions, NOTHING_KNOWN)
        assert found.graph.arrows == {("a", "b"), ("c", "b")}
        assert found.graph.undirected("c", "d")
        assert found.conflicts == (Conflict((("b", "c"), ("d", "c")), "collider", "opposite arrow"),)
        assert str(found.conflicts[0]) == "b → c and d → c (collider) refused: opposite arrow"


def test_equally_sure_colliders_that_contradict_each_other_are_both_dropped():
    graph = PartialGraph(tuple("abcd"), lines=frozenset(map(frozenset, ("ab", "bc", "cd"))))
    decisions = (decision("a", "b", "c", 0.5), decision("b", "c", "d", 0.5))
    found = point_into_colliders(Orientation(graph), decisions, NOTHING_KNOWN)
    assert found.graph == graph
    assert [conflict.obstacle for conflict in found.conflicts] == ["equal claims"] * 2


def test_a_collider_never_closes_a_cycle_or_breaks_knowledge():
    ring = PartialGraph(tuple("abcd"), frozenset({("a", "b"), ("b", "c")}), frozenset(map(frozenset, ("ac", "ad"))))
    found = point_into_colliders(Orientation(ring), (decision("c", "a", "d", 1.0),), NOTHING_KNOWN)
    assert (found.graph, found.conflicts[0].obstacle) == (ring, "directed cycle")
    found = point_into_colliders(Orientation(ring), (decision("c", "a", "d", 1.0),), Knowledge(forbidden=[("d", "a")]))
    assert (found.graph, found.conflicts[0].obstacle) == (ring, "knowledge")


def test_forbidden_directions_that_run_in_a_circle_leave_lines():
    knowledge = Knowledge(forbidden=[("a", "b"), ("b", "c"), ("c", "a")])
    found = orient(skeleton_of("abc", ["ab", "bc", "ca"]), by_separating_set, knowledge)
    assert found.graph.lines == set(map(frozenset, ("ab", "bc", "ca")))
    assert {conflict.reason for conflict in found.conflicts} == {"knowledge"}


def test_largest_p_overrules_an_unlucky_separating_set():
    def test(questions):
        return [Answer(q, 0.0, {"": 0.06, "z": 0.9}.get("".join(sorted(q.given)), 0.0), 10) for q in questions]

    skeleton = find_skeleton("xyz", test, 0.05)
    chain = skeleton_of("xyz", ["xz", "yz"], [("x", "y", "", 0.06)])
    assert skeleton.graph.skeleton == frozenset()  # in this world every pair passes for independent
    assert orient(chain, by_separating_set).graph.arrows == {("x", "z"), ("y", "z")}
    (triple,) = by_largest_p(test)(chain, NOTHING_KNOWN)
    assert not triple.collider
    assert triple.strength == pytest.approx(0.84)
    assert (triple.without_middle.p_value, triple.with_middle.p_value) == (0.06, 0.9)
    assert orient(chain, by_largest_p(test)).graph.lines == chain.graph.lines


def test_equal_p_values_are_no_collider():
    def flat(questions):
        return [Answer(question, 0.0, 0.5, 10) for question in questions]

    (triple,) = by_largest_p(flat)(skeleton_of("xyz", ["xz", "yz"], [("x", "y", "", 0.5)]), NOTHING_KNOWN)
    assert (triple.collider, triple.strength) == (False, 0.0)


def test_largest_p_asks_one_batch_and_spares_hubs():
    hub = ["h", *(f"v{i:02}" for i in range(30)), "w"]
    lines = [("h", name) for name in hub[1:31]] + [("v00", "w")]
    batches = []

    def counting(questions):
        batches.append(questions)
        return noise(0)(questions)

    skeleton = Skeleton(PartialGraph(tuple(hub), lines=frozenset(map(frozenset, lines))), {}, {}, (1,) * 20)
    by_largest_p(counting)(skeleton, NOTHING_KNOWN)
    about = [question for question in batches[0] if question.pair == frozenset(("h", "w"))]
    assert len(batches) == 1
    assert len(about) == 1 + 30 + 435
    assert max(len(question.given) for question in about) == 2
    by_largest_p(counting, max_conditioning=1)(skeleton, NOTHING_KNOWN)
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
    found = orient(
        skeleton_of([DOMAIN, *"abc"], TRIANGLE), by_separating_set, independent_change=measured(values, calls)
    )
    assert calls == [[("a", "b"), ("a", "c"), ("b", "c")]]
    assert found.reasons["a", "b"] == found.reasons["b", "c"] == "independent-change"
    assert found.reasons["a", "c"] == "meek-2"  # its own measure would have said c → a
    assert found.dependences[frozenset("ac")] == ModuleDependence("a", "c", 0.5, 0.4)


def test_independent_change_obeys_knowledge_and_leaves_ties():
    skeleton = skeleton_of([DOMAIN, "a", "b"], [*TRIANGLE[:2], ("a", "b")])
    tie = orient(skeleton, by_separating_set, independent_change=measured({"ab": (0.3, 0.3)}))
    assert tie.graph.undirected("a", "b")
    known = Knowledge(forbidden=[("a", "b")])
    obedient = orient(skeleton, by_separating_set, known, measured({"ab": (0.1, 0.9)}))
    assert obedient.reasons["b", "a"] == "knowledge"
    assert obedient.dependences == {}


def test_equally_clear_changes_that_run_in_a_circle_leave_lines():
    values = {"ab": (0.1, 0.6), "bc": (0.1, 0.6), "ac": (0.6, 0.1)}
    found = orient(skeleton_of([DOMAIN, *"abc"], TRIANGLE), by_separating_set, independent_change=measured(values))
    assert len(found.graph.lines) == 3
    assert [conflict.obstacle for conflict in found.conflicts] == ["equal claims"] * 3


def test_only_pairs_that_both_change_are_measured():
    calls = []
    skeleton = skeleton_of([DOMAIN, *"abc"], [(DOMAIN, "a"), ("b", "c")])
    orient(skeleton, by_separating_set, independent_change=measured({}, calls))
    alone = skeleton_of("ab", ["ab"])
    assert orient(alone, by_separating_set, independent_change=measured({}, calls)).graph == alone.graph
    assert calls == []


# Refusals


def test_unusable_measures_are_refused():
    skeleton = skeleton_of([DOMAIN, "a", "b"], [*TRIANGLE[:2], ("a", "b")])
    with pytest.raises(AnswerError, match="not a number"):
        orient(skeleton, by_separating_set, independent_change=measured({"ab": (float("nan"), 0.1)}))
    with pytest.raises(AnswerError, match="asked about 1 pairs and gave 0"):
        orient(skeleton, by_separating_set, independent_change=lambda pairs: [])


def test_a_skeleton_found_with_other_knowledge_is_refused():
    skeleton = skeleton_of("abc", ["ab", "bc"])
    with pytest.raises(KnowledgeError, match="differ in a — b"):
        orient(skeleton, by_separating_set, Knowledge(forbidden=[("a", "b"), ("b", "a")]))
    with pytest.raises(KnowledgeError, match="differ in a — c"):
        orient(skeleton, by_separating_set, Knowledge(required=[("a", "c")]))
    with pytest.raises(GraphError, match="no answer on record for a and c"):
        orient(skeleton, by_separating_set)
