"""Distances between an estimated graph and the true one.

Graphs are given as arrows (tail, head) and lines {a, b}, so that results of any program can be scored.

Conventions:

- The *skeleton* ignores directions: arrows and lines count alike.
- *Directions* are scored on arrows. The paper first extends a partially directed graph to a DAG; to do the same, pass
  the arrows of that DAG. A remaining line claims no direction: it costs recall, not precision.
- The structural Hamming distance (SHD) is the number of pairs whose marks differ: missing, extra and reversed count 1
  each, as in causal-dag, which the paper used. (Some programs count a reversed arrow twice.)
- F1 = 2 · correct / (claimed + true). If nothing is true and nothing is claimed, precision, recall and F1 are 1; if
  only one of the two is empty, all three are 0.
- The domain is not a variable: its arrows are left out here, and `compare_changing` scores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Protocol

from fedcdh.protocols import DOMAIN

Arrow = tuple[str, str]
Pair = frozenset[str]


class GraphLike(Protocol):
    """Any object with arrows and lines, such as the graph of a result."""

    @property
    def arrows(self) -> Iterable[Arrow]:
        """Return the directed edges, as (tail, head)."""

    @property
    def lines(self) -> Iterable[Iterable[str]]:
        """Return the undirected edges."""


@dataclass(frozen=True)
class Score:
    """Counts of correct, claimed and true edges, and the distance.

    Attributes
    ----------
    correct : int
        Number of claims that are true.
    claimed : int
        Number of claims.
    true : int
        Number of true edges.
    shd : int
        Structural Hamming distance.

    Examples
    --------
    >>> score = Score(correct=3, claimed=4, true=6, shd=4)
    >>> score.precision, score.recall, score.f1
    (0.75, 0.5, 0.6)
    """

    correct: int
    claimed: int
    true: int
    shd: int

    @property
    def precision(self) -> float:
        """Return the share of the claims that are true."""
        return self._share_of(self.claimed)

    @property
    def recall(self) -> float:
        """Return the share of the true edges that are claimed."""
        return self._share_of(self.true)

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall."""
        return self._share_of((self.claimed + self.true) / 2)

    def _share_of(self, whole: float) -> float:
        if self.claimed == self.true == 0:
            return 1.0
        return self.correct / whole if whole else 0.0


@dataclass(frozen=True)
class GraphComparison:
    """The scores of a graph, for adjacencies and for directions.

    Attributes
    ----------
    skeleton : Score
        The score of the adjacencies.
    direction : Score
        The score of the arrows.

    Examples
    --------
    >>> found = compare([("x", "y")], [("y", "x")])
    >>> found.skeleton.f1, found.direction.f1
    (1.0, 0.0)
    """

    skeleton: Score
    direction: Score


def compare(
    arrows: Iterable[Arrow], true_arrows: Iterable[Arrow], lines: Iterable[Iterable[str]] = ()
) -> GraphComparison:
    """Compare estimated arrows and lines with the arrows of the true DAG.

    Parameters
    ----------
    arrows : iterable of (str, str)
        The estimated arrows, as (tail, head).
    true_arrows : iterable of (str, str)
        The arrows of the true DAG.
    lines : iterable of pairs of str, optional
        The estimated undirected edges.

    Returns
    -------
    GraphComparison
        Precision, recall, F1 and structural Hamming distance of skeleton and directions.

    Raises
    ------
    ValueError
        If an edge has not two ends, or two edges join the same nodes.

    Examples
    --------
    >>> found = compare([("x", "y")], [("x", "y"), ("y", "z")], lines=[("y", "z")])
    >>> found.skeleton.f1, found.direction.recall, found.direction.shd
    (1.0, 0.5, 1)
    """
    estimated, true = _edge_marks(arrows, lines), _edge_marks(true_arrows, ())
    claimed = set(estimated.values()) - {None}
    return GraphComparison(
        skeleton=_score_sets(set(estimated), set(true)),
        direction=Score(
            len(claimed & set(true.values())), len(claimed), len(true), _count_differences(estimated, true)
        ),
    )


def compare_graph(estimated: GraphLike, true_arrows: Iterable[Arrow]) -> GraphComparison:
    """Compare the graph of an object with the arrows of the true DAG.

    Parameters
    ----------
    estimated : object with arrows and lines
        The estimated graph, such as `result.graph`.
    true_arrows : iterable of (str, str)
        The arrows of the true DAG.

    Returns
    -------
    GraphComparison
        Precision, recall, F1 and structural Hamming distance of skeleton and directions.

    Examples
    --------
    >>> from fedcdh.graphs import PartialGraph
    >>> compare_graph(PartialGraph.from_dag("xy", [("x", "y")]), [("x", "y")]).direction.f1
    1.0
    """
    return compare(estimated.arrows, true_arrows, estimated.lines)


def compare_changing(estimated: Iterable[str], true: Iterable[str]) -> Score:
    """Compare the variables with a changing mechanism, estimated and true.

    Parameters
    ----------
    estimated : iterable of str
        The variables whose mechanism is estimated to differ between clients.
    true : iterable of str
        The variables whose mechanism does differ.

    Returns
    -------
    Score
        The score of the estimate.

    Examples
    --------
    >>> compare_changing(["x", "y"], ["x"]).precision
    0.5
    """
    return _score_sets(set(estimated), set(true))


def cpdag_shd(first: GraphLike, second: GraphLike) -> int:
    """Return the structural Hamming distance of two partially directed graphs.

    Parameters
    ----------
    first, second : objects with arrows and lines
        The graphs.

    Returns
    -------
    int
        The number of pairs whose marks differ: an arrow differs from a line and from its reverse.

    Examples
    --------
    >>> from fedcdh.graphs import PartialGraph, to_cpdag
    >>> dag = PartialGraph.from_dag("xy", [("x", "y")])
    >>> cpdag_shd(dag, to_cpdag(dag))
    1
    """
    return _count_differences(_edge_marks(first.arrows, first.lines), _edge_marks(second.arrows, second.lines))


def _score_sets(claimed: Set[object], true: Set[object]) -> Score:
    return Score(len(claimed & true), len(claimed), len(true), len(claimed ^ true))


def _edge_marks(arrows: Iterable[Arrow], lines: Iterable[Iterable[str]]) -> dict[Pair, Arrow | None]:
    """Return every adjacent pair with its arrow, or None for a line; pairs with the domain are left out."""
    marks: dict[Pair, Arrow | None] = {}
    for ends, arrow in [*((a, a) for a in arrows), *((tuple(line), None) for line in lines)]:
        pair = frozenset(ends)
        if len(pair) != 2:
            raise ValueError(
                f"found an edge between {', '.join(sorted(pair))}; an edge has two different ends. Correct or remove it"
            )
        if marks.get(pair, arrow) != arrow:
            raise ValueError(
                f"found two edges between {' and '.join(sorted(pair))}; a pair has one arrow or one line. Remove one"
            )
        marks[pair] = arrow
    return {pair: arrow for pair, arrow in marks.items() if DOMAIN not in pair}


def _count_differences(first: dict[Pair, Arrow | None], second: dict[Pair, Arrow | None]) -> int:
    either = first.keys() | second.keys()
    absent = ("", "")  # the arrow of no pair, and not None, which marks a line
    return sum(first.get(pair, absent) != second.get(pair, absent) for pair in either)
