"""Bounded features: orthogonal powers, and rows inside the unit ball."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.summaries.features.bounded import WEIGHTS, compute_radius, power_features, project_into_ball


def test_powers_are_orthogonal_under_the_normal_distribution():
    points, weights = np.polynomial.hermite_e.hermegauss(20)
    features = np.stack(list(power_features(points, 3)))
    gram = (features * weights / weights.sum()) @ features.T
    assert gram == pytest.approx(np.diag(np.square(WEIGHTS)), abs=1e-12)


def test_rows_outside_the_ball_are_projected_and_others_stay():
    rows = np.random.default_rng(0).standard_normal((3, 500)) * 0.7
    found = project_into_ball(rows.copy())
    length, before = np.linalg.norm(found, axis=0), np.linalg.norm(rows, axis=0)
    assert length.max() <= 1 + 1e-12
    assert np.array_equal(found[:, before <= 1], rows[:, before <= 1])
    outside = before > 1
    assert found[:, outside] == pytest.approx(rows[:, outside] / before[outside])


def test_four_percent_of_normal_rows_lie_outside_the_default_radius():
    rng = np.random.default_rng(1)
    z = rng.standard_normal((10, 20_000))
    size = sum(feature**2 for column in z for feature in power_features(column, 3))
    share = float((size > compute_radius(10, 0, 3, 10_000) ** 2).mean())
    assert 0.02 < share < 0.06


def test_more_variables_levels_or_rows_have_a_larger_radius():
    smaller = compute_radius(3, 2, 3, 1000)
    assert min(compute_radius(4, 2, 3, 1000), compute_radius(3, 3, 3, 1000), compute_radius(3, 2, 3, 2000)) > smaller
