"""Summaries of clients that lack variables, completed to what is expected of them.

Let S be the pooled covariance of all features within clients. A client that has the features o and lacks a is expected
to have the products E[Σ φ_a φ_oᵀ] = B Σ φ_o φ_oᵀ with B = S_ao S_oo⁻¹, and Σ φ_a φ_aᵀ has the rest n (S_aa − B S_oa) as
well. S itself is found by expectation and maximisation: it is the mean of the completed products, and they follow from
it. This is the algorithm of Dempster, Laird and Rubin for a normal distribution with missing values, on sums.

Every pair of variables then has one covariance for all clients, so that graphs of one class have one likelihood.
A pair that nobody measured together is independent given all others: nothing speaks for an edge.
What is expected is no evidence, so that only a share of all rows counts: that of pairs which are measured together.

References
----------
Dempster, "Covariance selection", Biometrics 28, 1972.
Dempster, Laird and Rubin, "Maximum likelihood from incomplete data via the EM algorithm", JRSS B 39, 1977.
Friedman, "Learning belief networks in the presence of missing values and hidden variables", ICML 1997.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.counted_rows import counted_shares
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.row_dependence import RowShares
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.variables import Categorical

Chosen = npt.NDArray[np.bool_]

RIDGE = 1e-3
"""Added to the variance of each standardised feature: features of one variable nearly determine each other."""
PRIOR_ROWS = 20.0
"""Rows by which the covariance of different variables is drawn towards zero."""
MAX_STEPS, MIN_CHANGE = 60, 1e-4
"""Steps of the algorithm at most, and the change of a correlation at which it ends."""
_MIN_VARIANCE = 1e-12
_FITTING_STEPS = 20  # of tables of labels, to the margins that they should have


@dataclass(frozen=True, eq=False)
class CompletedCohort(Cohort):
    """A cohort in which the blocks that clients lack are what is expected of them.

    Attributes
    ----------
    observed : Cohort
        The summaries as they came.

    Examples
    --------
    >>> from fedcdh.summaries import Continuous, StudyPlan, add_up, summarize
    >>> plan = StudyPlan((Continuous("a"), Continuous("b")), ("north", "south"), absent={"north": ["b"]})
    >>> parts = [summarize({"a": [0.1, 0.9]}, plan, "north"), summarize({"a": [0.2, 1], "b": [1, 2]}, plan, "south")]
    >>> completed = complete_cohort(add_up(parts, plan))
    >>> len(completed.summaries[0].moments) == len(completed.summaries[1].moments)
    True
    """

    observed: Cohort

    @cached_property
    def coverage(self) -> float:
        """Return the share of rows that is measured for a pair of variables, on average over all pairs."""
        rows = dict(zip(self.clients, self.client_rows, strict=True))
        pairs = [frozenset(pair) for pair in combinations(self.plan.names, 2)] or [frozenset(self.plan.names)]
        held = [sum(rows[client] for client in self.observed.holders(pair)) for pair in pairs]
        return max(sum(held) / (len(pairs) * sum(rows.values())), 1 / sum(rows.values()))

    @cached_property
    def holding(self) -> dict[str, Chosen]:
        """Return for every variable which clients have it, in the order of the clients."""
        columns = self.observed.columns_of
        return {name: np.array([name in columns[client] for client in self.clients]) for name in self.plan.names}


def complete_cohort(cohort: Cohort) -> Cohort:
    """Return a cohort with the blocks that clients lack as they are expected.

    Parameters
    ----------
    cohort : Cohort
        Summaries of all clients.

    Returns
    -------
    Cohort
        The cohort itself, if nobody lacks anything; else a `CompletedCohort`.
    """
    if not cohort.lacks_columns:
        return cohort
    parts = [_ClientPart.of(summary, cohort.plan) for summary in cohort.summaries]
    completed = _estimate(parts, cohort.plan)
    summaries = [
        _to_summary(summary, part, cohort.plan, *found)
        for summary, part, found in zip(cohort.summaries, parts, completed, strict=True)
    ]
    return CompletedCohort(cohort.plan, tuple(summaries), cohort)


def count_shares(known: Cohort | Aggregate) -> RowShares:
    """Return the shares of rows that count for all variables together.

    Parameters
    ----------
    known : Cohort or Aggregate
        What the coordinator knows.

    Returns
    -------
    RowShares
        Those of the plan, less the part of the rows whose values are expected only.

    Examples
    --------
    >>> import fedcdh
    >>> count_shares(fedcdh.discover(fedcdh.simulate(seed=1).columns("site"), domain="site").cohort)
    RowShares(product=1.0, mean=1.0)
    """
    shares = counted_shares(known)
    if not isinstance(known, CompletedCohort):
        return shares
    return RowShares(known.coverage * shares.product, known.coverage * shares.mean)


class _ClientPart(NamedTuple):
    """The numbers of a client: the places of its columns among those of the plan, their means and their scatter."""

    held: Indices
    lacking: Indices
    rows: float
    means: Array
    scatter: Array

    @classmethod
    def of(cls, summary: Summary, plan: StudyPlan) -> _ClientPart:
        """Take a summary apart; the constant is left out."""
        spans, columns = plan.layout.spans, np.arange(plan.layout.n_columns)
        names = [name for name in spans if name in summary.missing]
        held = np.concatenate([columns[spans[name]] for name in names])
        lacking = np.setdiff1d(columns[1:], held)
        return cls(
            held - 1,
            lacking - 1,
            float(summary.rows),
            summary.means[1:],
            summary.scatter(slice(1, None), slice(1, None)),
        )


def _estimate(parts: list[_ClientPart], plan: StudyPlan) -> list[tuple[Array, Array]]:
    """Return the means and the scatter of all columns at each client."""
    width = plan.layout.n_columns - 1
    rows = sum(part.rows for part in parts)
    own, mean, size = _start(parts, plan, width)
    sigma, found, apart = own.copy(), list[tuple[Array, Array]](), _unmeasured_blocks(parts, plan)
    for _ in range(MAX_STEPS):
        weights = _regressions(sigma, parts)
        found = [_expect(part, weights[part.lacking.tobytes()], sigma, mean, size) for part in parts]
        scatter = np.sum([one for _, one in found], axis=0)
        new = _join_by_others((scatter + PRIOR_ROWS * own) / (rows + PRIOR_ROWS), apart)
        mean = mean + size * np.sum([part.rows * z for part, (z, _) in zip(parts, found, strict=True)], axis=0) / rows
        change, sigma = float(np.abs(new - sigma).max()), new
        if change < MIN_CHANGE:
            break
    weights = _regressions(sigma, parts)
    found = [_expect(part, weights[part.lacking.tobytes()], sigma, mean, size) for part in parts]
    return [(mean + size * z, scatter * np.outer(size, size)) for z, scatter in found]


def _unmeasured_blocks(parts: list[_ClientPart], plan: StudyPlan) -> list[tuple[slice, slice]]:
    """Return the columns of the pairs of variables that no client has both of."""
    spans = [slice(span.start - 1, span.stop - 1) for span in plan.layout.spans.values()]
    held = [frozenset(part.held.tolist()) for part in parts]
    return [
        (one, other)
        for one, other in combinations(spans, 2)
        if not any({one.start, other.start} <= columns for columns in held)
    ]


def _join_by_others(sigma: Array, apart: list[tuple[slice, slice]]) -> Array:
    """Return the covariance in which pairs that nobody measured are independent given all other variables.

    The likelihood is flat there; of all covariances it allows, this is the one of largest entropy (Dempster, 1972).
    """
    for one, other in apart:
        rest = np.ones(len(sigma), dtype=np.bool_)
        rest[one] = rest[other] = False
        inner = sigma[np.ix_(rest, rest)] + RIDGE * np.eye(int(rest.sum()))
        block = sigma[one][:, rest] @ np.linalg.solve(inner, sigma[rest][:, other])
        sigma[one, other], sigma[other, one] = block, block.T
    return sigma


def _start(parts: list[_ClientPart], plan: StudyPlan, width: int) -> tuple[Array, Array, Array]:
    """Return the correlations of each variable's own columns, the means and the standard deviations of all columns."""
    rows, sums, squares = np.zeros(width), np.zeros(width), np.zeros((width, width))
    for part in parts:
        rows[part.held] += part.rows
        sums[part.held] += part.rows * part.means
        squares[np.ix_(part.held, part.held)] += part.scatter
    rows = np.maximum(rows, 1.0).astype(np.float64)
    size: Array = np.sqrt(np.maximum(squares.diagonal() / rows, _MIN_VARIANCE))
    own: Array = np.zeros((width, width))
    for span in plan.layout.spans.values():
        place = slice(span.start - 1, span.stop - 1)
        block: Array = squares[place, place] / np.outer(size[place], size[place])
        own[place, place] = block / rows[place]
    return own, sums / rows, size


def _regressions(sigma: Array, parts: list[_ClientPart]) -> dict[bytes, Array]:
    """Return the regression of what is lacking on what is there, once for all clients that lack the same."""
    found: dict[bytes, Array] = {}
    for part in parts:
        key = part.lacking.tobytes()
        if key not in found:
            inner = sigma[np.ix_(part.held, part.held)] + RIDGE * np.eye(len(part.held))
            weights = np.linalg.solve(inner, sigma[np.ix_(part.held, part.lacking)])
            found[key] = np.asarray(weights.T, dtype=np.float64)
    return found


def _expect(part: _ClientPart, weights: Array, sigma: Array, mean: Array, size: Array) -> tuple[Array, Array]:
    """Return the standardised means and the scatter of all columns that are expected of a client."""
    held, lacking = part.held, part.lacking
    z, scatter = np.zeros(len(mean)), np.zeros_like(sigma)
    z[held] = (part.means - mean[held]) / size[held]
    inner = part.scatter / np.outer(size[held], size[held])
    cross = weights @ inner
    z[lacking] = weights @ z[held]
    scatter[np.ix_(held, held)] = inner
    scatter[np.ix_(lacking, held)], scatter[np.ix_(held, lacking)] = cross, cross.T
    rest = sigma[np.ix_(lacking, lacking)] - weights @ sigma[np.ix_(held, lacking)]
    block = cross @ weights.T + part.rows * rest
    scatter[np.ix_(lacking, lacking)] = (block + block.T) / 2
    return z, scatter


def _to_summary(summary: Summary, part: _ClientPart, plan: StudyPlan, means: Array, scatter: Array) -> Summary:
    """Return a summary of all columns: the client's own sums, and expected ones in the rest."""
    if not len(part.lacking):
        return summary
    mean = np.concatenate([[1.0], np.clip(means, -1.0, 1.0)])
    moments = part.rows * np.outer(mean, mean)
    moments[1:, 1:] += scatter
    own = np.concatenate([[0], part.held + 1])
    moments[np.ix_(own, own)] = summary.moments / float(GRID**2)
    _fit_labels(moments, plan, frozenset(summary.missing))
    limit = summary.rows * GRID**2
    whole = np.clip(np.rint(np.clip(moments, -part.rows, part.rows) * GRID**2), -limit, limit).astype(np.int64)
    whole = np.triu(whole) + np.triu(whole, 1).T
    whole[np.ix_(own, own)] = summary.moments
    missing = {name: summary.missing.get(name, 0) for name in plan.names}
    return replace(summary, moments=whole, missing=missing)


def _fit_labels(moments: Array, plan: StudyPlan, held: frozenset[str]) -> None:
    """Make sums of indicators that are expected into counts of labels: none is negative, and they add up."""
    spans = {one.name: plan.layout.spans[one.name] for one in plan.variables if isinstance(one, Categorical)}
    rows = moments[0, 0]
    for name in spans.keys() - held:
        span = spans[name]
        counts = np.maximum(moments[0, span], 1e-9 * rows)
        counts *= rows / counts.sum()
        moments[0, span] = moments[span, 0] = counts
        moments[span, span] = np.diag(counts)
    for one, other in combinations(spans, 2):
        if one in held and other in held:
            continue
        first, second = spans[one], spans[other]
        table = _fit_margins(moments[first, second], moments[0, first], moments[0, second])
        moments[first, second], moments[second, first] = table, table.T


def _fit_margins(table: Array, rows: Array, columns: Array) -> Array:
    """Return a table without negative counts that has these margins, nearly."""
    table = np.maximum(table, 1e-9)
    for _ in range(_FITTING_STEPS):
        table = table * (rows / np.maximum(table.sum(axis=1), 1e-12))[:, None]
        table = table * (columns / np.maximum(table.sum(axis=0), 1e-12))
    return np.asarray(table)


def select_clients(holding: Mapping[str, Chosen], names: frozenset[str]) -> Chosen:
    """Return which clients have all of some variables.

    Parameters
    ----------
    holding : mapping from str to array of bool
        For every variable which clients have it.
    names : frozenset of str
        Names of variables.

    Returns
    -------
    array of bool
        One per client.

    Examples
    --------
    >>> select_clients({"a": np.array([True, True]), "b": np.array([True, False])}, frozenset("ab"))
    array([ True, False])
    """
    return np.asarray(np.logical_and.reduce([holding[name] for name in sorted(names)]))
