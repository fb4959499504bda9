"""Post-nonlinear data have the dependences that they claim."""

from __future__ import annotations

import numpy as np
from scipy import stats

from fedcdh.evaluation.experiments.kinds.rejection_rates import REJECTION_RATE


def test_the_post_nonlinear_data_are_what_they_claim():
    """x and y share a cause: z where x ⫫ y | z is to hold, w (not shown) where it is not."""
    for hypothesis, shared in (("dependent", False), ("independent", True)):
        case = {"hypothesis": hypothesis, "rows": 400, "clients": 10, "simulations": 30}
        tables = REJECTION_RATE.prepare_instance(case, 1000)
        assert all(table.shape == (400, 3) for table in tables)
        with_z = np.mean([stats.spearmanr(np.abs(t[:, 0]), np.abs(t[:, 2])).pvalue < 0.01 for t in tables])
        assert (with_z > 0.3) == shared
