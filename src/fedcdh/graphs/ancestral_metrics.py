"""Distances between an estimated ancestral graph and the true one.

- *Adjacencies* ignore marks.
- *Arrowheads* and *tails* are claims about one end of an edge. A claim on an edge that is not in the truth is false.
- *Ancestral relations* are the claims "a causes b" that directed paths make.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fedcdh.graphs.ancestral_graph import AncestralGraph, Mark
from fedcdh.graphs.metrics import Score
from fedcdh.protocols import DOMAIN


@dataclass(frozen=True)
class AncestralComparison:
    """The scores of an ancestral graph.

    Attributes
    ----------
    adjacency : Score
        The score of the adjacent pairs.
    arrowheads : Score
        The score of the arrowheads.
    tails : Score
        The score of the tails.
    ancestors : Score
        The score of the claims that one variable causes another.

    Examples
    --------
    >>> graph = AncestralGraph(("x", "y"), {("x", "y"): "arrow", ("y", "x"): "arrow"})
    >>> compare_ancestral(graph, graph).arrowheads.f1
    1.0
    """

    adjacency: Score
    arrowheads: Score
    tails: Score
    ancestors: Score


def compare_ancestral(found: AncestralGraph, true: AncestralGraph) -> AncestralComparison:
    """Compare an ancestral graph with the true one; the domain is left out.

    Parameters
    ----------
    found : AncestralGraph
        The estimated graph.
    true : AncestralGraph
        The true graph: a PAG, or the MAG itself.

    Returns
    -------
    AncestralComparison
        Precision, recall and F1 of adjacencies, arrowheads, tails and ancestral relations.

    Examples
    --------
    >>> true = AncestralGraph(("x", "y"), {("x", "y"): "arrow", ("y", "x"): "tail"})
    >>> found = AncestralGraph(("x", "y"), {("x", "y"): "arrow", ("y", "x"): "circle"})
    >>> scores = compare_ancestral(found, true)
    >>> scores.arrowheads.f1, scores.tails.recall
    (1.0, 0.0)
    """
    one, two = (graph.drop(DOMAIN) if DOMAIN in graph.nodes else graph for graph in (found, true))
    return AncestralComparison(
        _score(one.skeleton, two.skeleton),
        _score(_find_ends(one, "arrow"), _find_ends(two, "arrow")),
        _score(_find_ends(one, "tail"), _find_ends(two, "tail")),
        _score(_find_ancestors(one), _find_ancestors(two)),
    )


def _find_ends(graph: AncestralGraph, mark: Mark) -> frozenset[tuple[str, str]]:
    return frozenset(ends for ends, here in graph.end_marks.items() if here == mark)


def _find_ancestors(graph: AncestralGraph) -> frozenset[tuple[str, str]]:
    return frozenset((node, below) for node in graph.nodes for below in graph.descendants(node) - {node})


def _score(claimed: Collection[object], true: Collection[object]) -> Score:
    both = len(set(claimed) & set(true))
    return Score(both, len(claimed), len(true), len(claimed) + len(true) - 2 * both)
