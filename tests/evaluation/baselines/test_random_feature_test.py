"""RIT and RCIT: shortcuts against the definition, their level, and columns without information."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedcdh.evaluation.baselines import random_feature_test
from fedcdh.evaluation.baselines.random_feature_test import RandomFeatureTest, draw_features


def p_value_by_definition(rows, x, y, given):
    """All products of residuals, row by row, and the eigenvalues of their second moments."""
    columns = (rows - rows.mean(axis=0)) / rows.std(axis=0, ddof=1)
    width = 25 if given else 5
    first = draw_features(columns[:, [x]], width)
    second = draw_features(columns[:, [y, *given]], width)
    if given:
        behind = draw_features(columns[:, list(given)], 100)
        inverse = np.linalg.inv(np.cov(behind.T) + 1e-10 * np.eye(100))
        first_left, second_left = (
            side - behind @ inverse @ np.cov(behind.T, side.T)[:100, 100:] for side in (first, second)
        )
    else:
        first_left, second_left = first, second
    n = len(rows)
    statistic = n * ((first.T @ second_left / (n - 1)) ** 2).sum()
    products = np.einsum("ni,nj->nij", first_left, second_left).reshape(n, -1)
    weights = np.linalg.eigvalsh(products.T @ products / n)
    mean, variance = weights.sum(), 2 * (weights**2).sum()
    return stats.gamma.sf(statistic, mean**2 / variance, scale=variance / mean)


@pytest.mark.parametrize("max_gram_rows", [0, 1500])
def test_both_shortcuts_give_the_p_value_of_the_definition(max_gram_rows, monkeypatch):
    monkeypatch.setattr(random_feature_test, "_MAX_GRAM_ROWS", max_gram_rows)
    for seed in range(3):
        draw = np.random.default_rng(seed)
        x, z, e, f = draw.standard_normal((4, 220))
        rows = np.column_stack([x + z, np.tanh(z) + 0.7 * e, z, f])
        queries = [(0, 1, ()), (1, 3, ()), (0, 1, (2,)), (1, 0, (2,)), (0, 3, (1, 2))]
        expected = [p_value_by_definition(rows, *query) for query in queries]
        np.testing.assert_allclose(RandomFeatureTest(rows)(queries), expected, rtol=1e-4, atol=1e-9)


def test_draws_are_those_of_r():
    """`set.seed(42); rnorm(5)` and `set.seed(42); runif(5)` in R 4."""
    normal, uniform = random_feature_test._draw_like_r(5)
    np.testing.assert_allclose(normal, [1.37095845, -0.56469817, 0.36312841, 0.63286260, 0.40426832], atol=1e-8)
    np.testing.assert_allclose(uniform, [0.9148060, 0.9370754, 0.2861395, 0.8304476, 0.6417455], atol=1e-7)


def test_the_first_variable_and_the_second_differ_only_given_a_set():
    rows = np.random.default_rng(1).standard_normal((150, 3))
    test = RandomFeatureTest(rows)
    one, other = test([(0, 1, ()), (1, 0, ())])
    assert one == pytest.approx(other)
    one, other = test([(0, 1, (2,)), (1, 0, (2,))])
    assert one != pytest.approx(other)


def test_neither_scale_nor_place_matters():
    rows = np.random.default_rng(2).standard_normal((150, 3))
    rows[:, 1] += rows[:, 0] ** 2
    queries = [(0, 1, ()), (0, 1, (2,))]
    np.testing.assert_allclose(
        RandomFeatureTest(rows)(queries), RandomFeatureTest(rows * [3.0, 0.1, 1e3] + 7)(queries), rtol=1e-6
    )


def test_what_is_constant_is_independent_of_all_and_explains_nothing():
    x, e = np.random.default_rng(3).standard_normal((2, 120))
    rows = np.column_stack([x, x + e, np.full(120, 0.1)])
    p = dict(zip("abcd", RandomFeatureTest(rows)([(0, 2, ()), (2, 0, (1,)), (0, 1, ()), (0, 1, (2,))]), strict=True))
    assert p["a"] == p["b"] == 1
    assert p["c"] == p["d"] < 0.01


def test_true_nulls_are_rejected_about_as_often_as_the_level_says():
    rejected = {(): 0, (2,): 0}
    for seed in range(120):
        x, y, z = np.random.default_rng([4, seed]).standard_normal((3, 200))
        test = RandomFeatureTest(np.column_stack([x, y, z]) if seed % 2 else np.column_stack([x + z, y, z]))
        for given in rejected:
            (p_value,) = test([(0, 1, given)])
            rejected[given] += p_value < 0.05
    assert rejected[()] <= 15
    assert rejected[(2,)] <= 15


def test_few_rows_do_not_stop_the_test():
    rows = np.random.default_rng(5).standard_normal((8, 3))
    assert all(0 <= p <= 1 for p in RandomFeatureTest(rows)([(0, 1, ()), (0, 1, (2,))]))
    assert RandomFeatureTest(rows[:1])([(0, 1, ())]) == [1.0]
