"""LiNGAM from cumulants: the closed forms, what clients may differ in, and where the order fails by definition."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.baselines.interface import Traffic
from fedcdh.evaluation.baselines.lingam_cumulants import (
    PairCumulants,
    _average_cumulants,
    measure_dependence,
    run_lingam_cumulants,
    sum_products,
)

NAMES = ("c", "a", "b", "d")
ARROWS = {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}
NOISES = {
    "exponential": lambda draw, n: draw.exponential(size=n) - 1,
    "uniform": lambda draw, n: draw.uniform(-1.7, 1.7, n),
    "laplace": lambda draw, n: draw.laplace(size=n),
}


def diamond(noise, seed, clients=4, rows=400, scales=None):
    tables = {}
    for k in range(clients):
        draw = np.random.default_rng([seed, k])
        e = [NOISES[noise](draw, rows) * (scales[k] if scales else 1) for _ in range(4)]
        a = e[0]
        b, c = 0.9 * a + e[1], -0.8 * a + e[2]
        d = 0.8 * b + 0.9 * c + e[3]
        tables[f"c{k}"] = np.column_stack([c, a, b, d])
    return tables


@pytest.mark.parametrize("noise", NOISES)
def test_most_diamonds_are_found_whole(noise):
    found = [BASELINES["lingam-cumulants"](diamond(noise, seed), NAMES).graph.arrows for seed in range(20)]
    assert sum(arrows == ARROWS for arrows in found) >= 14
    assert sum(len(arrows & ARROWS) for arrows in found) >= 0.93 * 20 * 4


def test_third_order_is_enough_for_skewed_noise_and_blind_to_symmetric_noise():
    right = {"exponential": 0, "uniform": 0}
    for noise in right:
        for seed in range(8):
            found = BASELINES["lingam-cumulants-3"](diamond(noise, seed, rows=800), NAMES).graph
            right[noise] += len(found.arrows & ARROWS)
    assert right["exponential"] == 8 * 4
    assert right["uniform"] < 0.7 * 8 * 4


def test_clients_may_differ_in_location_and_size_of_noise():
    tables = diamond("exponential", 5, scales=(0.3, 1.0, 2.0, 4.0))
    shifted = {client: table + 9 * k for k, (client, table) in enumerate(tables.items())}
    found, again = (run_lingam_cumulants(given, NAMES) for given in (tables, shifted))
    assert found == again
    assert found.graph.arrows >= ARROWS


def test_units_do_not_matter():
    tables = diamond("uniform", 6)
    scaled = {client: table * [1e3, 1e-3, 1.0, 7.0] for client, table in tables.items()}
    assert run_lingam_cumulants(scaled, NAMES).graph == run_lingam_cumulants(tables, NAMES).graph


def test_cumulants_are_those_of_their_definition():
    rows = np.random.default_rng(1).exponential(size=(50, 3)) @ np.random.default_rng(2).standard_normal((3, 3))
    found = _average_cumulants([sum_products(rows, 4)], [50])
    x, y, _ = ((rows - rows.mean(axis=0)) / rows.std(axis=0)).T
    assert found.second[0, 1] == pytest.approx(np.mean(x * y))
    assert found.third[0, 1] == pytest.approx(np.mean(x * x * y))
    assert found.fourth[0, 1] == pytest.approx(np.mean(x**3 * y) - 3 * np.mean(x * y))
    assert found.balanced[0, 1] == pytest.approx(np.mean(x**2 * y**2) - 1 - 2 * np.mean(x * y) ** 2)


def model_cumulants(mixing, third, fourth):
    """The cumulants of x = mixing · e with independent noise of these cumulants and variance 1."""
    return PairCumulants(
        mixing @ mixing.T,
        (mixing**2 * third) @ mixing.T,
        (mixing**3 * fourth) @ mixing.T,
        (mixing**2 * fourth) @ (mixing**2).T,
    )


def test_removing_a_source_leaves_the_cumulants_of_the_residuals():
    draw = np.random.default_rng(3)
    for _ in range(5):
        mixing = np.tril(draw.standard_normal((4, 4)), -1) + np.eye(4)
        third, fourth = draw.standard_normal((2, 4))
        left = model_cumulants(mixing, third, fourth).remove(0)
        residuals = mixing - np.outer(mixing[:, 0], np.eye(4)[0])
        expected = model_cumulants(residuals, third, fourth)
        for name in ("second", "third", "fourth", "balanced"):
            np.testing.assert_allclose(
                getattr(left, name)[1:, 1:], getattr(expected, name)[1:, 1:], atol=1e-12, err_msg=name
            )


def test_only_a_source_has_vanishing_cross_cumulants_with_all_others():
    draw = np.random.default_rng(4)
    for _ in range(5):
        mixing = np.tril(draw.uniform(0.5, 1.0, (4, 4)), -1) + np.eye(4)
        cumulants = model_cumulants(mixing, draw.uniform(0.5, 2, 4), draw.uniform(0.5, 2, 4))
        against = measure_dependence(cumulants, range(4), 100).sum(axis=1)
        assert against[0] == pytest.approx(0, abs=1e-9)
        assert against[1:].min() > 1e-3


def test_each_client_sends_its_sums_once():
    for order, matrices in ((3, 2), (4, 4)):
        found = run_lingam_cumulants(diamond("uniform", 7), NAMES, order=order)
        assert found.traffic == Traffic(messages_up=8, bytes_up=4 * (matrices * 16 + 1) * 8)
    with pytest.raises(SettingsError, match="found cumulants of order 5; expected 3 or 4"):
        run_lingam_cumulants(diamond("uniform", 7), NAMES, order=5)
