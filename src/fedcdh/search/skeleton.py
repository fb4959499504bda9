"""Which variables are adjacent: the PC-stable skeleton search on the variables and the domain."""

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
"""Questions of a level that are asked at a time: enough for large stacks, and memory does not grow with the level."""


@dataclass(frozen=True)
class Skeleton:
    """The adjacent pairs, all as lines, and the answers that decided about each pair."""

    graph: PartialGraph
    separators: Mapping[Pair, Answer]
    """For pairs that are not adjacent: the answer with the largest p-value, and with it the separating set. A pair that
    knowledge sets apart has one only if the direction of some edge hinges on it."""
    strongest: Mapping[Pair, Answer]
    """For adjacent pairs: the largest p-value met, the strongest argument against the edge, the refused ones apart."""
    queries_per_level: tuple[int, ...]
    """How many questions were asked with 0, 1, 2, ... conditioning variables."""
    always_given: frozenset[str] = frozenset()
    """What every question was conditioned on besides."""
    refused: tuple[Answer, ...] = ()
    """Separations of pairs that are still adjacent, because they contradict others (see `removal`)."""


def find_skeleton(
    nodes: Iterable[str],
    test: IndependenceTest,
    alpha: float,
    knowledge: Knowledge = NO_KNOWLEDGE,
    max_conditioning_size: int | None = None,
    progress: Progress | None = None,
    always_given: frozenset[str] = frozenset(),
    removal: RemovalRule = remove_all,
    max_batch_queries: int = MAX_BATCH_QUERIES,
) -> Skeleton:
    """Start with every pair joined; take a — b away once some set S gives p(a ⫫ b | S) > alpha.

    S grows by one variable per level, and a level is one batch, or several of `max_batch_queries` questions: where hardly
    any pair separates, there may be many millions. The graph stands still while a level is asked, so neither that nor
    the order of the nodes matters (PC-stable). A pair that knowledge excludes is absent from the start; a required
    one is asked about for the record only.

    `always_given` may name roots, such as the domain: conditioning on a root opens no path, so every set that separates
    two other nodes still does. The questions get easier where the root changes what they are about, and fewer.
    """
    nodes = tuple(nodes)
    _check_settings(nodes, alpha, max_conditioning_size, knowledge)
    rules = _LevelRules(alpha, knowledge, always_given, removal)
    graph = PartialGraph.complete(nodes)
    excluded = frozenset(pair for pair in graph.lines if knowledge.excludes(pair))
    graph = graph.without(*excluded)
    found = _SearchState()
    asked: list[int] = []
    for level in range(len(nodes) + 1 if max_conditioning_size is None else max_conditioning_size + 1):
        to_ask = rules.to_ask(level, graph, excluded, found.apart)
        if not (count := to_ask.count):
            break
        if progress is not None:
            progress(level, count)
        asked.append(count)
        answers = (run_queries(test, questions) for questions in to_ask.batches(max_batch_queries))
        graph = graph.without(*found.learn(answers, graph, excluded, rules))
    refused = tuple(answer for answer in found.refused if answer.query.pair in graph.lines)
    return Skeleton(graph, found.separators(graph, rules), found.strongest, tuple(asked), always_given, refused)


@dataclass
class _SearchState:
    """What the levels so far have told, each pair's most independent answer."""

    gone: dict[Pair, Answer] = field(default_factory=dict)  # of pairs that a separation has removed
    strongest: dict[Pair, Answer] = field(default_factory=dict)  # of pairs that are still there
    apart: dict[Pair, Answer] = field(default_factory=dict)  # of pairs that knowledge excludes
    refused: list[Answer] = field(default_factory=list)

    def learn(
        self, batches: Iterable[Sequence[Answer]], graph: PartialGraph, excluded: frozenset[Pair], rules: _LevelRules
    ) -> Iterable[Pair]:
        """Takes in the answers of a level; the pairs that they remove. Of very many answers, few have to be kept."""
        removable = rules.removable(graph)
        separations: list[Answer] = []
        others: dict[Pair, Answer] = {}  # that separate nothing, the most independent of each pair
        for answer in chain.from_iterable(batches):
            pair = answer.query.pair
            if answer.p_value > rules.alpha and pair in removable:
                separations.append(answer)
            else:
                _keep_most_independent(others, pair, answer)
        removed = rules.removal(separations, PriorFindings(self.gone, self.strongest, rules.always_given))
        for pair, answer in others.items():
            if pair not in removed:
                _keep_most_independent(self.apart if pair in excluded else self.strongest, pair, answer)
        for pair in removed:
            self.strongest.pop(pair, None)
        self.gone.update(removed)
        self.refused += [answer for answer in separations if answer.query.pair not in removed]
        return removed

    def separators(self, graph: PartialGraph, rules: _LevelRules) -> dict[Pair, Answer]:
        """The answers that tell why pairs are not adjacent."""
        # An excluded pair may have been asked about in vain, and then have lost its last common neighbour.
        kept = (
            (pair, answer)
            for pair, answer in self.apart.items()
            if answer.p_value > rules.alpha or _is_separator_needed(pair, graph, rules.knowledge)
        )
        return self.gone | dict(kept)


@dataclass(frozen=True)
class _LevelRules:
    """What is asked at a level, and what the answers take away."""

    alpha: float
    knowledge: Knowledge
    always_given: frozenset[str]
    removal: RemovalRule

    def to_ask(
        self, level: int, graph: PartialGraph, excluded: frozenset[Pair], apart: Mapping[Pair, Answer]
    ) -> _LevelQueries:
        """About every line, and about pairs that knowledge excludes while a direction hinges on their separator."""
        unseparated = (pair for pair in excluded if pair not in apart or apart[pair].p_value <= self.alpha)
        needed = (pair for pair in unseparated if _is_separator_needed(pair, graph, self.knowledge))
        parents = possible_parents(graph, self.knowledge) if level else {}
        return _LevelQueries(sorted(graph.lines.union(needed), key=sort_pair), parents, level, self.always_given)

    def removable(self, graph: PartialGraph) -> frozenset[Pair]:
        """The edges that a separation may take away."""
        return graph.lines - {frozenset(arrow) for arrow in self.knowledge.required}


@dataclass(frozen=True)
class _LevelQueries:
    """The questions of a level, by the pairs they are about."""

    pairs: Sequence[Pair]
    parents: Mapping[str, frozenset[str]]
    level: int
    always_given: frozenset[str]

    @property
    def count(self) -> int:
        return sum(count_queries(pair, self.parents, self.level, self.always_given) for pair in self.pairs)

    def batches(self, size: int) -> Iterator[list[Query]]:
        """So many at a time."""
        about = (generate_queries(pair, self.parents, self.level, self.always_given) for pair in self.pairs)
        questions = chain.from_iterable(about)
        while batch := list(islice(questions, size)):
            yield batch


def _keep_most_independent(best: dict[Pair, Answer], pair: Pair, answer: Answer) -> None:
    best[pair] = select_most_independent((best[pair], answer)) if pair in best else answer


def _is_separator_needed(pair: Pair, graph: PartialGraph, knowledge: Knowledge) -> bool:
    """Whether a set separating this absent pair is still needed, to tell if a common neighbour is a collider."""
    a, b = pair
    return any(knowledge.leaves_open(pair, middle) for middle in graph.neighbours(a) & graph.neighbours(b))


def _check_settings(
    nodes: tuple[str, ...], alpha: float, max_conditioning_size: int | None, knowledge: Knowledge
) -> None:
    knowledge.check(nodes)
    if not 0.0 <= alpha < 1.0:
        raise SettingsError(
            f"alpha is {alpha}; expected a significance level from 0 to below 1, such as 0.05", parameter="alpha"
        )
    if max_conditioning_size is not None and max_conditioning_size < 0:
        raise SettingsError(
            f"max_conditioning_size is {max_conditioning_size}; expected 0 or more, or None for no limit",
            parameter="max_conditioning_size",
        )
