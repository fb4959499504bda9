"""A result as text with probabilities: one row per edge, the differences between clients, and all that is possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import floor
from typing import TYPE_CHECKING

from fedcdh._io.text import abbreviate_list
from fedcdh.graphs.partial_graph import PartialGraph, node_sort_key
from fedcdh.protocols import DOMAIN

if TYPE_CHECKING:
    from fedcdh.discovery.result import Edge

MIN_POSSIBLE_PROBABILITY = 0.1
"""Probability from which a pair or a difference that is not drawn is listed as possible."""
MAX_POSSIBLE_PRINTED = 10
"""Number of possible findings that are printed; result.edges() has all of them."""
_ROUNDING = 1e-9
_MAX_PADDED_WIDTH = 60  # characters of an edge up to which probabilities stand in one column


def format_probability(probability: float) -> str:
    """Return a probability with two digits, rounded down, so that limits hold for what is shown; never as 0 or 1.

    Parameters
    ----------
    probability : float
        A probability.

    Returns
    -------
    str
        Two digits after the point; ">0.99" and "<0.01" at the ends.

    Examples
    --------
    >>> [format_probability(value) for value in (0.864, 0.799, 0.999, 0.001, 1.0)]
    ['0.86', '0.79', '>0.99', '<0.01', '>0.99']
    """
    if probability >= 0.995:
        return ">0.99"
    return f"{floor(100 * probability + _ROUNDING) / 100:.2f}" if probability >= 0.01 - _ROUNDING else "<0.01"


def describe_edge_probability(edge: Edge) -> str:
    """Return the probability of an arrow; for other pairs that of the edge, and that of its likelier direction.

    Parameters
    ----------
    edge : Edge
        An edge with probabilities.

    Returns
    -------
    str
        Such as "0.86", or "0.97 (→ 0.62)", where the arrow points as from the first node to the second.
    """
    probability, forward = edge.probability or 0.0, edge.probability_forward or 0.0
    if edge.mark == "→":
        return format_probability(forward)
    backward = max(0.0, probability - forward)
    direction, likelier = ("→", forward) if forward >= backward else ("←", backward)
    return f"{format_probability(probability)} ({direction} {format_probability(likelier)})"


def format_graph(graph: PartialGraph, edges: Iterable[Edge]) -> str:
    """Return the graph as text, one edge per row with its probability and its standardised slope, isolated nodes last.

    Parameters
    ----------
    graph : PartialGraph
        The graph over the variables.
    edges : iterable of Edge
        All pairs of the result, with probabilities.

    Returns
    -------
    str
        The rows of ``str(graph)`` in the same order.
    """
    drawn = [edge for edge in edges if edge.mark and edge.source != DOMAIN]
    drawn.sort(key=lambda edge: (edge.mark != "→", node_sort_key(edge.source), node_sort_key(edge.target)))
    names = [f"{edge.source} {edge.mark} {edge.target}" for edge in drawn]
    width = max((len(name) for name in names if len(name) <= _MAX_PADDED_WIDTH), default=0)
    numbers = [describe_edge_probability(edge) for edge in drawn]
    padded = [f"{' ' if number[0].isdigit() else ''}{number}" for number in numbers]
    numbers_width = max(map(len, padded), default=0)
    rows = [
        f"{name:<{width}}  {number:<{numbers_width}}  {_format_slope(edge)}".rstrip()
        for name, number, edge in zip(names, padded, drawn, strict=True)
    ]
    return "\n".join([*rows, *(node for node in sorted(graph.nodes, key=node_sort_key) if not graph.neighbours(node))])


def _format_slope(edge: Edge) -> str:
    """Return the standardised slope with its sign; an empty text where there is none."""
    return "" if edge.standardised_slope is None else f"{edge.standardised_slope:+.2f}"


def format_changes(changing: Iterable[str], probabilities: Mapping[str, float]) -> str:
    """Return the variables whose mechanism differs, each with its probability.

    Parameters
    ----------
    changing : iterable of str
        The variables.
    probabilities : mapping from str to float
        Probabilities of a difference.

    Returns
    -------
    str
        Names and numbers, separated by commas.
    """
    return ", ".join(f"{name} ({format_probability(probabilities[name])})" for name in sorted(changing))


def find_possible(edges: Iterable[Edge]) -> list[Edge]:
    """Return the pairs and differences that are not drawn, but are possible; the likeliest first.

    Parameters
    ----------
    edges : iterable of Edge
        All pairs of the result, with the domain.

    Returns
    -------
    list of Edge
        Those with a probability of at least `MIN_POSSIBLE_PROBABILITY`.
    """
    found = [edge for edge in edges if not edge.mark and (edge.probability or 0.0) >= MIN_POSSIBLE_PROBABILITY]
    return sorted(found, key=lambda edge: -(edge.probability or 0.0))


def format_possible(edges: Iterable[Edge]) -> Iterator[str]:
    """Yield the row of possible findings, if there are any.

    Parameters
    ----------
    edges : iterable of Edge
        All pairs of the result, with the domain.

    Yields
    ------
    str
        At most ten findings, and the number of the others.
    """
    shown = [
        f"{edge.target} differs {format_probability(edge.probability or 0.0)}"
        if edge.source == DOMAIN
        else f"{edge.source} — {edge.target} {format_probability(edge.probability or 0.0)}"
        for edge in find_possible(edges)
    ]
    if shown:
        yield f"possible: {abbreviate_list(shown, MAX_POSSIBLE_PRINTED)}"
