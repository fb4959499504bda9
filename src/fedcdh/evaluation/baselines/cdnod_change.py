"""CD-NOD with its own direction step, on all rows: Huang et al. (2020), independent changes of two mechanisms.

causal-learn's CD-NOD leaves a line between two changing variables a line. Here such lines are directed by dependences
between changes, and Meek's rules follow. For x → y, the change of P(x) is seen in the mean embeddings of x at each
client. That of P(y | x) is seen in the embeddings of the joint with one common P(x), that of all rows:
μ_c = mean over all x_i of μ_{y|x_i,c} ⊗ φ(x_i), with μ_{y|x,c} by kernel ridge regression on the rows of client c.

Squared distances between clients' embeddings give two Gaussian kernel matrices M over clients. The dependence is
tr(M_x M_{y|x}) / (tr M_x · tr M_{y|x}) after centring, and the direction with the smaller one wins. Kernels of rows are
Gaussian too; all widths are median distances. Time and memory grow with the square of all rows and more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.spatial.distance import pdist, squareform

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines.interface import BaselineResult
from fedcdh.evaluation.baselines.pooled_references import ALPHA, run_cdnod
from fedcdh.graphs.admissible_arrows import find_obstacles
from fedcdh.graphs.knowledge import NO_KNOWLEDGE
from fedcdh.graphs.meek_rules import apply_meek_rules
from fedcdh.graphs.partial_graph import PartialGraph, sort_pair
from fedcdh.protocols import ModuleDependence

RIDGE = 1e-3
"""The ridge of the regressions, times the rows of the client."""


def run_cdnod_change(
    tables: Mapping[str, Array], names: Sequence[str], seed: int = 0, *, test: str = "kci", alpha: float = ALPHA
) -> BaselineResult:
    """Run causal-learn's CD-NOD, and direct the lines between changing variables by independent change."""
    found = run_cdnod(tables, names, seed, test=test, alpha=alpha)
    changing = found.changing or frozenset()
    pairs = [sort_pair(line) for line in found.augmented.lines if line <= changing]
    if not pairs:
        return found
    measured = KernelChange([tables[client] for client in sorted(tables)], names)(sorted(pairs))
    return replace(found, augmented=direct_by_change(found.augmented, measured))


def direct_by_change(graph: PartialGraph, measured: Sequence[ModuleDependence]) -> PartialGraph:
    """Direct lines by the smaller dependence, the largest ratio first; arrows that would close a cycle are left out."""

    def clarity(found: ModuleDependence) -> float:
        return min(found.forward, found.backward) / max(found.forward, found.backward, 1e-300)

    for found in sorted(measured, key=lambda found: (clarity(found), found.tail, found.head)):
        forward = found.forward < found.backward
        arrow = (found.tail, found.head) if forward else (found.head, found.tail)
        if graph.has_line(*arrow) and not find_obstacles(graph, [(arrow,)], NO_KNOWLEDGE):
            graph = apply_meek_rules(graph.orient(*arrow))[0]
    return graph


class KernelChange:
    """The dependence between changes of P(x) and of P(y | x), from the rows of all clients: an `IndependentChange`.

    >>> draw = np.random.default_rng(1)
    >>> x = [draw.standard_normal(40) * (1 + k) for k in range(4)]
    >>> tables = [np.column_stack([one, one + draw.standard_normal(40)]) for one in x]
    >>> (found,) = KernelChange(tables, ("x", "y"))([("x", "y")])
    >>> 0 <= found.forward <= 1
    True
    """

    def __init__(self, tables: Sequence[Array], names: Sequence[str]) -> None:
        pooled = np.concatenate(tables)
        self._kernels = {name: gaussian_kernel(pooled[:, [place]]) for place, name in enumerate(names)}
        self._clients = np.repeat(np.arange(len(tables)), [len(table) for table in tables])

    def __call__(self, pairs: Sequence[tuple[str, str]], /) -> list[ModuleDependence]:
        """Return the dependence of both directions of every pair."""
        return [ModuleDependence(x, y, self._dependence(x, y), self._dependence(y, x)) for x, y in pairs]

    def _dependence(self, cause: str, effect: str) -> float:
        x, y = self._kernels[cause], self._kernels[effect]
        members = (self._clients[:, None] == np.arange(self._clients[-1] + 1)).astype(np.float64)
        shares = members / members.sum(axis=0)
        alone = _kernel_of_clients(shares.T @ x @ shares)
        weights = self._regression_weights(x, members)
        given = _kernel_of_clients(members.T @ (weights @ x @ weights.T * y) @ members / len(x) ** 2)
        return float((alone * given).sum() / max(np.trace(alone) * np.trace(given), 1e-300))

    def _regression_weights(self, x: Array, members: Array) -> Array:
        """Return w with μ_{y|x_i,c} = Σ_t w_ti φ(y_t) over the rows t of client c, for all rows i."""
        weights = np.empty_like(x)
        for client in range(members.shape[1]):
            own = np.flatnonzero(members[:, client])
            inner = x[np.ix_(own, own)] + RIDGE * len(own) * np.eye(len(own))
            weights[own] = np.linalg.solve(inner, x[own])
        return weights


def gaussian_kernel(columns: Array) -> Array:
    """Return the Gaussian kernel matrix of rows, with the median distance as width."""
    apart = pdist(columns, "sqeuclidean")
    return _kernel_of_distances(squareform(apart, checks=False), float(np.median(apart)) if len(apart) else 0.0)


def _kernel_of_clients(inner: Array) -> Array:
    """Return the centred Gaussian kernel of clients whose embeddings have these inner products."""
    sizes = np.diag(inner)
    apart = np.maximum(sizes[:, None] + sizes[None, :] - 2 * inner, 0.0)
    between = apart[np.triu_indices(len(apart), 1)]
    kernel = _kernel_of_distances(apart, float(np.median(between)) if len(between) else 0.0)
    return np.asarray(kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean())


def _kernel_of_distances(squared: Array, width: float) -> Array:
    return np.asarray(np.exp(-squared / max(2 * width, 1e-300)))
