"""The score of a categorical variable given its parents, from counts of pairs of levels and second moments.

**Categorical parents.** The moments hold how often any two levels occur together at each client, and nothing of higher
order. Without parents or with one, this is the whole table. With more, every client's table is completed from its
pairs (`_table_completion`): the table of maximum entropy, without interactions of three variables. It is exact if the
target's log odds are additive in its parents, and if pairs leave no choice, as in y = a or b. Parents that act by
interaction alone (y = a xor b) are missed, never invented. Completed tables are scored as if they had been observed.

**One mechanism for all clients** is a Dirichlet-multinomial with the prior of BDeu: `PRIOR_ROWS` rows, spread evenly
over the cells. DAGs of one class have the same score as long as no table had to be completed.

**Mechanisms that differ** are rows of the table drawn for each client around a common row m, from Dirichlet(c·m), with
c averaged over `CONCENTRATIONS`. The evidence is that of one mechanism, times the ratio of the two likelihoods, each at
its own best m, times √(N/N') for every free entry of m. Of N rows, N' are left if a client's rows count for no more
than c + 1: less is known of m then, and less is lost by estimating it. For c → ∞ this is one mechanism again. Entries
without rows are not free, so a deterministic table does not count as differing because of them.

**Continuous parents** add what they add to a regression of the target's indicators on all parents (`gaussian`), with a
mechanism that is shared or differs between clients. A regression does not know that a probability is at most one: a
gain g over no parents counts as h(1 − exp(−g/h)), where h is the entropy of the target, in nats over all rows. This is
g while it is small, and never more than h; for two equally frequent levels it turns the information of a normal
variable into that of a binary one within 2 %. Continuous parents add the difference between the gain with them and
without them. If mechanisms differ, the gain is that over one mechanism without parents, so that the effect of a shift
of x on y is not counted twice, for the clients and for x.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.evidence._table_completion import complete_tables
from fedcdh.inference.evidence.gaussian import GaussianScore
from fedcdh.protocols import Family
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares
from fedcdh.summaries.variables import Categorical

Key: TypeAlias = tuple[str, ...]  # a node and its categorical parents

PRIOR_ROWS = 1.0
"""Weight of the prior of a table, in rows, over all cells."""
CONCENTRATIONS = np.array([3.0, 10.0, 30.0, 100.0])
"""Weight of the pooled row of a table, in rows, for a client with a mechanism of its own."""
MIN_CELLS, MAX_CELLS = 1_000, 20_000
"""Tables with more cells are not completed; the least informative parents are left out of them, at a price."""
ROWS_PER_CELL = 3
"""The limit between the two allows this many rows per cell: with fewer, parents hardly ever explain what they cost."""
_Gains: TypeAlias = tuple[
    Array, Array
]  # of all parents, and of the categorical ones; each for shared and differing mechanisms
_NO_GAINS = (np.zeros(2), np.zeros(2))
_TINY_COUNT = 1e-100  # avoids a division by zero for pairs without rows
_MAX_ELEMENTS = 1_000_000  # in the tables of one family: about 8 MB
_BATCH_ELEMENTS = 100_000  # in the tables that are completed at once: more would not stay in the cache


class _TableEvidence(NamedTuple):
    """Log evidence, and the entropy of the target in nats over all rows that these parents leave."""

    same: float
    differing: float
    left: float


@dataclass(frozen=True, eq=False)
class MultinomialScore:
    """Log evidence of families with a categorical node; comparable between the parent sets of a node.

    Attributes
    ----------
    counts : array
        (clients, columns, columns): the number of rows with both levels.
    levels : dict from str to array
        The columns of each categorical variable's levels that occur.
    regression : GaussianScore
        Scores continuous parents.
    shares : RowShares
        Shares of the rows that count, where rows depend on each other. Default all.

    Examples
    --------
    >>> import fedcdh
    >>> from fedcdh.inference import Basis
    >>> from fedcdh.inference.evidence import GaussianScore
    >>> from fedcdh.protocols import Family
    >>> cohort = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital").cohort
    >>> score = MultinomialScore.of(cohort, GaussianScore(Basis.of(cohort), noisy=False))
    >>> len(score([Family("medication")])[0])
    2
    """

    counts: Array
    levels: dict[str, Indices]
    regression: GaussianScore
    shares: RowShares = ALL_ROWS

    @classmethod
    def of(
        cls, cohort: Cohort | Aggregate, regression: GaussianScore, shares: RowShares = ALL_ROWS
    ) -> MultinomialScore:
        """Make the score of a study.

        Parameters
        ----------
        cohort : Cohort or Aggregate
            The summaries, or their sum.
        regression : GaussianScore
            Scores continuous parents.
        shares : RowShares
            Shares of the rows that count. Default all.

        Returns
        -------
        MultinomialScore
            The score.
        """
        categorical = [variable.name for variable in cohort.plan.variables if isinstance(variable, Categorical)]
        if not categorical:
            return cls(np.zeros((1, 0, 0)), {}, regression, shares)
        seen, spans = cohort.total.moments.diagonal() > 0, cohort.plan.layout.spans
        levels = {name: spans[name].start + np.flatnonzero(seen[spans[name]]) for name in categorical}
        return cls(cohort.moments, levels, regression, shares)

    def __call__(self, families: Sequence[Family], /) -> list[tuple[float, float]]:
        """Return (log evidence of a shared mechanism, log evidence of one that differs) for each family."""
        kept = [self._countable(family) for family in families]
        found = self._by_counts(dict.fromkeys(key for key, _ in kept))
        gains = self._gains([f for f in families if not self._apart or not f.parents <= self.levels.keys()])
        total = _total_evidence if self._apart else _total_from_sums
        return [
            total(found[key], price, self._alone[family.node].left, gains.get(family, _NO_GAINS))
            for family, (key, price) in zip(families, kept, strict=True)
        ]

    @property
    def _apart(self) -> bool:
        """Return whether the counts of every client are known."""
        return len(self.counts) == len(self.regression.basis.rows) > 1

    def _countable(self, family: Family) -> tuple[Key, float]:
        """Return the node with the parents of its table, and the price of the categorical parents left out of it.

        These explain nothing and cost what their main effect costs by BIC, so the family without them scores higher.
        """
        node, categorical, price = family.node, sorted(family.parents & self.levels.keys()), 0.0
        rows = self.regression.basis.total_rows
        most = min(MAX_CELLS, max(MIN_CELLS, int(rows / ROWS_PER_CELL)), _MAX_ELEMENTS // len(self.counts))
        while len(categorical) > 1 and math.prod(len(self.levels[name]) for name in (node, *categorical)) > most:
            categorical.remove(weakest := min(categorical, key=lambda name: self._information(node, name)))
            freedom = (len(self.levels[node]) - 1) * (len(self.levels[weakest]) - 1)
            price += freedom / 2 * math.log(rows)
        return (node, *categorical), price

    def _information(self, one: str, other: str) -> float:
        """Return rows times mutual information over all clients, up to a constant of the first, rounded for ties."""
        joint = self.counts[:, self.levels[one][:, None], self.levels[other]].sum(axis=0)
        return round(float(xlogy(joint, _level_shares(joint)).sum()), 6)

    @cached_property
    def _alone(self) -> dict[str, _TableEvidence]:
        """Return the evidence of each variable without parents."""
        return {name: found for (name,), found in self._by_counts([(name,) for name in self.levels]).items()}

    def _by_counts(self, keys: Iterable[Key]) -> dict[Key, _TableEvidence]:
        """Return the evidence of nodes (first) with categorical parents (the others).

        The table of some variables is the same whichever of them is the node, and is completed once.
        """
        groups: dict[tuple[int, ...], dict[Key, list[Key]]] = defaultdict(dict)
        for key in keys:
            names = tuple(sorted(key, key=lambda name: (len(self.levels[name]), name)))
            groups[tuple(len(self.levels[name]) for name in names)].setdefault(names, []).append(key)
        found: dict[Key, _TableEvidence] = {}
        for shape, group in groups.items():
            step = max(1, _BATCH_ELEMENTS // (math.prod(shape) * len(self.counts)))
            sets = sorted(group)
            for start in range(0, len(sets), step):
                part = sets[start : start + step]
                found |= self._score_sets(part, shape, [key for names in part for key in group[names]])
        return found

    def _score_sets(
        self, sets: Sequence[Key], shape: tuple[int, ...], keys: Iterable[Key]
    ) -> dict[Key, _TableEvidence]:
        """Complete the tables of sets of variables, and score keys of them, all nodes with as many levels at once."""
        tables, places = self._tables(sets, shape), {frozenset(names): place for place, names in enumerate(sets)}
        nodes: dict[int, dict[Key, Array]] = defaultdict(dict)
        for key in keys:
            place, size = places[frozenset(key)], len(self.levels[key[0]])
            table = np.moveaxis(tables[..., place, :], sets[place].index(key[0]), 0)
            nodes[size][key] = table.reshape(size, -1, len(self.counts))
        return {
            key: evidence
            for some in nodes.values()
            for key, evidence in zip(some, _score_tables(np.stack([*some.values()], axis=2)), strict=True)
        }

    def _tables(self, sets: Sequence[Key], shape: tuple[int, ...]) -> Array:
        """Return counts, completed if necessary: (*levels of the variables, sets, clients)."""
        levels = [np.array([self.levels[names[axis]] for names in sets]) for axis in range(len(shape))]

        def pair(one: int, other: int) -> Array:
            joint = self.counts[:, levels[one][:, :, None], levels[other][:, None, :]]
            return np.moveaxis(joint, (2, 3, 1), (0, 1, 2)).reshape(shape[one], shape[other], -1)

        if len(shape) < 3:
            tables = (
                pair(0, 1) if len(shape) == 2 else pair(0, 0).sum(axis=1)
            )  # a level occurs with no other level of its variable
        else:
            tables = complete_tables({(i, j): pair(i, j) for i, j in combinations(range(len(shape)), 2)})
        return _count_share(tables.reshape(*shape, len(sets), len(self.counts)), self.shares)

    def _gains(self, families: Sequence[Family]) -> dict[Family, _Gains]:
        """Return what all parents, and what the categorical ones among them, add to a regression without parents."""
        categorical = [Family(family.node, frozenset(family.parents & self.levels.keys())) for family in families]
        alone = [Family(family.node) for family in families]
        needed = list(dict.fromkeys([*families, *categorical, *alone]))
        known = {family: np.array(both) for family, both in zip(needed, self.regression(needed), strict=True)}
        return {
            family: (known[family] - known[none][0], known[some] - known[none][0])
            for family, some, none in zip(families, categorical, alone, strict=True)
        }


def _count_share(tables: Array, shares: RowShares) -> Array:
    """Return tables (*levels, tables, clients) of a share of the rows; clients are as close as their means are."""
    if shares == ALL_ROWS:
        return tables
    pooled, rows = tables.sum(axis=-1, keepdims=True), tables.sum(axis=tuple(range(tables.ndim - 2)), keepdims=True)
    alike = pooled * (rows / np.maximum(rows.sum(axis=-1, keepdims=True), _TINY_COUNT))
    return np.asarray(shares.product * (alike + shares.mean_factor * (tables - alike)))


def _score_tables(tables: Array) -> list[_TableEvidence]:
    """Score tables (levels, configurations, keys, clients) with one mechanism for all clients, and one for each."""
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
    """Return the log likelihood of mechanisms around the best common one, with the Occam factor of its entries."""
    weighted = (tables * np.minimum(1.0, (concentration + 1) / (own + concentration))).sum(axis=-1)
    mean = _level_shares(weighted)[..., None]
    prior = np.where(mean > 0, concentration * mean, 1.0)  # without rows, any prior will do
    likelihood = _log_rising_factorial(prior, tables).sum(axis=(0, 1, 3)) - _log_rising_factorial(
        np.full(1, concentration), own
    ).sum(axis=(0, 2))
    share = np.divide(weighted.sum(axis=0), own.sum(axis=-1), out=np.ones_like(free), where=free > 0)
    return np.asarray(likelihood - (free * np.log(share)).sum(axis=0) / 2)


def _level_shares(table: Array) -> Array:
    """Return the shares of the levels in each configuration; zero without rows."""
    return np.asarray(table / np.maximum(table.sum(axis=0), _TINY_COUNT))


def _log_rising_factorial(start: Array, count: Array) -> Array:
    """Return log Γ(start + count)/Γ(start): the log likelihood of rows that are counted one by one."""
    return np.asarray(gammaln(start + count) - gammaln(start))


def _log_mean(values: Array) -> Array:
    """Return the log of the mean over the last axis, given logs."""
    return np.asarray(logsumexp(values, axis=-1) - math.log(values.shape[-1]))


def _total_from_sums(found: _TableEvidence, price: float, entropy: float, gains: _Gains) -> tuple[float, float]:
    """Return the total for sums over clients, where a regression estimates the gain of differing levels."""
    same, _ = _total_evidence(found, price, entropy, gains)
    together, apart = _bound_gain(gains[0], entropy)
    return same, float(same + apart - together)


def _total_evidence(found: _TableEvidence, price: float, entropy: float, gains: _Gains) -> tuple[float, float]:
    """Return the evidence of all parents: that of the categorical ones, and what the continuous ones add."""
    same, differing = _bound_gain(gains[0], entropy) - _bound_gain(gains[1], entropy)
    return float(found.same - price + same), float(found.differing - price + differing)


def _bound_gain(gain: Array, entropy: float) -> Array:
    """Return the part of a gain that counts, given the entropy to explain; a loss stays as it is."""
    return np.asarray(np.where(gain > 0, -entropy * np.expm1(-np.maximum(gain, 0.0) / max(entropy, _TINY_COUNT)), gain))
