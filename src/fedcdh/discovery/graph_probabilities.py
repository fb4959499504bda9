"""Probabilities of edges, directions and changes, and the graph of those that are likely enough.

`compute_posterior` lists families about the best graphs, weighs them by their scores (`evidence.tempered_scores`), and
returns the posterior over DAGs. `draw_likely_graph` draws what exceeds a stated probability.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from fedcdh._io.text import abbreviate_list
from fedcdh._runtime.array_types import Array
from fedcdh.graphs.admissible_arrows import find_obstacles
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph, sort_pair
from fedcdh.inference.counted_rows import common_shares
from fedcdh.inference.effect_sizes import SHOWN_SHARE
from fedcdh.inference.evidence.client_deviations import ClientDeviations, draw_client_weights, measure_deviations
from fedcdh.inference.evidence.family_score import LOG_PRIOR_CHANGE, FamilyScore
from fedcdh.inference.evidence.residual_score import ResidualScore
from fedcdh.inference.evidence.tempered_scores import (
    CAUTIOUS_POWERS,
    MAX_COARSE_SHARE,
    MEASURED_POWERS,
    MIN_DIRECTING_CLIENTS,
    MIN_INDEPENDENT_SHARE,
    RESIDUAL_POWERS,
    SUMMARY_POWERS,
    Power,
    ScoredFamilies,
    add_changed_families,
    complete_scores,
    parameter_costs,
    undirected_gains,
)
from fedcdh.inference.posterior.exact_posterior import MAX_EXACT_VARIABLES
from fedcdh.inference.posterior.family_table import FamilyTable
from fedcdh.inference.posterior.graph_posterior import GraphPosterior
from fedcdh.protocols import DOMAIN, Family
from fedcdh.search.edge_support import EdgeSupport
from fedcdh.search.orientation import Orientation, Reason
from fedcdh.search.parent_sets import ParentSpace, iterate_members

MAX_CANDIDATES = 8
"""Beyond `MAX_EXACT_VARIABLES`, a variable has at most this number of possible parents: those of the best graphs, and
those with the least evidence against them."""
MAX_ALL_SUBSETS = 8
"""Up to this number of possible parents, all sets of them are families; beyond, those near the sets of best graphs.
With fewer sets, the best graph has more families than its neighbours, and its directions look surer than they are."""
MAX_ABSENCE_LOG_BAYES = 8.0
"""A pair with more evidence against an edge is not adjacent in any family, beyond `MAX_EXACT_VARIABLES`."""
DRAW_PAIRS = 4
"""Pairs of draws of clients, each in every part of the mean; one pair where probabilities are sampled."""
MAX_MEASURED_CLIENTS = 500
"""With more clients, the spread of the evidence over them is not measured: it takes time in proportion to them."""


@dataclass(frozen=True)
class BestGraphs:
    """The best graphs of a study, about which families are listed.

    Attributes
    ----------
    best : PartialGraph
        The DAG with the highest score.
    others : tuple of PartialGraph
        The best DAGs under other assumptions.
    guide : PartialGraph
        The DAG that directs open lines, where one DAG is asked for.
    supports : mapping from pair to EdgeSupport
        Log Bayes factors of pairs.
    """

    best: PartialGraph
    others: tuple[PartialGraph, ...]
    guide: PartialGraph
    supports: Mapping[Pair, EdgeSupport]

    def without_edges(self, edges: Iterable[Arrow]) -> BestGraphs:
        """Return the same graphs without some edges: what others gain must not depend on edges that are left out.

        Parameters
        ----------
        edges : iterable of (str, str)
            Pairs of nodes, in either order.

        Returns
        -------
        BestGraphs
            The graphs; the guide stays as it is.
        """
        pairs = frozenset(frozenset(edge) for edge in edges)
        best, *others = (one.remove_edges(*(one.skeleton & pairs)) for one in (self.best, *self.others))
        return replace(self, best=best, others=tuple(others))


def compute_posterior(
    graphs: BestGraphs,
    score: FamilyScore,
    residual: ResidualScore | None,
    knowledge: Knowledge,
    *,
    max_parents: int | None = None,
    seed: int = 0,
) -> GraphPosterior:
    """Return the posterior over DAGs; nothing new is asked of the clients.

    Parameters
    ----------
    graphs : BestGraphs
        The best graphs.
    score : FamilyScore
        The Gaussian score.
    residual : ResidualScore, optional
        The score under noise of any shape, if clients were asked about residuals.
    knowledge : Knowledge
        Background knowledge, which every DAG obeys.
    max_parents : int, optional
        The largest number of parents, not counting the domain.
    seed : int, default 0
        Seed of the samples, where there are many variables.

    Returns
    -------
    GraphPosterior
        Probabilities of arrows.
    """
    families = _list_families(graphs, knowledge, max_parents)
    scored = _score_families(families, score, residual)
    undirected, doubtful = _find_doubts(graphs.best, score, residual)
    gains = undirected_gains(scored, sorted(graphs.best.arrows))
    parents = {node: graphs.best.parents(node) for node in graphs.best.nodes if node != DOMAIN}
    factors, part_tables = _edge_factors(graphs), list[tuple[float, FamilyTable]]()
    active = frozenset(name for one in families if one.parents - {DOMAIN} for name in (one.node, *one.parents))
    spread = _spread_over_clients(families, score, residual, seed)
    for part in _choose_powers(active - {DOMAIN}, undirected & active, score, residual, spread is not None):
        weights = scored.weigh(part, gains, factors, undirected, doubtful)
        if score.clients < MIN_DIRECTING_CLIENTS:
            weights = scored.neutralize_changes(weights, parents)
        moves = [np.zeros(len(families))]
        if spread is not None:
            moves = list(spread.draws @ scored.choose_deviations(part, *spread.deviations, undirected, doubtful).T)
        part_tables += [(part.share / len(moves), FamilyTable.of(families, weights + move)) for move in moves]
    return GraphPosterior.of(graphs.best.nodes, part_tables, [graphs.best, *graphs.others[:1]], seed=seed)


class _ClientSpread(NamedTuple):
    """How much the clients disagree about families, and draws of clients."""

    deviations: ClientDeviations
    draws: Array


def _spread_over_clients(
    families: tuple[Family, ...], score: FamilyScore, residual: ResidualScore | None, seed: int
) -> _ClientSpread | None:
    """Return how much the clients disagree, if they are known apart, and neither too few nor too many."""
    basis = score.continuous.basis
    measured = MIN_DIRECTING_CLIENTS <= score.clients <= MAX_MEASURED_CLIENTS and basis.has_client_scatter
    if residual is None or not measured:
        return None
    few = len(basis.targets) <= MAX_EXACT_VARIABLES
    draws = draw_client_weights(basis, DRAW_PAIRS if few else 1, [seed])
    return _ClientSpread(measure_deviations(families, score, residual), draws)


def _edge_factors(graphs: BestGraphs) -> dict[Pair, float]:
    """Return the log Bayes factor of every edge against no edge, whatever the best graph has."""
    return {
        pair: support.presence if graphs.best.is_adjacent(*pair) else -support.presence
        for pair, support in graphs.supports.items()
        if np.isfinite(support.presence)
    }


def _score_families(families: tuple[Family, ...], score: FamilyScore, residual: ResidualScore | None) -> ScoredFamilies:
    linear, curved = np.array(score.linear(families)), np.array(score(families))
    known: dict[Family, float] = {}
    if residual is not None:
        known = {
            family: value
            for family, value in zip(families, residual.known_only(families), strict=True)
            if np.isfinite(value)
        }
    if score.clients < MIN_DIRECTING_CLIENTS:
        known = add_changed_families(families, known, curved)
    full = complete_scores(families, known, linear, curved) if residual is not None else curved
    prior = np.array(
        [score.arrow * len(one.parents - {DOMAIN}) + LOG_PRIOR_CHANGE * (DOMAIN in one.parents) for one in families]
    )
    return ScoredFamilies(
        families, prior, linear, full, parameter_costs(families, score.total_rows, score.level_counts)
    )


def _choose_powers(
    variables: Collection[str],
    undirected: frozenset[str],
    score: FamilyScore,
    residual: ResidualScore | None,
    measured: bool,
) -> tuple[Power, ...]:
    """Return how much of the evidence counts."""
    of_numbers = not score.level_counts.keys() >= {*variables}
    if residual is None:
        return SUMMARY_POWERS if of_numbers else RESIDUAL_POWERS
    independent = common_shares(residual.known.plan).product
    coarse = len(undirected) > MAX_COARSE_SHARE * len(variables)
    if coarse or independent < MIN_INDEPENDENT_SHARE:
        return CAUTIOUS_POWERS
    return MEASURED_POWERS if measured else RESIDUAL_POWERS


def _find_doubts(
    best: PartialGraph, score: FamilyScore, residual: ResidualScore | None
) -> tuple[frozenset[str], frozenset[str]]:
    """Return variables whose noise and curvature never direct, and those whose do so in part; with their neighbours.

    The first are numbers of which many rows share one value, and labels among numbers: no density compares them. The
    second are neighbours of such numbers, and numbers that are explained better by normal scores than by values: their
    mechanism is not additive.
    """
    if residual is None:
        return frozenset(), frozenset()
    tied = residual.without_density
    scored = frozenset(
        node
        for node in best.nodes
        if node != DOMAIN and residual.prefers_normal_score(Family(node, best.parents(node)))
    )
    return tied | score.level_counts.keys(), _with_neighbours(best, tied | scored)


def _with_neighbours(graph: PartialGraph, nodes: frozenset[str]) -> frozenset[str]:
    near = {node for node in graph.nodes if any(graph.is_adjacent(node, other) for other in nodes)}
    return frozenset(nodes | near) - {DOMAIN}


# Families


def _list_families(graphs: BestGraphs, knowledge: Knowledge, max_parents: int | None) -> tuple[Family, ...]:
    """Return the families that are compared: all for few variables, otherwise those near the best graphs."""
    nodes = graphs.best.nodes
    variables = [node for node in nodes if node != DOMAIN]
    few = len(variables) <= MAX_EXACT_VARIABLES
    candidates = None if few else {name: _possible_parents(name, graphs) for name in variables}
    space = ParentSpace.of(nodes, knowledge, candidates, max_parents)
    found = []
    for number in space.variables:
        name = space.nodes[number]
        several = few or space.possible[number].bit_count() - 1 <= MAX_ALL_SUBSETS
        possible = _name_members(space, space.possible[number])
        near = None if several else [one.parents(name) & possible for one in (graphs.best, *graphs.others)]
        for members in space.parent_sets(number, space.possible[number]):
            parents = _name_members(space, members)
            if near is None or any(len(parents ^ one) <= 2 for one in near):
                found.append(Family(name, parents))
    return tuple(found)


def _name_members(space: ParentSpace, members: int) -> frozenset[str]:
    return frozenset(space.nodes[one.bit_length() - 1] for one in iterate_members(members))


def _possible_parents(name: str, graphs: BestGraphs) -> frozenset[str]:
    """Return the neighbours of a variable in the best graphs, and others that little speaks against."""
    dags = (graphs.best, *graphs.others)
    near = {other for dag in dags for other in dag.nodes if other != DOMAIN and dag.is_adjacent(name, other)}
    left = sorted(
        (support.presence, next(iter(pair - {name})))
        for pair, support in graphs.supports.items()
        if name in pair and DOMAIN not in pair and not pair & near and support.presence < MAX_ABSENCE_LOG_BAYES
    )
    return frozenset([*sorted(near), *(other for _, other in left)][: max(MAX_CANDIDATES, len(near))])


# The graph that is drawn


def draw_likely_graph(
    posterior: GraphPosterior,
    orientation: Orientation,
    knowledge: Knowledge,
    min_probability: float,
    min_arrow_probability: float,
) -> Orientation:
    """Return the graph of edges and arrows that are likely enough.

    Parameters
    ----------
    posterior : GraphPosterior
        Probabilities of arrows.
    orientation : Orientation
        The graph of the search, whose reasons are kept.
    knowledge : Knowledge
        Background knowledge.
    min_probability : float
        The smallest probability of an edge or a change that is drawn.
    min_arrow_probability : float
        The smallest probability of an arrow between two variables.

    Returns
    -------
    Orientation
        A graph without directed cycles.
    """
    pairs = frozenset(
        frozenset(pair)
        for pair in combinations(posterior.nodes, 2)
        if posterior.probability_of_edge(*pair) >= min_probability
    )
    graph, reasons = PartialGraph(posterior.nodes, lines=pairs), dict[Arrow, Reason]()
    for arrow in _rank_arrows(posterior, pairs):
        least = min_probability if arrow[0] == DOMAIN else min_arrow_probability
        if posterior.arrows[arrow] >= least and not find_obstacles(graph, [(arrow,)], knowledge):
            graph = graph.orient(*arrow)
            reasons[arrow] = _reason(arrow, orientation)
    return replace(orientation, graph=graph, reasons=reasons, conflicts=())


def direct_lines(
    graph: PartialGraph, guide: PartialGraph, knowledge: Knowledge, probabilities: Mapping[Arrow, float] | None = None
) -> PartialGraph:
    """Return a DAG with the edges of a graph: its arrows, and its lines as in a guide as far as cycles allow.

    Parameters
    ----------
    graph : PartialGraph
        The graph that is drawn.
    guide : PartialGraph
        A DAG on the same nodes.
    knowledge : Knowledge
        Background knowledge.
    probabilities : mapping from (str, str) to float, optional
        Probabilities of arrows. The likeliest goes first, and lines that the guide lacks get the likelier direction.

    Returns
    -------
    PartialGraph
        A graph with arrows only, but for lines that knowledge does not let direct.
    """
    likely = probabilities or {}
    both = [arrow for line in graph.lines for arrow in (sort_pair(line), sort_pair(line)[::-1])]
    for arrow in sorted(both, key=lambda arrow: (arrow not in guide.arrows, -likely.get(arrow, 0.0), arrow)):
        if frozenset(arrow) in graph.lines and not find_obstacles(graph, [(arrow,)], knowledge):
            graph = graph.orient(*arrow)
    return graph


def _rank_arrows(posterior: GraphPosterior, pairs: frozenset[Pair]) -> Iterator[Arrow]:
    """Yield both arrows of every pair, the likeliest first."""
    both = [arrow for pair in pairs for arrow in (sort_pair(pair), sort_pair(pair)[::-1])]
    yield from sorted(
        (arrow for arrow in both if arrow in posterior.arrows), key=lambda arrow: (-posterior.arrows[arrow], arrow)
    )


def _reason(arrow: Arrow, orientation: Orientation) -> Reason:
    if arrow in orientation.reasons:
        return orientation.reasons[arrow]
    return "domain" if arrow[0] == DOMAIN else "evidence"


def describe_posterior(posterior: GraphPosterior) -> Sequence[str]:
    """Return a note on how probabilities were computed, where they were sampled."""
    if posterior.exact:
        return ()
    return (
        "probabilities are means over samples of graphs; two chains from different starts differ by at most "
        f"{posterior.largest_difference:.2f}",
    )


def describe_small_edges(strengths: Mapping[Arrow, float], min_effect: float) -> Sequence[str]:
    """Return a note on edges that explain too little to be drawn."""
    if not strengths:
        return ()
    named = [
        f"{' — '.join(sort_pair(frozenset(arrow)))} ({strength:.2%})" for arrow, strength in sorted(strengths.items())
    ]
    return (
        f"too weak to be drawn, because they explain less than {min_effect:.2%} of the variance (or less than "
        f"{SHOWN_SHARE * min_effect:.2%}, if they show at nearly all clients): "
        f"{abbreviate_list(named)}; min_effect changes this limit",
    )
