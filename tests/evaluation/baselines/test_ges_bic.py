"""GES on pooled rows: what differences between means do to it."""

from __future__ import annotations

import numpy as np
from baseline_studies import NAMES, TRUE, collider

from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic
from fedcdh.evaluation.baselines.ges_bic import run_ges_bic
from fedcdh.evaluation.simulation import simulate
from fedcdh.search.greedy_equivalence_search import find_equivalence_class


def test_pooled_rows_are_one_table():
    for seed in range(5):
        study = simulate(variables=5, clients=3, rows=[30, 50, 70], seed=seed)
        rows = np.concatenate(list(study.tables.values()))
        expected = find_equivalence_class(study.names, GaussianBic.of_table(rows, study.names)).cpdag
        assert run_ges_bic(study.tables, study.names).graph == expected, f"seed {seed}"


def test_means_of_clients_make_edges_unless_they_are_removed():
    """Two unrelated variables with shifted means at one client."""
    shifted = {f"c{k}": np.random.default_rng(k).standard_normal((200, 2)) + 4 * k for k in range(2)}
    assert BASELINES["ges-bic"](shifted, ("x", "y")).graph.skeleton
    assert not BASELINES["ges-bic-centred"](shifted, ("x", "y")).graph.skeleton
    assert BASELINES["ges-bic-centred"](collider(), NAMES).graph.arrows == TRUE
