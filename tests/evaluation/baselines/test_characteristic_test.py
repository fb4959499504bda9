"""The test by characteristic functions: its level, what it sees that lines do not, and where rows may live."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.evaluation.baselines.characteristic_test import characteristic_p_value
from fedcdh.evaluation.experiments.kinds.rejection_rates import COMPARED_TESTS


def split(rows, clients):
    return [(part[:, 0], part[:, 1], part[:, 2:]) for part in np.array_split(rows, clients)]


def rejections(build, clients, seeds=60, rows=150):
    found = 0
    for seed in range(seeds):
        x, y, z = build(np.random.default_rng([1, seed]), rows)
        found += characteristic_p_value(split(np.column_stack([x, y, z]), clients), seed, permutations=99) <= 0.05
    return found


@pytest.mark.parametrize("clients", [1, 3])
def test_true_nulls_with_additive_noise_are_rejected_about_as_often_as_the_level_says(clients):
    def common_cause(draw, rows):
        z, e, f = draw.standard_normal((3, rows))
        return np.sin(z) + e, np.tanh(2 * z) + f, z

    assert rejections(common_cause, clients) <= 9


@pytest.mark.parametrize("clients", [1, 3])
def test_a_dependence_without_correlation_is_seen(clients):
    def squares(draw, rows):
        z, e, f = draw.standard_normal((3, rows))
        return z + e, z + e**2 + 0.5 * f, z

    assert rejections(squares, clients, seeds=20) >= 17


def test_shifts_between_clients_are_no_dependence():
    """Permutations are inside the clients, and residuals have the mean 0 at each."""

    def shifted(draw, rows):
        site = np.repeat(np.arange(3.0), rows // 3)
        z, e, f = draw.standard_normal((3, rows))
        return z + e + 3 * site, f + 3 * site, z

    assert rejections(shifted, 3) <= 9


def test_units_and_the_seed_of_equal_calls_do_not_matter():
    rows = np.random.default_rng(3).standard_normal((90, 3))
    rows[:, 1] += 0.3 * rows[:, 0]
    found = characteristic_p_value(split(rows, 2), 5)
    assert found == characteristic_p_value(split(rows, 2), 5)
    assert found == pytest.approx(characteristic_p_value(split(rows * [100, 0.01, 7] + 3, 2), 5), abs=0.01)


def test_few_rows_constant_columns_and_no_conditions_do_not_stop_it():
    x, y = np.random.default_rng(4).standard_normal((2, 30))
    assert characteristic_p_value([(x, x + 0.1 * y, np.zeros((30, 0)))]) < 0.01
    assert characteristic_p_value([(x, np.ones(30), y[:, None])]) == 1
    assert 0 < characteristic_p_value([(x[:1], y[:1], x[:1, None]), (x, y, np.ones((30, 1)))]) <= 1


def test_it_is_a_row_of_the_power_experiment():
    rows = np.random.default_rng(5).standard_normal((60, 3))
    assert COMPARED_TESTS["cf-residual"](rows, 2, 1) == characteristic_p_value(split(rows, 2), 1)
