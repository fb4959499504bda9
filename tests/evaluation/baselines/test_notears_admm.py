"""NOTEARS-ADMM: a client's step, laws of the weights, and what it is known to find."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from chain_studies import CHAIN, chain_rows, split, weights_of
from scipy import optimize

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines import notears_admm as linear
from fedcdh.evaluation.baselines.notears_admm import run_notears_admm
from fedcdh.evaluation.baselines.notears_mlp_admm import NetworkLayout, run_notears_mlp_admm
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.metrics import compare


def test_gradients_are_those_of_finite_differences():
    draw = np.random.default_rng(1)
    networks, rows = NetworkLayout(3, 4), draw.standard_normal((7, 3))
    at = draw.standard_normal(networks.size)
    cases = [
        (linear.acyclicity_of_weights, draw.standard_normal(9) / 2),
        (networks.acyclicity, at[: networks.weights] / 2),
        (lambda x: networks.loss(x, rows, 20), at),
    ]
    for function, point in cases:
        numeric = optimize.approx_fprime(point, lambda x, of=function: of(x)[0], 1e-6)
        np.testing.assert_allclose(function(point)[1], numeric, rtol=1e-4, atol=1e-5)


def test_a_client_solves_its_own_problem_exactly():
    rows, target = chain_rows(30), np.random.default_rng(5).standard_normal(9)
    centred = rows - rows.mean(axis=0)

    def cost(flat: Array) -> float:
        errors = centred - centred @ flat.reshape(3, 3)
        return float((errors**2).sum()) / (2 * 100) + 0.7 / 2 * float(((flat - target) ** 2).sum())

    found = linear._LinearClient(rows, total=100).proximal_step(target, 0.7, target)
    np.testing.assert_allclose(optimize.approx_fprime(found, cost, 1e-7), 0, atol=1e-5)


def test_only_parameters_and_row_counts_cross_the_wire():
    tables = split(chain_rows(90), 20, 30, 40)
    found = run_notears_admm(tables, CHAIN, rounds=5).traffic
    assert (found.messages_up, found.messages_down) == (3 * 6, 3 * 6)
    assert found.bytes_up == found.bytes_down == 3 * (8 + 5 * 8 * 3 * 3)
    found = run_notears_mlp_admm(tables, CHAIN, hidden=2, rounds=3).traffic
    assert found.bytes_up == found.bytes_down == 3 * (8 + 3 * 8 * (3 * 2 * 3 + 2 * 3 * 2 + 3))


def test_splitting_the_rows_over_clients_hardly_changes_the_weights():
    """Hardly, as the growing penalties stop all weights a little short, the more so the more clients there are."""
    tables = split(chain_rows(300), 50, 100, 150)
    together = weights_of({"all": np.concatenate(list(tables.values()))})
    np.testing.assert_allclose(weights_of(tables), together, atol=0.1)
    assert together[0, 1] > 1.5
    assert together[1, 2] > 1.5


def test_the_order_and_the_location_of_clients_do_not_matter():
    tables = split(chain_rows(60), 20, 40)
    backwards = dict(reversed(tables.items()))
    assert (weights_of(backwards, 30) == weights_of(tables, 30)).all()
    moved = {client: table + 10 * k for k, (client, table) in enumerate(tables.items())}
    np.testing.assert_allclose(weights_of(moved, 30), weights_of(tables, 30), atol=1e-6)
    first, again = (run_notears_mlp_admm(t, CHAIN, 1, hidden=2, threshold=0.01, rounds=5) for t in (tables, backwards))
    assert first.graph == again.graph


def test_another_order_of_variables_gives_the_same_weights():
    tables, order = split(chain_rows(200), 100, 100), np.array([2, 0, 1])
    turned = weights_of({client: table[:, order] for client, table in tables.items()})
    np.testing.assert_allclose(turned, weights_of(tables)[np.ix_(order, order)], atol=0.01)


def test_names_only_name():
    tables = split(chain_rows(60), 30, 30)
    renamed = {"a": "one", "b": "two", "c": "three"}
    for find in (run_notears_admm, run_notears_mlp_admm):
        plain = find(tables, CHAIN, rounds=15, threshold=0.01).graph.arrows
        found = find(tables, tuple(renamed.values()), rounds=15, threshold=0.01).graph.arrows
        assert plain
        assert found == {(renamed[tail], renamed[head]) for tail, head in plain}


def test_a_chain_with_growing_variances_is_found():
    tables = split(chain_rows(300), 100, 100, 100)
    assert run_notears_admm(tables, CHAIN, threshold=0.3).directed == set(pairwise(CHAIN))


@pytest.mark.slow
def test_directions_hang_on_the_scale_of_the_data():
    """The known weakness: raw variances grow along the arrows, standardised ones do not."""
    raw, standardised = [], []
    for seed in range(4):
        study = simulate("linear", variables=6, clients=10, rows=100, seed=seed)
        for given, scores in ((study, raw), (study.standardised(), standardised)):
            found = run_notears_admm(given.tables, given.names, threshold=0.3)
            scores.append(compare(found.directed, study.arrows).direction.f1)
    assert np.mean(raw) > 0.7
    assert np.mean(standardised) < 0.45
