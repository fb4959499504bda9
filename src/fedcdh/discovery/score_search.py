"""Search for the graph with the highest marginal likelihood, instead of Algorithm 1's tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

from fedcdh.discovery.algorithm import Search, SearchResult, with_domain
from fedcdh.discovery.dependent_changes import describe_opened_pairs, find_dependent_changes
from fedcdh.discovery.direction_evidence import change_evidence, residual_evidence, residuals_direct
from fedcdh.discovery.graph_probabilities import (
    BestGraphs,
    compute_posterior,
    describe_posterior,
    describe_small_edges,
    direct_lines,
    draw_likely_graph,
)
from fedcdh.discovery.one_message import combine_by_vote, describe_open_directions
from fedcdh.discovery.residual_rounds import (
    ResidualGraph,
    find_residual_graph,
    residual_supports,
)
from fedcdh.discovery.settings import Settings, default_alpha
from fedcdh.discovery.sums_text import describe_learned, describe_unused_mixtures
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph
from fedcdh.inference.counted_rows import common_shares
from fedcdh.inference.effect_sizes import find_weak_arrows, measure_strengths, shows_at_clients, smallest_strengths
from fedcdh.inference.evidence.family_score import FamilyScore
from fedcdh.inference.evidence.residual_score import ResidualScore
from fedcdh.inference.evidence.tempered_scores import MIN_INDEPENDENT_SHARE
from fedcdh.inference.independent_change import OperatorChange
from fedcdh.inference.normal_scores import find_normal_scores
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.inference.parent_screening import screen_parents
from fedcdh.inference.posterior.graph_posterior import GraphPosterior
from fedcdh.protocols import DOMAIN, Family, LocalScore, Progress
from fedcdh.search.edge_support import (
    EdgeSupport,
    edge_supports,
    make_dag_collider_rule,
    to_skeleton,
)
from fedcdh.search.order_search import best_dag
from fedcdh.search.orientation import Orientation, orient_skeleton
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.joint import AnswerSource
from fedcdh.summaries.variables import Continuous

VOTE_RELIABILITY, VOTE_WEIGHT = 0.95, 0.6
"""Share of the arrows of the vote that are right, and its weight beside the posterior, where one message is all."""


@dataclass(frozen=True)
class ScoreSearch:
    """A search for the DAG on V ∪ {℧} with the highest score, by marginal likelihood.

    Arrows of that DAG are reported where every equivalent DAG has them, or where the noise, curvature or independent
    change direct them.

    Attributes
    ----------
    source : AnswerSource, optional
        Asks the clients about residuals. Without it, the summaries are all that is known.
    tests : Search, optional
        A search by tests, which has to agree with directions where residuals are not known.
    start : PartialGraph, optional
        A further DAG from which the search under noise of any shape may start.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.discovery import Settings
    >>> study = fedcdh.simulate(seed=1)
    >>> cohort = fedcdh.discover(study.columns("site"), domain="site").cohort
    >>> ScoreSearch()(cohort, Settings("evidence"), None).best.is_dag()
    True
    """

    source: AnswerSource | None = None
    tests: Search | None = None
    start: PartialGraph | None = None

    def __call__(self, known: Cohort | Aggregate, settings: Settings, progress: Progress | None, /) -> SearchResult:
        """Return the best graph and the log Bayes factors of its edges."""
        study = _ScoredStudy(known, settings, progress)
        curved = study.best_dag(study.score)
        if not study.has_numbers:
            return study.conclude(curved)
        linear = study.best_dag(study.score.linear)
        if self.source is None:
            return study.conclude_by_vote(curved, linear, self.tests)
        score = ResidualScore(known, study.basis, study.score, self.source)
        starts = [linear, curved]
        if self.start is not None:
            starts.append(
                self.start if DOMAIN in study.nodes or DOMAIN not in self.start.nodes else self.start.drop(DOMAIN)
            )
        found = find_residual_graph(starts, score, settings)
        return study.conclude_residuals(found, score, curved)


@dataclass(frozen=True, eq=False)
class _ScoredStudy:
    """The scores of a study, and the conclusions from its best graph."""

    known: Cohort | Aggregate
    settings: Settings
    progress: Progress | None
    families_scored: list[int] = field(default_factory=lambda: [0])

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        return with_domain(self.known)

    @cached_property
    def basis(self) -> Basis:
        return Basis.of(self.known)

    @cached_property
    def score(self) -> FamilyScore:
        return FamilyScore.of(self.known, self.basis)

    @cached_property
    def candidates(self) -> Mapping[str, frozenset[str]] | None:
        return screen_parents(self.basis, self.known.plan.names)

    def best_dag(self, score: LocalScore) -> PartialGraph:
        """Return the DAG with the highest score; progress counts the families of all searches."""
        done = self.families_scored[0]

        def progress(before: int, new: int) -> None:
            self.families_scored[0] = done + before + new
            if self.progress is not None:
                self.progress(done + before, new)

        return best_dag(
            self.nodes,
            score,
            self.settings.knowledge,
            candidates=self.candidates,
            max_parents=self.settings.max_conditioning_size,
            seed=self.settings.seed,
            progress=progress,
        ).dag

    @cached_property
    def has_numbers(self) -> bool:
        """Return whether some variable is continuous: labels have neither noise nor curvature."""
        return any(isinstance(variable, Continuous) for variable in self.known.plan.variables)

    def conclude(self, best: PartialGraph) -> SearchResult:
        """Return the result for labels only, whose one message says all."""
        graphs = BestGraphs(best, (), best, self._supports(best))
        return self._draw(graphs, self._orient(best), None)

    def conclude_by_vote(self, curved: PartialGraph, linear: PartialGraph, tests: Search | None) -> SearchResult:
        """Return the result of one message: what the best graphs and the tests agree on."""
        by_tests = None
        if tests is not None and isinstance(self.known, Cohort):
            by_tests = tests(self.known, self._test_settings(), self.progress).orientation
        orientation = combine_by_vote(self._orient(curved), self._orient(linear), by_tests, self.settings.knowledge)
        graphs = BestGraphs(curved, (linear,), curved, self._supports(curved))
        found = self._draw(graphs, orientation, None)
        drawn = found.orientation.graph
        graph = drawn.drop(DOMAIN) if DOMAIN in drawn.nodes else drawn
        open_ones = describe_open_directions(graph, sorted(find_normal_scores(self.known)))
        return replace(found, notes=(*found.notes, *open_ones))

    def _test_settings(self) -> Settings:
        """Return the settings of the tests that vote."""
        return replace(
            self.settings, method="constraint", alpha=default_alpha("constraint", len(self.known.plan.names))
        )

    def _orient(self, best: PartialGraph) -> Orientation:
        """Direct the edges of the best graph, as far as its class and independent change do.

        Curvature directs nothing here: skewed noise bends the regression in the wrong direction.
        """
        skeleton, colliders, knowledge = to_skeleton(best), make_dag_collider_rule(best), self.settings.knowledge
        class_graph = orient_skeleton(skeleton, colliders, knowledge).graph  # the arrows that equivalent DAGs share
        directions = (change_evidence(class_graph, self.score.linear, knowledge),)
        change = OperatorChange(self.basis) if self.basis.has_client_scatter else None
        return orient_skeleton(skeleton, colliders, knowledge, change, directions)

    def conclude_residuals(self, found: ResidualGraph, score: ResidualScore, gaussian: PartialGraph) -> SearchResult:
        """Return the result of all messages; a DAG of it follows the best graph of the summaries in open lines.

        Where residuals say too little to direct a line, what they say is chance, and the summaries say a little more.
        """
        best, knowledge = found.best, self.settings.knowledge
        skeleton, colliders = to_skeleton(best), make_dag_collider_rule(best)
        class_graph = orient_skeleton(skeleton, colliders, knowledge).graph
        directions = (
            change_evidence(class_graph, self.score.linear, knowledge),
            *residual_evidence(class_graph, score, knowledge),
        )
        change = OperatorChange(self.basis) if self.basis.has_client_scatter else None
        orientation = orient_skeleton(skeleton, colliders, knowledge, change, directions)
        supports = self._supports(best) | residual_supports(found, score)
        drawn = self._draw(BestGraphs(best, (gaussian,), gaussian, supports), orientation, score)
        return replace(drawn, residuals=score.record, climbed=best)

    def _draw(self, graphs: BestGraphs, orientation: Orientation, score: ResidualScore | None) -> SearchResult:
        """Return the graph of what is likely and large enough, with all probabilities."""
        settings, left_out = self.settings, dict[Arrow, float]()
        while True:
            knowledge = settings.knowledge.forbid_pairs(left_out)
            posterior = compute_posterior(
                graphs,
                self.score,
                score,
                knowledge,
                max_parents=settings.max_conditioning_size,
                seed=settings.seed,
            )
            if score is None and self.has_numbers:
                posterior = posterior.with_witness(orientation.graph, VOTE_RELIABILITY, VOTE_WEIGHT)
            posterior, drawn, opened = self._draw_likely(posterior, orientation, knowledge, score)
            guide = direct_lines(orientation.graph, graphs.guide, settings.knowledge, posterior.arrows)
            dag = direct_lines(drawn.graph, guide, knowledge, posterior.arrows)
            required = settings.knowledge.required
            weak = find_weak_arrows(dag, settings.min_effect, self._measure_strengths, required, self._shows)
            if not weak:
                break
            left_out |= weak
            graphs = graphs.without_edges(weak)
            if score is not None:  # the search had no reason to ask about families without these edges
                score([Family(node, graphs.best.parents(node)) for node in graphs.best.nodes if node != DOMAIN])
        asked = () if score is None else (str(score.record),)
        doubts = (*describe_small_edges(left_out, settings.min_effect), *describe_opened_pairs(opened))
        notes = (*_aggregate_limits(self.known), *asked, *describe_posterior(posterior), *doubts)
        best, strengths = dag if dag.is_dag() else graphs.best, measure_strengths(dag, self.basis)
        skeleton = to_skeleton(PartialGraph(drawn.graph.nodes, lines=drawn.graph.skeleton))
        return SearchResult(
            skeleton, drawn, graphs.supports, best, notes, posterior=posterior, strengths=strengths | left_out
        )

    def _draw_likely(
        self,
        posterior: GraphPosterior,
        orientation: Orientation,
        knowledge: Knowledge,
        score: ResidualScore | None,
    ) -> tuple[GraphPosterior, Orientation, tuple[Arrow, ...]]:
        """Return the posterior, what is likely, and the arrows opened because their changes are not independent."""
        limits = self.settings.min_probability, self.settings.min_arrow_probability
        drawn = draw_likely_graph(posterior, orientation, knowledge, *limits)
        dependent = find_dependent_changes(self.known, drawn.graph, drawn.reasons)
        opened = tuple(one for one in dependent if score is None or not residuals_direct(one, drawn.graph, score))
        if opened:
            posterior = posterior.with_open_pairs(
                {frozenset(one): posterior.probability_of_edge(*one) for one in opened}
            )
            drawn = draw_likely_graph(posterior, orientation, knowledge, *limits)
        return posterior, drawn, opened

    def _measure_strengths(self, dag: PartialGraph) -> dict[Arrow, float]:
        """Return the strengths of arrows; where rows depend on each other, effects may take time: the smallest ones."""
        return (smallest_strengths if self._has_dependent_rows else measure_strengths)(dag, self.basis)

    def _shows(self, dag: PartialGraph, arrow: Arrow) -> bool:
        """Return whether an arrow shows at nearly all clients; where rows depend on each other, false ones do, too."""
        return not self._has_dependent_rows and shows_at_clients(dag, self.basis, arrow)

    @property
    def _has_dependent_rows(self) -> bool:
        return common_shares(self.known.plan).product < MIN_INDEPENDENT_SHARE

    def _supports(self, best: PartialGraph) -> dict[Pair, EdgeSupport]:
        pairs = _candidate_pairs(self.nodes, self.candidates, self.settings.knowledge)
        return edge_supports(best, self.score, pairs | best.skeleton)


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
    if known.mixtures is not None:
        return (*describe_unused_mixtures(known), describe_learned(known))
    learned, grouped = describe_learned(known), known.clients != known.total.clients
    if len(known.clients) == 1:
        return (learned,)
    between = "groups of clients" if grouped else "clients"
    return (
        f"only sums over all clients are known: mechanisms whose level or mean square differs between {between} can be "
        "found, but not whether effects or noise changed; the independent change principle is not used",
        learned,
    )
