"""NOTEARS-MLP-ADMM: the layout of its networks, and a step that it finds."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.evaluation.baselines.notears_mlp_admm import NetworkLayout, run_notears_mlp_admm


def test_networks_predict_each_variable_with_its_own_layers():
    networks, rows = NetworkLayout(2, 3), np.random.default_rng(2).standard_normal((5, 2))
    at = networks.draw_parameters(np.random.default_rng(3))
    first, offsets, second, level = np.split(at, [12, 18, 24])
    errors = 0.0
    for j in range(2):
        units = slice(3 * j, 3 * j + 3)
        lit = 1 / (1 + np.exp(-(rows @ first.reshape(6, 2)[units].T + offsets[units])))
        errors += ((lit @ second[units] + level[j] - rows[:, j]) ** 2).sum()
    assert networks.loss(at, rows, 10)[0] == pytest.approx(errors / 20)
    strengths = networks.strengths(at[: networks.weights])
    assert strengths[0, 1] == pytest.approx((first.reshape(2, 3, 2)[1, :, 0] ** 2).sum())


def test_networks_find_a_step():
    for seed in range(2):
        draw = np.random.default_rng(seed)
        cause = draw.standard_normal(200)
        rows = np.column_stack([cause, 6 / (1 + np.exp(-4 * cause)) + 0.5 * draw.standard_normal(200)])
        tables = {"north": rows[:120], "south": rows[120:]}
        found = run_notears_mlp_admm(tables, ("x", "y"), seed, rounds=50)
        assert found.directed == {("x", "y")}, f"seed {seed}"
