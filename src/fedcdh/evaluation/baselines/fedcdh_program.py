"""FedCDH as its authors' program has it, which differs from the paper's text: all rows in one place.

- The client's number is an extra numeric column, the index. Clients are numbered in the order of their names.
- PC-stable on the variables alone, with the tests of `random_feature_test`. Each pair is asked both ways round, since
  the tests are not symmetric, given sets of neighbours of the variable that comes first.
- The index is then joined to every variable and asked given sets of its own remaining neighbours. No question is given
  the index.
- A middle is a collider if it is in no separating set of the level that removed the pair. Colliders are taken in the
  order of columns, first come first served. Meek's rules follow.
- Direction step: for every pair of changing variables a score of independent change says which comes first. The program
  then adds an arrow, and its library refuses arrows between adjacent nodes. The step therefore adds edges that the
  tests rejected, and directs none of the lines that it was written for.

Order of columns and numbers of clients matter by definition. The program fixes its seeds, so `seed` has no effect; all
random draws are those of its libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.evaluation.baselines.random_feature_test import OrderedQuery, RandomFeatureTest
from fedcdh.graphs import meek_rules
from fedcdh.graphs.partial_graph import PartialGraph
from fedcdh.protocols import DOMAIN

Bools = npt.NDArray[np.bool_]
DirectionStep = Literal["add", "none", "direct"]
"""The use of the score of independent change: add arrows between non-adjacent variables, nothing, or direct lines."""

ALPHA = 0.05
CHANGE_WIDTH = 5
"""The number h of Nyström features in the direction step, the only place where h enters the program."""
CHANGE_GAMMA = 0.2
CHANGE_RIDGE = 1e-10
_BASIS_SEED = 1


def run_fedcdh_program(
    tables: Mapping[str, Array],
    names: Sequence[str],
    seed: int = 0,
    *,
    direction_step: DirectionStep = "add",
    width: int | None = None,
    alpha: float = ALPHA,
) -> BaselineResult:
    """Run the authors' program on all rows; `width` is the number h of features in the direction step.

    >>> x, y, e = np.random.default_rng(1).standard_normal((3, 200))
    >>> table = np.column_stack([x, y, x + y + e])
    >>> print(run_fedcdh_program({"north": table[:90], "south": table[90:]}, ("x", "y", "z")).graph)
    x → z
    y → z
    """
    if direction_step not in get_args(DirectionStep):
        raise SettingsError(
            f"found the direction step {direction_step!r}; expected one of {', '.join(get_args(DirectionStep))}; "
            "choose one of these",
            parameter="direction_step",
        )
    channel = CountingChannel(len(tables))
    clients = sorted(tables)
    pooled = np.concatenate([channel.to_server(tables[client]) for client in clients])
    index = np.repeat(np.arange(len(clients), dtype=np.float64), [len(tables[client]) for client in clients])
    test = RandomFeatureTest(np.column_stack([pooled, index]))
    search = _Search(test, alpha, len(names))
    search.find_skeleton()
    search.find_changes()
    graph = _orient_edges(search, (*names, DOMAIN))
    return BaselineResult(
        _apply_direction_step(graph, pooled, index, names, direction_step, width or CHANGE_WIDTH), channel.traffic
    )


@dataclass
class _Search:
    """PC-stable on the variables, then on the index; the index is the last node."""

    test: RandomFeatureTest
    alpha: float
    variables: int
    joined: Bools = field(init=False)
    separators: dict[tuple[int, int], set[int]] = field(default_factory=dict)  # all members of separating sets

    def __post_init__(self) -> None:
        self.joined = ~np.eye(self.variables + 1, dtype=np.bool_)
        self.joined[-1] = self.joined[:, -1] = False

    def find_skeleton(self) -> None:
        """Remove edges between variables, level by level."""
        self._remove_edges(range(self.variables))

    def find_changes(self) -> None:
        """Join the index to every variable, and remove its edges again, level by level."""
        self.joined[-1, :-1] = self.joined[:-1, -1] = True
        self._remove_edges([self.variables])

    def _remove_edges(self, sources: Sequence[int]) -> None:
        level = 0
        while level < self.joined.sum(axis=0).max(initial=0):
            queries = [query for x in sources for query in self._list_queries(x, level)]
            removed = set()
            for (x, y, given), p_value in zip(queries, self.test(queries), strict=True):
                if p_value > self.alpha:
                    removed.add((x, y))
                    self.separators.setdefault((min(x, y), max(x, y)), set()).update(given)
            for x, y in removed:
                self.joined[x, y] = self.joined[y, x] = False
            level += 1

    def _list_queries(self, x: int, level: int) -> Iterator[OrderedQuery]:
        around = np.flatnonzero(self.joined[x]).tolist()
        for y in around:
            yield from ((x, y, given) for given in combinations([z for z in around if z != y], level))


def _orient_edges(search: _Search, nodes: tuple[str, ...]) -> PartialGraph:
    """Orient the edges of the domain, colliders in the order of columns, and what follows by Meek's rules."""
    joined = search.joined
    lines = frozenset(frozenset((nodes[a], nodes[b])) for a, b in np.argwhere(joined).tolist())
    graph = PartialGraph(nodes, lines=lines)
    for a in np.flatnonzero(joined[-1]).tolist():
        graph = graph.orient(DOMAIN, nodes[a])
    for a, middle, b in _unshielded_triples(joined):
        first, second = (nodes[a], nodes[middle]), (nodes[b], nodes[middle])
        opposed = any((head, tail) in graph.arrows for tail, head in (first, second))
        if middle not in search.separators.get((a, b), ()) and not opposed:
            for tail, head in (first, second):
                graph = graph if (tail, head) in graph.arrows else graph.orient(tail, head)
    return meek_rules.apply_meek_rules(graph)[0]


def _unshielded_triples(joined: Bools) -> Iterator[tuple[int, int, int]]:
    """Yield a — middle — b with a < b and no edge between them, in the order of middle, a and b."""
    for middle in range(len(joined)):
        for a, b in combinations(np.flatnonzero(joined[middle]).tolist(), 2):
            if not joined[a, b]:
                yield a, middle, b


# The direction step


def _apply_direction_step(
    graph: PartialGraph, pooled: Array, index: Array, names: Sequence[str], step: DirectionStep, width: int
) -> PartialGraph:
    changing = [place for place, name in enumerate(names) if (DOMAIN, name) in graph.arrows]
    if step == "none" or len(changing) < 2:
        return graph
    added = set()
    for i, j in combinations(changing, 2):
        tail, head = (i, j) if score_change(pooled[:, i], pooled[:, j], index, width) else (j, i)
        if step == "add" and not graph.is_adjacent(names[i], names[j]):
            added.add((names[tail], names[head]))
        elif step == "direct" and graph.has_line(names[i], names[j]):
            graph = graph.orient(names[tail], names[head])
    return PartialGraph(graph.nodes, graph.arrows | added, graph.lines)


def score_change(x: Array, y: Array, index: Array, width: int = CHANGE_WIDTH) -> bool:
    """Return whether the program prefers x → y: ‖μ_xᵀ μ_xy‖² / ‖μ_x‖² is the smaller of the two directions.

    μ_x = C_xc (C_cc + γI)⁻¹ φ(c) is the embedding of P(x | index), μ_xy that of P(x, y | index). As in the program they
    are centred over features, not over rows.
    """
    features = draw_nystroem_features(index[:, None], width)
    centred = features - features.mean(axis=0)
    inverse = np.linalg.inv(centred.T @ centred / len(index) + CHANGE_RIDGE * np.eye(features.shape[1]))

    def embed(columns: Array) -> Array:
        own = draw_nystroem_features(columns, width)
        weights = (own - own.mean(axis=0)).T @ centred / len(index) @ inverse
        return np.asarray((weights - weights.mean(axis=0)) @ features.T)

    joint = embed(np.column_stack([x, y]))
    first, second = (_relative_size(embed(column[:, None]), joint) for column in (x, y))
    return first < second


def _relative_size(alone: Array, joint: Array) -> float:
    """Return ‖aᵀ b‖² / ‖a‖², up to a factor that is the same in both directions."""
    size = float((alone**2).sum())
    return float(((alone @ alone.T) * (joint @ joint.T)).sum()) / size if size > 0 else 0.0


def draw_nystroem_features(columns: Array, width: int) -> Array:
    """Return Nyström features of exp(−γ ‖a − b‖²) with `width` rows as basis; the draw is the same for all columns."""
    chosen = np.random.RandomState(_BASIS_SEED).permutation(len(columns))[:width]  # as scikit-learn draws
    basis = columns[chosen]
    left, sizes, right = np.linalg.svd(_gaussian_kernel(basis, basis))
    whitening = (left / np.sqrt(np.maximum(sizes, 1e-12))) @ right
    return np.asarray(_gaussian_kernel(columns, basis) @ whitening.T)


def _gaussian_kernel(rows: Array, basis: Array) -> Array:
    apart = ((rows[:, None, :] - basis[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-CHANGE_GAMMA * apart))
