"""Hill climbing among DAGs: single edges are added, removed or reversed while the score rises.

A score may have to ask the clients. It then knows some families, and has an expectation of others. Between two requests
the search climbs as far as known families lead. A request is about the families of the best DAG, and about those of its
neighbours that may be better.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.graphs.partial_graph import Pair, PartialGraph, sort_pair
from fedcdh.protocols import DOMAIN, Family, LocalScore

Parents: TypeAlias = dict[str, frozenset[str]]
"""The parents of every variable."""

MIN_GAIN = 1e-6
"""A step has to raise the score by more than this."""
NOT_KNOWN = float("-inf")
"""Score of a family that was not asked about, or is not available."""


class AskingScore(Protocol):
    """A score that has to ask for what it does not know."""

    def known_only(self, families: Sequence[Family], /) -> list[float]:
        """Return the scores as far as they are known, -inf for other families.

        Parameters
        ----------
        families : sequence of Family
            Nodes with their parents.

        Returns
        -------
        list of float
            The scores.
        """

    def expect(self, families: Mapping[Family, Family | None], /) -> list[float]:
        """Return how high the scores may be, without asking.

        Parameters
        ----------
        families : mapping from Family to Family or None
            Families, each with a family of the same node that may be known.

        Returns
        -------
        list of float
            For a known family a limit; for another one the score that the known one makes likely.
        """

    def ask(self, families: Mapping[Family, Family | None], /) -> bool:
        """Send one request for what is open about these families.

        Parameters
        ----------
        families : mapping from Family to Family or None
            Families, each with a family of the same node that may be known.

        Returns
        -------
        bool
            Whether anything new is known.
        """


class BatchScore:
    """A score of which everything may be asked: nothing is expected, and a request is a batch of families.

    Parameters
    ----------
    score : LocalScore
        The score of a family. Families of value -inf are not available.

    Examples
    --------
    >>> score = BatchScore(lambda families: [1.0 for family in families])
    >>> score.known_only([Family("x")]), score.ask({Family("x"): None}), score.known_only([Family("x")])
    ([-inf], True, [1.0])
    """

    def __init__(self, score: LocalScore) -> None:
        self._score, self._known = score, dict[Family, float]()

    def known_only(self, families: Sequence[Family], /) -> list[float]:
        """Return the scores as far as they are known, -inf for other families.

        Parameters
        ----------
        families : sequence of Family
            Nodes with their parents.

        Returns
        -------
        list of float
            The scores.
        """
        return [self._known.get(family, NOT_KNOWN) for family in families]

    def expect(self, families: Mapping[Family, Family | None], /) -> list[float]:
        """Return the scores of known families, and infinity for others.

        Parameters
        ----------
        families : mapping from Family to Family or None
            Families.

        Returns
        -------
        list of float
            The scores.
        """
        return [self._known.get(family, float("inf")) for family in families]

    def ask(self, families: Mapping[Family, Family | None], /) -> bool:
        """Score the families that are not known yet, in one batch.

        Parameters
        ----------
        families : mapping from Family to Family or None
            Families.

        Returns
        -------
        bool
            Whether any was new.
        """
        new = [family for family in families if family not in self._known]
        self._known.update(zip(new, self._score(new) if new else [], strict=True))
        return bool(new)


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
        Number of requests.

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
    score: AskingScore,
    pairs: Collection[Pair],
    knowledge: Knowledge = NO_KNOWLEDGE,
    *,
    max_parents: int | None = None,
    max_steps: int = 10,
    reach: float = 0.0,
    neighbours_first: bool = False,
) -> Climb:
    """Climb from several DAGs within a set of pairs that may be adjacent.

    Parameters
    ----------
    starts : sequence of PartialGraph
        The DAGs to start from, on the same nodes.
    score : AskingScore
        The score of a family. Families of value -inf are not available.
    pairs : collection of frozenset of str
        The pairs that may be adjacent.
    knowledge : Knowledge, optional
        Background knowledge, which the starts obey.
    max_parents : int, optional
        The largest number of parents, not counting the domain; the default is no limit.
    max_steps : int, default 10
        Largest number of requests after the first.
    reach : float, default 0
        A neighbour whose families are not all known is asked about if its expected gain is above minus this.
    neighbours_first : bool, default False
        Whether the first request is about the neighbours of the starts as well: fewer requests, more families.

    Returns
    -------
    Climb
        The best DAG that was reached.

    Examples
    --------
    >>> def score(families):
    ...     return [1.0 if family.parents == {"x"} else 0.0 for family in families]
    >>> print(climb([PartialGraph("xy")], BatchScore(score), [frozenset("xy")]).dag)
    x → y
    """
    nodes = starts[0].nodes
    points = [{node: start.parents(node) for node in nodes if node != DOMAIN} for start in starts]
    slope = _Slope(score, frozenset(pairs), knowledge, max_parents, reach)
    steps = int(slope.ask(points, neighbours=neighbours_first))
    for _ in range(max_steps):
        points = [slope.climb(point) for point in points]
        if not slope.ask([min(points, key=slope.rank)]):
            break
        steps += 1
    best = min((slope.climb(point) for point in points) if max_steps else points, key=slope.rank)
    arrows = ((parent, node) for node, parents in best.items() for parent in parents)
    return Climb(PartialGraph.from_dag(nodes, arrows), slope.total(best), steps)


@dataclass(frozen=True)
class _Slope:
    """A score, and the rules of moves."""

    score: AskingScore
    pairs: frozenset[Pair]
    knowledge: Knowledge
    max_parents: int | None
    reach: float

    def ask(self, points: Iterable[Parents], *, neighbours: bool = True) -> bool:
        """Ask about the families of these DAGs, and of neighbours that may be better; return whether that was new."""
        wanted: dict[Family, Family | None] = {}
        for point in points:
            wanted.update({family: wanted.get(family) for family in _families(point)})
            for move in self._promising_moves(point) if neighbours else ():
                wanted.update({family: Family(family.node, point[family.node]) for family in _families(move)})
        ordered = sorted(wanted, key=lambda family: (family.node, sorted(family.parents)))
        return self.score.ask({family: wanted[family] for family in ordered})

    def total(self, point: Parents) -> float:
        """Return the score of a DAG."""
        return sum(self.score.known_only(_families(dict(sorted(point.items())))))

    def rank(self, point: Parents) -> tuple[float, int, list[tuple[str, list[str]]]]:
        """Return a sort key: the highest score first; among equals few arrows, whatever the order of the starts."""
        return -round(self.total(point), 6), sum(map(len, point.values())), _sort_key(point)

    def climb(self, point: Parents) -> Parents:
        """Return the end of a climb among known families."""
        while True:
            after = _improve(point, self._moves(point), self.score)
            if after == point:
                return point
            point = after

    def _moves(self, point: Parents) -> list[Parents]:
        return [move for move in _moves(point, self.pairs, self.knowledge) if self._is_small(move)]

    def _promising_moves(self, point: Parents) -> Iterator[Parents]:
        """Yield the moves that may raise the score."""
        moves = self._moves(point)
        families = {family: Family(family.node, point[family.node]) for move in moves for family in _families(move)}
        expected = dict(zip(families, self.score.expect(families), strict=True))
        known = dict(zip(families, self.score.known_only([*families]), strict=True))
        old = [*_families(point)]
        here = dict(zip(old, self._level(old), strict=True))
        for move in moves:
            new = _families(move)
            gain = sum(expected[family] - here[families[family]] for family in new)
            if gain + (self.reach if any(known[family] == NOT_KNOWN for family in new) else 0.0) > MIN_GAIN:
                yield move

    def _level(self, families: Sequence[Family]) -> list[float]:
        """Return the known scores, or else the expected ones; an unavailable family has the lowest finite score."""
        known, expected = self.score.known_only(families), self.score.expect(dict.fromkeys(families))
        found = [two if one == NOT_KNOWN else one for one, two in zip(known, expected, strict=True)]
        return [max(one, -1e300) if one < float("inf") else 0.0 for one in found]

    def _is_small(self, move: Parents) -> bool:
        """Return whether no variable has too many parents."""
        most = self.max_parents
        return most is None or all(len(parents - {DOMAIN}) <= most for parents in move.values())


def _families(point: Parents) -> list[Family]:
    return [Family(*item) for item in point.items()]


def _improve(point: Parents, moves: Sequence[Parents], score: AskingScore) -> Parents:
    """Return the DAG after the best move, and every other that still helps and touches no family changed before."""
    families = list(dict.fromkeys(family for one in (*moves, point) for family in _families(one)))
    known = dict(zip(families, score.known_only(families), strict=True))

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
            if tail != DOMAIN and not knowledge.forbids(head, tail) and not _descends({**point, **without}, head, tail):
                yield turned
    elif head not in point.get(tail, ()) and not knowledge.forbids(tail, head) and not _descends(point, tail, head):
        yield {head: point[head] | {tail}}


def _descends(point: Mapping[str, frozenset[str]], node: str, ancestor: str) -> bool:
    """Return whether arrows lead from one node to another."""
    seen, left = {node}, [node]
    while left:
        new = point.get(left.pop(), frozenset()) - seen
        seen |= new
        left.extend(new)
    return ancestor in seen


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
