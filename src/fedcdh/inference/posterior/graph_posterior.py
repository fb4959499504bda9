"""The posterior distribution over DAGs: probabilities of arrows, and samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcdh.errors import SettingsError
from fedcdh.graphs.partial_graph import Arrow, Pair, PartialGraph, sort_pair
from fedcdh.inference.posterior.dag_sampling import DagChain, estimate_arrows
from fedcdh.inference.posterior.exact_posterior import MAX_EXACT_VARIABLES, sum_over_dags
from fedcdh.inference.posterior.family_table import FamilyTable
from fedcdh.protocols import DOMAIN

SWEEPS = 80
"""Sweeps of each chain where probabilities are sampled. A sweep draws every variable and every possible pair."""
SWEEPS_BETWEEN_SAMPLES = 3
"""Sweeps between two DAGs of a sample."""
BURN_IN = 30
"""Sweeps before the first DAG of a sample."""


@dataclass(frozen=True, eq=False)
class GraphPosterior:
    """A posterior distribution over the DAGs on the variables and the domain.

    It is a mean of several distributions, each given by the log weights of families.

    Attributes
    ----------
    nodes : tuple of str
        The nodes.
    arrows : mapping from (str, str) to float
        Probabilities of arrows; arrows that are not named have probability 0.
    parts : tuple of (float, FamilyTable)
        The distributions and their shares, which sum to 1.
    start : PartialGraph
        A DAG from which samples start.
    exact : bool
        Whether probabilities are sums over all DAGs, or means over samples.
    largest_difference : float
        For samples, the largest difference between the probabilities of an arrow in two chains; 0 if exact.

    Examples
    --------
    >>> from fedcdh.protocols import Family
    >>> both = [Family("x"), Family("y"), Family("x", frozenset("y")), Family("y", frozenset("x"))]
    >>> table = FamilyTable.of(both, [0.0, 0.0, 0.0, np.log(2)])
    >>> posterior = GraphPosterior.of("xy", [(1.0, table)], [PartialGraph("xy")])
    >>> round(posterior.probability_of_edge("x", "y"), 6), round(posterior.arrows["x", "y"], 6)
    (0.75, 0.5)
    >>> len(posterior.sample(10))
    10
    """

    nodes: tuple[str, ...]
    arrows: Mapping[Arrow, float]
    parts: tuple[tuple[float, FamilyTable], ...]
    start: PartialGraph
    exact: bool
    largest_difference: float

    @classmethod
    def of(
        cls,
        nodes: Sequence[str],
        parts: Sequence[tuple[float, FamilyTable]],
        starts: Sequence[PartialGraph],
        *,
        seed: int = 0,
        exact_up_to: int = MAX_EXACT_VARIABLES,
    ) -> GraphPosterior:
        """Compute the posterior: exactly for few variables, otherwise by chains from several starts.

        Parameters
        ----------
        nodes : sequence of str
            The variables, and the domain if there is one.
        parts : sequence of (float, FamilyTable)
            Log weights of families, and the share of each table in the mean.
        starts : sequence of PartialGraph
            DAGs from which chains start.
        seed : int, default 0
            Seed of the chains.
        exact_up_to : int, default 10
            Largest number of variables for which all DAGs are summed up.

        Returns
        -------
        GraphPosterior
            The posterior.
        """
        tables = [table for _, table in parts]
        exact = len(tables[0].variables) <= exact_up_to
        if exact:
            found, apart = [sum_over_dags(table) for table in tables], 0.0
        else:
            first = [{node: one.parents(node) for node in one.nodes if node != DOMAIN} for one in starts]
            pairs = sorted(sort_pair(pair) for pair in frozenset().union(*(one.skeleton for one in starts)))
            found, apart = estimate_arrows(tables, first, pairs, SWEEPS, seed)
        shares = np.array([share for share, _ in parts])
        arrows = np.tensordot(shares, [one.arrows for one in found], axes=1)
        changes = np.tensordot(shares, [one.changes for one in found], axes=1)
        named = dict(_name_arrows(tables[0].variables, arrows, changes, DOMAIN in nodes))
        return cls(tuple(nodes), named, tuple(parts), starts[0], exact, apart)

    def probability_of_edge(self, a: str, b: str) -> float:
        """Return the probability that two nodes are adjacent.

        Parameters
        ----------
        a, b : str
            Two nodes.

        Returns
        -------
        float
            The sum of the probabilities of both directions.
        """
        return min(1.0, self.arrows.get((a, b), 0.0) + self.arrows.get((b, a), 0.0))

    def with_open_pairs(self, pairs: Mapping[Pair, float]) -> GraphPosterior:
        """Return the posterior with pairs whose direction no data can decide: both are equally likely.

        Parameters
        ----------
        pairs : mapping from pair to float
            Pairs, each with the probability of its edge.

        Returns
        -------
        GraphPosterior
            The posterior with other probabilities; samples stay as they are.
        """
        halves = {arrow: edge / 2 for pair, edge in pairs.items() for arrow in (sort_pair(pair), sort_pair(pair)[::-1])}
        return replace(self, arrows={**self.arrows, **halves})

    def with_certain_arrow(self, arrow: Arrow) -> GraphPosterior:
        """Return the posterior with an arrow that is known.

        Parameters
        ----------
        arrow : (str, str)
            The arrow.

        Returns
        -------
        GraphPosterior
            The posterior with other probabilities; samples stay as they are.
        """
        return replace(self, arrows={**self.arrows, arrow: 1.0, arrow[::-1]: 0.0})

    def with_witness(self, graph: PartialGraph, reliability: float, weight: float) -> GraphPosterior:
        """Return the posterior averaged with what another graph says about directions and changes.

        Parameters
        ----------
        graph : PartialGraph
            The other graph, found by other means. It says nothing about the direction of pairs without an arrow.
        reliability : float
            The share of its arrows that are right.
        weight : float
            The weight of the other graph in the mean.

        Returns
        -------
        GraphPosterior
            The posterior with other probabilities; those of edges and samples stay as they are.
        """
        moved = {}
        for (tail, head), forward in self.arrows.items():
            if tail == DOMAIN:
                said = reliability if (tail, head) in graph.arrows else 1 - reliability
                moved[tail, head] = (1 - weight) * forward + weight * said
                continue
            edge = forward + self.arrows.get((head, tail), 0.0)
            arrows = [arrow in graph.arrows for arrow in ((tail, head), (head, tail))]
            said = reliability if arrows[0] else 1 - reliability if arrows[1] else 0.5
            moved[tail, head] = (1 - weight) * forward + weight * said * edge
        return replace(self, arrows={**self.arrows, **moved})

    def sample(self, n: int, seed: int = 0) -> list[PartialGraph]:
        """Draw DAGs from the posterior.

        Parameters
        ----------
        n : int
            Number of DAGs.
        seed : int, default 0
            Seed of the chains.

        Returns
        -------
        list of PartialGraph
            DAGs on the nodes, in random order. Neighbours in a chain are not quite independent.

        Raises
        ------
        SettingsError
            If n is not a natural number.
        """
        if not isinstance(n, int) or n < 0:
            raise SettingsError(f"the number of DAGs is {n!r}; expected 0, 1, 2, ...", parameter="n")
        random = np.random.default_rng([seed, n])
        counts = random.multinomial(n, np.array([share for share, _ in self.parts]))
        found = [
            dag
            for number, ((_, table), count) in enumerate(zip(self.parts, counts.tolist(), strict=True))
            for dag in _run_chain(table, self.start, self.nodes, count, [seed, number])
        ]
        return [found[place] for place in random.permutation(len(found))]


def _run_chain(
    table: FamilyTable, start: PartialGraph, nodes: Sequence[str], count: int, seed: Sequence[int]
) -> Iterator[PartialGraph]:
    """Yield DAGs of one chain."""
    if not count:
        return
    chain = DagChain(table, {node: start.parents(node) for node in start.nodes if node != DOMAIN}, seed)
    for _ in range(BURN_IN):
        chain.sweep()
    for _ in range(count):
        for _ in range(SWEEPS_BETWEEN_SAMPLES):
            chain.sweep()
        yield chain.dag(nodes)


def _name_arrows(
    names: Sequence[str], arrows: np.ndarray, changes: np.ndarray, has_domain: bool
) -> Iterator[tuple[Arrow, float]]:
    for tail, row in zip(names, arrows.tolist(), strict=True):
        yield from (((tail, head), value) for head, value in zip(names, row, strict=True) if head != tail)
    if has_domain:
        yield from (((DOMAIN, head), min(1.0, value)) for head, value in zip(names, changes.tolist(), strict=True))
