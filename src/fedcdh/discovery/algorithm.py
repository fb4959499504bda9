"""Algorithm 1 of the paper, "FedCDH", on one page.

`algorithm_1` shows the five steps in the paper's order and with its symbols. A `ConstraintSearch` holds the choices
that the paper leaves open or that differ between our methods: the test, the measure of change, and the rules that draw
conclusions from the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fedcdh.discovery.settings import Settings
from fedcdh.errors import SettingsError
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph
from fedcdh.inference.evidence.residual_record import ResidualRecord
from fedcdh.inference.posterior.graph_posterior import GraphPosterior
from fedcdh.protocols import DOMAIN, IndependenceTest, IndependentChange, Progress
from fedcdh.search.colliders import ColliderRule
from fedcdh.search.conditioning_sets import CachedTest, with_progress
from fedcdh.search.edge_removal import RemovalRule
from fedcdh.search.edge_support import EdgeSupport
from fedcdh.search.orientation import (
    Orientation,
    orient_by_independent_change,
    orient_by_knowledge,
    orient_by_meek_rules,
    orient_colliders,
    orient_domain_edges,
    record_open_demands,
)
from fedcdh.search.skeleton import MAX_BATCH_QUERIES, Skeleton, SkeletonRules, find_skeleton
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.joint import Spent


@dataclass(frozen=True)
class SearchResult:
    """The adjacencies and directions that a search found, with their evidence.

    Attributes
    ----------
    skeleton : Skeleton
        The adjacent pairs, and the answers that decided about each pair.
    orientation : Orientation
        The graph with its arrows, and the reason of each arrow.
    supports : mapping from pair to EdgeSupport
        Log Bayes factors for or against each edge; empty for searches by tests.
    best : PartialGraph, optional
        The DAG with the highest score. `Discovery.to_dag` follows it where the class leaves a direction open.
    notes : tuple of str
        Sentences for the reader of the result.
    spent : Spent, optional
        The adaptive rounds that were used, and the bytes that they took.
    residuals : ResidualRecord, optional
        What the clients answered about residuals.
    climbed : PartialGraph, optional
        The DAG with the highest evidence under noise of any shape.
    posterior : GraphPosterior, optional
        Probabilities of arrows; None for searches by tests, which have none.
    strengths : mapping from (str, str) to float
        Share of variance that each arrow explains; also of edges that were left out because it is too small.
    assumed : frozenset of (str, str)
        Directions of lines that no data can decide. `Discovery.to_dag` takes them.

    Examples
    --------
    >>> from fedcdh import discover, simulate
    >>> result = discover(simulate(seed=1).columns("site"), domain="site").search_result
    >>> result.best.is_dag()
    True
    """

    skeleton: Skeleton
    orientation: Orientation
    supports: Mapping[Pair, EdgeSupport] = field(default_factory=dict)
    best: PartialGraph | None = None
    notes: tuple[str, ...] = ()
    spent: Spent | None = None
    residuals: ResidualRecord | None = None
    climbed: PartialGraph | None = None
    posterior: GraphPosterior | None = None
    strengths: Mapping[Arrow, float] = field(default_factory=dict)
    assumed: frozenset[Arrow] = frozenset()


class Search(Protocol):
    """A search for the graph of the clients whose summaries are known."""

    def __call__(self, known: Cohort | Aggregate, settings: Settings, progress: Progress | None, /) -> SearchResult:
        """Return the graph, and the evidence for it."""
        ...


@dataclass(frozen=True)
class ConstraintSearch:
    """The choices of a search by conditional independence tests; calling it runs `algorithm_1`.

    Attributes
    ----------
    statistics : callable
        Makes the independence test and the measure of change from the summaries and the settings. Without a measure of
        change, step 5 is left out.
    colliders : callable
        Makes the rule that decides which triples collide, from the test.
    removal : RemovalRule
        Decides which of the separations of a level remove their edge.
    always_given : frozenset of str
        Nodes that are part of every conditioning set. Only roots such as the domain may be named.
    needs_clients : bool
        Whether the summary of each client has to be known, not only their sum.
    notes : callable, optional
        Returns sentences for the reader of the result, given what is known and the test after the search.
    spent : callable, optional
        Returns the adaptive rounds that the test used.
    max_batch_queries : int
        The largest number of queries that the test gets at once.
    uses_mixtures : bool
        Whether the test of the domain can use mixtures of the clients, where a sum has these and no means of each.

    Examples
    --------
    >>> from fedcdh.discovery import METHODS
    >>> METHODS["constraint"].search.always_given
    frozenset({'__domain__'})
    """

    statistics: Callable[[Cohort | Aggregate, Settings], tuple[IndependenceTest, IndependentChange | None]]
    colliders: Callable[[IndependenceTest], ColliderRule]
    removal: RemovalRule
    always_given: frozenset[str]
    needs_clients: bool = False
    notes: Callable[[Cohort | Aggregate, IndependenceTest], tuple[str, ...]] | None = None
    spent: Callable[[IndependenceTest], Spent | None] | None = None
    max_batch_queries: int = MAX_BATCH_QUERIES
    uses_mixtures: bool = False

    def __call__(self, known: Cohort | Aggregate, settings: Settings, progress: Progress | None, /) -> SearchResult:
        """Run `algorithm_1` with these choices."""
        if self.needs_clients and isinstance(known, Aggregate):
            raise SettingsError(
                f"only the sum of the clients' summaries is known; expected the summary of every client, since rounds "
                f"{settings.rounds!r} ask single clients for joint features; choose rounds 'residuals' or 'one'",
                parameter="rounds",
            )
        return algorithm_1(known, self, settings, progress)


def algorithm_1(
    known: Cohort | Aggregate, choice: ConstraintSearch, settings: Settings, progress: Progress | None = None
) -> SearchResult:
    """Run the server's part of Algorithm 1, steps 2 to 5; each client has done step 1.

    Parameters
    ----------
    known : Cohort or Aggregate
        The clients' summaries: step 1 of the algorithm, done by `fedcdh.summarize` at each client k, gave n_k and C_k.
    choice : ConstraintSearch
        The test, the measure of change, and the rules.
    settings : Settings
        Significance level, background knowledge and limits.
    progress : callable, optional
        Called before each batch with (size of the conditioning sets, number of queries).

    Returns
    -------
    SearchResult
        The skeleton, the oriented graph G, and the answers behind them.

    References
    ----------
    Li et al., "Federated Causal Discovery from Heterogeneous Data", ICLR 2024, Algorithm 1.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.discovery import METHODS, Settings
    >>> tables = fedcdh.demo.hospital_study().tables
    >>> plan = fedcdh.StudyPlan.from_tables(tables)
    >>> cohort = fedcdh.add_up([fedcdh.summarize(table, plan, client) for client, table in tables.items()], plan)
    >>> result = algorithm_1(cohort, METHODS["constraint"].search, Settings("constraint"))
    >>> ("smoker", "cholesterol") in result.orientation.graph.arrows
    True
    """
    knowledge = settings.knowledge
    # Step 2, summary statistics: n = Σ_k n_k and C = Σ_k C_k, of which every statistic below is a function.
    test, change = choice.statistics(known, settings)
    answers = CachedTest(test)
    # Step 3, augmented graph: G_0 joins all pairs of V ∪ {℧}.
    nodes = with_domain(known, mixtures=choice.uses_mixtures)
    # Step 4, FCIT: remove a — b where a ⫫ b | S for some S ...
    skeleton = find_skeleton(
        nodes,
        answers,
        settings.alpha,
        knowledge,
        settings.max_conditioning_size,
        progress,
        SkeletonRules(choice.always_given & {*nodes}, choice.removal, choice.max_batch_queries),
    )
    # ... then direct edges with one changing module: ℧ → V, colliders, and what follows from them. This is G_1.
    decide = choice.colliders(with_progress(answers, progress, len(skeleton.queries_per_level)))
    oriented = orient_domain_edges(Orientation(skeleton.graph))
    oriented = orient_by_knowledge(oriented, knowledge)
    oriented = orient_colliders(oriented, decide(skeleton, knowledge), knowledge)
    oriented = orient_by_meek_rules(oriented, knowledge)
    # Step 5, FICP: direct edges between two changing modules from the smaller Δ. This is G.
    if change is not None:
        oriented = orient_by_independent_change(oriented, change, knowledge)
    oriented = record_open_demands(oriented, knowledge)
    notes = choice.notes(known, test) if choice.notes else ()
    return SearchResult(skeleton, oriented, notes=notes, spent=choice.spent(test) if choice.spent else None)


def with_domain(known: Cohort | Aggregate, *, mixtures: bool = False) -> tuple[str, ...]:
    """Return V ∪ {℧}: the variables and, if clients are compared, one by one or by mixtures, the domain."""
    mixed = mixtures and isinstance(known, Aggregate) and known.mixtures is not None
    return (DOMAIN, *known.plan.names) if len(known.clients) > 1 or mixed else known.plan.names
