"""The support of single edges: how much the score of a DAG depends on the presence and direction of each.

The DAG with the highest score represents its class: with linear mechanisms all members explain the data equally well,
and differences between their scores come from the prior. Nonlinear mechanisms with additive noise do distinguish
members, because in the wrong direction the residuals depend on the cause. A direction within the class is therefore
judged by the gain of *nonlinear* over linear mechanisms. Differences between linear ones are only used for pairs that
both change, where they show which changes are independent (`discovery.algorithm` sets both thresholds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from fedcdh.graphs import meek_rules
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph, find_reachable, sort_pair
from fedcdh.protocols import DOMAIN, Family, LocalScore
from fedcdh.search.colliders import ColliderRule, TripleDecision, find_open_triples
from fedcdh.search.skeleton import Skeleton

MAX_CLASS_MEMBERS = 500
"""Members of a class that are scored per connected component of its lines; a component with more keeps its lines."""


@dataclass(frozen=True)
class EdgeSupport:
    """The log Bayes factors of an edge, with the rest of the DAG fixed; above 3 is strong, below 0 is against.

    Attributes
    ----------
    presence : float
        For an edge, the factor against no edge; for no edge, the factor against the better direction of one.
    direction : float or None
        The factor of the direction in the best DAG against its reverse; None if there is no edge, or the reverse
        would close a cycle.

    Examples
    --------
    >>> EdgeSupport(presence=12.5, direction=None).presence > 3
    True
    """

    presence: float
    direction: float | None


def edge_supports(dag: PartialGraph, score: LocalScore, pairs: Iterable[Pair]) -> dict[Pair, EdgeSupport]:
    """Return how much the score falls if an edge is added, removed or reversed, for each pair.

    Parameters
    ----------
    dag : PartialGraph
        The best DAG.
    score : LocalScore
        The score of a family. All families are one batch.
    pairs : iterable of frozenset of str
        The pairs of nodes.

    Returns
    -------
    dict of pair to EdgeSupport
        The log Bayes factors of each pair.

    Examples
    --------
    >>> def score(families):
    ...     return [5.0 * len(family.parents) for family in families]
    >>> dag = PartialGraph.from_dag("xy", [("x", "y")])
    >>> edge_supports(dag, score, [frozenset("xy")])[frozenset("xy")]
    EdgeSupport(presence=5.0, direction=0.0)
    """
    couples = sorted(sort_pair(pair) for pair in pairs)
    known = _FamilyScores(score)
    known.compute(family for couple in couples for family in _families_around(dag, *couple))
    return {frozenset(couple): _measure_support(dag, known, *couple) for couple in couples}


def measure_directions(
    graph: PartialGraph, curved: LocalScore, straight: LocalScore, knowledge: Knowledge = NO_KNOWLEDGE
) -> dict[Arrow, float]:
    """Return for every line the arrow that nonlinear mechanisms prefer, and its log Bayes factor.

    Parameters
    ----------
    graph : PartialGraph
        The equivalence class.
    curved : LocalScore
        The score with nonlinear mechanisms.
    straight : LocalScore
        The score with linear mechanisms.
    knowledge : Knowledge, optional
        Background knowledge.

    Returns
    -------
    dict of (str, str) to float
        The preferred arrows. Lines of components with too many members are missing.

    Examples
    --------
    >>> line = PartialGraph(("x", "y"), lines=frozenset({frozenset("xy")}))
    >>> def curved(families):
    ...     return [2.0 if family.node == "y" and family.parents else 0.0 for family in families]
    >>> measure_directions(line, curved, lambda families: [0.0 for family in families])
    {('x', 'y'): 2.0}
    """
    members = {
        part: list(islice(_iterate_class_members(graph, part, knowledge), MAX_CLASS_MEMBERS + 1))
        for part in _undirected_components(graph)
    }
    members = {part: found for part, found in members.items() if len(found) <= MAX_CLASS_MEMBERS}
    families = {_family_of(member, node) for part, found in members.items() for member in found for node in part}
    bent, plain = _FamilyScores(curved), _FamilyScores(straight)
    bent.compute(families)
    plain.compute(families)
    return {
        arrow: strength
        for part, found in sorted(members.items())
        for arrow, strength in _preferred_arrows(graph, part, found, lambda family: bent[family] - plain[family])
    }


def to_skeleton(dag: PartialGraph) -> Skeleton:
    """Return the adjacent pairs of a DAG, for the rules that direct a skeleton."""
    return Skeleton(PartialGraph(dag.nodes, lines=dag.skeleton), {}, {}, ())


def make_dag_collider_rule(dag: PartialGraph) -> ColliderRule:
    """Return the rule that decides every unshielded triple as in the DAG."""

    def decide(skeleton: Skeleton, knowledge: Knowledge) -> tuple[TripleDecision, ...]:
        return tuple(
            TripleDecision(sort_pair(pair), middle, (pair, middle) in dag.colliders, 1.0, None, None)
            for pair, middle in find_open_triples(skeleton, knowledge)
        )

    return decide


def orient_like(graph: PartialGraph, dag: PartialGraph, knowledge: Knowledge = NO_KNOWLEDGE) -> PartialGraph:
    """Return a member of the class with lines directed as in this DAG, as far as existing arrows allow."""
    for line in sorted(graph.lines, key=sort_pair):
        if line in graph.lines:
            arrow = sort_pair(line) if sort_pair(line) in dag.arrows else sort_pair(line)[::-1]
            graph = meek_rules.apply_meek_rules(graph.orient(*arrow), knowledge)[0]
    return graph


class _FamilyScores(dict[Family, float]):
    """Scores by family, computed in sorted batches."""

    def __init__(self, score: LocalScore) -> None:
        super().__init__()
        self._score = score

    def compute(self, families: Iterable[Family]) -> None:
        new = sorted(set(families) - self.keys(), key=lambda family: (family.node, sorted(family.parents)))
        self.update(zip(new, self._score(new) if new else [], strict=True))


def _family_of(dag: PartialGraph, node: str) -> Family:
    return Family(node, dag.parents(node))


def _family_with(dag: PartialGraph, tail: str, head: str) -> Family:
    return Family(head, dag.parents(head) | {tail})


def _family_without(dag: PartialGraph, tail: str, head: str) -> Family:
    return Family(head, dag.parents(head) - {tail})


def _families_around(dag: PartialGraph, a: str, b: str) -> Iterator[Family]:
    for tail, head in ((a, b), (b, a)):
        if head != DOMAIN:
            yield from (_family_with(dag, tail, head), _family_without(dag, tail, head))


def _measure_support(dag: PartialGraph, known: Mapping[Family, float], a: str, b: str) -> EdgeSupport:
    tail, head = (b, a) if (b, a) in dag.arrows else (a, b)

    def gain(tail: str, head: str) -> float:
        return known[_family_with(dag, tail, head)] - known[_family_without(dag, tail, head)]

    if (tail, head) not in dag.arrows:
        possible = [gain(*arrow) for arrow in ((a, b), (b, a)) if arrow[1] != DOMAIN and not dag.has_path(*arrow[::-1])]
        return EdgeSupport(-max(possible), None)
    rest = dag.remove_edges(frozenset((a, b)))
    turns = tail != DOMAIN and not rest.has_path(tail, head)
    return EdgeSupport(gain(tail, head), gain(tail, head) - gain(head, tail) if turns else None)


def _undirected_components(graph: PartialGraph) -> list[tuple[str, ...]]:
    """Return the connected components of the graph of lines."""
    along: dict[str, set[str]] = {}
    for a, b in map(sort_pair, graph.lines):
        along.setdefault(a, set()).add(b)
        along.setdefault(b, set()).add(a)
    return sorted({tuple(sorted(find_reachable(along, node))) for node in along})


def _iterate_class_members(graph: PartialGraph, part: tuple[str, ...], knowledge: Knowledge) -> Iterator[PartialGraph]:
    """Yield every way to direct the lines of a component without a new collider or a cycle."""
    line = min((line for line in graph.lines if line <= {*part}), key=sort_pair, default=None)
    if line is None:
        yield graph
        return
    for arrow in (sort_pair(line), sort_pair(line)[::-1]):
        if not knowledge.forbids(*arrow):
            closed = meek_rules.apply_meek_rules(graph.orient(*arrow), knowledge)[0]
            yield from _iterate_class_members(closed, part, knowledge)


def _preferred_arrows(
    graph: PartialGraph, part: tuple[str, ...], members: Sequence[PartialGraph], value: Callable[[Family], float]
) -> Iterator[tuple[Arrow, float]]:
    totals = [sum(value(_family_of(member, node)) for node in part) for member in members]
    for line in sorted((line for line in graph.lines if line <= {*part}), key=sort_pair):
        best = {
            arrow: max(
                (total for member, total in zip(members, totals, strict=True) if arrow in member.arrows), default=None
            )
            for arrow in (sort_pair(line), sort_pair(line)[::-1])
        }
        (first, forward), (second, backward) = best.items()
        if forward is not None and backward is not None:
            yield (first, forward - backward) if forward >= backward else (second, backward - forward)
