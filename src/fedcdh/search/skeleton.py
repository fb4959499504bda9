"""The PC-stable search for the skeleton, on the variables and the domain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from fedcdh.errors import SettingsError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import Pair, PartialGraph, sort_pair
from fedcdh.protocols import Answer, IndependenceTest, Progress, Query
from fedcdh.search.conditioning_sets import (
    count_queries,
    generate_queries,
    possible_parents,
    run_queries,
    select_most_independent,
)
from fedcdh.search.edge_removal import PriorFindings, RemovalRule, remove_all

MAX_BATCH_QUERIES = 1 << 18
"""Queries of a level that are tested at a time: enough for large stacks, and memory does not grow with the level."""


@dataclass(frozen=True)
class Skeleton:
    """The adjacent pairs and the answers that decided about each pair.

    Attributes
    ----------
    graph : PartialGraph
        The adjacent pairs, all as lines.
    separators : mapping from pair to Answer
        For pairs that are not adjacent: the answer with the largest p-value, which has the separating set. A pair that
        knowledge excludes has one only if the direction of an edge depends on it.
    strongest : mapping from pair to Answer
        For adjacent pairs: the answer with the largest p-value, the strongest evidence against the edge, without
        those in `refused`.
    queries_per_level : tuple of int
        The number of queries with 0, 1, 2, ... conditioning variables.
    always_given : frozenset of str
        Variables in every conditioning set; they do not count for its size.
    refused : tuple of Answer
        Separations of pairs that are still adjacent, because they contradict other separations.

    Examples
    --------
    >>> from fedcdh.graphs import PartialGraph, make_d_separation_test
    >>> dag = PartialGraph.from_dag("xyz", [("x", "y"), ("y", "z")])
    >>> found = find_skeleton("xyz", make_d_separation_test(dag), alpha=0.05)
    >>> print(found.separators[frozenset("xz")].query)
    x ⫫ z | y
    """

    graph: PartialGraph
    separators: Mapping[Pair, Answer]
    strongest: Mapping[Pair, Answer]
    queries_per_level: tuple[int, ...]
    always_given: frozenset[str] = frozenset()
    refused: tuple[Answer, ...] = ()


@dataclass(frozen=True)
class SkeletonRules:
    """The choices of a skeleton search that a method makes.

    Attributes
    ----------
    always_given : frozenset of str
        Roots, such as the domain, to condition every query on. Conditioning on a root opens no path, so every set that
        separates two other nodes still does. There are fewer queries, and easier ones where the root changes a
        mechanism.
    removal : RemovalRule
        The rule that decides which separations of a level remove an edge.
    max_batch_queries : int
        The largest number of queries in one call of the test.

    Examples
    --------
    >>> SkeletonRules().always_given
    frozenset()
    """

    always_given: frozenset[str] = frozenset()
    removal: RemovalRule = remove_all
    max_batch_queries: int = MAX_BATCH_QUERIES


def find_skeleton(
    nodes: Iterable[str],
    test: IndependenceTest,
    alpha: float,
    knowledge: Knowledge = NO_KNOWLEDGE,
    max_conditioning_size: int | None = None,
    progress: Progress | None = None,
    rules: SkeletonRules = SkeletonRules(),
) -> Skeleton:
    """Find the adjacent pairs: remove a — b once a set S has p(a ⫫ b | S) > alpha.

    Parameters
    ----------
    nodes : iterable of str
        The variables, and the domain if there is one.
    test : IndependenceTest
        The conditional independence test.
    alpha : float
        Significance level, from 0 to below 1.
    knowledge : Knowledge, optional
        Background knowledge. A pair that it excludes is absent from the start; a required one is tested for the record
        only.
    max_conditioning_size : int, optional
        The largest size of S; the default is no limit.
    progress : callable, optional
        Called before each level with its size of S and its number of queries.
    rules : SkeletonRules, optional
        Variables that are always given, the rule for removing edges, and the size of batches.

    Returns
    -------
    Skeleton
        The adjacent pairs, and the answers that decided.

    Raises
    ------
    SettingsError
        If a setting is out of its range.
    KnowledgeError
        If the knowledge contradicts itself or names unknown variables.

    Notes
    -----
    S grows by one variable per level. The graph does not change while a level is tested, so neither the batches nor
    the order of the nodes matter (PC-stable, Colombo and Maathuis 2014).

    Examples
    --------
    >>> from fedcdh.graphs import PartialGraph, make_d_separation_test
    >>> dag = PartialGraph.from_dag("xyz", [("x", "y"), ("y", "z")])
    >>> print(find_skeleton("xyz", make_d_separation_test(dag), alpha=0.05).graph)
    x — y
    y — z
    """
    nodes = tuple(nodes)
    _check_settings(nodes, alpha, max_conditioning_size, knowledge)
    level_rules = _LevelRules(alpha, knowledge, rules.always_given, rules.removal)
    graph = PartialGraph.complete(nodes)
    excluded = frozenset(pair for pair in graph.lines if knowledge.excludes(pair))
    graph = graph.remove_edges(*excluded)
    found = _SearchState()
    counts: list[int] = []
    for level in range(len(nodes) + 1 if max_conditioning_size is None else max_conditioning_size + 1):
        queries = level_rules.list_queries(level, graph, excluded, found.excluded)
        if not (count := queries.count):
            break
        if progress is not None:
            progress(level, count)
        counts.append(count)
        answers = (run_queries(test, batch) for batch in queries.batches(rules.max_batch_queries))
        graph = graph.remove_edges(*found.learn(answers, graph, excluded, level_rules))
    refused = tuple(answer for answer in found.refused if answer.query.pair in graph.lines)
    separators = found.separators(graph, level_rules)
    return Skeleton(graph, separators, found.strongest, tuple(counts), rules.always_given, refused)


@dataclass
class _SearchState:
    """The answer with the largest p-value of each pair, over the levels so far."""

    removed: dict[Pair, Answer] = field(default_factory=dict)  # pairs that a separation has removed
    strongest: dict[Pair, Answer] = field(default_factory=dict)  # pairs that are still adjacent
    excluded: dict[Pair, Answer] = field(default_factory=dict)  # pairs that knowledge excludes
    refused: list[Answer] = field(default_factory=list)

    def learn(
        self, batches: Iterable[Sequence[Answer]], graph: PartialGraph, excluded: frozenset[Pair], rules: _LevelRules
    ) -> Iterable[Pair]:
        """Record the answers of a level, of which few have to be kept; return the pairs that they remove."""
        removable = rules.removable(graph)
        separations: list[Answer] = []
        others: dict[Pair, Answer] = {}  # of each pair, the largest p-value that separates nothing
        for answer in chain.from_iterable(batches):
            pair = answer.query.pair
            if answer.p_value > rules.alpha and pair in removable:
                separations.append(answer)
            else:
                _keep_most_independent(others, pair, answer)
        removed = rules.removal(separations, PriorFindings(self.removed, self.strongest, rules.always_given))
        for pair, answer in others.items():
            if pair not in removed:
                _keep_most_independent(self.excluded if pair in excluded else self.strongest, pair, answer)
        for pair in removed:
            self.strongest.pop(pair, None)
        self.removed.update(removed)
        self.refused += [answer for answer in separations if answer.query.pair not in removed]
        return removed

    def separators(self, graph: PartialGraph, rules: _LevelRules) -> dict[Pair, Answer]:
        """Return the answers that explain why pairs are not adjacent."""
        # An excluded pair may have been tested without success, and then have lost its last common neighbour.
        kept = (
            (pair, answer)
            for pair, answer in self.excluded.items()
            if answer.p_value > rules.alpha or _is_separator_needed(pair, graph, rules.knowledge)
        )
        return self.removed | dict(kept)


@dataclass(frozen=True)
class _LevelRules:
    """The rules of a level: which queries it has, and which edges its answers may remove."""

    alpha: float
    knowledge: Knowledge
    always_given: frozenset[str]
    removal: RemovalRule

    def list_queries(
        self, level: int, graph: PartialGraph, excluded: frozenset[Pair], known: Mapping[Pair, Answer]
    ) -> _LevelQueries:
        """Return queries about every line, and about excluded pairs while a direction depends on their separator."""
        unseparated = (pair for pair in excluded if pair not in known or known[pair].p_value <= self.alpha)
        needed = (pair for pair in unseparated if _is_separator_needed(pair, graph, self.knowledge))
        parents = possible_parents(graph, self.knowledge) if level else {}
        return _LevelQueries(sorted(graph.lines.union(needed), key=sort_pair), parents, level, self.always_given)

    def removable(self, graph: PartialGraph) -> frozenset[Pair]:
        """Return the edges that a separation may remove."""
        return graph.lines - {frozenset(arrow) for arrow in self.knowledge.required}


@dataclass(frozen=True)
class _LevelQueries:
    """The queries of a level, by their pairs."""

    pairs: Sequence[Pair]
    parents: Mapping[str, frozenset[str]]
    level: int
    always_given: frozenset[str]

    @property
    def count(self) -> int:
        """Return the number of queries."""
        return sum(count_queries(pair, self.parents, self.level, self.always_given) for pair in self.pairs)

    def batches(self, size: int) -> Iterator[list[Query]]:
        """Yield the queries in batches of this size."""
        about = (generate_queries(pair, self.parents, self.level, self.always_given) for pair in self.pairs)
        queries = chain.from_iterable(about)
        while batch := list(islice(queries, size)):
            yield batch


def _keep_most_independent(best: dict[Pair, Answer], pair: Pair, answer: Answer) -> None:
    best[pair] = select_most_independent((best[pair], answer)) if pair in best else answer


def _is_separator_needed(pair: Pair, graph: PartialGraph, knowledge: Knowledge) -> bool:
    """Return whether a separating set of this excluded pair is needed to decide about colliders."""
    a, b = pair
    return any(knowledge.leaves_open(pair, middle) for middle in graph.neighbours(a) & graph.neighbours(b))


def _check_settings(
    nodes: tuple[str, ...], alpha: float, max_conditioning_size: int | None, knowledge: Knowledge
) -> None:
    knowledge.check(nodes)
    if not 0.0 <= alpha < 1.0:
        raise SettingsError(
            f"the significance level alpha is {alpha}; expected a number from 0 to below 1, such as 0.05",
            parameter="alpha",
        )
    if max_conditioning_size is not None and max_conditioning_size < 0:
        raise SettingsError(
            f"the largest size of a conditioning set is {max_conditioning_size}; expected 0 or more, or None for no "
            "limit",
            parameter="max_conditioning_size",
        )
