"""Directions from the residuals of regressions, about which the clients are asked.

Two graphs are found from the summaries: the best one with linear mechanisms, and the best one with nonlinear ones.
Their edges together are the pairs that may be adjacent. From both graphs, a search by single edges climbs to the graph
with the highest evidence under noise of any shape. It asks the clients about the families of the best graph so far, and
of its neighbours that may be better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

from fedcdh.discovery.algorithm import Search, SearchResult
from fedcdh.discovery.direction_evidence import residual_evidence
from fedcdh.discovery.settings import Settings
from fedcdh.graphs.partial_graph import Pair, PartialGraph
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.evidence.residual_score import ResidualScore
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import Progress
from fedcdh.search.edge_support import EdgeSupport, edge_supports
from fedcdh.search.hill_climbing import climb
from fedcdh.search.orientation import orient_by_evidence
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.joint import AnswerSource

MAX_STEPS = 12
"""Largest number of requests of the search by single edges, after the first."""
MIN_REACH, REACH_PER_ROW = 120.0, 0.12
"""A neighbour is asked about unless its evidence is expected to be lower by more than this: the noise may add as much,
and the more, the more rows there are. At 1000 rows, 1 % more arrows are reversed with 60; with 200, a fifth more sums
are asked for."""
FEW_ROUNDS = 2
"""Up to this number of rounds in the plan, the first request is about the neighbours of both graphs as well."""


@dataclass(frozen=True)
class ResidualGraph:
    """The graph with the highest evidence under noise of any shape.

    Attributes
    ----------
    best : PartialGraph
        The DAG.
    pairs : frozenset of frozenset of str
        The pairs that could be adjacent.
    """

    best: PartialGraph
    pairs: frozenset[Pair]


def find_residual_graph(starts: Sequence[PartialGraph], score: ResidualScore, settings: Settings) -> ResidualGraph:
    """Climb from the best linear and the best nonlinear graph to the best graph under noise of any shape."""
    pairs = frozenset[Pair]().union(*(start.skeleton for start in starts))
    end = climb(
        starts,
        score,
        pairs,
        settings.knowledge,
        max_parents=settings.max_conditioning_size,
        max_steps=MAX_STEPS,
        reach=max(MIN_REACH, REACH_PER_ROW * score.known.total.rows),
        neighbours_first=score.known.plan.max_rounds <= FEW_ROUNDS,
    )
    return ResidualGraph(end.dag, pairs)


def residual_supports(found: ResidualGraph, score: ResidualScore) -> dict[Pair, EdgeSupport]:
    """Return how much the evidence depends on each pair that could be adjacent; nothing new is asked."""
    supports = edge_supports(found.best, score.known_only, found.pairs)
    return {pair: _finite_direction(one) for pair, one in supports.items() if isfinite(one.presence)}


def _finite_direction(support: EdgeSupport) -> EdgeSupport:
    """Return the support without a direction about which nobody was asked."""
    known = support.direction is not None and isfinite(support.direction)
    return support if known else EdgeSupport(support.presence, None)


@dataclass(frozen=True)
class ResidualDirections:
    """A search by tests whose open lines are directed by residuals, about which the clients are asked.

    Attributes
    ----------
    search : Search
        The search by tests.
    source : AnswerSource
        Asks the clients.

    Examples
    --------
    >>> import fedcdh
    >>> study = fedcdh.simulate(seed=1)
    >>> result = fedcdh.discover(study.columns("site"), domain="site", method="constraint", rounds="residuals")
    >>> result.settings.rounds
    'residuals'
    """

    search: Search
    source: AnswerSource

    def __call__(self, known: Cohort | Aggregate, settings: Settings, progress: Progress | None, /) -> SearchResult:
        """Return the graph of the tests, with further arrows."""
        found = self.search(known, settings, progress)
        basis = Basis.of(known)
        score = ResidualScore(known, basis, FamilyScore.of(known, basis), self.source)
        oriented = found.orientation
        for kind in residual_evidence(oriented.graph, score, settings.knowledge):
            oriented = orient_by_evidence(oriented, kind, settings.knowledge)
        record = score.record
        notes = (*found.notes, str(record)) if record.rounds else found.notes
        return replace(found, orientation=oriented, notes=notes, residuals=record)
