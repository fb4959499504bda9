"""Samples of DAGs from a posterior: chains that draw the parents of one or two variables anew, given all others.

One variable: its parent set is drawn from those without its descendants. Two variables: both parent sets are drawn
together, so one step can turn an arrow and adapt the other parents of both. Both steps draw from the exact conditional
distribution, and so leave the posterior unchanged; there is no bias towards DAGs with many orders.

The distributions of which a posterior is the mean are sampled side by side, one chain for each, and chains exchange
their DAGs (parallel tempering): where less of the evidence counts, a chain moves more easily, and finds DAGs for the
others. Groups of chains start from different DAGs. A group that stays at DAGs of far lower weight is stuck, and counts
less. How far the probabilities of the others are apart shows whether they have converged.

References
----------
Goudie and Mukherjee, "A Gibbs sampler for learning DAGs", Journal of Machine Learning Research 17, 2016.
Geyer, "Markov chain Monte Carlo maximum likelihood", 1991.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from math import exp
from operator import or_
from typing import NamedTuple

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.inference.posterior.exact_posterior import ArrowProbabilities
from fedcdh.inference.posterior.family_table import FamilyTable
from fedcdh.protocols import DOMAIN

MIN_TRUST = 0.1
"""A group of chains that counts less than this is stuck, and says nothing about convergence."""
BURN_IN_SHARE = 0.2
"""Share of the sweeps at the start of a chain that do not count."""
MAX_REMEMBERED = 5_000
"""Distributions of parent sets that a chain remembers before it forgets them all. 100 variables need about 1,300."""


class _Choice(NamedTuple):
    """The distribution of the parent set of a variable among those that some nodes admit."""

    log_total: float  # log of the sum of the weights
    steps: list[float]  # sums of the weights, from the first set on, up to a factor
    parents: Array  # probability of each node as a parent

    def pick(self, random: float) -> int:
        """Return a row, drawn by a number that is uniform between 0 and 1."""
        return min(bisect_right(self.steps, random * self.steps[-1]), len(self.steps) - 1)


class DagChain:
    """A Markov chain over the DAGs of a table.

    Parameters
    ----------
    table : FamilyTable
        Parent sets with log weights.
    start : mapping from str to frozenset of str
        Parents of every variable in the first DAG; a set that is not in the table is replaced by its largest part
        that is.
    seed : sequence of int
        Seed of the chain.
    pairs : iterable of pairs of str, optional
        The pairs that are drawn together. Default all that may be adjacent.

    Examples
    --------
    >>> from fedcdh.protocols import Family
    >>> table = FamilyTable.of([Family("x"), Family("y"), Family("y", frozenset("x"))], [0.0, 0.0, 50.0])
    >>> chain = DagChain(table, {}, [0])
    >>> chain.sweep().tolist()  # the parents of x and of y: x, y and the domain
    [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    >>> print(chain.dag(("x", "y")))
    x → y
    """

    def __init__(
        self,
        table: FamilyTable,
        start: Mapping[str, frozenset[str]],
        seed: Sequence[int],
        pairs: Iterable[Iterable[str]] | None = None,
    ) -> None:
        self._table, self._random = table, np.random.default_rng(list(seed))
        self._sets = [_to_bits(table, name) for name in table.variables]
        self._words = [table.words[name] for name in table.variables]
        self._weights = [table.weights[name] for name in table.variables]
        self._members = [_membership(table, name) for name in table.variables]
        self._possible = [_unite(several) for several in self._sets]
        self._choices: dict[tuple[int, int, int], _Choice] = {}
        self._pairs = _candidate_pairs(self._sets) if pairs is None else _number_pairs(table, pairs)
        self._chosen = [_find_start(table, name, start) for name in table.variables]
        variables = (1 << len(self._sets)) - 1
        self._parents = [[[*_iterate_bits(one & variables)] for one in several] for several in self._sets]
        self._children = [0] * len(self._sets)
        for variable, chosen in enumerate(self._chosen):
            self._link(variable, chosen)

    def sweep(self) -> Array:
        """Draw every variable once and every pair that may be adjacent once, in random order.

        Returns
        -------
        array
            (variables, nodes): the conditional probability of every parent when its variable was drawn; the last node
            is the domain. Its mean over sweeps estimates the probability of an arrow.
        """
        found = np.zeros((len(self._sets), len(self._sets) + 1))
        order = self._random.permutation(len(self._pairs)).tolist()
        for place, numbers in zip(order, self._random.random((len(order), 3)).tolist(), strict=True):
            self._draw_pair(*self._pairs[place], *numbers)
        order = self._random.permutation(len(self._sets)).tolist()
        for variable, number in zip(order, self._random.random(len(order)).tolist(), strict=True):
            found[variable] = self._draw_one(variable, number)
        return found

    def exchange(self, other: DagChain) -> None:
        """Exchange DAGs with another chain over the same parent sets, with the probability that keeps both posteriors.

        Parameters
        ----------
        other : DagChain
            The other chain.
        """
        gain = other._log_weight(self._chosen) + self._log_weight(other._chosen)
        gain -= self._log_weight(self._chosen) + other._log_weight(other._chosen)
        if np.log(1 - self._random.random()) < gain:
            self._chosen, other._chosen = other._chosen, self._chosen
            self._children, other._children = other._children, self._children

    @property
    def log_weight(self) -> float:
        """Return the log weight of the present DAG."""
        return self._log_weight(self._chosen)

    def _log_weight(self, chosen: Sequence[int]) -> float:
        return float(sum(weights[row] for weights, row in zip(self._weights, chosen, strict=True)))

    def dag(self, nodes: Sequence[str]) -> PartialGraph:
        """Return the present DAG.

        Parameters
        ----------
        nodes : sequence of str
            The nodes in the order that the graph gets.

        Returns
        -------
        PartialGraph
            A graph with arrows only.
        """
        names, sets = self._table.variables, self._table.parent_sets
        arrows = [(tail, head) for head, row in zip(names, self._chosen, strict=True) for tail in sets[head][row]]
        return PartialGraph.from_dag(nodes, arrows)

    # Steps

    def _draw_one(self, variable: int, random: float) -> Array:
        """Draw the parents of a variable, and return the probability of each node as a parent."""
        self._unlink(variable)
        choice = self._choice(variable, self._descendants(variable))
        self._link(variable, choice.pick(random))
        return choice.parents

    def _draw_pair(self, first: int, second: int, side: float, one: float, other: float) -> None:
        """Draw the parents of two variables together, by three numbers between 0 and 1.

        Without the arrows into both, let D be the descendants of each. Neither may have parents in its own D, and not
        both may have parents in the other's D: that would close a cycle.
        """
        self._unlink(first)
        self._unlink(second)
        below_first, below_second = self._descendants(first), self._descendants(second)
        both = below_first | below_second
        free, any_second = self._choice(first, both), self._choice(second, below_second)
        bound, rest = self._choice(first, below_first, below_second), self._choice(second, both)
        log_free, log_bound = free.log_total + any_second.log_total, bound.log_total + rest.log_total
        if side * (1 + exp(min(log_bound - log_free, 700.0))) < 1:
            mine, theirs = free, any_second
        else:
            mine, theirs = bound, rest
        self._link(first, mine.pick(one))
        self._link(second, theirs.pick(other))

    def _choice(self, variable: int, banned: int, needed: int = -1) -> _Choice:
        """Return the distribution of parent sets without banned nodes and with one of those needed; -1 needs none."""
        possible = self._possible[variable]
        key = variable, banned & possible, needed if needed < 0 else needed & possible
        choice = self._choices.get(key)
        if choice is None:
            if len(self._choices) >= MAX_REMEMBERED:
                self._choices.clear()
            choice = self._choices[key] = self._weigh(*key)
        return choice

    def _weigh(self, variable: int, banned: int, needed: int) -> _Choice:
        weights = np.where(self._meets(variable, banned), -np.inf, self._weights[variable])
        if needed >= 0:
            weights = np.where(self._meets(variable, needed), weights, -np.inf)
        top = float(weights.max())
        if top == -np.inf:
            return _Choice(top, [], np.zeros(self._members[variable].shape[1]))
        shares = np.exp(weights - top)
        total = shares.sum()
        return _Choice(
            top + float(np.log(total)),
            np.cumsum(shares).tolist(),
            np.asarray((shares / total) @ self._members[variable]),
        )

    # The present DAG

    def _link(self, variable: int, row: int) -> None:
        self._chosen[variable] = row
        self._toggle(variable)

    def _unlink(self, variable: int) -> None:
        self._toggle(variable)

    def _toggle(self, variable: int) -> None:
        children, bit = self._children, 1 << variable
        for parent in self._parents[variable][self._chosen[variable]]:
            children[parent] ^= bit

    def _descendants(self, variable: int) -> int:
        """Return a variable and all that follow from it."""
        found = left = 1 << variable
        while left:
            last = left.bit_length() - 1
            left ^= 1 << last
            new = self._children[last] & ~found
            found |= new
            left |= new
        return found

    def _meets(self, variable: int, nodes: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which parent sets of a variable hold one of these nodes."""
        words = self._words[variable]
        if words.shape[1] == 1:
            return np.asarray((words[:, 0] & np.uint64(nodes)) != 0)
        parts = np.array([nodes >> 64 * word & (1 << 64) - 1 for word in range(words.shape[1])], dtype=np.uint64)
        return np.asarray(((words & parts) != 0).any(axis=1))


def estimate_arrows(
    tables: Sequence[FamilyTable],
    starts: Sequence[Mapping[str, frozenset[str]]],
    pairs: Iterable[Iterable[str]],
    sweeps: int,
    seed: int,
) -> tuple[list[ArrowProbabilities], float]:
    """Return the probabilities of arrows from several groups of chains, and how far the groups are apart.

    Parameters
    ----------
    tables : sequence of FamilyTable
        Log weights of the same parent sets, one table for each chain of a group; neighbours exchange DAGs.
    starts : sequence of mapping from str to frozenset of str
        The first DAG of each group.
    pairs : iterable of pairs of str
        The pairs that are drawn together.
    sweeps : int
        Number of sweeps of each chain.
    seed : int
        Seed of the chains.

    Returns
    -------
    probabilities : list of ArrowProbabilities
        For each table the mean over the groups, weighted by the weights of their DAGs.
    largest_difference : float
        The largest difference between the probabilities of an arrow in two groups; 0 for a single group.

    Examples
    --------
    >>> from fedcdh.protocols import Family
    >>> table = FamilyTable.of([Family("x"), Family("y"), Family("y", frozenset("x"))], [0.0, 0.0, 50.0])
    >>> (found,), apart = estimate_arrows([table], [{}, {}], [("x", "y")], sweeps=10, seed=0)
    >>> found.arrows.round(2).tolist(), apart < 0.01
    ([[0.0, 1.0], [0.0, 0.0]], True)
    """
    together, skipped = [tuple(pair) for pair in pairs], int(BURN_IN_SHARE * sweeps)
    groups = [_run_group(tables, start, together, sweeps, skipped, [seed, n]) for n, start in enumerate(starts)]
    means, levels = (np.array(several) for several in zip(*groups, strict=True))
    trust = np.exp(levels - levels.max(axis=0))
    trust /= trust.sum(axis=0)
    found = (trust[..., None, None] * means).sum(axis=0)
    trusted = trust[..., None, None] > MIN_TRUST
    highest = np.where(trusted, means, -np.inf).max(axis=0)
    apart = (highest - np.where(trusted, means, np.inf).min(axis=0)).max(initial=0.0)
    return [ArrowProbabilities(one[:, :-1].T.copy(), one[:, -1].copy()) for one in found], float(apart)


def _run_group(
    tables: Sequence[FamilyTable],
    start: Mapping[str, frozenset[str]],
    pairs: Sequence[tuple[str, ...]],
    sweeps: int,
    skipped: int,
    seed: Sequence[int],
) -> tuple[Array, Array]:
    """Return the mean probability of every parent in each chain, and the mean log weight of its DAGs."""
    chains = [DagChain(table, start, [*seed, number], pairs) for number, table in enumerate(tables)]
    total = np.zeros((len(tables), len(tables[0].variables), len(tables[0].places)))
    level = np.zeros(len(tables))
    for sweep in range(sweeps):
        found = np.stack([chain.sweep() for chain in chains])
        if sweep >= skipped:
            total += found
            level += [chain.log_weight for chain in chains]
        for one, other in pairwise(chains):
            one.exchange(other)
    return total / (sweeps - skipped), level / (sweeps - skipped)


def _to_bits(table: FamilyTable, name: str) -> list[int]:
    return [sum(1 << table.places[parent] for parent in parents) for parents in table.parent_sets[name]]


def _membership(table: FamilyTable, name: str) -> Array:
    """Return which nodes are in each parent set: (sets, nodes)."""
    found = np.zeros((len(table.parent_sets[name]), len(table.places)))
    for row, parents in enumerate(table.parent_sets[name]):
        found[row, [table.places[parent] for parent in parents]] = 1.0
    return found


def _candidate_pairs(sets: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the pairs of variables of which one may be a parent of the other."""
    found = set()
    for variable, several in enumerate(sets):
        found |= {(min(variable, p), max(variable, p)) for p in _iterate_bits(_unite(several)) if p < len(sets)}
    return sorted(found)


def _unite(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)


def _number_pairs(table: FamilyTable, pairs: Iterable[Iterable[str]]) -> list[tuple[int, int]]:
    """Return pairs of variables by number, sorted; pairs with the domain are left out."""
    named = [sorted(table.places[name] for name in pair if name != DOMAIN) for pair in pairs]
    return sorted({(one[0], one[1]) for one in named if len(one) == 2})


def _find_start(table: FamilyTable, name: str, start: Mapping[str, frozenset[str]]) -> int:
    """Return the row of the largest part of a start's parent set that is in the table; the first row if none is.

    Parts of the parent sets of a DAG close no cycle.
    """
    sets, wanted = table.parent_sets[name], start.get(name, frozenset())
    listed = [row for row, parents in enumerate(sets) if parents <= wanted]
    return max(listed, key=lambda row: len(sets[row]), default=0)


def _iterate_bits(members: int) -> Iterator[int]:
    while members:
        last = members.bit_length() - 1
        yield last
        members ^= 1 << last
