"""The families a search over DAGs may choose from, and their scores, each asked for once and in large batches.

Sets of nodes are whole numbers here, one bit per node in the order of names: searches look up and compare millions of
them. A search is written as a generator that yields the families whose scores it needs next. Many of them then run
in step (`run_in_step`), and each round is one batch for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar

from fedcdh.errors import InvalidAnswerError, SettingsError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import PartialGraph, node_sort_key
from fedcdh.protocols import DOMAIN, Family, LocalScore, Progress

TIE_TOLERANCE = 1e-9
"""Scores closer than this are equal: what the order of a sum does to its last digits must not choose a graph."""

_MIN_GRID_STEP, _GRID_BITS = 2.0**-34, 44
"""Steps on which scores lie: far below a tie; with very many rows, so many binary digits below the total of a graph."""

NodeSet: TypeAlias = int
"""A set of nodes, as bits."""

FamilyRequest: TypeAlias = tuple[int, NodeSet]
"""A node and its parents, in numbers."""

T = TypeVar("T")
ScoreCoroutine: TypeAlias = Generator[list[FamilyRequest], None, T]
"""A computation that yields the families it needs scored before it goes on, and returns its result."""


@dataclass(frozen=True)
class ScoredDag:
    """The DAG a search ends with."""

    dag: PartialGraph
    total: float
    """The sum of the scores of its families."""
    exact: bool
    """Whether no DAG that was allowed can have a higher total."""
    families_scored: int


@dataclass(frozen=True)
class ParentSpace:
    """Which parents each node may have. Nodes are numbered by name, the domain first."""

    nodes: tuple[str, ...]
    required: tuple[NodeSet, ...]
    optional: tuple[NodeSet, ...]
    max_parents: int
    """Not counting the domain; required parents stand even where they are more."""

    @classmethod
    def of(
        cls,
        nodes: Iterable[str],
        knowledge: Knowledge,
        candidates: Mapping[str, frozenset[str]] | None,
        max_parents: int | None,
    ) -> ParentSpace:
        """What knowledge, the candidates and the limit leave; a node without candidates named is not restricted."""
        names = tuple(
            sorted(PartialGraph(tuple(nodes)).nodes, key=node_sort_key)
        )  # the graph refuses names given twice
        knowledge.check(names)
        candidates = candidates or {}
        _check_settings(names, candidates, max_parents)

        def parents_where(allowed: Callable[[str, str], bool]) -> tuple[NodeSet, ...]:
            return tuple(
                sum(1 << position for position, tail in enumerate(names) if tail != head and allowed(tail, head))
                for head in names
            )

        def is_candidate(tail: str, head: str) -> bool:
            return tail == DOMAIN or tail in candidates.get(head, names)

        required = parents_where(knowledge.requires)
        optional = parents_where(
            lambda tail, head: (
                is_candidate(tail, head) and not knowledge.forbids(tail, head) and not knowledge.requires(tail, head)
            )
        )
        return cls(names, required, optional, len(names) if max_parents is None else max_parents)

    @cached_property
    def roots(self) -> NodeSet:
        """What comes before every variable: the domain, if it is there."""
        return 1 if self.nodes[:1] == (DOMAIN,) else 0

    @cached_property
    def variables(self) -> tuple[int, ...]:
        return tuple(range(self.roots, len(self.nodes)))

    @cached_property
    def possible(self) -> tuple[NodeSet, ...]:
        """All parents a node may have."""
        return tuple(fixed | free for fixed, free in zip(self.required, self.optional, strict=True))

    def may_join(self, parents: NodeSet) -> NodeSet:
        """Who may be added to so many parents: anyone, or only the domain, which no limit counts."""
        return -1 if (parents & ~self.roots).bit_count() < self.max_parents else self.roots

    def parent_sets(self, node: int, available: NodeSet) -> Iterator[NodeSet]:
        """Every set of parents that the node may have among those available."""
        required = self.required[node]
        for chosen in iterate_subsets(self.optional[node] & available):
            counted = chosen & ~self.roots
            if not counted or ((required & ~self.roots) | counted).bit_count() <= self.max_parents:
                yield required | chosen

    def count_families(self) -> int:
        """How many families there are in all, counted without listing them."""
        return sum(self._count_parent_sets(node) for node in self.variables)

    def count_subsets(self) -> int:
        """How many sets of parents have to be listed to find those that are allowed."""
        return sum(1 << self.optional[node].bit_count() for node in self.variables)

    def dag(self, nodes: Iterable[str], parents: Mapping[int, NodeSet]) -> PartialGraph:
        """The graph in names, its nodes in the order wished for."""
        return PartialGraph.from_dag(
            nodes,
            [
                (self.nodes[tail.bit_length() - 1], self.nodes[head])
                for head, tails in parents.items()
                for tail in iterate_members(tails)
            ],
        )

    def _count_parent_sets(self, node: int) -> int:
        free = (self.optional[node] & ~self.roots).bit_count()
        room = max(0, self.max_parents - (self.required[node] & ~self.roots).bit_count())
        with_domain = 2 if self.optional[node] & self.roots else 1
        return with_domain * sum(math.comb(free, size) for size in range(min(free, room) + 1))


class ScoreCache:
    """Asks for the score of each family once and remembers it, on a grid.

    Scores grow with the rows, and so do their last digits. On a grid, sums and differences of scores are exact
    however large they are: what is higher by one way of adding up is higher by all of them, and no search turns in
    circles. The scores that are asked for first tell how fine the grid can be.
    """

    def __init__(self, space: ParentSpace, score: LocalScore, progress: Progress | None = None) -> None:
        self._space, self._score, self._progress = space, score, progress
        self._known: list[dict[NodeSet, float]] = [{} for _ in space.nodes]
        self._step = 0.0

    def of(self, node: int) -> Mapping[NodeSet, float]:
        """The scores known for a node, by its parents; always up to date."""
        return self._known[node]

    @property
    def count(self) -> int:
        return sum(map(len, self._known))

    def ask(self, requests: Iterable[FamilyRequest]) -> None:
        """Have all of these scored that are not known yet, as one batch in a fixed order."""
        new = sorted({(node, parents) for node, parents in requests if parents not in self._known[node]})
        if not new:
            return
        if self._progress is not None:
            self._progress(self.count, len(new))
        values = self._answers([self._family(*request) for request in new])
        self._step = self._step or _grid_step(len(self._space.nodes) * max(map(abs, values)))
        for (node, parents), value in zip(new, values, strict=True):
            self._known[node][parents] = round(value / self._step) * self._step

    def answer(self, asking: ScoreCoroutine[T]) -> T:
        """Run a computation to its end, one batch per round."""
        try:
            while True:
                self.ask(next(asking))
        except StopIteration as finished:
            result: T = finished.value
            return result

    def needs(self, node: int, parent_sets: Iterable[NodeSet]) -> ScoreCoroutine[None]:
        """Go on once all of these are known: at once if they are."""
        known = self._known[node]
        missing = [(node, parents) for parents in parent_sets if parents not in known]
        if missing:
            yield missing

    def _family(self, node: int, parents: NodeSet) -> Family:
        names = self._space.nodes
        return Family(names[node], frozenset(names[parent.bit_length() - 1] for parent in iterate_members(parents)))

    def _answers(self, families: list[Family]) -> Sequence[float]:
        values = self._score(families)
        if len(values) != len(families):
            raise InvalidAnswerError(
                f"the score was asked about {len(families)} families and gave {len(values)} values; a score answers"
                " for each family of a batch, in order"
            )
        for family, value in zip(families, values, strict=True):
            if not math.isfinite(value):
                parents = ", ".join(sorted(family.parents, key=node_sort_key)) or "no parents"
                raise InvalidAnswerError(
                    f"the score of {family.node} given {parents} is {value}; expected a finite number"
                )
        return values


def _grid_step(total: float) -> float:
    """A power of two, of which numbers as large as this have few enough for their sums to be exact."""
    return max(_MIN_GRID_STEP, 2.0 ** (math.frexp(total)[1] - _GRID_BITS))


def run_in_step(askings: Iterable[ScoreCoroutine[T]]) -> ScoreCoroutine[list[T]]:
    """Run computations in step: what they need next is one batch for all of them."""
    waiting = list(enumerate(askings))
    results: dict[int, T] = {}
    while waiting:
        needed: list[FamilyRequest] = []
        unfinished = []
        for position, asking in waiting:
            try:
                needed += next(asking)
                unfinished.append((position, asking))
            except StopIteration as finished:
                results[position] = finished.value
        waiting = unfinished
        if waiting:
            yield needed
    return [results[position] for position in sorted(results)]


def iterate_members(members: NodeSet) -> Iterator[NodeSet]:
    """The members as sets of one, by name."""
    while members:
        first = members & -members
        yield first
        members ^= first


def iterate_subsets(members: NodeSet) -> Iterator[NodeSet]:
    """All subsets, every one after its own subsets."""
    chosen = 0
    while True:
        yield chosen
        chosen = (chosen - members) & members
        if not chosen:
            return


def select_best(options: Iterable[NodeSet], scores: Mapping[NodeSet, float]) -> NodeSet:
    """The parents with the highest score; among equals the fewest, then the first by name."""
    options = list(options)
    enough = max(map(scores.__getitem__, options)) - TIE_TOLERANCE
    equals = [option for option in options if scores[option] >= enough]
    return equals[0] if len(equals) == 1 else min(equals, key=_size_and_name_key)


def _size_and_name_key(members: NodeSet) -> tuple[int, list[int]]:
    return members.bit_count(), list(iterate_members(members))


def _check_settings(names: tuple[str, ...], candidates: Mapping[str, frozenset[str]], max_parents: int | None) -> None:
    unknown = frozenset(candidates).union(*candidates.values()) - frozenset(names) - {DOMAIN}
    if unknown:
        raise SettingsError(f"candidates name unknown nodes: {', '.join(sorted(unknown))}; known: {', '.join(names)}")
    if max_parents is not None and max_parents < 0:
        raise SettingsError(
            f"max_parents is {max_parents}; expected 0 or more, or None for no limit", parameter="max_parents"
        )
