"""Statements of a result about pairs and mechanisms, beside the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from benchmarks.probabilities.cells import Arrow, Study
from fedcdh import DOMAIN
from fedcdh.graphs.partial_graph import PartialGraph

MIN_PRESENCE = 0.5
"""A direction is asked for where an edge is at least as likely as none."""
DRAWN = ("right", "reversed", "no edge")
KINDS = ("presence", "direction", "change", "arrow")


class Statement(NamedTuple):
    """A probability, and whether the thing is so."""

    said: float
    true: bool


class SaidEdge(Protocol):
    """The fields of `fedcdh.Edge` that are read."""

    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def probability(self) -> float | None: ...
    @property
    def probability_forward(self) -> float | None: ...


@dataclass(frozen=True)
class Statements:
    """Everything that one or several results say.

    Attributes
    ----------
    presence : list of Statement
        One for every pair of variables: the two are adjacent.
    direction : list of Statement
        One for every pair that is truly adjacent and said to be: the likelier direction, given the edge.
    change : list of Statement
        One for every variable whose truth is known: its mechanism differs between clients.
    arrow : list of Statement
        Two for every pair of variables: this arrow is there.
    drawn : Counter
        Arrows drawn that are right, reversed or no edge; lines, of which false lines; missed edges.
    """

    presence: list[Statement] = field(default_factory=list)
    direction: list[Statement] = field(default_factory=list)
    change: list[Statement] = field(default_factory=list)
    arrow: list[Statement] = field(default_factory=list)
    drawn: Counter[str] = field(default_factory=Counter)

    def of(self, kind: str) -> list[Statement]:
        found: list[Statement] = getattr(self, kind)
        return found


def add_up(several: Iterable[Statements]) -> Statements:
    """Return the statements of several results as one."""
    total = Statements()
    for one in several:
        for kind in KINDS:
            total.of(kind).extend(one.of(kind))
        total.drawn.update(one.drawn)
    return total


def read_result(result: Any, study: Study) -> Statements:
    """Return what a result of `fedcdh.discover` says about a study."""
    edges = [edge for edge in result.edges() if DOMAIN not in (edge.source, edge.target)]
    change = [
        Statement(said, study.changes[name])
        for name, said in result.probability_of_change.items()
        if name in study.changes
    ]
    return Statements(
        presence_statements(edges, study.arrows),
        direction_statements(edges, study.arrows),
        change,
        arrow_statements(edges, study.arrows),
        count_drawn(result.graph, study.arrows),
    )


def presence_statements(edges: Iterable[SaidEdge], truth: frozenset[Arrow]) -> list[Statement]:
    """Return one statement for every pair that has a probability."""
    pairs = {frozenset(arrow) for arrow in truth}
    return [
        Statement(edge.probability, frozenset((edge.source, edge.target)) in pairs)
        for edge in edges
        if edge.probability is not None
    ]


def direction_statements(edges: Iterable[SaidEdge], truth: frozenset[Arrow]) -> list[Statement]:
    """Return the likelier direction of every pair that is adjacent, and said to be."""
    found = []
    for edge, forward, backward in _two_directions(edges):
        arrow = (edge.source, edge.target)
        if forward + backward < MIN_PRESENCE or not {arrow, arrow[::-1]} & truth:
            continue
        likelier = arrow if forward >= backward else arrow[::-1]
        found.append(Statement(max(forward, backward) / (forward + backward), likelier in truth))
    return found


def arrow_statements(edges: Iterable[SaidEdge], truth: frozenset[Arrow]) -> list[Statement]:
    """Return one statement for both arrows of every pair."""
    found = []
    for edge, forward, backward in _two_directions(edges):
        found.append(Statement(forward, (edge.source, edge.target) in truth))
        found.append(Statement(backward, (edge.target, edge.source) in truth))
    return found


def _two_directions(edges: Iterable[SaidEdge]) -> Iterable[tuple[SaidEdge, float, float]]:
    for edge in edges:
        if edge.probability is not None and edge.probability_forward is not None:
            yield edge, edge.probability_forward, max(0.0, edge.probability - edge.probability_forward)


def count_drawn(graph: PartialGraph, truth: frozenset[Arrow]) -> Counter[str]:
    """Count arrows that are right, reversed or no edge, lines, and missed edges.

    Between two variables that cause each other, both directions are right.
    """
    pairs = {frozenset(arrow) for arrow in truth}
    counts = Counter(
        "right" if arrow in truth else "reversed" if arrow[::-1] in truth else "no edge" for arrow in graph.arrows
    )
    counts["lines"] = len(graph.lines)
    counts["false lines"] = sum(line not in pairs for line in graph.lines)
    counts["missed"] = len(pairs - {frozenset(arrow) for arrow in graph.arrows} - graph.lines)
    return counts


def share_right(drawn: Counter[str]) -> float:
    """Return the share of drawn arrows that are right; nan without any arrow."""
    total = sum(drawn[outcome] for outcome in DRAWN)
    return drawn["right"] / total if total else float("nan")
