"""Conditional independence tests from summaries, all behind the protocol `IndependenceTest`.

- `regression_test`: the default test, by regressions; its parts are `partial_f_tests` (pairs of variables) and
  `mechanism_tests` (the domain)
- `joint_regression_test`: the same with joint features of the conditioning variables, from adaptive rounds
- `noisy_moments_test`: for summaries with noise for differential privacy
- `kernel_test`: FCIT and FUIT, the tests of the paper
- `query_batch`: queries as arrays
- `stratum_pooling`: scatter of several strata, added up for a regression
"""

from typing import TYPE_CHECKING

from fedcdh._runtime.lazy_exports import attach

if TYPE_CHECKING:
    from fedcdh.inference.independence.joint_regression_test import JointRegressionTest
    from fedcdh.inference.independence.kernel_test import KernelTest
    from fedcdh.inference.independence.noisy_moments_test import NoisyMomentsTest
    from fedcdh.inference.independence.regression_test import RegressionTest

__all__ = ["JointRegressionTest", "KernelTest", "NoisyMomentsTest", "RegressionTest"]

_HOMES = {
    "JointRegressionTest": "fedcdh.inference.independence.joint_regression_test",
    "KernelTest": "fedcdh.inference.independence.kernel_test",
    "NoisyMomentsTest": "fedcdh.inference.independence.noisy_moments_test",
    "RegressionTest": "fedcdh.inference.independence.regression_test",
}
__getattr__, __dir__ = attach(__name__, _HOMES)
