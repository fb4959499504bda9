"""Federated BIC: pooling, sums, and the domain as a parent."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_studies import NAMES, TRUE, collider

from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.federated_bic import run_federated_bic
from fedcdh.evaluation.baselines.gaussian_bic import GaussianBic
from fedcdh.evaluation.baselines.interface import Traffic
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.equivalence import to_cpdag
from fedcdh.graphs.metrics import compare_changing
from fedcdh.protocols import Family
from fedcdh.search.order_search import best_dag


@pytest.mark.parametrize("scoring", ["pooled", "sum", "context"])
def test_a_collider_is_found_with_one_message_per_client(scoring):
    found = run_federated_bic(collider(), NAMES, scoring=scoring)
    assert found.graph.arrows == TRUE
    assert found.traffic == Traffic(messages_up=3, bytes_up=3 * 8 * (1 + 4 + 10))
    assert found.changing == ({"w"} if scoring == "context" else None)


def test_pooled_moments_give_what_centred_rows_give():
    for seed in range(8):
        study = simulate(variables=5, clients=3, rows=[30, 50, 70], seed=seed)
        centred = np.concatenate([table - table.mean(axis=0) for table in study.tables.values()])
        expected = to_cpdag(best_dag(study.names, GaussianBic.of_table(centred, study.names)).dag)
        assert run_federated_bic(study.tables, study.names).graph == expected, f"seed {seed}"


def test_the_sum_is_that_of_all_clients_scores():
    for seed in range(8):
        study = simulate(variables=4, clients=3, rows=[30, 50, 70], seed=seed)
        scores = [GaussianBic.of_table(table, study.names) for table in study.tables.values()]

        def total(families: list[Family], scores=scores) -> list[float]:
            return [sum(values) for values in zip(*(score(families) for score in scores), strict=True)]

        expected = to_cpdag(best_dag(study.names, total).dag)
        assert run_federated_bic(study.tables, study.names, scoring="sum").graph == expected, f"seed {seed}"


def test_with_one_client_pooled_and_summed_scores_agree():
    for seed in range(5):
        study = simulate(variables=5, clients=1, rows=120, changing=0, seed=seed)
        pooled, summed, context = (
            run_federated_bic(study.tables, study.names, scoring=one) for one in ("pooled", "sum", "context")
        )
        assert pooled.graph == summed.graph == context.graph, f"seed {seed}"
        assert not context.changing


def test_the_domain_is_a_parent_of_what_changes():
    """Changed noise and weights are found, and mechanisms that stay are not blamed."""
    scores = []
    for seed in range(10):
        study = simulate(variables=5, clients=5, rows=200, seed=seed)
        found = run_federated_bic(study.tables, study.names, scoring="context").changing
        assert found is not None
        scores.append(compare_changing(found, study.changing))
    assert np.mean([score.recall for score in scores]) > 0.9
    assert np.mean([score.precision for score in scores]) > 0.9


def test_unknown_scorings_are_refused():
    with pytest.raises(SettingsError, match="context"):
        run_federated_bic(collider(2, 20), NAMES, scoring="mean")
