"""Sorting by variance: from sums alone, with the lasso of scikit-learn, and only as good as the scale."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_studies import NAMES, collider

from fedcdh.errors import DataError
from fedcdh.evaluation.baselines import varsortability
from fedcdh.evaluation.baselines.interface import Traffic
from fedcdh.evaluation.baselines.var_sort import _adaptive_lasso, sort_by_variance
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.metrics import compare


def test_sorting_needs_sums_only():
    """One client or many: the same graph, from 1 + d + d(d + 1)/2 numbers each."""
    study = simulate(clients=5, rows=60, seed=6)
    pooled = {"all": np.concatenate(list(study.tables.values()))}
    found = sort_by_variance(study.tables, study.names)
    assert found.graph == sort_by_variance(pooled, study.names).graph
    assert found.traffic == Traffic(messages_up=5, bytes_up=5 * 8 * (1 + 6 + 21))


def test_sorting_finds_any_order_that_variances_have():
    x, e, f = np.random.default_rng(0).standard_normal((3, 500))
    chain = np.column_stack([x, x + e, x + e + f])
    arrows = {("x", "y"), ("y", "z")}
    assert sort_by_variance({"c": chain}, ("x", "y", "z")).graph.arrows == arrows
    against = {"c": chain * [9.0, 3.0, 1.0]}
    assert sort_by_variance(against, ("x", "y", "z")).graph.arrows >= {("z", "y"), ("y", "x")}
    assert varsortability({"c": chain}, ("x", "y", "z"), arrows) == 1.0
    assert varsortability(against, ("x", "y", "z"), arrows) == 0.0
    assert varsortability({"c": chain / chain.std(axis=0)}, ("x", "y", "z"), arrows) == 0.5
    with pytest.raises(DataError, match="no arrow"):
        varsortability({"c": chain}, ("x", "y", "z"), [])


def test_sorting_lives_on_the_scale_alone():
    raw, scaled = [], []
    for seed in range(10):
        study = simulate(seed=seed)
        for scores, tables in ((raw, study.tables), (scaled, study.standardised().tables)):
            scores.append(compare(sort_by_variance(tables, study.names, seed).directed, study.arrows).direction.f1)
    assert np.mean(raw) > 0.8
    assert np.mean(scaled) < 0.6


@pytest.mark.filterwarnings("ignore")
def test_the_lasso_is_that_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        width = int(rng.integers(1, 9))
        x = rng.standard_normal((150, width)) @ rng.standard_normal((width, width))
        y = x @ (rng.standard_normal(width) * (rng.random(width) < 0.5)) + rng.standard_normal(150)
        x, y = x - x.mean(axis=0), y - y.mean()
        weight = np.abs(np.linalg.lstsq(x, y, rcond=None)[0])
        expected = weight * linear_model.LassoLarsIC(criterion="bic").fit(x * weight, y).coef_
        np.testing.assert_allclose(_adaptive_lasso(x.T @ x, x.T @ y, float(y @ y), 150), expected, atol=1e-7)


def test_sorting_needs_rows_and_does_without_variance():
    with pytest.raises(DataError, match="found 3 rows of 4 variables"):
        sort_by_variance(collider(1, 3), NAMES)
    still = np.column_stack([np.zeros(50), np.ones(50), np.arange(50.0)])
    assert not sort_by_variance({"c": still}, ("x", "y", "z")).graph.skeleton
