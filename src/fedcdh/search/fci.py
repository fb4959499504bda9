"""FCI: the search for a partial ancestral graph, which allows for hidden common causes.

The steps are those of PC with two differences. Where hidden causes exist, neighbours alone may not separate two nodes;
a second round of tests conditions on nodes that paths of colliders lead to (Possible-D-SEP). And a mark is found for
either end of an edge, by Zhang's rules.

The domain is context, as in joint causal inference: nothing causes it, and nothing unmeasured is behind it and a
variable. It joins every conditioning set, and its edges are arrows.

References
----------
Spirtes, Meek and Richardson, "Causal inference in the presence of latent variables and selection bias", 1995.
Mooij, Magliacane and Claassen, "Joint causal inference from multiple contexts", 2020.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice

from fedcdh.graphs.ancestral_graph import AncestralGraph, Mark
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import Pair, PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN, Answer, IndependenceTest, Progress, Query
from fedcdh.search.ancestral_rules import apply_ancestral_rules
from fedcdh.search.colliders import ColliderRule, MiddleRule, TripleDecision, decide_by_separator, separating_set_rule
from fedcdh.search.conditioning_sets import generate_queries, run_queries, select_most_independent
from fedcdh.search.skeleton import Skeleton, SkeletonRules, find_skeleton

_DEFAULT_RULES = SkeletonRules()
MAX_POSSIBLE_SEPARATORS = 12
"""Nodes of a Possible-D-SEP set of which sets are made at the most, the nearest first; beyond, tests have no power."""


@dataclass(frozen=True)
class AncestralSearchResult:
    """The partial ancestral graph that a search found, and the answers behind it.

    Attributes
    ----------
    graph : AncestralGraph
        The graph.
    skeleton : Skeleton
        The adjacent pairs, and the answers that decided about each pair.
    triples : tuple of TripleDecision
        The decisions about unshielded triples.
    refused : tuple of TripleDecision
        Colliders that contradict knowledge or the domain, and were left out.

    Examples
    --------
    >>> from fedcdh.graphs import PartialGraph, make_d_separation_test
    >>> dag = PartialGraph.from_dag("xyz", [("x", "z"), ("y", "z")])
    >>> search_pag("xyz", make_d_separation_test(dag), alpha=0.05).refused
    ()
    """

    graph: AncestralGraph
    skeleton: Skeleton
    triples: tuple[TripleDecision, ...] = ()
    refused: tuple[TripleDecision, ...] = ()


@dataclass(frozen=True)
class HiddenCauseRules:
    """The choices of a search for a partial ancestral graph.

    Attributes
    ----------
    skeleton : SkeletonRules
        Variables that are always given, the rule for removing edges, and the size of batches.
    colliders : ColliderRule
        The rule that decides unshielded triples.
    middles : MiddleRule
        The rule that decides about the last but one node of a discriminating path.
    selection : bool, default False
        Whether rows may have been selected by values of the variables.
    max_possible_separators : int, optional
        The largest number of nodes of Possible-D-SEP of which sets are made, the nearest first. Default no limit. With
        data, `MAX_POSSIBLE_SEPARATORS` bounds the number of queries.

    Examples
    --------
    >>> HiddenCauseRules().selection
    False
    """

    skeleton: SkeletonRules = _DEFAULT_RULES
    colliders: ColliderRule = separating_set_rule
    middles: MiddleRule = decide_by_separator
    selection: bool = False
    max_possible_separators: int | None = None


def search_pag(
    nodes: Iterable[str],
    test: IndependenceTest,
    alpha: float,
    knowledge: Knowledge = NO_KNOWLEDGE,
    max_conditioning_size: int | None = None,
    progress: Progress | None = None,
    rules: HiddenCauseRules = HiddenCauseRules(),
) -> AncestralSearchResult:
    """Find the partial ancestral graph with FCI.

    Parameters
    ----------
    nodes : iterable of str
        The variables, and the domain if there is one.
    test : IndependenceTest
        The conditional independence test.
    alpha : float
        Significance level, from 0 to below 1.
    knowledge : Knowledge, optional
        A required arrow a → b says that a causes b, a forbidden one that it does not, neither directly nor by way of
        others. An edge between two nodes that do not cause each other may still remain: a hidden cause.
    max_conditioning_size : int, optional
        The largest size of a conditioning set; the default is no limit. With a limit, edges may remain that a larger
        set would remove (anytime FCI).
    progress : callable, optional
        Called before each level with its size of sets and its number of queries.
    rules : HiddenCauseRules, optional
        The rules that decide about edges and colliders.

    Returns
    -------
    AncestralSearchResult
        The graph, and the answers behind it.

    Raises
    ------
    SettingsError
        If a setting is out of its range.
    KnowledgeError
        If the knowledge contradicts itself or names unknown variables.

    Examples
    --------
    >>> from fedcdh.graphs import PartialGraph, make_d_separation_test
    >>> arrows = [("h", "y"), ("h", "z"), ("x", "y"), ("w", "z")]
    >>> test = make_d_separation_test(PartialGraph.from_dag("hwxyz", arrows))
    >>> print(search_pag("wxyz", test, alpha=0.05).graph)
    w ○→ z
    x ○→ y
    y ↔ z
    """
    nodes = tuple(nodes)
    knowledge.check(nodes)
    skeleton = find_skeleton(nodes, test, alpha, NO_KNOWLEDGE, max_conditioning_size, progress, rules.skeleton)
    first = _put_colliders(_start(skeleton.graph, knowledge), separating_set_rule(skeleton, NO_KNOWLEDGE))[0]
    possible = find_possible_separators(first, rules.max_possible_separators)
    neighbourly, levels = frozenset(skeleton.separators), skeleton.queries_per_level
    skeleton = _test_possible_separators(skeleton, possible, test, alpha, max_conditioning_size, progress, rules)
    decided = replace(skeleton, queries_per_level=levels)  # rules that ask more make sets as large as neighbours needed
    triples = _decide_triples(decided, neighbourly, rules.colliders)
    graph, refused = _put_colliders(_start(skeleton.graph, knowledge), triples)

    def is_collider(d: str, a: str, b: str, c: str, /) -> bool:
        return rules.middles(decided, frozenset((d, c)), b)

    graph = apply_ancestral_rules(graph, is_collider, selection=rules.selection)
    return AncestralSearchResult(graph, skeleton, triples, refused)


def find_possible_separators(graph: AncestralGraph, most: int | None = None) -> Mapping[str, tuple[str, ...]]:
    """Return Possible-D-SEP of every node: where paths of colliders and triangles lead to.

    Parameters
    ----------
    graph : AncestralGraph
        A graph whose unshielded colliders have their arrowheads.
    most : int, optional
        The largest number of nodes; the nearest, then the first by name, are kept.

    Returns
    -------
    mapping from str to tuple of str
        The nodes, for each node.

    Examples
    --------
    >>> graph = AncestralGraph.from_pairs("xyz", map(frozenset, ["xy", "yz"]))
    >>> find_possible_separators(graph)["x"]
    ('y',)
    """
    return {node: tuple(islice(_walk_colliders(graph, node), most)) for node in graph.nodes}


def _walk_colliders(graph: AncestralGraph, start: str) -> Iterator[str]:
    """Yield the nodes of Possible-D-SEP, the nearest first."""
    steps = [(start, other) for other in sorted(graph.neighbours(start))]
    reached, seen = {start}, set(steps)
    while steps:
        fresh = sorted({node for _, node in steps} - reached)
        reached.update(fresh)
        yield from fresh
        onward = [
            (node, other)
            for before, node in steps
            for other in sorted(graph.neighbours(node) - {before, start})
            if graph.is_adjacent(before, other)
            or graph.end_marks[before, node] == graph.end_marks[other, node] == "arrow"
        ]
        steps = [step for step in dict.fromkeys(onward) if step not in seen]
        seen.update(steps)


def _start(graph: PartialGraph, knowledge: Knowledge) -> AncestralGraph:
    """Return the graph with circles, except where the domain or knowledge decides."""
    started = AncestralGraph.from_pairs(graph.nodes, graph.lines)
    marks: dict[tuple[str, str], Mark] = dict(started.end_marks)
    for a, b in started.end_marks:
        if a == DOMAIN or knowledge.requires(a, b):
            marks |= {(b, a): "tail", (a, b): "arrow"}
        elif knowledge.forbids(b, a) and marks[a, b] == "circle":
            marks[a, b] = "arrow"
    return AncestralGraph(graph.nodes, marks)


def _decide_triples(skeleton: Skeleton, neighbourly: frozenset[Pair], rule: ColliderRule) -> tuple[TripleDecision, ...]:
    """Decide the unshielded triples: by the rule where neighbours separate the ends, or else by the separating set.

    A rule that asks further queries makes its sets of neighbours, none of which separates the other pairs.
    """
    by_separator = {(one.ends, one.middle): one for one in separating_set_rule(skeleton, NO_KNOWLEDGE)}
    decided = rule(skeleton, NO_KNOWLEDGE)
    return tuple(one if frozenset(one.ends) in neighbourly else by_separator[one.ends, one.middle] for one in decided)


def _put_colliders(
    graph: AncestralGraph, triples: Iterable[TripleDecision]
) -> tuple[AncestralGraph, tuple[TripleDecision, ...]]:
    """Put the arrowheads of colliders; return also those that meet a tail, which are left out."""
    marks: dict[tuple[str, str], Mark] = dict(graph.end_marks)
    refused = []
    for triple in triples:
        if triple.collider and any(marks[arrow] == "tail" for arrow in triple.arrows):
            refused.append(triple)
        elif triple.collider:
            marks |= dict.fromkeys(triple.arrows, "arrow")
    return AncestralGraph(graph.nodes, marks), tuple(refused)


def _test_possible_separators(
    skeleton: Skeleton,
    possible: Mapping[str, tuple[str, ...]],
    test: IndependenceTest,
    alpha: float,
    max_conditioning_size: int | None,
    progress: Progress | None,
    rules: HiddenCauseRules,
) -> Skeleton:
    """Remove further edges by sets of Possible-D-SEP, from small to large; all pairs of a size are decided at once."""
    always, graph = skeleton.always_given, skeleton.graph
    separators, strongest = dict(skeleton.separators), dict(skeleton.strongest)
    counts = list(skeleton.queries_per_level)
    sets = {node: frozenset(others) if node != DOMAIN else frozenset[str]() for node, others in possible.items()}
    size = 1
    while size <= max((len(others) for others in sets.values()), default=0) and not _is_beyond(
        size, max_conditioning_size
    ):
        queries = [
            query
            for pair in sorted(graph.lines, key=sort_pair)
            for query in generate_queries(pair, sets, size, always)
            if not _is_tested(query, skeleton.graph, always)
        ]
        if queries and progress is not None:
            progress(size, len(queries))
        best: dict[Pair, Answer] = {}
        for answer in _run_in_batches(test, queries, rules.skeleton.max_batch_queries):
            pair = answer.query.pair
            best[pair] = select_most_independent((best[pair], answer)) if pair in best else answer
        removed = {pair: answer for pair, answer in best.items() if answer.p_value > alpha}
        graph = graph.remove_edges(*removed)
        separators |= removed
        strongest = {
            pair: select_most_independent((answer, best[pair])) if pair in best else answer
            for pair, answer in strongest.items()
            if pair not in removed
        }
        counts += [0] * (size + 1 - len(counts) if queries else 0)
        counts[min(size, len(counts) - 1)] += len(queries)
        size += 1
    return replace(skeleton, graph=graph, separators=separators, strongest=strongest, queries_per_level=tuple(counts))


def _is_beyond(size: int, limit: int | None) -> bool:
    return limit is not None and size > limit


def _is_tested(query: Query, graph: PartialGraph, always: frozenset[str]) -> bool:
    """Return whether the search for the skeleton has asked this: the set lies among the neighbours of one end."""
    given = query.given - always
    return any(given <= graph.neighbours(node) for node in (query.x, query.y) if node != DOMAIN)


def _run_in_batches(test: IndependenceTest, queries: list[Query], size: int) -> Iterator[Answer]:
    waiting = iter(queries)
    batches = iter(lambda: list(islice(waiting, size)), [])
    return chain.from_iterable(run_queries(test, batch) for batch in batches)
