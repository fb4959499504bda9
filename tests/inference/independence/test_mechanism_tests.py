"""Tests of the domain find changed means, noise, slopes and functions."""

from __future__ import annotations

import numpy as np
import pytest
import studies

from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query


@pytest.mark.parametrize(
    ("cell", "changed"),
    [
        (lambda rng, k: rng.standard_normal(80) + 0.7 * k, "mean"),
        (lambda rng, k: rng.standard_normal(80) * (1 + 0.7 * k), "noise"),
    ],
    ids=["mean", "noise"],
)
def test_changed_mechanisms_are_seen(cell, changed):
    tables = {
        f"c{k}": {"x": cell(np.random.default_rng(k), k), "y": np.random.default_rng(k + 9).standard_normal(80)}
        for k in range(3)
    }
    (answer,) = RegressionTest(Basis.of(studies.cohort_of(tables)))([Query(DOMAIN, "x")])
    assert answer.p_value < 1e-4, changed


@pytest.mark.parametrize(
    "change", [lambda z, k: (k - 1) * z, lambda z, k: (k - 1) * np.abs(z)], ids=["slope", "function"]
)
def test_changed_effects_are_seen(change):
    tables = {}
    for k in range(3):
        rng = np.random.default_rng(k)
        z = rng.standard_normal(150)
        tables[f"c{k}"] = {"x": change(z, k) + rng.standard_normal(150), "z": z}
    (answer,) = RegressionTest(Basis.of(studies.cohort_of(tables)))([Query(DOMAIN, "x", frozenset({"z"}))])
    assert answer.p_value < 1e-4
