"""Statistical answers from summaries: independence tests, marginal likelihoods, and differences between clients.

- `orthonormal_basis`: coordinates for all regressions
- `batched_regression`: linear algebra on many small blocks at once
- `independence`: conditional independence tests
- `evidence`: marginal likelihoods of a variable given its parents
- `independent_change`: the independent change principle, Theorem 6 of the paper
- `parent_screening`: the pairs that can be cause and effect at all
- `normal_scores`: normal scores of variables, from the summaries alone
- `degenerate_variables`: copies, exact functions, few values, constants at most clients
- `balanced_variables`: variables that were assigned by design
- `counted_rows`: the rows that count where rows depend on each other
- `posterior`: distributions over graphs, from the weights of families
- `effect_sizes`: the share of variance that an edge explains
- `heterogeneity`: differences between clients in one mechanism
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.inference.evidence.family_score import FamilyScore
    from fedcdh.inference.independence.joint_regression_test import JointRegressionTest
    from fedcdh.inference.independence.kernel_test import KernelTest
    from fedcdh.inference.independence.noisy_moments_test import NoisyMomentsTest
    from fedcdh.inference.independence.regression_test import RegressionTest
    from fedcdh.inference.independent_change import OperatorChange, PrintedChange
    from fedcdh.inference.orthonormal_basis import Basis
    from fedcdh.inference.parent_screening import screen_parents

__all__ = [
    "Basis",
    "FamilyScore",
    "JointRegressionTest",
    "KernelTest",
    "NoisyMomentsTest",
    "OperatorChange",
    "PrintedChange",
    "RegressionTest",
    "screen_parents",
]

_HOMES = {
    "Basis": "fedcdh.inference.orthonormal_basis",
    "FamilyScore": "fedcdh.inference.evidence.family_score",
    "JointRegressionTest": "fedcdh.inference.independence.joint_regression_test",
    "KernelTest": "fedcdh.inference.independence.kernel_test",
    "NoisyMomentsTest": "fedcdh.inference.independence.noisy_moments_test",
    "OperatorChange": "fedcdh.inference.independent_change",
    "PrintedChange": "fedcdh.inference.independent_change",
    "RegressionTest": "fedcdh.inference.independence.regression_test",
    "screen_parents": "fedcdh.inference.parent_screening",
}
__getattr__, __dir__ = attach(__name__, _HOMES)
