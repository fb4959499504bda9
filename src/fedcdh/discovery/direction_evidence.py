"""Evidence about directions within a class of equivalent graphs: independent change, and residuals.

With linear mechanisms and Gaussian noise, all members of a class explain the data equally well, and differences between
their scores come from the prior. What distinguishes them is counted here, and only that.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from fedcdh.graphs.knowledge import Knowledge
from fedcdh.graphs.partial_graph import Arrow, PartialGraph
from fedcdh.inference.evidence.residual_score import ResidualScore
from fedcdh.protocols import DOMAIN, Family, LocalScore
from fedcdh.search.edge_support import measure_directions
from fedcdh.search.orientation import DirectionEvidence

MIN_CHANGE_LOG_BAYES = 10.0
"""Log Bayes factor from which an edge is directed by mechanisms that change independently in one direction and not in
the other. With few clients that is weak evidence, so the threshold is high. The rest is left to the paper's form of the
principle."""
MIN_RESIDUAL_LOG_BAYES = 12.0
"""The same for residuals. Weaker arrows are right about as often as not in real data, where no model holds exactly
(`benchmarks.bench_pairs`)."""


def change_evidence(graph: PartialGraph, linear: LocalScore, knowledge: Knowledge) -> DirectionEvidence:
    """Return the evidence of independent change, about pairs that both change.

    Parameters
    ----------
    graph : PartialGraph
        The class of graphs.
    linear : LocalScore
        The score with linear mechanisms.
    knowledge : Knowledge
        Background knowledge.

    Returns
    -------
    DirectionEvidence
        Log Bayes factors of arrows.
    """
    changing = graph.children(DOMAIN) if DOMAIN in graph.nodes else frozenset[str]()
    found = measure_directions(graph, linear, _zero_score, knowledge)
    both_change = {arrow: factor for arrow, factor in found.items() if changing.issuperset(arrow)}
    return DirectionEvidence(both_change, MIN_CHANGE_LOG_BAYES, "independent-change")


def residual_evidence(
    graph: PartialGraph, score: ResidualScore, knowledge: Knowledge
) -> tuple[DirectionEvidence, DirectionEvidence]:
    """Return the evidence of the noise, and of curvature under noise of any shape.

    An arrow is put down to the noise if its shape or size says more than half. Lines at a variable of which many rows
    share one value stay open: neither curvature nor noise is trusted there. Curvature that is gone once both variables
    are normal scores directs nothing either.

    Parameters
    ----------
    graph : PartialGraph
        The class of graphs.
    score : ResidualScore
        The score with noise of any shape; clients may be asked.
    knowledge : Knowledge
        Background knowledge.

    Returns
    -------
    noise, curvature : DirectionEvidence
        Log Bayes factors of arrows.
    """
    found = measure_directions(graph, score, score.linear, knowledge)
    found = {
        arrow: factor
        for arrow, factor in found.items()
        if score.without_density.isdisjoint(arrow) and isfinite(factor)  # else nobody was asked about one direction
    }
    of_noise = measure_directions(graph, score, score.gaussian, knowledge)
    noise = {arrow: factor for arrow, factor in found.items() if of_noise.get(arrow, 0.0) >= factor / 2}
    curvature = {
        arrow: factor
        for arrow, factor in found.items()
        if arrow not in noise and not score.forms.has_curvature_of_scale_only(*arrow)
    }
    return (
        DirectionEvidence(noise, MIN_RESIDUAL_LOG_BAYES, "noise"),
        DirectionEvidence(curvature, MIN_RESIDUAL_LOG_BAYES, "evidence"),
    )


def residuals_direct(arrow: Arrow, graph: PartialGraph, score: ResidualScore) -> bool:
    """Return whether noise and curvature direct an arrow, whatever changes say: both mechanisms may differ.

    Parameters
    ----------
    arrow : (str, str)
        An arrow of the graph.
    graph : PartialGraph
        The graph, whose other arrows stay.
    score : ResidualScore
        The score with noise of any shape; clients may be asked.

    Returns
    -------
    bool
        Whether the log Bayes factor against the other direction, beyond that of linear mechanisms with Gaussian noise,
        is large enough.
    """
    if not score.without_density.isdisjoint(arrow):
        return False
    tail, head = arrow
    of_tail, of_head = (graph.parents(name) - {tail, head} | {DOMAIN} for name in arrow)
    families = [
        Family(tail, of_tail),
        Family(head, of_head | {tail}),
        Family(tail, of_tail | {head}),
        Family(head, of_head),
    ]
    gains = [full - straight for full, straight in zip(score(families), score.linear(families), strict=True)]
    factor = gains[0] + gains[1] - gains[2] - gains[3]
    return isfinite(factor) and factor >= MIN_RESIDUAL_LOG_BAYES


def _zero_score(families: Sequence[Family]) -> list[float]:
    return [0.0] * len(families)
