"""The DAG with the highest score: an exact search for few variables, otherwise a search over orders.

Given an order of the variables, each chooses its parents among those before it, by growing and shrinking. Only the
order is searched: every variable in turn moves to where the total is highest, until none moves (similar to BOSS,
Andrews et al. 2023), from several starts. Then each arrow is reversed in turn, its neighbours move, and the search goes
on from there if the total is higher.

Moving one variable changes the available parents of itself and of the variables that it passes. Choices depend on
nothing else: they are remembered, and few are repeated. All choices of one move or of many are made in step.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, cycle
from operator import or_
from typing import NamedTuple, TypeAlias

from fedcdh.errors import SettingsError
from fedcdh.graphs.knowledge import NO_KNOWLEDGE, Knowledge
from fedcdh.protocols import LocalScore, Progress
from fedcdh.search.exact_search import solve_exactly
from fedcdh.search.parent_sets import (
    TIE_TOLERANCE,
    FamilyRequest,
    NodeSet,
    ParentSpace,
    ScoreCache,
    ScoreCoroutine,
    ScoredDag,
    iterate_members,
    run_in_step,
    select_best,
)

DEFAULT_EXACT_VARIABLES = 10
"""The search is exact if there are no more families than this number of variables and the domain have in all."""

MAX_EXACT_VARIABLES = 16
"""With more variables the search is not exact, however few the families are: it would visit 2¹⁷ sets or more."""

RESTART_BUDGET = 40
"""Random starts besides the informed one, times the number of variables: with more variables, a start costs more."""

MAX_EXHAUSTIVE_CANDIDATES = 7
"""All families of a node with at most this many candidates are scored: 128 are little more than growing needs."""

Order: TypeAlias = tuple[int, ...]
"""The variables, causes first."""


LISTED_PER_SCORED = 20
"""Parent sets that may be listed for one that may be scored: listing is that much cheaper."""


@dataclass(frozen=True)
class SearchEffort:
    """The effort of a search for the best DAG.

    Attributes
    ----------
    exact_up_to : int, default 10
        The search is exact if there are no more families than this number of variables and the domain have in all.
    restarts : int, optional
        Number of random starts of the search over orders; the default depends on the number of variables.

    Examples
    --------
    >>> SearchEffort(exact_up_to=0).restarts is None
    True
    """

    exact_up_to: int = DEFAULT_EXACT_VARIABLES
    restarts: int | None = None

    def __post_init__(self) -> None:
        if self.restarts is not None and self.restarts < 0:
            raise SettingsError(
                f"the number of restarts is {self.restarts}; expected 0 or more, or None for a number that fits the "
                "size",
                parameter="restarts",
            )


def best_dag(
    nodes: Iterable[str],
    score: LocalScore,
    knowledge: Knowledge = NO_KNOWLEDGE,
    *,
    candidates: Mapping[str, frozenset[str]] | None = None,
    max_parents: int | None = None,
    effort: SearchEffort = SearchEffort(),
    seed: int = 0,
    progress: Progress | None = None,
) -> ScoredDag:
    """Find the DAG with the highest total score, exactly if that is affordable.

    Parameters
    ----------
    nodes : iterable of str
        The variables, and the domain if there is one. Their order does not matter.
    score : LocalScore
        The score of a family.
    knowledge : Knowledge, optional
        Background knowledge.
    candidates : mapping from str to frozenset of str, optional
        The possible parents of a node; a node that is not named may have any. Required parents and the domain are
        always candidates.
    max_parents : int, optional
        The largest number of parents, not counting the domain; the default is no limit.
    effort : SearchEffort, optional
        Up to which size the search is exact, and the number of random starts otherwise.
    seed : int, default 0
        Seed of the random starts.
    progress : callable, optional
        Called before each batch with the number of families scored so far and in this batch.

    Returns
    -------
    ScoredDag
        The DAG, its score, and whether it is known to be the best.

    Raises
    ------
    SettingsError
        If a setting is out of its range, or a candidate is unknown.
    KnowledgeError
        If the knowledge contradicts itself or names unknown variables.

    Examples
    --------
    >>> def score(families):
    ...     return [1.0 if family.parents == {"x"} else 0.0 for family in families]
    >>> print(best_dag("xy", score).dag)
    x → y
    """
    nodes = tuple(nodes)
    space = ParentSpace.of(nodes, knowledge, candidates, max_parents)
    scores = ScoreCache(space, score, progress)
    budget = effort.exact_up_to * 2**effort.exact_up_to
    affordable = space.count_families() <= budget and space.count_subsets() <= LISTED_PER_SCORED * budget
    exact = affordable and len(space.variables) <= max(MAX_EXACT_VARIABLES, effort.exact_up_to)
    parents = solve_exactly(space, scores) if exact else _search_orders(space, scores, effort.restarts, seed)
    total = sum(scores.of(node)[parents[node]] for node in space.variables)
    return ScoredDag(space.dag(nodes, parents), total, exact, scores.count)


def _search_orders(space: ParentSpace, scores: ScoreCache, restarts: int | None, seed: int) -> Mapping[int, NodeSet]:
    if restarts is None:
        restarts = max(1, RESTART_BUDGET // max(1, len(space.variables)))
    search, rng = _OrderSearch(space, scores), random.Random(seed)
    shuffled = [rng.sample(space.variables, len(space.variables)) for _ in range(restarts)]
    starts = [scores.run(search.informed_start()), *(_topological_order(space.required, order) for order in shuffled)]
    ends = scores.run(run_in_step(search.climb(start) for start in starts))
    return scores.run(search.escape(min(ends, key=_OrderResult.rank), widely=True)).parents


class _OrderResult(NamedTuple):
    """An order and the graph that follows from it."""

    total: float
    order: Order
    parents: Mapping[int, NodeSet]

    def rank(self) -> tuple[float, int, list[tuple[int, NodeSet]]]:
        """Return the sorting key: the highest total first; among equals the fewest arrows, then by name."""
        arrows = sum(parents.bit_count() for parents in self.parents.values())
        return -round(self.total, 9), arrows, sorted(self.parents.items())


class _OrderSearch:
    """A search that moves variables in orders, and remembers the parents that each chooses from the available nodes."""

    def __init__(self, space: ParentSpace, scores: ScoreCache) -> None:
        self._space, self._scores = space, scores
        self._chosen: list[dict[NodeSet, tuple[float, NodeSet]]] = [{} for _ in space.nodes]
        children = _invert_parents(space.possible)
        self._linked = [parents | found for parents, found in zip(space.possible, children, strict=True)]
        self._required_by = _invert_parents(space.required)

    def informed_start(self) -> ScoreCoroutine[Order]:
        """Return an order by the strongest arrows, each judged alone and taken unless it closes a cycle."""
        space, scores = self._space, self._scores
        options = [
            (node, space.required[node] | tail)
            for node in space.variables
            for tail in iterate_members(space.optional[node])
        ]
        nothing = [(node, space.required[node]) for node in space.variables]
        yield nothing + options

        def gain(option: FamilyRequest) -> float:
            node, parents = option
            return round(scores.of(node)[parents] - scores.of(node)[space.required[node]], 9)

        graph = list(space.required)
        for node, parents in sorted(options, key=lambda option: (-gain(option), option)):
            if gain((node, parents)) > TIE_TOLERANCE and not _find_ancestors(graph, parents) >> node & 1:
                graph[node] |= parents
        return _topological_order(graph, space.variables)

    def climb(self, order: Order) -> ScoreCoroutine[_OrderResult]:
        """Move variables, then reverse arrows, until neither raises the total."""
        settled = yield from self._settle(order, self._space.variables)
        return (yield from self.escape(settled, widely=False))

    def escape(self, best: _OrderResult, widely: bool) -> ScoreCoroutine[_OrderResult]:
        """Reverse pairs while this raises the total: those with an arrow or, widely, all that may have one."""
        while True:
            before, best = best, (yield from self._turn_all(best, widely))
            if best.total <= before.total + TIE_TOLERANCE:
                return best

    def _settle(self, order: Order, variables: Sequence[int]) -> ScoreCoroutine[_OrderResult]:
        """Move each of these variables to its best place, repeatedly, until all of them stay."""
        stayed = 0
        for variable in cycle(variables):
            moved = yield from self._best_move(order, variable)
            stayed, order = stayed + 1 if moved == order else 1, moved  # what has just moved would stay
            if stayed >= len(variables):
                break
        return (yield from self._outcome(order))

    def _turn_all(self, best: _OrderResult, widely: bool) -> ScoreCoroutine[_OrderResult]:
        """Try every reversal alone, then keep those that raise the total, the best first, one after the other."""
        pairs = self._turnable(best, widely)
        turned = yield from run_in_step(self._turn(best, *pair) for pair in pairs)
        gains = {pair: other.total - best.total for pair, other in zip(pairs, turned, strict=True)}
        for pair in sorted(
            (pair for pair in pairs if gains[pair] > TIE_TOLERANCE), key=lambda pair: (-gains[pair], pair)
        ):
            if self._may_turn(best, *pair, widely):  # an earlier reversal may have reversed it already
                best = min(best, (yield from self._turn(best, *pair)), key=_OrderResult.rank)
        return (yield from self._settle(best.order, self._space.variables))

    # Orders

    def _best_move(self, order: Order, variable: int) -> ScoreCoroutine[Order]:
        """Return the order with this variable where the total is highest, unchanged unless another place is better.

        Only passing a node that may be adjacent makes a difference, so only such places are compared.
        """
        possible, linked, itself = self._space.possible, self._linked[variable], 1 << variable
        others = tuple(other for other in order if other != variable)
        places = self._places(others, variable)
        before = sum(1 << other for other in others[: places[0]]) | self._space.roots
        spots, own, passed = [places[0]], [before & possible[variable]], list[tuple[int, FamilyRequest]]()
        for place in places[:-1]:
            other = others[place]
            if linked >> other & 1:
                if possible[other] & itself:
                    passed.append((len(spots), (other, before & possible[other])))
                spots.append(place + 1)
                own.append((before | 1 << other) & possible[variable])
            before |= 1 << other
        without = [request for _, request in passed]
        given = [(other, available | itself) for other, available in without]
        yield from self._choose([*((variable, available) for available in own), *without, *given])
        gains = [0.0] * len(spots)  # what the one just before gains by not having the variable available
        for spot, (other, available) in passed:
            choices = self._chosen[other]
            gains[spot] = choices[available][0] - choices[available | itself][0]
        mine = self._chosen[variable]
        totals = [mine[available][0] + gain for available, gain in zip(own, accumulate(gains), strict=True)]
        top, now = max(totals), totals[bisect_right(spots, order.index(variable)) - 1]
        if top <= now + TIE_TOLERANCE:
            return order
        place = next(spot for spot, total in zip(spots, totals, strict=True) if total >= top - TIE_TOLERANCE)
        return *others[:place], variable, *others[place:]

    def _places(self, others: Order, variable: int) -> range:
        """Return the places of a variable among the others that required arrows allow."""
        required, asked_for = self._space.required[variable], self._required_by[variable]
        first = max((at + 1 for at, other in enumerate(others) if required >> other & 1), default=0) if required else 0
        if not asked_for:
            return range(first, len(others) + 1)
        return range(first, next(at for at, other in enumerate(others) if asked_for >> other & 1) + 1)

    def _outcome(self, order: Order) -> ScoreCoroutine[_OrderResult]:
        before = accumulate((1 << variable for variable in order), or_, initial=self._space.roots)
        available = [(node, nodes & self._space.possible[node]) for node, nodes in zip(order, before, strict=False)]
        yield from self._choose(available)
        chosen = {node: self._chosen[node][nodes] for node, nodes in available}
        total = sum(score for score, _ in chosen.values())
        return _OrderResult(total, order, {node: parents for node, (_, parents) in chosen.items()})

    def _turnable(self, outcome: _OrderResult, widely: bool) -> list[tuple[int, int]]:
        """Return the pairs of the order with an arrow or, widely, a possible one; without required arrows."""
        linked = self._space.possible if widely else outcome.parents
        return [
            (first, second)
            for first, second in combinations(outcome.order, 2)
            if (linked[second] >> first | linked[first] >> second) & 1 and not self._space.required[second] >> first & 1
        ]

    def _may_turn(self, outcome: _OrderResult, first: int, second: int, widely: bool) -> bool:
        """Return whether a pair that could be reversed before still can in this result."""
        linked = self._space.possible if widely else outcome.parents
        joined = (linked[second] >> first | linked[first] >> second) & 1
        return bool(joined) and outcome.order.index(first) < outcome.order.index(second)

    def _turn(self, outcome: _OrderResult, first: int, second: int) -> ScoreCoroutine[_OrderResult]:
        """Put the second, with its ancestors, before the first; then settle the neighbours of both, and the two last.

        The two would move back if they were settled first.
        """
        order, parents = outcome.order, outcome.parents
        start, end = order.index(first), order.index(second) + 1
        leading = 1 << second
        for node in reversed(order[start + 1 : end]):
            if leading >> node & 1:
                leading |= parents[node]
        moved = [node for node in order[start + 1 : end] if leading >> node & 1]
        if any(self._space.required[node] >> first & 1 for node in moved):
            return outcome
        stayed = [first, *(node for node in order[start + 1 : end] if not leading >> node & 1)]
        both = 1 << first | 1 << second
        near = [
            node
            for node in self._space.variables
            if not both >> node & 1 and (parents[node] & both or (parents[first] | parents[second]) >> node & 1)
        ]
        return (yield from self._settle((*order[:start], *moved, *stayed, *order[end:]), [*near, first, second]))

    # Parents

    def _choose(self, requests: Iterable[FamilyRequest]) -> ScoreCoroutine[None]:
        """Choose the parents of these nodes among the available ones; each choice is made once."""
        chosen = self._chosen
        new = list(dict.fromkeys(request for request in requests if request[1] not in chosen[request[0]]))
        if not new:
            return
        choices = yield from run_in_step(self._best_parents(*request) for request in new)
        for (node, available), parents in zip(new, choices, strict=True):
            chosen[node][available] = self._scores.of(node)[parents], parents

    def _best_parents(self, node: int, available: NodeSet) -> ScoreCoroutine[NodeSet]:
        if self._space.optional[node].bit_count() <= MAX_EXHAUSTIVE_CANDIDATES:
            return (yield from self._best_option(node, list(self._space.parent_sets(node, available))))
        parents = self._space.required[node]
        while True:
            grown = yield from self._grow(node, parents, available)
            shrunk = yield from self._shrink(node, grown)
            known = self._scores.of(node)
            if shrunk == grown or known[shrunk] <= known[parents] + TIE_TOLERANCE:
                return shrunk
            parents = shrunk

    def _grow(self, node: int, parents: NodeSet, available: NodeSet) -> ScoreCoroutine[NodeSet]:
        """Add the best available parent, one by one, while this raises the score."""
        while True:
            joining = self._space.optional[node] & available & ~parents & self._space.may_join(parents)
            more = [parents, *(parents | one for one in iterate_members(joining))]
            best = yield from self._best_option(node, more)
            if best == parents:
                break
            parents = best
        return parents

    def _shrink(self, node: int, parents: NodeSet) -> ScoreCoroutine[NodeSet]:
        """Remove the parent that adds least, one by one, while this does not lower the score."""
        while True:
            fewer = [parents, *(parents ^ one for one in iterate_members(parents & ~self._space.required[node]))]
            best = yield from self._best_option(node, fewer)
            if best == parents:
                return parents
            parents = best

    def _best_option(self, node: int, options: list[NodeSet]) -> ScoreCoroutine[NodeSet]:
        yield from self._scores.request(node, options)
        return select_best(options, self._scores.of(node))


def _invert_parents(parents: Sequence[NodeSet]) -> list[NodeSet]:
    """Return the children of every node."""
    children = [0] * len(parents)
    for node, some in enumerate(parents):
        for parent in iterate_members(some):
            children[parent.bit_length() - 1] |= 1 << node
    return children


def _topological_order(parents: Sequence[NodeSet], order: Iterable[int]) -> Order:
    """Return the variables with every one after its parents, otherwise in this order as far as possible."""
    waiting, result = list(order), list[int]()
    while waiting:
        left = sum(1 << node for node in waiting)
        result.append(next(node for node in waiting if not parents[node] & left))
        waiting.remove(result[-1])
    return tuple(result)


def _find_ancestors(parents: Sequence[NodeSet], nodes: NodeSet) -> NodeSet:
    """Return these nodes and all their ancestors."""
    found, waiting = nodes, nodes
    while waiting:
        new = 0
        for node in iterate_members(waiting):
            new |= parents[node.bit_length() - 1]
        waiting = new & ~found
        found |= new
    return found
