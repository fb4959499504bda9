"""Knowledge of other programs, read strictly: the same arrows are forbidden and required as they say."""

from itertools import permutations

import pytest

from fedcdh.errors import KnowledgeError
from fedcdh.graphs.convert.knowledge import from_causal_learn, from_pgmpy, from_tetrad, from_toml
from fedcdh.graphs.knowledge import Knowledge

NAMES = ("age", "sex", "dose", "score")
KNOWN = Knowledge(
    required=[("age", "dose")], forbidden=[("sex", "dose")], tiers=[["age", "sex"], ["dose"]], forbid_within_tier=[0]
)

TETRAD = """/knowledge
// written by hand
addtemporal
1* age sex
4  dose

forbiddirect
sex dose
requiredirect
age dose
"""


def test_toml():
    text = """
    clients = ["north", "south"]
    [knowledge]
    required = [["age", "dose"]]
    forbidden = [["sex", "dose"]]
    tiers = [["age", "sex"], ["dose"]]
    forbid_within_tier = [0]
    """
    assert from_toml(text) == KNOWN
    assert from_toml("") == Knowledge()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[knowledge", "not TOML"),
        ("[knowledge]\nrequire = []", "did you mean 'required'"),
        ("[knowledge]\nrequired = [['a']]", "cannot be used"),
        ("[knowledge]\nrequired = [['a', 'b']]\nforbidden = [['a', 'b']]", "both required and forbidden"),
    ],
)
def test_toml_that_cannot_be_used(text, message):
    with pytest.raises(KnowledgeError, match=message):
        from_toml(text)


def test_tetrad():
    assert from_tetrad(TETRAD) == KNOWN
    assert from_tetrad("") == Knowledge()
    assert from_tetrad("addtemporal\n2 b\n1 a") == Knowledge(tiers=[["a"], ["b"]])


def test_tetrad_groups_and_quoted_names():
    known = from_tetrad('forbiddengroup\na, b\n"blood pressure"\nrequiredgroup\na\nc d')
    assert known.forbidden == {("a", "blood pressure"), ("b", "blood pressure")}
    assert known.required == {("a", "c"), ("a", "d")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age dose", "line 1 of the knowledge file: found 'age dose'; expected one of addtemporal"),
        ("/knowledge\naddtemporal\n0 age", "line 3.*from 1"),
        ("addtemporal\n1- age", "line 2.*from 1"),
        ("addtemporal\nage sex", "the number of a tier"),
        ("forbiddirect\na b c", "found 3 words"),
        ("requiredirect\na", "found 1 words"),
        ("forbiddengroup\na b", "expected a row of effects"),
        ('forbiddirect\n"a b', "not closed"),
        ("addtemporal\n,", "expected names"),
        ('forbiddirect\na ""', "expected names"),
        ("addtemporal\n1 a\n2 a", "listed 2 times"),
        ("addtemporal\n1 a\n2 b\nrequiredirect\nb a", "the tiers forbid it"),
    ],
)
def test_tetrad_files_that_cannot_be_used(text, message):
    with pytest.raises(KnowledgeError, match=message):
        from_tetrad(text)


def test_causal_learn():
    pytest.importorskip("causallearn", reason="causal-learn is not installed")
    from causallearn.graph.GraphNode import GraphNode
    from causallearn.utils.PCUtils.BackgroundKnowledge import BackgroundKnowledge

    nodes = {name: GraphNode(name) for name in NAMES}
    theirs = BackgroundKnowledge()
    theirs.add_required_by_node(nodes["age"], nodes["dose"]).add_forbidden_by_node(nodes["sex"], nodes["dose"])
    theirs.add_node_to_tier(nodes["age"], 0).add_node_to_tier(nodes["sex"], 0).add_node_to_tier(nodes["dose"], 3)
    theirs.forbid_within_tier(0)
    assert from_causal_learn(theirs) == KNOWN

    theirs.add_forbidden_by_pattern("s.*", "sc")
    with pytest.raises(KnowledgeError, match="parameter variables"):
        from_causal_learn(theirs)
    ours = from_causal_learn(theirs, NAMES)
    for tail, head in permutations(NAMES, 2):
        assert ours.requires(tail, head) == theirs.is_required(nodes[tail], nodes[head])
        implied = ours.requires(head, tail)  # here it goes without saying that the reverse is forbidden
        assert ours.forbids(tail, head) == (theirs.is_forbidden(nodes[tail], nodes[head]) or implied)

    with pytest.raises(KnowledgeError, match="is not a regular expression"):
        from_causal_learn(BackgroundKnowledge().add_required_by_pattern("(", "a"), NAMES)
    contradictory = BackgroundKnowledge().add_required_by_node(nodes["age"], nodes["dose"])
    with pytest.raises(KnowledgeError, match="both required and forbidden"):
        from_causal_learn(contradictory.add_forbidden_by_node(nodes["age"], nodes["dose"]))


@pytest.mark.filterwarnings("ignore")
def test_pgmpy():
    pytest.importorskip("pgmpy", reason="pgmpy is not installed")
    from pgmpy.estimators import ExpertKnowledge

    theirs = ExpertKnowledge(
        required_edges=[("age", "dose")], forbidden_edges=[("sex", "dose")], temporal_order=[["age", "sex"], ["dose"]]
    )
    expected = Knowledge(KNOWN.required, KNOWN.forbidden, KNOWN.tiers)
    assert from_pgmpy(theirs) == expected
    assert from_pgmpy(ExpertKnowledge()) == Knowledge()

    allowed = ExpertKnowledge(search_space=[("age", "dose"), ("dose", "score")])
    with pytest.raises(KnowledgeError, match="search space"):
        from_pgmpy(allowed)
    ours = from_pgmpy(allowed, NAMES)
    assert {arrow for arrow in permutations(NAMES, 2) if not ours.forbids(*arrow)} == allowed.search_space
