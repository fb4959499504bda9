"""What Knowledge says to the search, and which contradictions it refuses."""

import random

import pytest
from oracle import obeys, random_dag, true_knowledge

from fedcdh.errors import KnowledgeError
from fedcdh.knowledge import NOTHING_KNOWN, Knowledge
from fedcdh.questions import DOMAIN

NAMES = ("a", "b", "c", "d", "e")


def test_nothing_known_but_that_the_domain_is_a_root():
    NOTHING_KNOWN.check(NAMES)
    assert not NOTHING_KNOWN.forbids("a", "b")
    assert NOTHING_KNOWN.forbids("a", DOMAIN)
    assert not NOTHING_KNOWN.forbids(DOMAIN, "a")
    assert NOTHING_KNOWN.directs(DOMAIN, "a")
    assert not NOTHING_KNOWN.excludes(frozenset("ab"))
    assert NOTHING_KNOWN.leaves_open(frozenset((DOMAIN, "a")), "b")
    assert not NOTHING_KNOWN.leaves_open(frozenset("ab"), DOMAIN)


def test_lists_become_values():
    from_lists = Knowledge(required=[["a", "b"]], forbidden=[["b", "c"]], tiers=[["a"], ["d"]], forbid_within_tier=[0])
    assert from_lists == Knowledge([("a", "b")], [("b", "c")], (("a",), ("d",)), {0})
    assert hash(from_lists) == hash(Knowledge([("a", "b")], [("b", "c")], (("a",), ("d",)), {0}))


def test_arrows_speak_about_both_directions():
    knowledge = Knowledge(required=[("a", "b")], forbidden=[("c", "d"), ("d", "e"), ("e", "d")])
    assert knowledge.requires("a", "b")
    assert not knowledge.requires("b", "a")
    assert knowledge.forbids("b", "a")
    assert knowledge.directs("a", "b")
    assert knowledge.directs("d", "c")
    assert not knowledge.directs("c", "d")
    assert knowledge.excludes(frozenset("de"))
    assert not knowledge.excludes(frozenset("cd"))


def test_tiers_forbid_going_back_in_time():
    knowledge = Knowledge(tiers=[["a", "b"], ["c", "d"]], forbid_within_tier=[1])
    knowledge.check(NAMES)
    assert knowledge.forbids("c", "a")
    assert not knowledge.forbids("a", "c")
    assert not knowledge.forbids("a", "b")
    assert knowledge.excludes(frozenset("cd"))
    assert not knowledge.forbids("c", "e")
    assert not knowledge.forbids("e", "a")


def test_triples_that_knowledge_settles_are_closed():
    knowledge = Knowledge(tiers=[["a", "b"], ["c"], ["d"]])
    assert not knowledge.leaves_open(frozenset("ab"), "c")  # a → c ← b is certain
    assert not knowledge.leaves_open(frozenset("ad"), "c")  # d → c is impossible
    assert knowledge.leaves_open(frozenset("ae"), "c")


def test_knowledge_about_the_domain():
    knowledge = Knowledge(required=[(DOMAIN, "a")], forbidden=[(DOMAIN, "b")])
    knowledge.check(NAMES)
    knowledge.check((*NAMES, DOMAIN))
    assert knowledge.excludes(frozenset((DOMAIN, "b")))
    assert not knowledge.excludes(frozenset((DOMAIN, "a")))


@pytest.mark.parametrize(
    ("knowledge", "message"),
    [
        (Knowledge(required=[("a", "x")]), "unknown variables: x"),
        (Knowledge(forbidden=[("y", "x")]), "unknown variables: x, y"),
        (Knowledge(tiers=[["a"], ["x"]]), "unknown variables: x"),
        (Knowledge(required=[("a", "b")], forbidden=[("a", "b")]), "a → b is both required and forbidden"),
        (Knowledge(required=[("a", "a")]), "nothing causes itself"),
        (Knowledge(required=[("a", "b"), ("b", "a")]), "from a back to a"),
        (Knowledge(required=[("a", "b"), ("b", "c"), ("c", "a")]), "from b back to b"),
        (Knowledge(required=[("b", "a")], tiers=[["a"], ["b"]]), "b → a is required, but the tiers forbid it"),
        (Knowledge([("a", "b")], tiers=[["a", "b"]], forbid_within_tier=[0]), "a → b is required, but the tiers"),
        (Knowledge([("b", "c"), ("c", "a")], tiers=[["a"], ["b"]]), "from b to a, which is in an earlier tier"),
        (Knowledge(tiers=[["a"], ["b", "a"]]), "a is listed 2 times"),
        (Knowledge(tiers=[[DOMAIN], ["b", "a"]]), "the domain is listed in a tier"),
        (Knowledge(tiers=[["a"]], forbid_within_tier=[1]), "numbered 0 to 0"),
        (Knowledge(required=[("a", DOMAIN)]), "the domain has no causes"),
    ],
)
def test_contradictions_are_named(knowledge, message):
    with pytest.raises(KnowledgeError, match=message):
        knowledge.check(NAMES)


def test_all_contradictions_are_named_at_once():
    with pytest.raises(KnowledgeError, match=r"(?s)unknown variables: x.*from b back to b"):
        Knowledge(required=[("a", "x"), ("b", "c"), ("c", "b")]).check(NAMES)


def test_strings_are_not_taken_apart():
    with pytest.raises(KnowledgeError, match="written \\(tail, head\\), found 'ab'"):
        Knowledge(required=["ab"])
    with pytest.raises(KnowledgeError, match="list of variables, found 'ab'"):
        Knowledge(tiers=["ab"])
    with pytest.raises(KnowledgeError, match="written \\(tail, head\\)"):
        Knowledge(forbidden=[("a", "b", "c")])


@pytest.mark.parametrize("seed", range(50))
def test_what_is_true_of_a_dag_is_never_a_contradiction(seed):
    rng = random.Random(seed)
    dag = random_dag(rng, rng.randint(2, 10), 3, 0.3)
    knowledge = true_knowledge(rng, dag)
    knowledge.check(dag.nodes)
    assert obeys(dag, knowledge)
