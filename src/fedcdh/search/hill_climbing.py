"""Hill climbing among DAGs: single edges are added, removed or reversed while the score rises.

All families that the next step may need are scored in one batch. A score that asks the clients is therefore asked once
per step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import Pair, PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN, Family, LocalScore

Parents: TypeAlias = dict[str, frozenset[str]]
"""The parents of every variable."""

MIN_GAIN = 1e-6
"""A step has to raise the score by more than this."""


@dataclass(frozen=True)
class Climb:
    """The end of a climb.

    Attributes
    ----------
    dag : PartialGraph
        The DAG with the highest score that was reached.
    score : float
        Its score.
    steps : int
        Number of batches of families that were scored.

    Examples
    --------
    >>> Climb(PartialGraph("xy"), 0.0, 1).steps
    1
    """

    dag: PartialGraph
    score: float
    steps: int


def climb(
    starts: Sequence[PartialGraph],
    score: LocalScore,
    pairs: Collection[Pair],
    knowledge: Knowledge = NO_KNOWLEDGE,
    *,
    max_parents: int | None = None,
    max_steps: int = 10,
) -> Climb:
    """Climb from several DAGs, the best first, within a set of pairs that may be adjacent.

    Later starts change only pairs that they join differently than the best DAG so far.

    Parameters
    ----------
    starts : sequence of PartialGraph
        The DAGs to start from, on the same nodes.
    score : LocalScore
        The score of a family. Families of value -inf are not available.
    pairs : collection of frozenset of str
        The pairs that may be adjacent.
    knowledge : Knowledge, optional
        Background knowledge, which the starts obey.
    max_parents : int, optional
        The largest number of parents, not counting the domain; the default is no limit.
    max_steps : int, default 10
        Largest number of steps from each start.

    Returns
    -------
    Climb
        The best DAG that was reached.

    Examples
    --------
    >>> def score(families):
    ...     return [1.0 if family.parents == {"x"} else 0.0 for family in families]
    >>> print(climb([PartialGraph("xy")], score, [frozenset("xy")]).dag)
    x → y
    """
    nodes = starts[0].nodes
    points = [{node: start.parents(node) for node in nodes if node != DOMAIN} for start in starts]
    slope = _Slope(score, pairs, knowledge, max_parents, max_steps)
    slope.compute(points)
    points.sort(key=slope.rank)
    best = slope.climb(points[0], slope.pairs)
    for point in points[1:]:
        # Where a start agrees with the best graph, its neighbours were scored already.
        end = slope.climb(point, _differing_pairs(point, best, slope.pairs))
        if slope.total(end) > slope.total(best) + MIN_GAIN:
            best = slope.climb(end, slope.pairs)
    arrows = ((parent, node) for node, parents in best.items() for parent in parents)
    return Climb(PartialGraph.from_dag(nodes, arrows), slope.total(best), slope.steps)


class _Slope:
    """The scores of families met so far, and the rules of moves."""

    def __init__(
        self,
        score: LocalScore,
        pairs: Collection[Pair],
        knowledge: Knowledge,
        max_parents: int | None,
        max_steps: int,
    ) -> None:
        self.pairs, self.steps = frozenset(pairs), 0
        self._score, self._knowledge = score, knowledge
        self._max_parents, self._max_steps = max_parents, max_steps
        self._known: dict[Family, float] = {}

    def compute(self, wanted: Iterable[Parents]) -> None:
        """Score the families that are not known yet, in one batch."""
        families = {Family(*item) for one in wanted for item in one.items()}
        new = sorted(families - self._known.keys(), key=lambda family: (family.node, sorted(family.parents)))
        if new:
            self.steps += 1
            self._known.update(zip(new, self._score(new), strict=True))

    def total(self, point: Parents) -> float:
        """Return the score of a DAG whose families are known."""
        return sum(self._known[Family(node, parents)] for node, parents in sorted(point.items()))

    def rank(self, point: Parents) -> tuple[float, int, list[tuple[str, list[str]]]]:
        """Return a sort key: the highest score first; among equals few arrows, whatever the order of the starts."""
        return -round(self.total(point), 6), sum(map(len, point.values())), _sort_key(point)

    def climb(self, point: Parents, pairs: Collection[Pair]) -> Parents:
        """Return the end of a climb by changes of these pairs."""
        for _ in range(self._max_steps):
            moves = [move for move in _moves(point, pairs, self._knowledge) if self._is_small(move)]
            self.compute(moves)
            after = _improve(point, moves, self._known)
            if after == point:
                break
            point = after
        return point

    def _is_small(self, move: Parents) -> bool:
        """Return whether no variable has too many parents."""
        most = self._max_parents
        return most is None or all(len(parents - {DOMAIN}) <= most for parents in move.values())


def _differing_pairs(one: Parents, other: Parents, pairs: Collection[Pair]) -> list[Pair]:
    """Return the pairs that two DAGs join differently."""

    def joined(point: Parents, pair: Pair) -> list[bool]:
        first, second = sort_pair(pair)
        return [first in point.get(second, ()), second in point.get(first, ())]

    return [pair for pair in pairs if joined(one, pair) != joined(other, pair)]


def _improve(point: Parents, moves: Sequence[Parents], known: Mapping[Family, float]) -> Parents:
    """Return the DAG after the best move, and every other that still helps and touches no family changed before."""

    def gain(move: Parents) -> float:
        old = sum(known[Family(node, point[node])] for node in move)
        new = sum(known[Family(*item)] for item in move.items())
        return new - old if new > float("-inf") else float("-inf")

    ranked = sorted(((-gain(move), _sort_key(move), move) for move in moves), key=lambda item: item[:2])
    after, touched = dict(point), set[str]()
    for loss, _, move in ranked:
        if -loss <= MIN_GAIN:
            break
        if touched.isdisjoint(move) and is_acyclic({**after, **move}):
            after.update(move)
            touched |= move.keys()
    return after


def _sort_key(move: Parents) -> list[tuple[str, list[str]]]:
    return sorted((node, sorted(parents)) for node, parents in move.items())


def _moves(point: Parents, pairs: Collection[Pair], knowledge: Knowledge) -> Iterator[Parents]:
    """Yield the families that change if one edge is added, removed or reversed, without a cycle."""
    for pair in sorted(pairs, key=sort_pair):
        for tail, head in (sort_pair(pair), sort_pair(pair)[::-1]):
            if head != DOMAIN:
                yield from _moves_of(point, tail, head, knowledge)


def _moves_of(point: Parents, tail: str, head: str, knowledge: Knowledge) -> Iterator[Parents]:
    without = {head: point[head] - {tail}}
    if tail in point[head]:
        if not knowledge.requires(tail, head):
            yield without
            turned = {**without, tail: point.get(tail, frozenset()) | {head}}
            if tail != DOMAIN and not knowledge.forbids(head, tail) and is_acyclic({**point, **turned}):
                yield turned
    elif head not in point.get(tail, ()) and not knowledge.forbids(tail, head):
        more = {head: point[head] | {tail}}
        if is_acyclic({**point, **more}):
            yield more


def is_acyclic(point: Mapping[str, frozenset[str]]) -> bool:
    """Return whether parents follow no cycle.

    Parameters
    ----------
    point : mapping from str to frozenset of str
        The parents of every variable; the domain has none.

    Returns
    -------
    bool
        Whether there is an order in which parents come first.

    Examples
    --------
    >>> is_acyclic({"x": frozenset("y"), "y": frozenset("x")})
    False
    """
    left = {node: {*parents} - {DOMAIN} for node, parents in point.items()}
    while left:
        roots = [node for node, parents in left.items() if parents.isdisjoint(left)]
        if not roots:
            return False
        for node in roots:
            del left[node]
    return True
