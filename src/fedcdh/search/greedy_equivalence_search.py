"""Greedy equivalence search (GES): a search over equivalence classes by single edges.

From the empty graph, or from a given class, the operator with the highest gain is applied until none raises the score:
first insertions, then deletions, then turns if they are asked for. With a score that is consistent and the same for all
DAGs of a class, insertions and deletions find the true class as the rows become many (Chickering 2002). With turns, all
phases are repeated until none raises the score (Hauser and Bühlmann 2012).

All operators of one step are scored as one batch, and their tests of validity are made in the order of their gains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from fedcdh.errors import SettingsError
from fedcdh.graphs.equivalence import extend_to_dag, find_consistent_extension, to_cpdag
from fedcdh.graphs.knowledge import NO_KNOWLEDGE
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN, LocalScore, Progress
from fedcdh.search.class_operators import (
    ClassState,
    FamilyChange,
    Operator,
    list_deletions,
    list_insertions,
    list_requests,
    list_turns,
)
from fedcdh.search.hill_climbing import MIN_GAIN
from fedcdh.search.parent_sets import FamilyRequest, ParentSpace, ScoreCache

Phase: TypeAlias = Literal["insert", "delete", "turn"]
"""A phase of the search."""

GAIN_DIGITS = 6
"""Gains that agree to this digit are equal: operators that lead to one class differ in the last digits only."""


@dataclass(frozen=True)
class ScoredClass:
    """The equivalence class that a search has found.

    Attributes
    ----------
    cpdag : PartialGraph
        The class.
    total : float
        The sum of the scores of the families of one of its DAGs.
    gains : tuple of float
        The gain of each operator that was applied, in order.
    families_scored : int
        The number of families that were scored.

    Examples
    --------
    >>> ScoredClass(PartialGraph("xy"), -3.5, (), 4).gains
    ()
    """

    cpdag: PartialGraph
    total: float
    gains: tuple[float, ...]
    families_scored: int


class ClassJudge(Protocol):
    """A judge of operators. The usual one adds up the scores of families; another may compare whole graphs."""

    def prepare(self, requests: Iterable[FamilyRequest], /) -> None:
        """Learn the scores of all families that operators of one step need, as one batch."""

    def gain(self, changes: Sequence[FamilyChange], /) -> float:
        """Return by how much an operator that makes these changes raises the score."""

    def accept(self, changes: Sequence[FamilyChange], /) -> None:
        """Take note that an operator was applied."""


class FamilyJudge:
    """The judge by a decomposable score: the gain is that of the changed families."""

    def __init__(self, scores: ScoreCache) -> None:
        self._scores = scores

    def prepare(self, requests: Iterable[FamilyRequest], /) -> None:
        """Score families that are not known yet."""
        self._scores.compute(requests)

    def gain(self, changes: Sequence[FamilyChange], /) -> float:
        """Return the sum of the gains of the changed families."""
        known = self._scores.of
        return sum(known(change.node)[change.after] - known(change.node)[change.before] for change in changes)

    def accept(self, changes: Sequence[FamilyChange], /) -> None:
        """Do nothing: gains do not depend on the rest of the graph."""


def find_equivalence_class(
    nodes: Iterable[str],
    score: LocalScore,
    *,
    start: PartialGraph | None = None,
    phases: Sequence[Phase] = ("insert", "delete"),
    max_parents: int | None = None,
    max_insertions: int | None = None,
    progress: Progress | None = None,
) -> ScoredClass:
    """Find an equivalence class with a high score, by greedy equivalence search.

    Parameters
    ----------
    nodes : iterable of str
        The variables. Their order does not matter.
    score : LocalScore
        The score of a family; it should be the same for all DAGs of a class.
    start : PartialGraph, optional
        The class (CPDAG) to start from; the default is the graph without edges.
    phases : sequence of {"insert", "delete", "turn"}, default ("insert", "delete")
        The phases, in their order. With "turn" they are repeated until none raises the score.
    max_parents : int, optional
        The largest number of parents that an insertion or a turn may lead to; the default is no limit.
    max_insertions : int, optional
        The largest number of insertions; the default is no limit.
    progress : callable, optional
        Called before each batch with the number of families scored so far and in this batch.

    Returns
    -------
    ScoredClass
        The class and its score.

    Raises
    ------
    SettingsError
        If the domain is among the nodes, a phase is unknown, a limit is negative, or the start is not a class of the
        nodes.

    References
    ----------
    D. M. Chickering (2002): Optimal structure identification with greedy search.
    A. Hauser, P. Bühlmann (2012): Characterization and greedy learning of interventional Markov equivalence classes.

    Examples
    --------
    >>> def score(families):
    ...     return [float({family.node, *family.parents} == {"x", "y"}) for family in families]
    >>> print(find_equivalence_class("xyz", score).cpdag)
    x — y
    z
    """
    space = ParentSpace.of(nodes, NO_KNOWLEDGE, None, max_parents)
    _check_search(space, phases, max_insertions)
    if start is not None:
        _check_start(space, start)
    scores = ScoreCache(space, score, progress)
    found, gains = search_classes(space, FamilyJudge(scores), start, phases, max_insertions)
    dag = ClassState(space.nodes, find_consistent_extension(found))
    scores.compute(enumerate(dag.parents))
    total = sum(scores.of(node)[parents] for node, parents in enumerate(dag.parents))
    return ScoredClass(found, total, gains, scores.count)


def search_classes(
    space: ParentSpace,
    judge: ClassJudge,
    start: PartialGraph | None = None,
    phases: Sequence[Phase] = ("insert", "delete"),
    max_insertions: int | None = None,
) -> tuple[PartialGraph, tuple[float, ...]]:
    """Search with any judge of operators; return the class and the gains of all operators that were applied."""
    state = ClassState(space.nodes, PartialGraph(space.nodes) if start is None else start)
    gains: list[float] = []
    seen = {state.cpdag}  # a score that differs within a class could lead round in a circle
    while True:
        before = len(gains)
        for phase in phases:
            limit = max_insertions if phase == "insert" else None
            while limit is None or len(gains) - before < limit:
                operators = _list_operators(state, phase, space.max_parents)
                step = _improve(state, operators, judge, frozenset() if phase == "delete" else seen)
                if step is None:
                    break
                state = ClassState(space.nodes, step[0])
                seen.add(state.cpdag)
                gains.append(step[1])
        if "turn" not in phases or len(gains) == before:
            return state.cpdag, tuple(gains)


def _list_operators(state: ClassState, phase: Phase, max_parents: int) -> list[Operator]:
    if phase == "insert":
        return [*list_insertions(state, max_parents)]
    return [*list_deletions(state)] if phase == "delete" else [*list_turns(state, max_parents)]


def _improve(
    state: ClassState, operators: Sequence[Operator], judge: ClassJudge, seen: Collection[PartialGraph]
) -> tuple[PartialGraph, float] | None:
    """Return the class after the valid operator with the highest gain that leads to a new one, and the gain."""
    judge.prepare(list_requests(operators))
    gains = [judge.gain(operator.changes) for operator in operators]
    promising = [place for place, gain in enumerate(gains) if gain > MIN_GAIN]
    for place in sorted(promising, key=lambda place: (-round(gains[place], GAIN_DIGITS), operators[place][:3])):
        after = operators[place].apply(state)
        if after is not None and after not in seen:
            judge.accept(operators[place].changes)
            return after, gains[place]
    return None


def _check_search(space: ParentSpace, phases: Sequence[Phase], max_insertions: int | None) -> None:
    if DOMAIN in space.nodes:
        raise SettingsError(
            "the domain is among the nodes; expected variables only, because a class has no fixed arrows. Use "
            "best_dag() for a search with the domain",
            parameter="nodes",
        )
    unknown = [phase for phase in phases if phase not in ("insert", "delete", "turn")]
    if unknown:
        raise SettingsError(
            f"found the phase {unknown[0]!r}; expected insert, delete or turn; choose among these", parameter="phases"
        )
    if max_insertions is not None and max_insertions < 0:
        raise SettingsError(
            f"the largest number of insertions is {max_insertions}; expected 0 or more, or None for no limit",
            parameter="max_insertions",
        )


def _check_start(space: ParentSpace, start: PartialGraph) -> None:
    same_nodes = set(start.nodes) == set(space.nodes)
    if not same_nodes or not start.is_acyclic() or to_cpdag(extend_to_dag(start)) != start:
        raise SettingsError(
            f"the start is a graph of {len(start.nodes)} nodes that is no equivalence class of these "
            f"{len(space.nodes)} nodes; expected a CPDAG of the same nodes. Use to_cpdag() on a DAG",
            parameter="start",
        )
