"""Votes of three graphs: the rules for one pair in full, and what holds for all graphs."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest
import residual_studies
from hypothesis import given
from hypothesis import strategies as st
from oracle import obeys, true_knowledge

from fedcdh.discovery.api import discover_from
from fedcdh.discovery.one_message import combine_by_vote, describe_open_directions
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN
from fedcdh.search.orientation import Orientation
from fedcdh.summaries.aggregation import Aggregate

LINE = frozenset({frozenset("xy")})
MARKS = {
    "": PartialGraph("xy"),
    "—": PartialGraph("xy", lines=LINE),
    "→": PartialGraph("xy", frozenset({("x", "y")})),
    "←": PartialGraph("xy", frozenset({("y", "x")})),
}


def voter(graph: PartialGraph, reason: str = "evidence") -> Orientation:
    return Orientation(graph, dict.fromkeys(graph.arrows, reason))


def mark_of(graph: PartialGraph) -> str:
    return next(mark for mark, one in MARKS.items() if one == graph)


def vote(curved: str, linear: str, tests: str | None, knowledge: Knowledge = NO_KNOWLEDGE) -> str:
    found = combine_by_vote(
        voter(MARKS[curved]), voter(MARKS[linear]), None if tests is None else voter(MARKS[tests]), knowledge
    )
    assert found.reasons.keys() == found.graph.arrows
    return mark_of(found.graph)


JOINED = ("—", "→", "←")
THREE = {  # curved, linear, tests: all that three graphs with an edge may say
    "———": "—", "——→": "—", "——←": "—", "—→—": "—", "—→→": "→", "—→←": "—", "—←—": "—", "—←→": "—", "—←←": "←",
    "→——": "—", "→—→": "→", "→—←": "—", "→→—": "—", "→→→": "→", "→→←": "—", "→←—": "—", "→←→": "→", "→←←": "←",
    "←——": "—", "←—→": "—", "←—←": "←", "←→—": "—", "←→→": "→", "←→←": "←", "←←—": "—", "←←→": "—", "←←←": "←",
}  # fmt: skip


def test_the_27_votes_of_three_graphs_with_an_edge():
    assert THREE.keys() == {"".join(marks) for marks in product(JOINED, repeat=3)}
    assert {marks: vote(*marks) for marks in THREE} == THREE


@pytest.mark.parametrize("absent", range(3))
def test_two_of_three_have_to_have_an_edge(absent):
    for first, second in product(JOINED, repeat=2):
        marks = [first, second]
        marks.insert(absent, "")
        # tests without the edge direct nothing; beside a graph without it, the other one has to have the arrow
        assert vote(*marks) == (second if absent < 2 and first == second else "—")
        alone = ["", "", ""]
        alone[absent] = first
        assert vote(*alone) == ""


def test_with_sums_only_both_graphs_have_to_have_an_edge_and_an_arrow():
    for curved, linear in product(MARKS, repeat=2):
        found = vote(curved, linear, None)
        if not (curved and linear):
            assert found == ""
        else:
            assert found == (curved if curved == linear else "—")


def test_the_domain_has_no_causes():
    arrow = PartialGraph((DOMAIN, "y"), frozenset({(DOMAIN, "y")}))
    found = combine_by_vote(voter(arrow), voter(arrow), None, NO_KNOWLEDGE)
    assert found.graph == arrow


@st.composite
def three_graphs(draw):
    """Three graphs on the same nodes, each without directed cycles, and knowledge that all of them obey."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    names = [*"abcde", DOMAIN][: rng.randint(2, 6)]
    world = _random_graph(rng, names)
    knowledge = true_knowledge(rng, PartialGraph(world.nodes, world.arrows)) if rng.random() < 0.7 else NO_KNOWLEDGE
    return [_obedient(_random_graph(rng, names), knowledge) for _ in range(3)], knowledge


def _random_graph(rng: random.Random, names: list[str]) -> PartialGraph:
    order = [
        *(name for name in names if name == DOMAIN),
        *rng.sample(sorted({*names} - {DOMAIN}), len({*names} - {DOMAIN})),
    ]
    arrows, lines = set(), set()
    for tail, head in combinations(order, 2):
        kind = rng.choice(["", "arrow", "arrow", "line"])
        if kind == "arrow" or (kind == "line" and tail == DOMAIN):
            arrows.add((tail, head))
        elif kind == "line":
            lines.add(frozenset((tail, head)))
    return PartialGraph(tuple(names), frozenset(arrows), frozenset(lines))


def _obedient(graph: PartialGraph, knowledge: Knowledge) -> PartialGraph:
    """Take away what is forbidden; arrows that are required replace what there is."""
    required = {arrow for arrow in knowledge.required if {*arrow} <= {*graph.nodes}}
    pairs = {frozenset(arrow) for arrow in required}
    arrows = {arrow for arrow in graph.arrows if frozenset(arrow) not in pairs and not knowledge.forbids(*arrow)}
    lines = {line for line in graph.lines if line not in pairs and not knowledge.excludes(line)}
    return PartialGraph(graph.nodes, frozenset(required | arrows), frozenset(lines))


@given(three_graphs(), st.booleans())
def test_the_result_has_no_cycle_and_obeys_what_is_known(graphs, with_tests):
    (curved, linear, tests), knowledge = graphs
    found = combine_by_vote(voter(curved), voter(linear), voter(tests) if with_tests else None, knowledge)
    voters = [curved, linear, *([tests] if with_tests else [])]
    assert found.graph.is_acyclic()
    assert not any(knowledge.forbids(*arrow) for arrow in found.graph.arrows)
    assert found.reasons.keys() == found.graph.arrows
    assert found.graph.skeleton == {
        pair for pair in curved.skeleton | linear.skeleton if sum(pair in one.skeleton for one in voters) >= 2
    } | {pair for pair in tests.skeleton if with_tests and sum(pair in one.skeleton for one in voters) >= 2}
    for arrow in found.graph.arrows:
        if with_tests:
            assert arrow in tests.arrows or DOMAIN in arrow
            assert DOMAIN in arrow or any(arrow in one.arrows for one in (curved, linear))
        else:
            assert arrow in curved.arrows & linear.arrows or DOMAIN in arrow
    if all(one.is_acyclic() for one in voters):
        assert obeys(PartialGraph(found.graph.nodes, found.graph.arrows), knowledge)


@given(three_graphs())
def test_graphs_that_agree_are_the_result(graphs):
    (graph, *_), knowledge = graphs
    if graph.is_acyclic():
        for tests in (voter(graph), None):
            assert combine_by_vote(voter(graph), voter(graph), tests, knowledge).graph == graph


def test_reasons_are_those_of_the_first_voter_with_the_arrow():
    forward, line = MARKS["→"], MARKS["—"]
    found = combine_by_vote(voter(line), voter(forward, "collider"), voter(forward, "meek-1"), NO_KNOWLEDGE)
    assert found.reasons == {("x", "y"): "collider"}


def test_notes_name_what_is_open():
    assert describe_open_directions(MARKS["→"], []) == ()
    assert describe_open_directions(MARKS["—"], []) == ("a second message about residuals may decide x — y",)
    assert describe_open_directions(MARKS[""], ["x", "y"]) == ("not normally distributed: x, y",)


@pytest.mark.parametrize("known", [Aggregate.of, lambda cohort: cohort], ids=["sums", "summaries"])
def test_a_skewed_pair_stays_open(known):
    """Gaussian noise would reverse it, see the tests of the residual score."""
    tables = residual_studies.split_rows(residual_studies.linear_pair("exponential", 0), 5)
    cohort = residual_studies.cohort_of(tables, residual_studies.plan_of(tables))
    found = discover_from(known(cohort), cohort.plan, rounds="one")
    assert found.graph.lines == LINE
    assert "a second message about residuals may decide x — y" in found.search_result.notes
    assert "not normally distributed: x, y" in found.search_result.notes
