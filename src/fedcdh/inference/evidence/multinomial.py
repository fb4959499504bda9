"""The evidence for the parents of a categorical variable, from counts of pairs of levels and second moments.

**Labels as parents.** The moments hold how often any two levels meet at each client, and nothing of higher order. For
no parent or one this is the whole table. For more, every client's table is completed from its pairs: the table of
maximum entropy, without interactions of three variables. It is the truth where the target's log odds add up over its
parents, and where pairs leave no choice, as in y = a or b. Parents that act by interaction alone (y = a xor b) are
missed, never invented. Completed tables are scored as if they had been observed.

**One mechanism for all clients** is a Dirichlet-multinomial with the prior of BDeu: `PRIOR_ROWS` rows, spread evenly over
the cells. DAGs of one class score the same as long as no table had to be completed.

**Mechanisms that differ** are rows of the table drawn for each client around a common row m, from Dirichlet(c·m), with
c averaged over `CONCENTRATIONS`. The evidence is that of one mechanism, times the ratio of the two likelihoods, each at
its own best m, times √(N/N') for every free entry of m, where N' of N rows are left when a client's rows count for no
more than c + 1: less is known of m then, and less is lost by having estimated it. For c → ∞ this is one mechanism
again. Entries without rows are not free, so a table that is certain does not count as differing for their sake.

**Numbers as parents** add what they add to a regression of the target's indicators on all parents (`gaussian`), with a
mechanism that is the same or differs between clients, as the case may be. A regression does not know that a label
cannot be more than certain: of its gain g over no parents counts h(1 − exp(−g/h)), where h is the entropy of the
target, in nats over all rows. This is g while it is small and never more than h; for two equally frequent levels it
turns the information of a normal variable into that of a binary one within 2 %. The numbers add the difference between
what counts of the gain with them and without them. Where mechanisms differ, the gain is that over one mechanism
without parents, so that what a shift of x does to y is not gained from the clients and again from x.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.evidence.gaussian import GaussianScore
from fedcdh.protocols import Family
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.plan import Categorical

Key: TypeAlias = tuple[str, ...]  # a node and its categorical parents

PRIOR_ROWS = 1.0
"""Rows that the prior of a table is worth, all cells together."""
CONCENTRATIONS = np.array([3.0, 10.0, 30.0, 100.0])
"""Rows that the pooled row of a table is worth to a client with a mechanism of its own."""
MAX_CELLS = 20_000
"""Larger tables are not completed; the parents that tell least of the target are left out of them, at a price."""
MAX_SWEEPS = 100
FIT_TOLERANCE = 1e-7
"""Completion ends when a sweep moves no cell by more than this share of the client's rows, or after so many sweeps."""
_Gains: TypeAlias = tuple[Array, Array]  # of all parents and of the labels; each if mechanisms are the same, differ
_NO_GAINS = (np.zeros(2), np.zeros(2))
_TINY_COUNT = 1e-100  # a pair without rows has a table without rows
_MAX_ELEMENTS = 1_000_000  # in one array: about 8 MB


class _TableEvidence(NamedTuple):
    """Log evidence, and the entropy of the target in nats over all rows that these parents leave."""

    same: float
    differing: float
    left: float


@dataclass(frozen=True, eq=False)
class MultinomialScore:
    """Log evidence of families of categorical nodes; comparable between the parent sets of a node."""

    counts: Array  # (clients, columns, columns): rows that have both levels
    levels: dict[str, Indices]  # of each categorical variable, the columns of the levels that some row has
    regression: GaussianScore

    @classmethod
    def of(cls, cohort: Cohort | Aggregate, regression: GaussianScore) -> MultinomialScore:
        labels = [variable.name for variable in cohort.plan.variables if isinstance(variable, Categorical)]
        if not labels:
            return cls(np.zeros((1, 0, 0)), {}, regression)
        seen, spans = cohort.total.moments.diagonal() > 0, cohort.plan.layout.spans
        levels = {name: spans[name].start + np.flatnonzero(seen[spans[name]]) for name in labels}
        return cls(cohort.moments, levels, regression)

    def __call__(self, families: Sequence[Family], /) -> list[tuple[float, float]]:
        """The log evidence of each family, in their order: (same mechanism at all clients, mechanisms that differ)."""
        kept = [self._countable(family) for family in families]
        alone = [(family.node,) for family in families]
        found = self._by_counts(dict.fromkeys([*(key for key, _ in kept), *alone]))
        gains = self._gains([f for f in families if not self._apart or not f.parents <= self.levels.keys()])
        total = _total_evidence if self._apart else _total_from_sums
        return [
            total(found[key], price, found[family.node,].left, gains.get(family, _NO_GAINS))
            for family, (key, price) in zip(families, kept, strict=True)
        ]

    @property
    def _apart(self) -> bool:
        """Whether the counts of every client are known."""
        return len(self.counts) == len(self.regression.basis.rows) > 1

    def _countable(self, family: Family) -> tuple[Key, float]:
        """The node and the parents that make its table, and the price of the categorical parents that do not.

        They explain nothing and cost what their main effect costs by BIC, so that the family without them is better.
        """
        node, labels, price = family.node, sorted(family.parents & self.levels.keys()), 0.0
        most = min(MAX_CELLS, _MAX_ELEMENTS // len(self.counts))
        while len(labels) > 1 and math.prod(len(self.levels[name]) for name in (node, *labels)) > most:
            labels.remove(weakest := min(labels, key=lambda name: self._information(node, name)))
            freedom = (len(self.levels[node]) - 1) * (len(self.levels[weakest]) - 1)
            price += freedom / 2 * math.log(self.regression.basis.total_rows)
        return (node, *labels), price

    def _information(self, one: str, other: str) -> float:
        """Rows times mutual information over all clients, up to a constant of the first; rounded, for equal ones."""
        joint = self.counts[:, self.levels[one][:, None], self.levels[other]].sum(axis=0)
        return round(float(xlogy(joint, _level_shares(joint)).sum()), 6)

    def _by_counts(self, keys: Iterable[Key]) -> dict[Key, _TableEvidence]:
        """The evidence of nodes (first) with categorical parents (the others), many tables of one shape at a time."""
        groups: dict[tuple[int, ...], list[Key]] = defaultdict(list)
        for key in keys:
            groups[tuple(len(self.levels[name]) for name in key)].append(key)
        found: dict[Key, _TableEvidence] = {}
        for shape, group in groups.items():
            step = max(1, _MAX_ELEMENTS // (math.prod(shape) * len(self.counts)))
            for start in range(0, len(group), step):
                part = group[start : start + step]
                found.update(zip(part, _score_tables(self._tables(part, shape)), strict=True))
        return found

    def _tables(self, keys: Sequence[Key], shape: tuple[int, ...]) -> Array:
        """Counts, completed where need be: (levels of the node, configurations of the parents, keys, clients)."""
        levels = [np.array([self.levels[key[axis]] for key in keys]) for axis in range(len(shape))]

        def pair(one: int, other: int) -> Array:
            joint = self.counts[:, levels[one][:, :, None], levels[other][:, None, :]]
            return np.moveaxis(joint, (2, 3, 1), (0, 1, 2)).reshape(shape[one], shape[other], -1)

        if len(shape) < 3:
            tables = pair(0, 1) if len(shape) == 2 else pair(0, 0).sum(axis=1)  # a level meets itself alone
        else:
            tables = complete_tables({(i, j): pair(i, j) for i, j in combinations(range(len(shape)), 2)})
        return tables.reshape(shape[0], -1, len(keys), len(self.counts))

    def _gains(self, families: Sequence[Family]) -> dict[Family, _Gains]:
        """What all parents, and what the labels among them, add to a regression on nothing."""
        labels = [Family(family.node, frozenset(family.parents & self.levels.keys())) for family in families]
        alone = [Family(family.node) for family in families]
        asked = list(dict.fromkeys([*families, *labels, *alone]))
        known = {family: np.array(both) for family, both in zip(asked, self.regression(asked), strict=True)}
        return {
            family: (known[family] - known[none][0], known[some] - known[none][0])
            for family, some, none in zip(families, labels, alone, strict=True)
        }


def complete_tables(pairs: Mapping[tuple[int, int], Array]) -> Array:
    """The tables of maximum entropy with these counts (levels, levels, tables) of all pairs of axes: (*axes, tables).

    Iterative proportional fitting; a table stops when it fits, whatever the others do. Fitting reaches a zero that the
    pairs imply only in the limit, so such cells are emptied first.
    """
    cells = tuple(range(1 + max(axis for pair in pairs for axis in pair)))
    others = {pair: tuple(axis for axis in cells if axis not in pair) for pair in pairs}
    wide = {others[pair]: np.expand_dims(counts, others[pair]) for pair, counts in pairs.items()}
    tables = np.where(_cell_upper_bounds(wide) > 0.5, 1.0, 0.0)
    rows = next(iter(wide.values())).sum(axis=cells)
    active, now = np.arange(len(rows)), tables
    for _ in range(MAX_SWEEPS):
        before, now = now, now.copy()
        for axes, counts in wide.items():
            now *= counts / np.maximum(now.sum(axis=axes, keepdims=True), _TINY_COUNT)
        moving = np.abs(now - before).max(axis=cells) > FIT_TOLERANCE * rows[active]
        tables[..., active] = now
        if not moving.any():
            break
        if not moving.all():
            active, now = active[moving], now[..., moving]
            wide = {axes: counts[..., moving] for axes, counts in wide.items()}
    return tables


def _cell_upper_bounds(wide: Mapping[tuple[int, ...], Array]) -> Array:
    """Upper bounds of the cells: of a pair's count, a cell has what the others do not have, and at least what they
    cannot have. A few rounds of both find what simple logic finds, such as all the zeros of a or b."""
    upper = np.asarray(reduce(np.minimum, wide.values()))
    lower = np.zeros_like(upper)
    for _ in range(3):
        for axes, counts in wide.items():
            lower = np.maximum(lower, counts - (upper.sum(axis=axes, keepdims=True) - upper))
        for axes, counts in wide.items():
            upper = np.minimum(upper, counts - (lower.sum(axis=axes, keepdims=True) - lower))
    return upper


def _score_tables(tables: Array) -> list[_TableEvidence]:
    """Of tables (levels, configurations, keys, clients): one mechanism for all clients, or one for each."""
    pooled, own = tables.sum(axis=-1), tables.sum(axis=0)
    cell = np.full(1, PRIOR_ROWS / (pooled.shape[0] * pooled.shape[1]))
    same = _log_rising_factorial(cell, pooled).sum(axis=(0, 1)) - _log_rising_factorial(
        cell * len(pooled), pooled.sum(axis=0)
    ).sum(axis=0)
    left = -xlogy(pooled, _level_shares(pooled)).sum(axis=(0, 1))
    free = (pooled / (1 + pooled)).sum(axis=0).clip(1.0) - 1
    several = np.stack([_differing_evidence(tables, own, free, c) for c in CONCENTRATIONS], axis=-1)
    differing = same + left + _log_mean(several) if tables.shape[-1] > 1 else same
    return [_TableEvidence(*map(float, one)) for one in zip(same, differing, left, strict=True)]


def _differing_evidence(tables: Array, own: Array, free: Array, concentration: float) -> Array:
    """Log likelihood of mechanisms around the best common one, times the Occam factor of its free entries."""
    weighted = (tables * np.minimum(1.0, (concentration + 1) / (own + concentration))).sum(axis=-1)
    mean = _level_shares(weighted)[..., None]
    prior = np.where(mean > 0, concentration * mean, 1.0)  # without rows any prior will do
    likelihood = _log_rising_factorial(prior, tables).sum(axis=(0, 1, 3)) - _log_rising_factorial(
        np.full(1, concentration), own
    ).sum(axis=(0, 2))
    share = np.divide(weighted.sum(axis=0), own.sum(axis=-1), out=np.ones_like(free), where=free > 0)
    return np.asarray(likelihood - (free * np.log(share)).sum(axis=0) / 2)


def _level_shares(table: Array) -> Array:
    """Of the levels in each configuration; zero where there are no rows."""
    return np.asarray(table / np.maximum(table.sum(axis=0), _TINY_COUNT))


def _log_rising_factorial(start: Array, count: Array) -> Array:
    """log Γ(start + count)/Γ(start): a log likelihood of so many rows, one by one."""
    return np.asarray(gammaln(start + count) - gammaln(start))


def _log_mean(values: Array) -> Array:
    """The log of the mean over the last axis of what has these logs."""
    return np.asarray(logsumexp(values, axis=-1) - math.log(values.shape[-1]))


def _total_from_sums(found: _TableEvidence, price: float, entropy: float, gains: _Gains) -> tuple[float, float]:
    """Where counts of clients are not known apart, the regression tells what levels that differ would gain."""
    same, _ = _total_evidence(found, price, entropy, gains)
    together, apart = _bound_gain(gains[0], entropy)
    return same, float(same + apart - together)


def _total_evidence(found: _TableEvidence, price: float, entropy: float, gains: _Gains) -> tuple[float, float]:
    """The evidence of all parents: that of the labels, and what the numbers add to it."""
    same, differing = _bound_gain(gains[0], entropy) - _bound_gain(gains[1], entropy)
    return float(found.same - price + same), float(found.differing - price + differing)


def _bound_gain(gain: Array, entropy: float) -> Array:
    """What counts of a gain where there is so much to explain; a loss stays what it is."""
    return np.asarray(np.where(gain > 0, -entropy * np.expm1(-np.maximum(gain, 0.0) / max(entropy, _TINY_COUNT)), gain))
