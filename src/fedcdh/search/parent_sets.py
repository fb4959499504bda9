"""The parent sets that a search over DAGs may choose from, and their scores, each computed once in large batches.

Sets of nodes are integers here, one bit per node in the order of names, because searches compare millions of them. A
search is a generator that yields the families whose scores it needs next. Many generators run in step (`run_in_step`),
and each round is one batch for all of them.
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
"""Scores closer than this are equal: the order of a sum, which changes its last digits, must not choose a graph."""

_MIN_GRID_STEP, _GRID_BITS = 2.0**-34, 44
"""The grid of scores: its smallest step, far below a tie, and for very many rows its binary digits below the total."""

NodeSet: TypeAlias = int
"""A set of nodes, as bits."""

FamilyRequest: TypeAlias = tuple[int, NodeSet]
"""A node, by its number, and its parents."""

T = TypeVar("T")
ScoreCoroutine: TypeAlias = Generator[list[FamilyRequest], None, T]
"""A computation that yields the families whose scores it needs, and returns its result."""


@dataclass(frozen=True)
class ScoredDag:
    """The DAG that a search has found.

    Attributes
    ----------
    dag : PartialGraph
        The DAG.
    total : float
        The sum of the scores of its families.
    exact : bool
        True if no allowed DAG has a higher total.
    families_scored : int
        The number of families that were scored.

    Examples
    --------
    >>> from fedcdh.search import best_dag
    >>> best_dag("xy", lambda families: [-float(len(family.parents)) for family in families]).total
    0.0
    """

    dag: PartialGraph
    total: float
    exact: bool
    families_scored: int


@dataclass(frozen=True)
class ParentSpace:
    """The parents that each node may have. Nodes are numbered by name, the domain first."""

    nodes: tuple[str, ...]
    required: tuple[NodeSet, ...]
    optional: tuple[NodeSet, ...]
    max_parents: int  # not counting the domain; required parents stay even if they are more

    @classmethod
    def of(
        cls,
        nodes: Iterable[str],
        knowledge: Knowledge,
        candidates: Mapping[str, frozenset[str]] | None,
        max_parents: int | None,
    ) -> ParentSpace:
        """Return the space that knowledge, candidates and limit allow; a node not in `candidates` is unrestricted."""
        names = tuple(sorted(PartialGraph(tuple(nodes)).nodes, key=node_sort_key))  # the graph refuses duplicates
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
        """Return the nodes that precede every variable: the domain, if there is one."""
        return 1 if self.nodes[:1] == (DOMAIN,) else 0

    @cached_property
    def variables(self) -> tuple[int, ...]:
        """Return the numbers of the variables."""
        return tuple(range(self.roots, len(self.nodes)))

    @cached_property
    def possible(self) -> tuple[NodeSet, ...]:
        """Return all parents that each node may have."""
        return tuple(fixed | free for fixed, free in zip(self.required, self.optional, strict=True))

    def may_join(self, parents: NodeSet) -> NodeSet:
        """Return the nodes that may be added to a parent set: all, or at the limit only the domain."""
        return -1 if (parents & ~self.roots).bit_count() < self.max_parents else self.roots

    def parent_sets(self, node: int, available: NodeSet) -> Iterator[NodeSet]:
        """Yield every parent set of a node from the available nodes."""
        required = self.required[node]
        for chosen in iterate_subsets(self.optional[node] & available):
            counted = chosen & ~self.roots
            if not counted or ((required & ~self.roots) | counted).bit_count() <= self.max_parents:
                yield required | chosen

    def count_families(self) -> int:
        """Return the number of families, without listing them."""
        return sum(self._count_parent_sets(node) for node in self.variables)

    def count_subsets(self) -> int:
        """Return the number of sets that have to be listed to find the allowed parent sets."""
        return sum(1 << self.optional[node].bit_count() for node in self.variables)

    def dag(self, nodes: Iterable[str], parents: Mapping[int, NodeSet]) -> PartialGraph:
        """Return the graph with names, its nodes in this order."""
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
    """The scores of families, each computed once and rounded to a grid.

    Scores grow with the rows, and so does their rounding error. On a grid, sums and differences of scores are exact:
    what is higher in one order of summation is higher in all of them, and no search runs in a cycle. The first scores
    decide how fine the grid can be.
    """

    def __init__(self, space: ParentSpace, score: LocalScore, progress: Progress | None = None) -> None:
        self._space, self._score, self._progress = space, score, progress
        self._known: list[dict[NodeSet, float]] = [{} for _ in space.nodes]
        self._step = 0.0

    def of(self, node: int) -> Mapping[NodeSet, float]:
        """Return the known scores of a node, by its parents; the mapping stays up to date."""
        return self._known[node]

    @property
    def count(self) -> int:
        """Return the number of known scores."""
        return sum(map(len, self._known))

    def compute(self, requests: Iterable[FamilyRequest]) -> None:
        """Compute the scores of these families that are not known yet, as one batch in a fixed order."""
        new = sorted({(node, parents) for node, parents in requests if parents not in self._known[node]})
        if not new:
            return
        if self._progress is not None:
            self._progress(self.count, len(new))
        values = self._checked_scores([self._family(*request) for request in new])
        self._step = self._step or _grid_step(len(self._space.nodes) * max(map(abs, values)))
        for (node, parents), value in zip(new, values, strict=True):
            self._known[node][parents] = round(value / self._step) * self._step

    def run(self, computation: ScoreCoroutine[T]) -> T:
        """Run a computation to its end, one batch per round."""
        try:
            while True:
                self.compute(next(computation))
        except StopIteration as finished:
            result: T = finished.value
            return result

    def request(self, node: int, parent_sets: Iterable[NodeSet]) -> ScoreCoroutine[None]:
        """Continue when all of these scores are known."""
        known = self._known[node]
        missing = [(node, parents) for parents in parent_sets if parents not in known]
        if missing:
            yield missing

    def _family(self, node: int, parents: NodeSet) -> Family:
        names = self._space.nodes
        return Family(names[node], frozenset(names[parent.bit_length() - 1] for parent in iterate_members(parents)))

    def _checked_scores(self, families: list[Family]) -> Sequence[float]:
        values = self._score(families)
        if len(values) != len(families):
            raise InvalidAnswerError(
                f"the score returned {len(values)} values for {len(families)} families; expected one value for each "
                "family of a batch, in order. Correct the score"
            )
        for family, value in zip(families, values, strict=True):
            if not math.isfinite(value):
                parents = ", ".join(sorted(family.parents, key=node_sort_key)) or "no parents"
                raise InvalidAnswerError(
                    f"the score of {family.node} given {parents} is {value}; expected a finite number. Correct the "
                    "score"
                )
        return values


def _grid_step(total: float) -> float:
    """Return a power of two for which sums of numbers as large as this are exact."""
    return max(_MIN_GRID_STEP, 2.0 ** (math.frexp(total)[1] - _GRID_BITS))


def run_in_step(computations: Iterable[ScoreCoroutine[T]]) -> ScoreCoroutine[list[T]]:
    """Run computations in step: the scores that they need next are one batch for all of them."""
    waiting = list(enumerate(computations))
    results: dict[int, T] = {}
    while waiting:
        needed: list[FamilyRequest] = []
        unfinished = []
        for position, computation in waiting:
            try:
                needed += next(computation)
                unfinished.append((position, computation))
            except StopIteration as finished:
                results[position] = finished.value
        waiting = unfinished
        if waiting:
            yield needed
    return [results[position] for position in sorted(results)]


def iterate_members(members: NodeSet) -> Iterator[NodeSet]:
    """Yield the members as sets of one node, by name."""
    while members:
        first = members & -members
        yield first
        members ^= first


def iterate_subsets(members: NodeSet) -> Iterator[NodeSet]:
    """Yield all subsets, each after its own subsets."""
    chosen = 0
    while True:
        yield chosen
        chosen = (chosen - members) & members
        if not chosen:
            return


def select_best(options: Iterable[NodeSet], scores: Mapping[NodeSet, float]) -> NodeSet:
    """Return the parents with the highest score; among equals the fewest, then the first by name."""
    options = list(options)
    enough = max(map(scores.__getitem__, options)) - TIE_TOLERANCE
    equals = [option for option in options if scores[option] >= enough]
    return equals[0] if len(equals) == 1 else min(equals, key=_size_and_name_key)


def _size_and_name_key(members: NodeSet) -> tuple[int, list[int]]:
    return members.bit_count(), list(iterate_members(members))


def _check_settings(names: tuple[str, ...], candidates: Mapping[str, frozenset[str]], max_parents: int | None) -> None:
    unknown = frozenset(candidates).union(*candidates.values()) - frozenset(names) - {DOMAIN}
    if unknown:
        raise SettingsError(
            f"the candidates name unknown nodes: {', '.join(sorted(unknown))}; known are {', '.join(names)}. Correct "
            "the candidates",
            parameter="candidates",
        )
    if max_parents is not None and max_parents < 0:
        raise SettingsError(
            f"the largest number of parents is {max_parents}; expected 0 or more, or None for no limit",
            parameter="max_parents",
        )
