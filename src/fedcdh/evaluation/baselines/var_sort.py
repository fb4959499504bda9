"""Sorting by variance: Reisach et al. (2021), "Beware of the Simulated DAG!", from sums alone.

In most simulated studies effects vary more than their causes, so that sorting the variables by variance gives the order
of causes without any causal reasoning. A method that is not clearly better than this one has shown nothing on such
data. On standardised data it falls to chance, because there is nothing to sort by.

Each variable is regressed on those that vary less by an adaptive lasso, whose penalty BIC chooses (as in the authors'
program). All of it follows from the rows, means and scatter of every client, which add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.errors import DataError
from fedcdh.evaluation.baselines.interface import BaselineResult, CountingChannel, dag_of_weights
from fedcdh.graphs.partial_graph import Arrow

_RELATIVE_TOLERANCE = 1e-9  # variances whose relative difference is smaller differ by rounding only
_ZERO_TOLERANCE = 1e-12  # of a variance, or of a correlation


def sort_by_variance(tables: Mapping[str, Array], names: Sequence[str], seed: int = 0) -> BaselineResult:
    """Find the order of pooled variances, thinned out by an adaptive lasso; `seed` decides between equal variances.

    >>> x, e = np.random.default_rng(1).standard_normal((2, 300))
    >>> table = np.column_stack([2 * x + e, x])
    >>> print(sort_by_variance({"north": table[:100], "south": table[100:]}, ("effect", "cause")).graph)
    cause → effect
    """
    channel = CountingChannel(len(tables))
    pooled = _PooledMoments.of_all(
        [_PooledMoments.received(channel.to_server(_PooledMoments.of(table).message)) for table in tables.values()]
    )
    if pooled.rows <= len(names) + 1:
        raise DataError(
            f"found {pooled.rows:.0f} rows of {len(names)} variables at all clients together; expected more rows than "
            "variables, which regressions on all of them need; add rows or leave variables out"
        )
    order = _order_by_variance(np.diag(pooled.scatter), seed)
    weights = np.zeros_like(pooled.scatter)
    for place, effect in enumerate(order[1:], start=1):
        causes = order[:place]
        weights[causes, effect] = _adaptive_lasso(
            pooled.scatter[np.ix_(causes, causes)],
            pooled.scatter[causes, effect],
            float(pooled.scatter[effect, effect]),
            pooled.rows,
        )
    return BaselineResult(dag_of_weights(weights, names, 0.0), channel.traffic)


def varsortability(tables: Mapping[str, Array], names: Sequence[str], arrows: Iterable[Arrow]) -> float:
    """Compute the share of true directed paths along which the variance increases.

    Each length and pair of ends counts once, and equal variances count half. At 1, sorting by variance gives a causal
    order; at ½, variances show nothing.

    Parameters
    ----------
    tables : mapping from str to array
        For each client its rows × variables.
    names : sequence of str
        Names of the variables, in the order of the columns.
    arrows : iterable of (str, str)
        True arrows as (cause, effect).

    Returns
    -------
    float
        The share, from 0 to 1.

    Raises
    ------
    DataError
        If there is no arrow.

    Examples
    --------
    >>> import numpy as np
    >>> from fedcdh.evaluation.baselines import varsortability
    >>> table = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0], [3.0, 9.0]])
    >>> varsortability({"north": table}, ("x", "y"), [("x", "y")])
    1.0
    """
    variance = np.concatenate(list(tables.values())).var(axis=0)
    steps = np.zeros((len(names), len(names)), dtype=np.int64)
    for tail, head in arrows:
        steps[names.index(tail), names.index(head)] = 1
    more = variance[None, :] - variance[:, None]
    rising = np.where(
        np.abs(more) <= _RELATIVE_TOLERANCE * np.maximum(variance[None, :], variance[:, None]), 0.5, more > 0
    )
    paths = np.zeros_like(rising)
    reached = steps
    for _ in names:
        paths += reached
        reached = np.minimum(reached @ steps, 1)
    if not paths.any():
        raise DataError(
            "found no arrow; expected at least one, along which a variance can increase; give the arrows of the true "
            "graph"
        )
    return float((paths * rising).sum() / paths.sum())


@dataclass(frozen=True, eq=False)
class _PooledMoments:
    """Rows, means and scatter about them, of one client or of all."""

    rows: float
    means: Array
    scatter: Array

    @classmethod
    def of(cls, table: Array) -> _PooledMoments:
        centred = table - table.mean(axis=0)
        return cls(float(len(table)), table.mean(axis=0), centred.T @ centred)

    @property
    def message(self) -> Array:
        return np.concatenate([[self.rows], self.means, self.scatter[np.triu_indices(len(self.means))]])

    @classmethod
    def received(cls, message: Array) -> _PooledMoments:
        variables = next(d for d in range(len(message)) if 1 + d + d * (d + 1) // 2 == len(message))
        scatter = np.zeros((variables, variables))
        scatter[np.triu_indices(variables)] = message[1 + variables :]
        return cls(float(message[0]), message[1 : 1 + variables], np.triu(scatter, 1).T + scatter)

    @classmethod
    def of_all(cls, clients: Sequence[_PooledMoments]) -> _PooledMoments:
        rows = np.array([client.rows for client in clients])
        means = np.array([client.means for client in clients])
        centre = rows @ means / rows.sum()
        between = ((means - centre).T * rows) @ (means - centre)
        return cls(float(rows.sum()), centre, np.sum([client.scatter for client in clients], axis=0) + between)


def _order_by_variance(variances: Array, seed: int) -> npt.NDArray[np.intp]:
    """Return the order of variances, smallest first; variances that differ by rounding only are shuffled."""
    order = np.argsort(variances)
    apart = [hi - lo > _RELATIVE_TOLERANCE * hi for lo, hi in pairwise(variances[order].tolist())]
    run = np.concatenate([[0], np.cumsum(apart)])
    return order[np.lexsort((np.random.default_rng(seed).permutation(len(order)), run))]


def _adaptive_lasso(scatter: Array, cross: Array, target: float, rows: float) -> Array:
    """Return the coefficients with the smallest BIC on the lasso path with penalties 1 / |least squares coefficient|.

    The noise in BIC = RSS/σ² + log(n) · (number of coefficients) is that of least squares.
    """
    least_squares = np.linalg.pinv(scatter, hermitian=True) @ cross
    weight = np.abs(least_squares)
    gram, moment = scatter * np.outer(weight, weight), cross * weight
    unexplained = max(float(target - cross @ least_squares), _ZERO_TOLERANCE * target, np.finfo(float).tiny)
    noise = unexplained / (rows - len(cross) - 1)

    def bic(found: Array) -> float:
        left = target - 2 * moment @ found + found @ gram @ found
        return float(left / noise + np.log(rows) * np.count_nonzero(found))

    return weight * min(_lasso_path(gram, moment), key=bic)


def _lasso_path(gram: Array, moment: Array) -> Iterator[Array]:
    """Yield the corners of the lasso's path from zero to least squares; coefficients are linear between them.

    BIC has its minimum at a corner: within a piece the squares fall while the number of coefficients stays.
    """
    found = np.zeros(len(moment))
    yield found
    usable = np.diag(gram) > _ZERO_TOLERANCE * np.diag(gram).max(initial=0.0)
    active: list[int] = []
    level = float(np.abs(moment[usable]).max(initial=0.0))
    end = _ZERO_TOLERANCE * level
    if level > 0:
        active = [int(np.argmax(np.abs(moment) * usable))]
    for _ in range(8 * len(moment) + 8):  # steps of the path; it has about as many as there are variables
        if not active or level <= end:
            return
        left = moment - gram @ found
        inside = gram[np.ix_(active, active)]
        direction = np.linalg.pinv(inside, hermitian=True) @ np.sign(left[active])
        slope = gram[:, active] @ direction
        joining = {
            j: _step_to_join(level, left[j], slope[j]) for j in np.flatnonzero(usable).tolist() if j not in active
        }
        leaving = {j: -found[j] / step for j, step in zip(active, direction, strict=True) if found[j] * step < 0}
        length, event = min([(level, -1), *((s, j) for j, s in joining.items()), *((s, j) for j, s in leaving.items())])
        found = found.copy()
        found[active] += length * direction
        level -= length
        if event in leaving:
            found[event] = 0.0
            active.remove(event)
        elif event >= 0:
            active.append(event)
        yield found


def _step_to_join(level: float, left: float, slope: float) -> float:
    """Return the length of the step after which |left − step · slope| has grown to level − step."""
    steps = [(level - sign * left) / (1 - sign * slope) for sign in (1, -1) if 1 - sign * slope > _ZERO_TOLERANCE]
    return min((step for step in steps if step > _ZERO_TOLERANCE * level), default=np.inf)
