"""Scores of families of labels, computed from tables of counts.

With r levels of the node, q combinations j of its parents' levels, and counts N_jk,

    score = Σ_j [ log Γ(a r) − log Γ(a r + N_j) + Σ_k (log Γ(a + N_jk) − log Γ(a)) ].

Cooper and Herskovits (1992) take a = 1. BDeu takes a = s/(r q) for an equivalent sample size s, and gives all DAGs of
an equivalence class the same score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import special

from fedcdh.evaluation.baselines.label_counts import Counts
from fedcdh.protocols import Family

CountTable: TypeAlias = Callable[[Sequence[int]], Counts]
"""Returns the table of counts of some columns, one axis for each."""

SAMPLE_SIZE = 1.0
"""The equivalent sample size of BDeu."""
MAX_CELLS = 200_000
"""A family whose table has more cells is not available: ours, for memory."""


def compute_dirichlet_score(table: Counts, prior: float) -> float:
    """Return the log evidence of a table with the axes parents (all combinations) and node.

    >>> round(float(np.exp(compute_dirichlet_score(np.array([[1, 1]]), 1.0))), 6)  # 1/2 · 1/3
    0.166667
    """
    seen = table[table.any(axis=1)]
    levels = table.shape[1]
    rows = special.gammaln(prior * levels) - special.gammaln(prior * levels + seen.sum(axis=1))
    cells = special.gammaln(prior + seen) - special.gammaln(prior)
    return float(rows.sum() + cells.sum())


@dataclass(frozen=True, eq=False)
class BdeuScore:
    """BDeu, a `LocalScore`.

    Attributes
    ----------
    count : CountTable
        Returns the counts of some columns.
    names : sequence of str
        Names of the columns.
    levels : sequence of int
        Levels of the columns.
    sample_size : float
        Equivalent sample size.
    """

    count: CountTable
    names: Sequence[str]
    levels: Sequence[int]
    sample_size: float = SAMPLE_SIZE

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """Return one score per family, in order."""
        return [self._score(family) for family in families]

    def _score(self, family: Family) -> float:
        table = count_family(self.count, self.names, self.levels, family)
        return float("-inf") if table is None else compute_dirichlet_score(table, self.sample_size / table.size)


@dataclass(frozen=True, eq=False)
class CooperHerskovitsScore:
    """The score of K2, a `LocalScore`: as BDeu, but every cell has a prior count of 1."""

    count: CountTable
    names: Sequence[str]
    levels: Sequence[int]

    def __call__(self, families: Sequence[Family], /) -> list[float]:
        """Return one score per family, in order."""
        return [self._score(family) for family in families]

    def _score(self, family: Family) -> float:
        table = count_family(self.count, self.names, self.levels, family)
        return float("-inf") if table is None else compute_dirichlet_score(table, 1.0)


def count_family(count: CountTable, names: Sequence[str], levels: Sequence[int], family: Family) -> Counts | None:
    """Return the table of a family with the axes parents and node, or None if it has too many cells."""
    place = {name: column for column, name in enumerate(names)}
    columns = [*sorted(place[parent] for parent in family.parents), place[family.node]]
    if np.prod([float(levels[column]) for column in columns]) > MAX_CELLS:
        return None
    return count(columns).reshape(-1, levels[place[family.node]])
