"""How near an estimated graph is to the true one.

Graphs come as plain arrows (tail, head) and lines {a, b}, so that results of any program can be scored.

Conventions, so that figures can be compared with others:

- The *skeleton* forgets directions: arrows and lines count alike.
- *Directions* are scored on arrows. The paper first extends a partially directed graph to a DAG; do the same and hand
  in the arrows of that DAG. A line left over claims no direction: it costs recall, not precision.
- The structural Hamming distance (SHD) is the number of pairs whose marks differ: missing, extra and reversed count 1
  each, as in causal-dag, which the paper used. (Some programs count a reversed arrow twice.)
- F1 = 2 · correct / (claimed + true). Where nothing is true and nothing is claimed, precision, recall and F1 are 1;
  where only one of the two is empty, all three are 0.
- The domain is no variable: its arrows are left out here, and `compare_changing` scores what they say.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Protocol

from fedcdh.protocols import DOMAIN

Arrow = tuple[str, str]
Pair = frozenset[str]


class GraphLike(Protocol):
    """Anything with arrows and lines, such as the graph a search returns."""

    @property
    def arrows(self) -> Iterable[Arrow]: ...

    @property
    def lines(self) -> Iterable[Iterable[str]]: ...


@dataclass(frozen=True)
class Score:
    """How many claims were right, out of how many claims and how many truths; and the distance between the two."""

    correct: int
    claimed: int
    true: int
    shd: int

    @property
    def precision(self) -> float:
        return self._share_of(self.claimed)

    @property
    def recall(self) -> float:
        return self._share_of(self.true)

    @property
    def f1(self) -> float:
        return self._share_of((self.claimed + self.true) / 2)

    def _share_of(self, whole: float) -> float:
        if self.claimed == self.true == 0:
            return 1.0
        return self.correct / whole if whole else 0.0


@dataclass(frozen=True)
class GraphComparison:
    """The paper's two views of one graph: which variables are linked, and which way the links point."""

    skeleton: Score
    direction: Score


def compare(
    arrows: Iterable[Arrow], true_arrows: Iterable[Arrow], lines: Iterable[Iterable[str]] = ()
) -> GraphComparison:
    """Estimated arrows (and lines) against the arrows of the true DAG."""
    estimated, true = _edge_marks(arrows, lines), _edge_marks(true_arrows, ())
    claimed = set(estimated.values()) - {None}
    return GraphComparison(
        skeleton=_score_sets(set(estimated), set(true)),
        direction=Score(
            len(claimed & set(true.values())), len(claimed), len(true), _count_differences(estimated, true)
        ),
    )


def compare_graph(estimated: GraphLike, true_arrows: Iterable[Arrow]) -> GraphComparison:
    """`compare` for an object that holds its arrows and lines."""
    return compare(estimated.arrows, true_arrows, estimated.lines)


def compare_changing(estimated: Iterable[str], true: Iterable[str]) -> Score:
    """Variables said to have a changing mechanism against those that have one."""
    return _score_sets(set(estimated), set(true))


def cpdag_shd(first: GraphLike, second: GraphLike) -> int:
    """Pairs whose marks differ between two partially directed graphs: an arrow is not a line, nor its reverse."""
    return _count_differences(_edge_marks(first.arrows, first.lines), _edge_marks(second.arrows, second.lines))


def _score_sets(claimed: Set[object], true: Set[object]) -> Score:
    return Score(len(claimed & true), len(claimed), len(true), len(claimed ^ true))


def _edge_marks(arrows: Iterable[Arrow], lines: Iterable[Iterable[str]]) -> dict[Pair, Arrow | None]:
    """Every linked pair with its arrow, or None for a line; pairs with the domain are left out."""
    marks: dict[Pair, Arrow | None] = {}
    for ends, arrow in [*((a, a) for a in arrows), *((tuple(line), None) for line in lines)]:
        pair = frozenset(ends)
        if len(pair) != 2:
            raise ValueError(f"found an edge between {', '.join(sorted(pair))}; an edge has two different ends")
        if marks.get(pair, arrow) != arrow:
            raise ValueError(f"found two edges between {' and '.join(sorted(pair))}; a pair has one arrow or one line")
        marks[pair] = arrow
    return {pair: arrow for pair, arrow in marks.items() if DOMAIN not in pair}


def _count_differences(first: dict[Pair, Arrow | None], second: dict[Pair, Arrow | None]) -> int:
    either = first.keys() | second.keys()
    absent = ("", "")  # no pair's arrow, and not None, which stands for a line
    return sum(first.get(pair, absent) != second.get(pair, absent) for pair in either)
