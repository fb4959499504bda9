"""What Knowledge says to the search, and which contradictions it refuses."""

import random

import pytest
from effort import steps
from oracle import obeys, random_dag, true_knowledge

from fedcdh.errors import KnowledgeError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.protocols import DOMAIN

NAMES = ("a", "b", "c", "d", "e")


def test_nothing_known_but_that_the_domain_is_a_root():
    NO_KNOWLEDGE.check(NAMES)
    assert not NO_KNOWLEDGE.forbids("a", "b")
    assert NO_KNOWLEDGE.forbids("a", DOMAIN)
    assert not NO_KNOWLEDGE.forbids(DOMAIN, "a")
    assert NO_KNOWLEDGE.directs(DOMAIN, "a")
    assert not NO_KNOWLEDGE.excludes(frozenset("ab"))
    assert NO_KNOWLEDGE.leaves_open(frozenset((DOMAIN, "a")), "b")
    assert not NO_KNOWLEDGE.leaves_open(frozenset("ab"), DOMAIN)


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


def test_pairs_are_forbidden_both_ways_and_all_else_stays():
    knowledge = Knowledge(required=[("a", "b")], forbidden=[("c", "d")], tiers=[["a"], ["e"]])
    more = knowledge.forbid_pairs([("b", "c"), frozenset("de")])
    assert more.excludes(frozenset("bc"))
    assert more.excludes(frozenset("de"))
    assert not more.excludes(frozenset("cd"))
    assert (more.required, more.tiers) == (knowledge.required, knowledge.tiers)
    assert more.forbidden >= knowledge.forbidden
    assert knowledge.forbid_pairs([]) == knowledge
    assert more.forbid_pairs([("c", "b")]) == more


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
    with pytest.raises(KnowledgeError, match="the arrow 'ab'; expected a tail and a head"):
        Knowledge(required=["ab"])
    with pytest.raises(KnowledgeError, match="the tier 'ab'; expected a list of variables"):
        Knowledge(tiers=["ab"])
    with pytest.raises(KnowledgeError, match="expected a tail and a head"):
        Knowledge(forbidden=[("a", "b", "c")])


def test_what_is_true_of_a_dag_is_never_a_contradiction():
    for seed in range(50):
        rng = random.Random(seed)
        dag = random_dag(rng, rng.randint(2, 10), 3, 0.3)
        knowledge = true_knowledge(rng, dag)
        knowledge.check(dag.nodes)
        assert obeys(dag, knowledge), f"seed {seed}"


def brute_force(knowledge: Knowledge) -> tuple[set[str], set[tuple[str, str]]]:
    """By the definition: who reaches itself along required arrows, and who reaches whom in an earlier tier."""
    tier = {name: k for k, names in enumerate(knowledge.tiers) for name in names}
    reach = {name: {head for tail, head in knowledge.required if tail == name != head} for name in NAMES}
    for _ in NAMES:
        reach = {name: heads.union(*(reach[head] for head in heads)) for name, heads in reach.items()}
    back = {(a, b) for a in NAMES for b in reach[a] if a in tier and b in tier and tier[a] > tier[b]}
    return {name for name in NAMES if name in reach[name]}, back


def test_chains_of_required_arrows_are_refused_exactly_where_they_contradict():
    for seed in range(400):
        rng = random.Random(seed)
        pairs = [(a, b) for a in NAMES for b in NAMES if a != b]
        placed = rng.sample(NAMES, rng.randint(0, 4))
        cuts = sorted(rng.choices(range(len(placed) + 1), k=2))
        knowledge = Knowledge(
            required=rng.sample(pairs, rng.randint(0, 6)),
            tiers=[placed[: cuts[0]], placed[cuts[0] : cuts[1]], placed[cuts[1] :]],
        )
        circling, back = brute_force(knowledge)
        try:
            knowledge.check(NAMES)
            said = ""
        except KnowledgeError as refusal:
            said = str(refusal)
        assert {name for name in NAMES if f"lead from {name} back to {name};" in said} == circling, f"seed {seed}"
        assert {
            (a, b) for a, b in pairs if f"{a} → {b} is required, but the tiers" in said
        } == back & knowledge.required, f"seed {seed}"
        chains = {(a, b) for a, b in pairs if f"lead from {a} to {b}, which is in an earlier tier" in said}
        assert chains <= back - knowledge.required, f"seed {seed}"
        assert bool(said) == bool(circling or back), f"seed {seed}"


def in_chain(length: int, more: int = 1) -> tuple[list[str], list[tuple[str, str]]]:
    names = [f"v{k:06}" for k in range(length)]
    return names, [(a, b) for step in range(1, more + 1) for a, b in zip(names, names[step:], strict=False)]


def many_times(size: int) -> tuple[list[str], Knowledge]:
    return in_chain(size)[0], Knowledge(tiers=[in_chain(size)[0], in_chain(size)[0]])


def all_fine(size: int) -> tuple[list[str], Knowledge]:
    names, arrows = in_chain(size, 5)
    return names, Knowledge(required=arrows, tiers=[[name] for name in names[::2]])


def round_and_round(size: int) -> tuple[list[str], Knowledge]:
    names, arrows = in_chain(size, 5)
    return names, Knowledge(required=[*arrows, (names[-1], names[0])])


def back_in_time(size: int) -> tuple[list[str], Knowledge]:
    names, arrows = in_chain(size)
    return names, Knowledge(required=arrows, tiers=[names[-50:], names[:50]])


def every_other_back_in_time(size: int) -> tuple[list[str], Knowledge]:
    names, arrows = in_chain(size)
    return names, Knowledge(required=arrows, tiers=[[name] for name in names[::-2]])


@pytest.mark.parametrize("made", [many_times, all_fine, round_and_round, back_in_time, every_other_back_in_time])
def test_work_to_check_grows_with_the_arrows_and_not_with_their_square(made):
    def work(size: int) -> int:
        names, knowledge = made(size)
        return steps(lambda: knowledge.check(names), refused=KnowledgeError)

    assert work(4000) < 5 * work(1000)


@pytest.mark.parametrize("made", [many_times, round_and_round, back_in_time, every_other_back_in_time])
def test_what_is_said_stays_short_whatever_is_wrong(made):
    names, knowledge = made(1000)
    with pytest.raises(KnowledgeError) as refusal:
        knowledge.check(names)
    assert len(str(refusal.value)) < 10_100


def test_the_first_complaints_are_told_and_the_rest_counted():
    names = [f"v{k:03}" for k in range(100)]
    with pytest.raises(
        KnowledgeError, match=r"v000 is listed 2 times(?s:.*)v029 is listed 2 times(?s:.*)- and 70 more$"
    ):
        Knowledge(tiers=[names, names]).check(names)
    with pytest.raises(KnowledgeError, match=r"variables: v000, .*, v029 and 70 more; known are a, b, c, d, e$"):
        Knowledge(tiers=[names]).check(NAMES)


def test_names_that_cannot_be_printed_stand_as_numbers():
    with pytest.raises(KnowledgeError, match=r"unknown variables: a\\xa0, b\\x1b\[2J\\n; known are"):
        Knowledge(tiers=[["b\x1b[2J\n", "a\u00a0"]]).check(NAMES)
