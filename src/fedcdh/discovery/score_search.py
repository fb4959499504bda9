"""Search for the graph with the highest marginal likelihood, instead of Algorithm 1's tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from fedcdh._io.text import abbreviate_list
from fedcdh.discovery.algorithm import SearchResult, with_domain
from fedcdh.discovery.settings import Settings
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Pair, PartialGraph
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.independent_change import OperatorChange
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.inference.parent_screening import screen_parents
from fedcdh.protocols import DOMAIN, Family, LocalScore, Progress
from fedcdh.search.edge_support import edge_supports, make_dag_collider_rule, measure_directions, to_skeleton
from fedcdh.search.order_search import best_dag
from fedcdh.search.orientation import DirectionEvidence, orient_skeleton
from fedcdh.summaries.aggregation import Aggregate, Cohort

MIN_CURVATURE_LOG_BAYES = 3.0
"""Log Bayes factor from which curvature directs an edge: odds of 20 to 1. `benchmarks.bench_evidence_priors` counts how
often arrows of that strength are right."""
MIN_CHANGE_LOG_BAYES = 10.0
"""The same for mechanisms that change independently in one direction and not in the other. With few clients that is
weak evidence, so the threshold is high. The rest is left to the paper's form of the principle."""


class ScoreSearch:
    """A search for the DAG on V ∪ {℧} with the highest score, by marginal likelihood.

    Arrows of that DAG are reported where every equivalent DAG has them, or where independent change, curvature or the
    paper's form of independent change direct them.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.discovery import Settings
    >>> study = fedcdh.simulate(seed=1)
    >>> cohort = fedcdh.discover(study.columns("site"), domain="site").cohort
    >>> ScoreSearch()(cohort, Settings("evidence"), None).best.is_dag()
    True
    """

    def __call__(self, known: Cohort | Aggregate, settings: Settings, progress: Progress | None, /) -> SearchResult:
        """Return the best graph and the log Bayes factors of its edges."""
        nodes, basis, knowledge = with_domain(known), Basis.of(known), settings.knowledge
        score = FamilyScore.of(known, basis)
        candidates = screen_parents(basis, known.plan.names)
        best = best_dag(
            nodes,
            score,
            knowledge,
            candidates=candidates,
            max_parents=settings.max_conditioning_size,
            seed=settings.seed,
            progress=progress,
        ).dag
        skeleton, colliders = to_skeleton(best), make_dag_collider_rule(best)
        class_graph = orient_skeleton(skeleton, colliders, knowledge).graph  # the arrows that equivalent DAGs share
        directions = _direction_evidence(class_graph, score, score.linear, knowledge)
        change = OperatorChange(basis) if basis.has_client_scatter else None
        orientation = orient_skeleton(skeleton, colliders, knowledge, change, directions)
        weights = edge_supports(best, score, _candidate_pairs(nodes, candidates, knowledge) | best.skeleton)
        return SearchResult(skeleton, orientation, weights, best, _aggregate_limits(known))


def _direction_evidence(
    graph: PartialGraph, score: LocalScore, linear: LocalScore, knowledge: Knowledge
) -> tuple[DirectionEvidence, DirectionEvidence]:
    """Return the evidence within a class of graphs: independent change where it is clear, then curvature."""
    changing = graph.children(DOMAIN) if DOMAIN in graph.nodes else frozenset[str]()
    of_change = measure_directions(graph, linear, _zero_score, knowledge)
    both_change = {arrow: factor for arrow, factor in of_change.items() if changing.issuperset(arrow)}
    of_curvature = measure_directions(graph, score, linear, knowledge)
    return (
        DirectionEvidence(both_change, MIN_CHANGE_LOG_BAYES, "independent-change"),
        DirectionEvidence(of_curvature, MIN_CURVATURE_LOG_BAYES, "evidence"),
    )


def _zero_score(families: Sequence[Family]) -> list[float]:
    return [0.0] * len(families)


def _candidate_pairs(
    nodes: tuple[str, ...], candidates: Mapping[str, frozenset[str]] | None, knowledge: Knowledge
) -> set[Pair]:
    """Return the pairs that were scored as cause and effect."""
    if candidates is None:
        pairs = {frozenset(pair) for pair in combinations(nodes, 2)}
    else:
        pairs = {frozenset((DOMAIN, name)) for name in candidates if DOMAIN in nodes}
        pairs |= {frozenset((name, other)) for name, others in candidates.items() for other in others}
    return {pair for pair in pairs if not knowledge.excludes(pair)}


def _aggregate_limits(known: Cohort | Aggregate) -> tuple[str, ...]:
    """Return notes on what a sum over clients reveals, and on what cannot be found from it."""
    if isinstance(known, Cohort) or len(known.total.clients) == 1:
        return ()
    grouped = known.clients != known.total.clients
    whom, between = ("group of clients", "groups of clients") if grouped else ("client", "clients")
    members = "; ".join(f"{name}: {abbreviate_list(clients)}" for name, clients in known.groups)
    learned = f"anyone with these sums knows the number of rows and the means of every {whom}" + (
        f" ({members})" if grouped else ", but nothing else about a single one"
    )
    if len(known.clients) == 1:
        return (learned,)
    return (
        f"only sums over all clients are known: mechanisms whose level differs between {between} can be found, but not "
        "those whose spread or effects differ; the independent change principle is not used",
        learned,
    )
