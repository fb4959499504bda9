"""One repetition of a search with other clients or other rows, reduced to what stability compares."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

from fedcdh.discovery.algorithm import SearchResult
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph
from fedcdh.protocols import DOMAIN


@dataclass(frozen=True)
class StabilityRun:
    """The graph that one repetition of the search found.

    Attributes
    ----------
    clients : tuple of str
        The clients that took part. A client that was drawn twice is named twice.
    left_out : tuple of str
        The clients of the study that did not take part; none where rows were resampled within clients.
    arrows : frozenset of (str, str)
        The directed edges between variables.
    lines : frozenset of frozenset of str
        The undirected edges between variables.
    changing : frozenset of str, optional
        The variables whose mechanism differs between clients; None if only one client took part.
    weights : mapping from pair to float
        The evidence for each edge, see `Influence`.

    Examples
    --------
    >>> from fedcdh import discover, simulate
    >>> stability = discover(simulate(seed=1).columns("site"), domain="site").stability()
    >>> len(stability.runs[0].left_out)
    1
    """

    clients: tuple[str, ...]
    left_out: tuple[str, ...]
    arrows: frozenset[Arrow]
    lines: frozenset[Pair]
    changing: frozenset[str] | None
    weights: Mapping[Pair, float] = field(default_factory=dict)

    @property
    def leaves_one_out(self) -> bool:
        """Return whether the run differs from the whole study by the absence of one client, and by nothing else."""
        return len(self.left_out) == 1 and len(set(self.clients)) == len(self.clients)

    def mark(self, source: str, target: str) -> str:
        """Return how the run joins two variables.

        Parameters
        ----------
        source : str
            A variable.
        target : str
            Another variable.

        Returns
        -------
        str
            "→", "←", "—", or an empty text if they are not adjacent.
        """
        if (source, target) in self.arrows:
            return "→"
        if (target, source) in self.arrows:
            return "←"
        return "—" if frozenset((source, target)) in self.lines else ""


def make_run(all_clients: tuple[str, ...], clients: tuple[str, ...], result: SearchResult) -> StabilityRun:
    """Reduce the result of a search among these clients to a run."""
    graph = result.orientation.graph
    has_domain = DOMAIN in graph.nodes
    variables = graph.drop(DOMAIN) if has_domain else graph
    present = frozenset(clients)
    left_out = tuple(client for client in all_clients if client not in present)
    changing = graph.children(DOMAIN) if has_domain and len(present) > 1 else None
    return StabilityRun(clients, left_out, variables.arrows, variables.lines, changing, _weigh_links(result, variables))


def _weigh_links(result: SearchResult, graph: PartialGraph) -> dict[Pair, float]:
    """Return the evidence for each link: log Bayes factors where there are any, else −ln p of the accepted answer."""
    pairs, best = list(combinations(graph.nodes, 2)), result.best
    if best is not None:
        supports = {pair: result.supports.get(frozenset(pair)) for pair in pairs}
        return {
            frozenset(pair): support.presence if best.is_adjacent(*pair) else -support.presence
            for pair, support in supports.items()
            if support is not None and math.isfinite(support.presence)
        }
    strongest, separators = result.skeleton.strongest, result.skeleton.separators
    answers = [(strongest if graph.is_adjacent(a, b) else separators).get(frozenset((a, b))) for a, b in pairs]
    return {
        frozenset(pair): -math.log(max(answer.p_value, sys.float_info.min))
        for pair, answer in zip(pairs, answers, strict=True)
        if answer is not None
    }
