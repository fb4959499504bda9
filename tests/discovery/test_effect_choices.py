"""Adjustment sets of effects: against all DAGs of the class, and what is refused."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.discovery.effect_choices import EffectGraph
from fedcdh.discovery.effect_questions import Question
from fedcdh.errors import NoConsistentExtensionError, SettingsError
from fedcdh.graphs.adjustment import MAX_OPEN_EDGES, describe_invalid_adjustment
from fedcdh.graphs.equivalence import find_consistent_extension, to_cpdag
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph

NODES = tuple("abcde")
ARROWS = [(tail, head) for number, tail in enumerate(NODES) for head in NODES[number + 1 :]]
dags = st.sets(st.sampled_from(ARROWS), max_size=8).map(lambda arrows: PartialGraph.from_dag(NODES, sorted(arrows)))
pairs = st.sampled_from([*permutations(NODES, 2)])


def dags_of_class(graph):
    """All DAGs with the arrows, skeleton and colliders of a graph, by trying every direction of its lines."""
    found, waiting = [], [graph]
    while waiting:
        one = waiting.pop()
        if not one.lines:
            if one.is_dag() and one.colliders == graph.colliders:
                found.append(one)
            continue
        tail, head = sorted(min(one.lines, key=sorted))
        waiting += [one.orient(tail, head), one.orient(head, tail)]
    return found


@settings(max_examples=60)
@given(dags, pairs, st.sampled_from(["optimal", "parents"]))
def test_a_set_that_is_chosen_is_valid_in_every_dag_of_the_class(dag, pair, rule):
    question = Question(*pair, "total")
    choice = EffectGraph(to_cpdag(dag), Knowledge()).choose(question, rule)
    members = dags_of_class(to_cpdag(dag))
    affected = {pair[1] in one.descendants(pair[0]) for one in members}
    if choice.given is not None:
        assert choice.identifiable
        assert all(describe_invalid_adjustment(one, *pair, choice.given) == "" for one in members)
    elif choice.identifiable:  # the effect is zero in all of them
        assert affected == {False}
    else:
        assert choice.reason.startswith("the graph leaves open which way the edge")


@settings(max_examples=60)
@given(dags, pairs)
def test_possible_sets_are_those_of_the_dags_of_the_class(dag, pair):
    cpdag = to_cpdag(dag)
    weights = EffectGraph(cpdag, Knowledge()).list_possible(Question(*pair, "total"), {})
    expected = {one.parents(pair[0]) if pair[1] in one.descendants(pair[0]) else None for one in dags_of_class(cpdag)}
    assert expected <= {*weights}
    direct = EffectGraph(cpdag, Knowledge()).list_possible(Question(*pair, "direct"), {})
    assert {*direct} == {
        one.parents(pair[1]) - {pair[0]} if pair[0] in one.parents(pair[1]) else None for one in dags_of_class(cpdag)
    }


def test_weights_are_products_of_probabilities_and_sum_to_one():
    chain = PartialGraph(tuple("abc"), lines=frozenset(map(frozenset, ["ab", "bc"])))
    arrows = {("a", "b"): 0.6, ("b", "a"): 0.4, ("b", "c"): 0.9, ("c", "b"): 0.1}
    weights = EffectGraph(chain, Knowledge()).list_possible(Question("b", "c", "total"), arrows)
    parts = {frozenset("a"): 0.6 * 0.9, frozenset(): 0.4 * 0.9, None: 0.4 * 0.1}  # a → b ← c is of another class
    assert weights == pytest.approx({given: part / sum(parts.values()) for given, part in parts.items()})


def test_choices_are_found_once_for_every_cause(monkeypatch):
    chain = PartialGraph(tuple("abc"), lines=frozenset(map(frozenset, ["ab", "bc"])))
    graph = EffectGraph(chain, Knowledge())
    before = graph.list_possible(Question("a", "c", "total"), {})
    monkeypatch.setattr("fedcdh.discovery.effect_choices.list_local_choices", None)
    assert graph.list_possible(Question("a", "c", "total"), {}) == before
    assert set(graph.list_possible(Question("a", "b", "total"), {})) == {frozenset(), None}


def test_where_too_many_lines_meet_nothing_is_listed():
    names = tuple(f"v{number}" for number in range(MAX_OPEN_EDGES + 2))
    star = PartialGraph(names, lines=frozenset(frozenset((names[0], name)) for name in names[1:]))
    assert EffectGraph(star, Knowledge()).list_possible(Question(names[0], names[1], "total"), {}) == {}


def test_knowledge_closes_what_the_graph_leaves_open():
    line = PartialGraph(tuple("ab"), lines=frozenset({frozenset("ab")}))
    question = Question("a", "b", "total")
    assert not EffectGraph(line, Knowledge()).choose(question, "auto").identifiable
    known = EffectGraph(line, Knowledge(tiers=[["a"], ["b"]])).choose(question, "auto")
    assert (known.given, known.identifiable) == (frozenset(), True)


def test_a_square_of_lines_stands_for_no_class():
    square = PartialGraph(tuple("abcd"), lines=frozenset(map(frozenset, ["ab", "bc", "cd", "da"])))
    with pytest.raises(NoConsistentExtensionError):
        find_consistent_extension(square)
    assert not EffectGraph(square, Knowledge()).stands_for_class


@pytest.mark.parametrize(
    ("adjust", "message"),
    [("best", "expected 'auto', 'parents', 'optimal' or a list"), (["z"], "adjust names 'z'"), (["a"], "names 'a'")],
)
def test_rules_and_names_that_do_not_exist_are_refused(adjust, message):
    dag = PartialGraph.from_dag("ab", [("a", "b")])
    with pytest.raises(SettingsError, match=message) as refused:
        EffectGraph(dag, Knowledge()).choose(Question("a", "b", "total"), adjust)
    assert refused.value.parameter == "adjust"


def test_a_forced_set_is_used_and_called_invalid_where_it_is():
    fork = EffectGraph(PartialGraph.from_dag("xyz", [("z", "x"), ("z", "y"), ("x", "y")]), Knowledge())
    assert fork.choose(Question("x", "y", "total"), ["z"]).identifiable
    wrong = fork.choose(Question("x", "y", "total"), [])
    assert (wrong.given, wrong.identifiable) == (frozenset(), False)
    direct = fork.choose(Question("x", "y", "direct"), [])
    assert direct.reason.endswith("the other parents of y are another set")
