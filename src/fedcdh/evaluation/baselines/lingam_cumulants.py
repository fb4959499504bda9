"""Linear models with noise that is not Gaussian, from cumulants of pairs: after Chen et al. (2025), arXiv 2507.06888.

Each client sends sums of products of its centred columns: x_i x_j, x_i² x_j, and for the fourth order x_i³ x_j and
x_i² x_j². The server makes cumulants of each client and averages them by rows. They are linear in the cumulants of the
noise, so clients may differ in location and in the size of their noise.

A source x has residuals e = y − b x that are independent of it. All cross cumulants of x and e then vanish, and these
are differences of products of cumulants of x and y. The variable whose cross cumulants are smallest, relative to
their standard errors, is taken as the next source. Its effect is removed from all others in closed form:
cum(y'^a, z'^b) = cum(y^a, z^b) − b_y^a b_z^b κ_{a+b}(x). This gives an order. The parents of a variable are those
before it, without those that the BIC of its regression drops, weakest first.

The standard errors and the rule for parents are ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedcdh._runtime.array_types import Array
from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel
from fedcdh.graphs.partial_graph import PartialGraph

_TINY = 1e-12


def run_lingam_cumulants(
    tables: Mapping[str, Array], names: Sequence[str], seed: int = 0, *, order: int = 4
) -> BaselineResult:
    """Find the order by vanishing cross cumulants up to this order, 3 or 4, and then the parents. Nothing is random.

    >>> x, e = np.random.default_rng(1).exponential(size=(2, 400))
    >>> table = np.column_stack([x, e - x])
    >>> print(run_lingam_cumulants({"north": table[:150], "south": table[150:]}, ("x", "y")).graph)
    x → y
    """
    if order not in (3, 4):
        raise SettingsError(
            f"found cumulants of order {order}; expected 3 or 4; choose one of these", parameter="order"
        )
    channel = CountingChannel(len(tables))
    received = [channel.to_server(sum_products(tables[client], order)) for client in sorted(tables)]
    counts = [int(channel.to_server(np.array(len(tables[client])))) for client in sorted(tables)]
    cumulants = _average_cumulants(received, counts)
    rows = sum(counts)
    arrows = _select_parents(cumulants.second, _find_order(cumulants, rows), rows)
    dag = PartialGraph.from_dag(tuple(names), {(names[tail], names[head]) for tail, head in arrows})
    return BaselineResult(dag, channel.traffic, dag)


def sum_products(table: Array, order: int) -> Array:
    """Return a client's sums of x_i x_j, x_i² x_j, and for order 4 of x_i³ x_j and x_i² x_j², around its means."""
    centred = table - table.mean(axis=0)
    squared = centred**2
    sums = [centred.T @ centred, squared.T @ centred]
    if order == 4:
        sums += [(squared * centred).T @ centred, squared.T @ squared]
    return np.stack(sums)


@dataclass(frozen=True, eq=False)
class PairCumulants:
    """Cumulants of all pairs; those of order 4 are zero where they are not used."""

    second: Array  # cum(i, j)
    third: Array  # cum(i, i, j)
    fourth: Array  # cum(i, i, i, j)
    balanced: Array  # cum(i, i, j, j)

    def remove(self, source: int) -> PairCumulants:
        """Return the cumulants of the residuals of all variables on a source."""
        second, third, fourth = (table[source, source] for table in (self.second, self.third, self.fourth))
        b = self.second[source] / max(second, _TINY)
        b[source] = 0.0
        return PairCumulants(
            self.second - np.outer(b, b) * second,
            self.third - np.outer(b**2, b) * third,
            self.fourth - np.outer(b**3, b) * fourth,
            self.balanced - np.outer(b**2, b**2) * fourth,
        )


def _average_cumulants(sums: Sequence[Array], counts: Sequence[int]) -> PairCumulants:
    """Return the mean of the clients' cumulants, with their rows as weights, for variables of variance 1."""
    total = np.zeros((4, *sums[0].shape[1:]))
    for received, rows in zip(sums, counts, strict=True):
        second, third, *higher = received / rows
        variances = np.diag(second)
        fourth = higher[0] - 3 * variances[:, None] * second if higher else np.zeros_like(second)
        balanced = higher[1] - np.outer(variances, variances) - 2 * second**2 if higher else np.zeros_like(second)
        total += rows * np.stack([second, third, fourth, balanced])
    pooled = total / sum(counts)
    spread = np.sqrt(np.maximum(np.diag(pooled[0]), 0))
    unit = np.where(spread > _TINY, 1 / np.maximum(spread, _TINY), 0.0)
    powers = [(1, 1), (2, 1), (3, 1), (2, 2)]
    return PairCumulants(*(table * np.outer(unit**a, unit**b) for table, (a, b) in zip(pooled, powers, strict=True)))


def _find_order(cumulants: PairCumulants, rows: int) -> list[int]:
    """Take the best source again and again, and remove its effect."""
    left = list(range(len(cumulants.second)))
    order = []
    while len(left) > 1:
        against = measure_dependence(cumulants, left, rows)
        source = left[int(np.argmin(np.maximum(against - against.T, 0).sum(axis=1)))]
        order.append(source)
        left.remove(source)
        cumulants = cumulants.remove(source)
    return order + left


def measure_dependence(cumulants: PairCumulants, left: Sequence[int], rows: int) -> Array:
    """Return Σ (cross cumulant of x and e)² / variance for e = y − b x, in row x and column y.

    The cumulants are those of (x, x, e), (x, e, e), (x, x, x, e), (x, x, e, e) and (x, e, e, e), all from cumulants of
    x and y. Their variances hold for independent x and e; sixth moments are guessed from fourth ones.
    """
    pick = np.ix_(left, left)
    second, third, fourth, balanced = (
        table[pick] for table in (cumulants.second, cumulants.third, cumulants.fourth, cumulants.balanced)
    )
    size = np.maximum(np.diag(second), _TINY)
    b = second / size[:, None]
    skew, tail = np.diag(third)[:, None], np.diag(fourth)[:, None]
    noise = np.maximum(size[None, :] - b**2 * size[:, None], _TINY)
    xxe = third - b * skew
    xee = third.T - 2 * b * third + b**2 * skew
    xxxe = fourth - b * tail
    xxee = balanced - 2 * b * fourth + b**2 * tail
    xeee = fourth.T - 3 * b * balanced + 3 * b**2 * fourth - b**3 * tail
    eee = np.diag(third)[None, :] - b**3 * skew
    eeee = np.diag(fourth)[None, :] - b**4 * tail
    x_square, x_cube = _spreads(skew / size[:, None] ** 1.5, tail / size[:, None] ** 2)
    e_square, e_cube = _spreads(eee / noise**1.5, eeee / noise**2)
    scale = np.sqrt(size)[:, None]
    found = xxe**2 / (x_square * scale**4 * noise) + xee**2 / (e_square * scale**2 * noise**2)
    if cumulants.fourth.any():
        found = found + xxxe**2 / (x_cube * scale**6 * noise) + xeee**2 / (e_cube * scale**2 * noise**3)
        found = found + xxee**2 / (x_square * e_square * scale**4 * noise**2)
    found = np.where(noise > 1e-9 * size[None, :], rows * found, 0.0)
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _spreads(skew: Array, tail: Array) -> tuple[Array, Array]:
    """Return the variances of the square and, roughly, of the cube of a variable, without their linear parts.

    Var x² = m₄ − 1 − m₃². That of x³ would need m₆; m₄² (m₄ − 1)/3 is 6 for Gaussian noise, as it should be, and
    within 40 % for uniform, Laplace and exponential noise.
    """
    fourth_moment = np.maximum(tail + 3, 1 + skew**2 + 0.1)
    return fourth_moment - 1 - skew**2, fourth_moment**2 * (fourth_moment - 1) / 3


def _select_parents(second: Array, order: Sequence[int], rows: int) -> set[tuple[int, int]]:
    """Return the arrows: regress each variable on those before it, and drop the weakest while BIC improves."""
    arrows = set()
    for place, node in enumerate(order):
        parents = [other for other in order[:place] if second[other, other] > _TINY]
        before = _residual_variance(second, node, parents)
        while parents and second[node, node] > _TINY:
            without = [_residual_variance(second, node, [p for p in parents if p != dropped]) for dropped in parents]
            weakest = int(np.argmin(without))
            if rows * math.log(without[weakest] / before) >= math.log(rows):
                break
            before = without[weakest]
            del parents[weakest]
        arrows |= {(parent, node) for parent in parents if second[node, node] > _TINY}
    return arrows


def _residual_variance(second: Array, node: int, parents: list[int]) -> float:
    """Return the variance of a variable given others, at least a tiny share of its own."""
    explained = 0.0
    if parents:
        cross = second[parents, node]
        explained = float(cross @ np.linalg.lstsq(second[np.ix_(parents, parents)], cross, rcond=1e-10)[0])
    return max(float(second[node, node]) - explained, 1e-10)
