"""The domain test with a product kernel: does the conditional mean embedding of x given Z differ between clients?

Of ℧̈ = (℧, Z) with the kernel k_℧ · k_Z, the features are one-hot(℧) ⊗ [1, φ(Z)]. Their cross moments with the residual
φ(x) − E[φ(x) | Z] are, client by client, S_k[Z, x] − S_k[Z, Z] B: the cohort's summaries hold all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedcdh._runtime.array_types import Array
from fedcdh.inference.independence.kernel_test import KernelTest, gamma_tail, kernel_moments
from fedcdh.protocols import DOMAIN, Answer, Query
from fedcdh.summaries.aggregation import Cohort


@dataclass(frozen=True, eq=False)
class ProductKernelTest:
    """Product kernel for questions about the domain; concatenated kernel features for all others."""

    moments: Array  # (clients, 1 + columns, 1 + columns): Σ [1, φ][1, φ]ᵀ of the kernels' features
    pairs: KernelTest

    @classmethod
    def of(cls, cohort: Cohort) -> ProductKernelTest:
        return cls(kernel_moments(cohort)[0], KernelTest.concatenated(cohort))

    def __call__(self, questions: Sequence[Query], /) -> list[Answer]:
        """Answers in the order of the questions."""
        others = [question for question in questions if DOMAIN not in question.pair]
        answers = {answer.query: answer for answer in self.pairs(others)}
        return [answers[q] if q in answers else self._domain(q) for q in questions]

    def _domain(self, question: Query) -> Answer:
        """T = n Σ_k ‖(S_k[Z,x] − S_k[Z,Z] B)/n‖²_F against a gamma null of its first two moments."""
        (name,) = question.pair - {DOMAIN}
        spans = self.pairs.space.spans
        x = 1 + spans[name]
        z = np.concatenate([[0], *(1 + spans[other] for other in sorted(question.given))]).astype(np.intp)
        rows = self.pairs.space.rows
        inner = self.moments[:, z[:, None], z] / rows
        penalty = self.pairs.ridge * np.diag((z > 0).astype(np.float64))  # the mean is not shrunk
        inverse = np.linalg.inv(inner.sum(axis=0) + penalty)
        cross = self.moments[:, z[:, None], x] / rows
        slopes = inverse @ cross.sum(axis=0)
        residual = cross - inner @ slopes
        statistic = rows * float((residual**2).sum())
        of_x = self._residual_covariance(x, z, slopes, rows)
        of_domain = -(inner[:, None] @ inverse @ inner[None])  # (clients, clients, columns, columns)
        same = np.arange(len(inner))
        of_domain[same, same] += inner
        p_value = gamma_tail(
            np.array(statistic),
            mean=np.trace(of_domain[same, same], axis1=1, axis2=2).sum() * np.trace(of_x),
            variance=2 * (of_domain**2).sum() * (of_x**2).sum(),
        )
        return Answer(question, statistic, float(p_value), rows)

    def _residual_covariance(self, x: npt.NDArray[np.intp], z: npt.NDArray[np.intp], slopes: Array, rows: int) -> Array:
        total = self.moments.sum(axis=0) / rows
        direction = np.concatenate([np.eye(len(x)), -slopes])
        both = np.concatenate([x, z])
        return np.asarray(direction.T @ total[both[:, None], both] @ direction)
