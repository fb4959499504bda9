"""Random worlds with known answers, and what a perfect search must find in them, computed without Meek's rules."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from itertools import product

from fedcdh.errors import NoConsistentExtensionError
from fedcdh.graphs.equivalence import find_consistent_extension
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import Arrow, PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN, Answer, ModuleDependence, Query
from fedcdh.search.skeleton import Skeleton


def random_dag(rng: random.Random, size: int, degree: float, changing: float = 0.0) -> PartialGraph:
    """A DAG on `size` variables with about this average degree; each variable changes with this probability."""
    names = [f"v{position}" for position in range(size)]
    order = rng.sample(names, size)
    chance = min(1.0, degree / max(1, size - 1))
    arrows = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :] if rng.random() < chance]
    if changing:
        arrows += [(DOMAIN, name) for name in names if rng.random() < changing]
        names.append(DOMAIN)
    return PartialGraph.from_dag(names, arrows)


def true_knowledge(rng: random.Random, dag: PartialGraph) -> Knowledge:
    """Some things that are true of the DAG, few or many: required and forbidden arrows and, at times, tiers."""
    share = rng.choice([0.04, 0.1, 0.25])
    required = [arrow for arrow in sorted(dag.arrows) if rng.random() < share]
    absent = [pair for pair in product(dag.nodes, repeat=2) if pair[0] != pair[1] and pair not in dag.arrows]
    forbidden = [pair for pair in absent if rng.random() < share]
    tiers: list[list[str]] = []
    if rng.random() < 0.3:
        order = [name for name in topological_order(dag) if name != DOMAIN and rng.random() < 0.8]
        cuts = sorted(rng.sample(range(len(order) + 1), min(2, len(order))))
        tiers = [order[start:end] for start, end in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    bare = [i for i, tier in enumerate(tiers) if not any(a in tier and b in tier for a, b in dag.arrows)]
    return Knowledge(required, forbidden, tiers, bare)


def topological_order(dag: PartialGraph) -> list[str]:
    order: list[str] = []
    while len(order) < len(dag.nodes):
        order += [node for node in dag.nodes if node not in order and dag.parents(node) <= set(order)][:1]
    return order


def obeys(dag: PartialGraph, knowledge: Knowledge) -> bool:
    required = {arrow for arrow in knowledge.required if set(arrow) <= set(dag.nodes)}
    return required <= dag.arrows and not any(knowledge.forbids(*arrow) for arrow in dag.arrows)


def class_by_enumeration(dag: PartialGraph, knowledge: Knowledge = NO_KNOWLEDGE) -> PartialGraph:
    """Direct the skeleton in every possible way, keep the equivalent DAGs, see where they agree."""
    agreed = frozenset.intersection(*(member.arrows for member in class_members(dag, knowledge)))
    return PartialGraph(dag.nodes, agreed, dag.skeleton - {frozenset(arrow) for arrow in agreed})


def class_members(dag: PartialGraph, knowledge: Knowledge = NO_KNOWLEDGE) -> list[PartialGraph]:
    """All DAGs that no test tells from this one and that obey the knowledge, found by directing the skeleton."""
    pairs = [sort_pair(pair) for pair in sorted(dag.skeleton, key=sort_pair)]
    members: list[PartialGraph] = []
    for turned in product((False, True), repeat=len(pairs)):
        arrows = frozenset((b, a) if turn else (a, b) for (a, b), turn in zip(pairs, turned, strict=True))
        if any(knowledge.forbids(*arrow) for arrow in arrows):
            continue
        other = PartialGraph(dag.nodes, arrows)
        if other.colliders == dag.colliders and other.is_acyclic() and obeys(other, knowledge):
            members.append(other)
    return members


def class_by_extension(dag: PartialGraph, knowledge: Knowledge = NO_KNOWLEDGE) -> PartialGraph:
    """An arrow of the DAG is compelled iff no DAG of the class has it the other way round."""
    given = {arrow for arrow in dag.arrows if knowledge.forbids(arrow[1], arrow[0])}
    given |= {(a, middle) for pair, middle in dag.colliders for a in pair}
    compelled = frozenset(arrow for arrow in dag.arrows if arrow in given or not _can_turn(dag, arrow, given))
    return PartialGraph(dag.nodes, compelled, dag.skeleton - {frozenset(arrow) for arrow in compelled})


def _can_turn(dag: PartialGraph, arrow: Arrow, given: set[Arrow]) -> bool:
    arrows = given | {(arrow[1], arrow[0])}
    pattern = PartialGraph(dag.nodes, frozenset(arrows), dag.skeleton - {frozenset(known) for known in arrows})
    try:
        return pattern.colliders == dag.colliders and find_consistent_extension(pattern).colliders == dag.colliders
    except NoConsistentExtensionError:
        return False


def noise(seed: int):
    """A test that answers at random, though always the same to the same query."""

    def test(queries: Sequence[Query], /) -> list[Answer]:
        return [Answer(query, 0.0, _uniform(seed, str(query)) ** 4, 100) for query in queries]

    return test


def noisy_change(seed: int):
    """A measure of change that answers at random, though always the same for the same pair."""

    def measure(pairs: Sequence[tuple[str, str]], /) -> list[ModuleDependence]:
        return [ModuleDependence(a, b, _uniform(seed, f"{a}>{b}"), _uniform(seed, f"{b}>{a}")) for a, b in pairs]

    return measure


def true_change(dag: PartialGraph):
    """A measure of change that is never wrong."""

    def measure(pairs: Sequence[tuple[str, str]], /) -> list[ModuleDependence]:
        return [ModuleDependence(a, b, *((0.1, 0.7) if (a, b) in dag.arrows else (0.7, 0.1))) for a, b in pairs]

    return measure


def _uniform(seed: int, text: str) -> float:
    digest = hashlib.sha256(f"{seed} {text}".encode()).digest()
    return int.from_bytes(digest[:7]) / 2**56


def shuffled(graph: PartialGraph, rng: random.Random) -> tuple[str, ...]:
    return tuple(rng.sample(graph.nodes, len(graph.nodes)))


def renamed(graph: PartialGraph, names: dict[str, str]) -> PartialGraph:
    return PartialGraph(
        tuple(names[node] for node in graph.nodes),
        frozenset((names[tail], names[head]) for tail, head in graph.arrows),
        frozenset(frozenset(names[node] for node in line) for line in graph.lines),
    )


class RecordedTest:
    """A test that keeps the batches it was asked."""

    def __init__(self, test):
        self.test, self.batches = test, []

    def __call__(self, queries):
        self.batches.append(list(queries))
        return self.test(queries)


def skeleton_of(nodes, lines, separators=()):
    """A skeleton with these lines; separators as (x, y, set, p-value)."""
    answers = [Answer(Query(x, y, frozenset(given)), 0.0, p_value, 10) for x, y, given, p_value in separators]
    graph = PartialGraph(tuple(nodes), lines=frozenset(map(frozenset, lines)))
    return Skeleton(graph, {answer.query.pair: answer for answer in answers}, {}, (1, 1))


CHAIN = PartialGraph((DOMAIN, "a", "b", "c"), frozenset({(DOMAIN, "a"), ("a", "b")}), frozenset({frozenset("bc")}))
"""Arrows, a line and the domain."""


def same(one: PartialGraph, other: PartialGraph) -> bool:
    return one == other and one.nodes == other.nodes
