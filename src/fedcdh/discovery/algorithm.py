"""Algorithm 1 of the paper, server side, on one screen; and the same answer sought by evidence instead of tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from fedcdh._io.text import abbreviate_list
from fedcdh.discovery.settings import Settings
from fedcdh.errors import SettingsError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Pair, PartialGraph
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.independent_change import OperatorChange
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.inference.parent_screening import screen_parents
from fedcdh.protocols import DOMAIN, Family, IndependenceTest, IndependentChange, LocalScore, Progress
from fedcdh.search.colliders import ColliderRule
from fedcdh.search.conditioning_sets import CachedTest, with_progress
from fedcdh.search.edge_removal import RemovalRule
from fedcdh.search.edge_support import (
    EdgeSupport,
    edge_supports,
    make_dag_collider_rule,
    measure_directions,
    to_skeleton,
)
from fedcdh.search.order_search import best_dag
from fedcdh.search.orientation import DirectionEvidence, Orientation, orient_skeleton
from fedcdh.search.skeleton import MAX_BATCH_QUERIES, Skeleton, SkeletonRules, find_skeleton
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.joint import Spent

MIN_CURVATURE_LOG_BAYES = 3.0
"""Log Bayes factor from which curvature directs an edge: odds of 20 to 1. `benchmarks.bench_evidence` counts how
often arrows of that strength are right."""
MIN_CHANGE_LOG_BAYES = 10.0
"""The same for mechanisms that change independently in one direction and not in the other. With few clients that is
weak evidence, so it has to be clear; what stays open is left to the form of the principle in the paper."""


@dataclass(frozen=True)
class SearchResult:
    """What a search hands over: adjacencies, directions and, where evidence was weighed, how much of it there is."""

    skeleton: Skeleton
    orientation: Orientation
    supports: Mapping[Pair, EdgeSupport] = field(default_factory=dict)
    best: PartialGraph | None = None
    """The DAG with the highest evidence; `Discovery.to_dag` directs by it what the class leaves open."""
    notes: tuple[str, ...] = ()
    spent: Spent | None = None
    """What further rounds of questions to the clients took, where there were any."""


@dataclass(frozen=True)
class ConstraintSearch:
    """Algorithm 1: conditional independence tests, then rules, then the independent change principle."""

    statistics: Callable[[Cohort, Settings], tuple[IndependenceTest, IndependentChange]]
    colliders: Callable[[IndependenceTest], ColliderRule]
    removal: RemovalRule
    always_given: frozenset[str]
    spent: Callable[[IndependenceTest], Spent | None] = lambda test: None  # in further rounds, where there are any
    at_once: int = MAX_BATCH_QUERIES  # questions

    def __call__(self, known: Cohort | Aggregate, settings: Settings, progress: Progress | None) -> SearchResult:
        if isinstance(known, Aggregate):
            raise SettingsError(
                f"method {settings.method!r} needs the summary of every client, but only their sum is known; use "
                "method='evidence', which says what it has to leave out"
            )
        answers, change = self.statistics(known, settings)
        return self.search(with_domain(known), answers, change, settings, progress)  # step 3: V ∪ {℧}

    def search(
        self,
        nodes: tuple[str, ...],
        answers: IndependenceTest,
        change: IndependentChange | None,
        settings: Settings,
        progress: Progress | None,
    ) -> SearchResult:
        """The same with a test and a measure of change that are there already."""
        test, always = CachedTest(answers), self.always_given & {*nodes}
        skeleton = find_skeleton(  # step 4: FCIT
            nodes,
            test,
            settings.alpha,
            settings.knowledge,
            settings.max_conditioning_size,
            progress,
            SkeletonRules(always, self.removal, self.at_once),
        )
        colliders = self.colliders(with_progress(test, progress, len(skeleton.queries_per_level)))
        orientation = orient_skeleton(skeleton, colliders, settings.knowledge, change)  # steps 4 and 5: FICP
        spent = self.spent(answers)
        return SearchResult(skeleton, orientation, notes=(str(spent),) if spent else (), spent=spent)


def by_evidence(known: Cohort | Aggregate, settings: Settings, progress: Progress | None) -> SearchResult:
    """The DAG with the highest evidence on V ∪ {℧}, and of its arrows those that the evidence tells for sure."""
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
    skeleton = to_skeleton(best)
    class_only = orient_skeleton(
        skeleton, make_dag_collider_rule(best), knowledge
    ).graph  # what all DAGs like the best one share
    directions = _direction_evidence(class_only, score, score.linear, knowledge)
    change = OperatorChange(basis) if basis.has_client_scatter else None
    orientation = orient_skeleton(skeleton, make_dag_collider_rule(best), knowledge, change, directions)
    weights = edge_supports(best, score, _candidate_pairs(nodes, candidates, knowledge) | best.skeleton)
    return SearchResult(skeleton, orientation, weights, best, _aggregate_limits(known))


def _direction_evidence(
    graph: PartialGraph, score: LocalScore, straight: LocalScore, knowledge: Knowledge
) -> tuple[DirectionEvidence, DirectionEvidence]:
    """What tells the members of a class apart: independent change where it is clear, then curvature."""
    changing = graph.children(DOMAIN) if DOMAIN in graph.nodes else frozenset[str]()
    moving = measure_directions(graph, straight, _zero_score, knowledge)
    both = {arrow: factor for arrow, factor in moving.items() if changing.issuperset(arrow)}
    curved = measure_directions(graph, score, straight, knowledge)
    return DirectionEvidence(both, MIN_CHANGE_LOG_BAYES, "independent-change"), DirectionEvidence(
        curved, MIN_CURVATURE_LOG_BAYES, "evidence"
    )


def _zero_score(families: Sequence[Family]) -> list[float]:
    return [0.0] * len(families)


def with_domain(known: Cohort | Aggregate) -> tuple[str, ...]:
    """The variables and, where there is more than one client, the domain."""
    return (DOMAIN, *known.plan.names) if len(known.clients) > 1 else known.plan.names


def _candidate_pairs(
    nodes: tuple[str, ...], candidates: Mapping[str, frozenset[str]] | None, knowledge: Knowledge
) -> set[Pair]:
    """The pairs that were weighed as cause and effect."""
    if candidates is None:
        pairs = {frozenset(pair) for pair in combinations(nodes, 2)}
    else:
        pairs = {frozenset((DOMAIN, name)) for name in candidates if DOMAIN in nodes}
        pairs |= {frozenset((name, other)) for name, others in candidates.items() for other in others}
    return {pair for pair in pairs if not knowledge.excludes(pair)}


def _aggregate_limits(known: Cohort | Aggregate) -> tuple[str, ...]:
    if isinstance(known, Cohort) or len(known.total.clients) == 1:
        return ()
    grouped = known.clients != known.total.clients
    whom, between = ("group of clients", "groups of clients") if grouped else ("client", "clients")
    members = "; ".join(f"{name}: {abbreviate_list(clients)}" for name, clients in known.groups)
    learned = f"whoever has these sums knows the number of rows and the means of every {whom}" + (
        f" ({members})" if grouped else ", though nothing else of a single one"
    )
    if len(known.clients) == 1:
        return (learned,)
    return (
        f"only sums over all clients are known: of mechanisms that differ between {between}, those whose level differs "
        "can be found, not those whose spread or effects do; nor is the independent change principle asked",
        learned,
    )
