"""The score of a categorical variable given its parents, from counts of pairs of levels and second moments.

**Categorical parents.** The moments hold how often any two levels occur together at each client, and nothing of higher
order. Without parents or with one, this is the whole table. With more, every client's table is completed from its
pairs (`_label_tables`, `_table_completion`): the table of maximum entropy, without interactions of three variables. It
is exact if the target's log odds are additive in its parents, and if pairs leave no choice, as in y = a or b. Parents
that act by interaction alone (y = a xor b) are missed, never invented. Completed tables are scored as if they had been
observed.

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.special import xlogy

from fedcdh._runtime.array_types import Array, Indices
from fedcdh.inference.evidence._label_tables import MAX_ELEMENTS, Key, LabelTables, level_shares
from fedcdh.inference.evidence.gaussian import GaussianScore
from fedcdh.protocols import Family
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares
from fedcdh.summaries.variables import Categorical

MIN_CELLS, MAX_CELLS = 1_000, 20_000
"""Tables with more cells are not completed; the least informative parents are left out of them, at a price."""
ROWS_PER_CELL = 3
"""The limit between the two allows this many rows per cell: with fewer, parents hardly ever explain what they cost."""
_Gains: TypeAlias = tuple[
    Array, Array
]  # of all parents, and of the categorical ones; each for shared and differing mechanisms
_NO_GAINS = (np.zeros(2), np.zeros(2))
_TINY_ENTROPY = 1e-100  # avoids a division by zero


@dataclass(frozen=True, eq=False)
class MultinomialScore:
    """Log evidence of families with a categorical node; comparable between the parent sets of a node.

    Attributes
    ----------
    tables : LabelTables
        Counts of labels at every client, and the evidence of categorical parents.
    regression : GaussianScore
        Scores continuous parents.

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

    tables: LabelTables
    regression: GaussianScore

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
            return cls(LabelTables(np.zeros((1, 0, 0)), {}, shares), regression)
        seen, spans = cohort.total.moments.diagonal() > 0, cohort.plan.layout.spans
        levels = {name: spans[name].start + np.flatnonzero(seen[spans[name]]) for name in categorical}
        return cls(LabelTables(cohort.moments, levels, shares), regression)

    @property
    def levels(self) -> dict[str, Indices]:
        """Return the columns of each categorical variable's levels that occur."""
        return self.tables.levels

    def __call__(self, families: Sequence[Family], /) -> list[tuple[float, float]]:
        """Return (log evidence of a shared mechanism, log evidence of one that differs) for each family."""
        kept = [self._countable(family) for family in families]
        differing = self.tables.differing(key for key, _ in kept)
        shared = self.tables.shared(key for key, _ in kept)
        gains = self._gains([family for family in families if not self.is_of_labels(family)])
        total = _total_evidence if self._apart else _total_from_sums
        return [
            total(
                (shared[key].total - price, differing[key] - price),
                self._entropies[family.node],
                gains.get(family, _NO_GAINS),
            )
            for family, (key, price) in zip(families, kept, strict=True)
        ]

    def is_of_labels(self, family: Family) -> bool:
        """Return whether all parents are labels, and the counts of every client are known.

        Parameters
        ----------
        family : Family
            A family with a categorical node.

        Returns
        -------
        bool
            True if `same` may be called with this family.
        """
        return self._apart and family.parents <= self.levels.keys()

    def same(self, families: Sequence[Family]) -> list[float]:
        """Return the log evidence of a shared mechanism alone, which is several times cheaper than both.

        Parameters
        ----------
        families : sequence of Family
            Families of labels, see `is_of_labels`.

        Returns
        -------
        list of float
            The same numbers as the first of `__call__`.
        """
        kept = [self._countable(family) for family in families]
        shared = self.tables.shared(key for key, _ in kept)
        return [shared[key].total - price for key, price in kept]

    def prepare(self, same: Iterable[Family], both: Iterable[Family]) -> None:
        """Compute the tables of families together, before `same` and `__call__` are asked about them one by one.

        Parameters
        ----------
        same : iterable of Family
            Families of labels about which `same` will be asked.
        both : iterable of Family
            Families about which `__call__` will be asked.
        """
        self.tables.compute(*([self._countable(family)[0] for family in some] for some in (same, both)))

    @property
    def _apart(self) -> bool:
        """Return whether the counts of every client are known."""
        return len(self.tables.counts) == len(self.regression.basis.rows) > 1

    def _countable(self, family: Family) -> tuple[Key, float]:
        """Return the node with the parents of its table, and the price of the categorical parents left out of it.

        These explain nothing and cost what their main effect costs by BIC, so the family without them scores higher.
        """
        node, categorical, price = family.node, sorted(family.parents & self.levels.keys()), 0.0
        rows = self.regression.basis.total_rows
        most = min(MAX_CELLS, max(MIN_CELLS, int(rows / ROWS_PER_CELL)), MAX_ELEMENTS // len(self.tables.counts))
        while len(categorical) > 1 and self.tables.count_cells((node, *categorical)) > most:
            categorical.remove(weakest := min(categorical, key=lambda name: self._information(node, name)))
            freedom = (len(self.levels[node]) - 1) * (len(self.levels[weakest]) - 1)
            price += freedom / 2 * math.log(rows)
        return (node, *categorical), price

    def _information(self, one: str, other: str) -> float:
        """Return rows times mutual information over all clients, up to a constant of the first, rounded for ties."""
        joint = self.tables.counts[:, self.levels[one][:, None], self.levels[other]].sum(axis=0)
        return round(float(xlogy(joint, level_shares(joint)).sum()), 6)

    @cached_property
    def _entropies(self) -> dict[str, float]:
        """Return the entropy of each variable without parents."""
        return {name: found.left for (name,), found in self.tables.shared((name,) for name in self.levels).items()}

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


def _total_from_sums(by_labels: tuple[float, float], entropy: float, gains: _Gains) -> tuple[float, float]:
    """Return the total for sums over clients, where a regression estimates the gain of differing levels."""
    same, _ = _total_evidence(by_labels, entropy, gains)
    together, apart = _bound_gain(gains[0], entropy)
    return same, float(same + apart - together)


def _total_evidence(by_labels: tuple[float, float], entropy: float, gains: _Gains) -> tuple[float, float]:
    """Return the evidence of all parents: that of the categorical ones, and what the continuous ones add."""
    if gains is _NO_GAINS:
        return by_labels
    same, differing = _bound_gain(gains[0], entropy) - _bound_gain(gains[1], entropy)
    return float(by_labels[0] + same), float(by_labels[1] + differing)


def _bound_gain(gain: Array, entropy: float) -> Array:
    """Return the part of a gain that counts, given the entropy to explain; a loss stays as it is."""
    return np.asarray(
        np.where(gain > 0, -entropy * np.expm1(-np.maximum(gain, 0.0) / max(entropy, _TINY_ENTROPY)), gain)
    )
