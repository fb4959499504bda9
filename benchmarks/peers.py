"""Other programs on the same instances: tables per client in, a graph and (where given) the changing variables out.

- `fisherz`, `rcit`, `kci`: causal-learn's CD-NOD on the pooled rows, the client's number as its domain index; its
  independent change principle is not implemented there ("under development"). causal-learn marks i → j by
  graph[i, j] = −1 and graph[j, i] = 1, i — j by twice −1, i ↔ j by twice 1. The latter says that both directions were
  demanded, and counts as a line. All edges of the domain point away from it.
- `fedpc`: Huang et al. (2022), "Towards Privacy-Aware Causal Structure Learning in Federated Setting", written anew.
  The server keeps one graph; at each level every client tests all its edges on its own rows with Fisher's z, and an
  edge stays where at least 30 % of the clients would keep it. That is what their program does with their 30 %;
  `fedpc_veto` is the other reading, where 30 % of the clients are enough to remove an edge. Both α = 0.05.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, cast

import numpy as np
from scipy import special

from fedcdh import meek
from fedcdh.admission import obstacles
from fedcdh.equivalence import extend
from fedcdh.errors import NoExtension
from fedcdh.graph import Arrow, Pair, PartialGraph
from fedcdh.knowledge import NOTHING_KNOWN
from fedcdh.questions import DOMAIN
from fedcdh.simulate import Array

ALPHA = 0.05


@dataclass(frozen=True)
class Found:
    """What a program found. `augmented` has the domain as a node if the program knows of it."""

    augmented: PartialGraph

    @property
    def graph(self) -> PartialGraph:
        return _variables(self.augmented)

    @property
    def changing(self) -> frozenset[str] | None:
        return self.augmented.children(DOMAIN) if DOMAIN in self.augmented.nodes else None

    @property
    def directed(self) -> frozenset[Arrow]:
        """The arrows of a DAG that extends the graph; where its arrows run in a circle there is none, and they stay."""
        try:
            return _variables(extend(self.augmented)).arrows
        except NoExtension:
            return self.graph.arrows


Program = Callable[[Mapping[str, Array], Sequence[str], int], Found]  # tables, names, seed


def _variables(graph: PartialGraph) -> PartialGraph:
    return graph.drop(DOMAIN) if DOMAIN in graph.nodes else graph


# CD-NOD of causal-learn


def causal_learn_cdnod() -> Callable[..., Any]:
    """Imported when first needed: the benchmarks of our own methods do without causal-learn."""
    try:
        from causallearn.search.ConstraintBased.CDNOD import cdnod as search  # type: ignore[import-untyped]
    except ImportError as missing:
        raise SystemExit("causal-learn is not installed; pip install 'fedcdh[peers]', or --peers fedpc") from missing
    return cast("Callable[..., Any]", search)


def cdnod(tables: Mapping[str, Array], names: Sequence[str], seed: int, *, test: str) -> Found:
    """causal-learn's CD-NOD with one of its tests, everything else as it comes."""
    search = causal_learn_cdnod()
    pooled = np.concatenate(list(tables.values()))
    client = np.repeat(np.arange(len(tables)), [len(table) for table in tables.values()])[:, None].astype(float)
    np.random.seed(seed)  # noqa: NPY002 (rcit and kci draw from it and take no generator)
    with contextlib.redirect_stderr(io.StringIO()):  # its progress bars, which cdnod cannot be asked to leave out
        marks = search(pooled, client, ALPHA, test).G.graph
    return Found(from_marks(marks, (*names, DOMAIN)))


def from_marks(marks: Array, nodes: Sequence[str]) -> PartialGraph:
    """causal-learn's matrix as a graph (see above for its codes)."""
    arrows: set[Arrow] = set()
    lines: set[Pair] = set()
    for i, j in combinations(range(len(nodes)), 2):
        here, there = marks[i, j], marks[j, i]
        if not (here or there):
            continue
        if DOMAIN in (nodes[i], nodes[j]):
            arrows.add((DOMAIN, nodes[i] if nodes[j] == DOMAIN else nodes[j]))
        elif here == there:
            lines.add(frozenset((nodes[i], nodes[j])))
        else:
            arrows.add((nodes[i], nodes[j]) if there == 1 else (nodes[j], nodes[i]))
    return PartialGraph(tuple(nodes), frozenset(arrows), frozenset(lines))


# FedPC

LARGEST = 3
"""The largest conditioning set, as in the authors' program."""

Neighbours = Mapping[int, frozenset[int]]
Given = tuple[int, ...]


@dataclass(frozen=True)
class Client:
    """One client of FedPC: what it says about its own rows."""

    rows: int
    correlations: Array

    @classmethod
    def of(cls, table: Array) -> Client:
        """A constant column is uncorrelated with all others."""
        centred = table - table.mean(axis=0)
        scale = np.linalg.norm(centred, axis=0)
        unit = centred / np.where(scale > 0, scale, 1)
        return cls(len(table), np.asarray(unit.T @ unit + np.diag((scale == 0).astype(float))))

    def correlation(self, a: int, b: int, given: Given) -> float:
        """r_{ab|S}, from the inverse of the correlations of a, b and S."""
        chosen = [a, b, *given]
        precision = np.linalg.pinv(self.correlations[np.ix_(chosen, chosen)], hermitian=True)
        size = math.sqrt(max(precision[0, 0] * precision[1, 1], 1e-300))
        return float(np.clip(-precision[0, 1] / size, -1 + 1e-12, 1 - 1e-12))

    def separates(self, a: int, b: int, given: Given) -> bool:
        """Fisher's z: √(n − |S| − 3) · artanh(r_{ab|S}) is standard normal if a ⫫ b | S; too few rows say nothing."""
        left = self.rows - len(given) - 3
        if left <= 0:
            return False
        statistic = math.sqrt(left) * abs(math.atanh(self.correlation(a, b, given)))
        return bool(2 * special.ndtr(-statistic) > ALPHA)


Vote = Callable[[int, int], bool]  # so many clients, of so many, would remove the edge: is it removed?


def unless_kept(votes: int, clients: int) -> bool:
    """Gone unless 30 % of the clients, rounded as in the authors' program, would keep it."""
    return clients - votes < max(1, math.floor(0.3 * clients + 0.5))


def when_vetoed(votes: int, clients: int) -> bool:
    """Gone as soon as 30 % of the clients would remove it."""
    return votes >= 0.3 * clients


def fedpc(tables: Mapping[str, Array], names: Sequence[str], seed: int, *, removed: Vote = unless_kept) -> Found:
    """A PC search of a server that hears votes and correlations only; `seed` is not used, nothing is random."""
    clients = [Client.of(table) for table in tables.values()]
    neighbours: Neighbours = {i: frozenset(range(len(names))) - {i} for i in range(len(names))}
    for level in range(LARGEST + 1):
        votes = {(a, b): _votes(clients, neighbours, a, b, level) for a in neighbours for b in neighbours[a] if a < b}
        gone = {frozenset(pair) for pair, count in votes.items() if removed(count, len(clients))}
        neighbours = {a: frozenset(b for b in near if {a, b} not in gone) for a, near in neighbours.items()}
    lines = frozenset(frozenset((names[a], names[b])) for a in neighbours for b in neighbours[a])
    graph = PartialGraph(tuple(names), lines=lines)
    colliders = [((names[a], names[z]), (names[b], names[z])) for a, z, b in _colliders(clients, neighbours)]
    refused = obstacles(graph, colliders, NOTHING_KNOWN)  # colliders that contradict each other direct nothing
    for tail, head in {arrow for bundle in colliders if bundle not in refused for arrow in bundle}:
        graph = graph.orient(tail, head)
    return Found(meek.close(graph)[0])


def _votes(clients: Sequence[Client], neighbours: Neighbours, a: int, b: int, level: int) -> int:
    """How many clients separate a from b by a set of this size among the neighbours of either."""
    sets = dict.fromkeys(S for near in (neighbours[a], neighbours[b]) for S in _sets(near - {a, b}, level))
    return sum(any(client.separates(a, b, S) for S in sets) for client in clients)


def _colliders(clients: Sequence[Client], neighbours: Neighbours) -> Iterator[tuple[int, int, int]]:
    """a → z ← b where z is not in the set that separates a and b best.

    That is the set with the weakest correlation, among those that some client takes for a separating one: the rule of
    the authors' program. (A majority of the clients' first sets does a little worse: direction F1 0.57, 0.47 and 0.63
    against 0.59, 0.48 and 0.68 in linear:6:2:100, 6:10:25 and 6:10:100 on seeds 100 to 159.)
    """
    for a, b in combinations(neighbours, 2):
        if b not in neighbours[a] and (between := neighbours[a] & neighbours[b]):
            around = neighbours[a] | neighbours[b]
            sets = [S for level in range(LARGEST + 1) for S in _sets(around, level)]
            told = [(abs(c.correlation(a, b, S)), S) for S in sets for c in clients if c.separates(a, b, S)]
            _, best = min(told, default=(0.0, ()))
            yield from ((a, z, b) for z in sorted(between - {*best}))


def _sets(nodes: frozenset[int], size: int) -> Iterator[Given]:
    return combinations(sorted(nodes), size)


CAUSAL_LEARN = ("fisherz", "rcit", "kci")

PEERS: Mapping[str, Program] = {
    **{test: partial(cdnod, test=test) for test in CAUSAL_LEARN},
    "fedpc": fedpc,
    "fedpc_veto": partial(fedpc, removed=when_vetoed),
}


def ready(peers: Sequence[str]) -> None:
    """Imports what these peers need, so that it is missed before any work is done, and not on the clock."""
    if set(peers) & {*CAUSAL_LEARN}:
        causal_learn_cdnod()
