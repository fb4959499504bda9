"""A mixed study for tests of the evidence, as sums and as rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pooled
import studies

from fedcdh.inference.evidence.gaussian import ROUGHNESS_DECAY
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Family


def every_family(names: tuple[str, ...], largest: int = 2, nodes: tuple[str, ...] | None = None) -> list[Family]:
    return [
        Family(node, frozenset(chosen))
        for node in nodes or [name for name in names if name != DOMAIN]
        for size in range(largest + 1)
        for chosen in combinations([name for name in names if name != node], size)
    ]


class EvidenceStudy:
    """A study of numbers and labels at clients of unequal size, as sums and as rows."""

    def __init__(self) -> None:
        self.tables = studies.mixed(3, (40, 30, 20, 8, 3))
        self.cohort = studies.cohort_of(self.tables)
        self.basis = Basis.of(self.cohort)
        self.rows = pooled.Rows.of(self.tables, self.cohort.plan)
        self.families = every_family(self.cohort.plan.names, nodes=("age", "dose", "score"))

    def design(self, parents: frozenset[str], curved: bool) -> tuple[np.ndarray, np.ndarray]:
        """Columns of the constant and of the parents, and their prior variances, up to the common size."""
        columns, variances = [np.ones((self.rows.count, 1))], [np.ones(1)]
        for parent in sorted(parents):
            plain = self.rows.means_of(parent).shape[1]
            chosen = self.rows.predictors[parent] if curved else self.rows.means_of(parent)
            columns.append(chosen)
            variances.append(np.array([ROUGHNESS_DECAY ** max(0, j + 1 - plain) for j in range(chosen.shape[1])]))
        return np.concatenate(columns, axis=1), np.concatenate(variances)

    def membership(self) -> np.ndarray:
        """One column per client."""
        return np.column_stack([self.rows.client == name for name in self.rows.plan.clients]).astype(float)
