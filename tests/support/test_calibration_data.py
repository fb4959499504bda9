from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks.calibration_data import MECHANISMS, calibration_domain, calibration_pair
from fedcdh.protocols import DOMAIN


def truth(mechanism: str, z: np.ndarray) -> np.ndarray:
    return MECHANISMS[mechanism](z) if z.shape[1] else np.zeros(len(z))


@pytest.mark.parametrize("conditioning", [0, 1, 3])
@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_given_z_the_pair_is_independent_unless_coupled(mechanism: str, conditioning: int):
    p_values = {}
    for dependence in (0.0, 0.3):
        instance = calibration_pair(mechanism, conditioning=conditioning, dependence=dependence, seed=1)
        x, y, *z = np.concatenate(list(instance.study.tables.values())).T
        common = truth(mechanism, np.reshape(z, (conditioning, len(x))).T)
        p_values[dependence] = stats.pearsonr(x - common, y - common).pvalue
        assert instance.independent == (dependence == 0)
        assert instance.query.given == set(instance.study.names[2:])
        assert (("x", "y") in instance.study.arrows) == (dependence > 0)
    assert p_values[0.0] > 1e-3
    assert p_values[0.3] < 1e-6


def test_the_null_is_rejected_as_often_as_announced_by_a_test_that_knows_the_mechanism():
    p_values = []
    for seed in range(300):
        tables = calibration_pair("square", conditioning=2, rows=50, clients=2, seed=seed).study.tables
        x, y, *z = np.concatenate(list(tables.values())).T
        common = truth("square", np.column_stack(z))
        p_values.append(stats.pearsonr(x - common, y - common).pvalue)
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({}, {"location": False, "spread": False}),
        ({"strength_change": 0.5}, {"location": True, "spread": True}),
        ({"noise_change": 0.5}, {"location": False, "spread": True}),
    ],
)
def test_causes_shift_and_the_mechanism_only_as_told(changes: dict[str, float], differs: dict[str, bool]):
    instance = calibration_domain("linear", conditioning=2, clients=5, rows=2000, seed=2, **changes)
    tables = list(instance.study.tables.values())
    left = [table[:, 0] - truth("linear", table[:, 1:]) for table in tables]
    assert (stats.f_oneway(*left).pvalue < 1e-6) == differs["location"]
    assert (stats.levene(*left).pvalue < 1e-6) == differs["spread"]
    assert stats.f_oneway(*(table[:, 1] for table in tables)).pvalue < 1e-6
    assert instance.independent == (not changes)
    assert instance.query.pair == {DOMAIN, "x"}
    assert instance.study.changing == {"z1", "z2"} | ({"x"} if changes else set())


def test_more_clients_leave_the_first_ones_as_they_were():
    few, many = (calibration_domain(clients=clients, seed=3).study.tables for clients in (2, 4))
    assert all(np.array_equal(few[client], many[client]) for client in few)


def test_an_unknown_mechanism_is_refused():
    with pytest.raises(ValueError, match="expected one of linear, square"):
        calibration_pair("cubic")
