"""Laws of the two NOTEARS-ADMM rivals: gradients, circles, what crosses the wire, and what they are known to find."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines import notears_admm as linear
from fedcdh.evaluation.baselines.admm import SmoothFunction, acyclicity_of_strengths, minimise_with_l1, penalty_schedule
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.baselines.notears_admm import run_notears_admm
from fedcdh.evaluation.baselines.notears_mlp_admm import NetworkLayout, run_notears_mlp_admm
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.metrics import compare

CHAIN = ("a", "b", "c")


def chain_rows(rows: int, seed: int = 0) -> Array:
    """a → b → c with equal noise, so that variances grow: the case NOTEARS is made for."""
    noise = np.random.default_rng(seed).standard_normal((rows, len(CHAIN)))
    for cause, effect in pairwise(range(len(CHAIN))):
        noise[:, effect] += 2 * noise[:, cause]
    return noise


def split(rows: Array, *sizes: int) -> dict[str, Array]:
    """Rows handed out to clients, centred at each, which is what they do first anyway."""
    parts = np.split(rows, np.cumsum(sizes)[:-1])
    return {f"client{k}": part - part.mean(axis=0) for k, part in enumerate(parts)}


def weights_of(tables: dict[str, Array], rounds: int = 45) -> Array:
    return linear.fit_shared_weights(tables, CountingChannel(len(tables)), l1=0.01, rounds=rounds)


# Values and gradients


def test_gradients_are_those_of_finite_differences():
    draw = np.random.default_rng(1)
    networks, rows = NetworkLayout(3, 4), draw.standard_normal((7, 3))
    at = draw.standard_normal(networks.size)
    cases = [
        (linear.acyclicity_of_weights, draw.standard_normal(9) / 2),
        (networks.circles, at[: networks.weights] / 2),
        (lambda x: networks.loss(x, rows, 20), at),
    ]
    for function, point in cases:
        numeric = optimize.approx_fprime(point, lambda x, of=function: of(x)[0], 1e-6)
        np.testing.assert_allclose(function(point)[1], numeric, rtol=1e-4, atol=1e-5)


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


def test_circles_are_counted_if_and_only_if_there_are_any():
    draw = np.random.default_rng(4)
    for _ in range(20):
        order = draw.permutation(5)
        strengths = np.triu(draw.uniform(0.1, 1, (5, 5)) * (draw.random((5, 5)) < 0.6), 1)[np.ix_(order, order)]
        assert acyclicity_of_strengths(strengths)[0] == pytest.approx(0, abs=1e-12)
        reached = np.linalg.matrix_power(np.eye(5) + strengths, 5)
        tails, heads = np.nonzero((reached > 0) & ~np.eye(5, dtype=bool))
        if len(tails):
            closing = strengths.copy()
            closing[heads[0], tails[0]] = 0.5  # leads back from what can be reached
            assert acyclicity_of_strengths(closing)[0] > 1e-6
    assert acyclicity_of_strengths(np.diag([0.5, 0, 0]))[0] > 0.1  # its own cause is a circle, too


def test_the_absolute_penalty_is_exact():
    """For a quadratic the answer is known: moved towards 0 by l1, and exactly 0 where it would cross it."""
    target = np.array([2.0, -2.0, 0.3, -0.3, 5.0])
    found = minimise_with_l1(lambda x: (((x - target) ** 2).sum() / 2, x - target), np.ones(5), weights=4, l1=0.5)
    np.testing.assert_allclose(found, [1.5, -1.5, 0, 0, 5], atol=1e-4)
    assert (found[2:4] == 0).all()


# Clients and the wire


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


def test_server_and_clients_do_together_what_the_textbook_does_in_one_place():
    """The server knows no multipliers but their mean; written out with those of every client, W is the same."""
    tables = split(chain_rows(90), 20, 30, 40)
    clients = [linear._LinearClient(table, 90) for table in tables.values()]
    shared, multiplier, duals = np.zeros(9), 0.0, np.zeros((3, 9))
    for circle_penalty, penalty in penalty_schedule(0.001, 25):
        targets = shared - duals / penalty
        own = np.array([clients[k].proximal_step(targets[k], penalty, shared) for k in range(3)])
        shared = minimise_with_l1(lagrangian(own, duals, multiplier, circle_penalty, penalty), shared, 9, 0.01)
        multiplier += circle_penalty * linear.acyclicity_of_weights(shared)[0]
        duals = duals + penalty * (own - shared)
    np.testing.assert_allclose(weights_of(tables, 25).ravel(), shared, atol=1e-3)
    assert np.abs(shared).max() > 0.5


def lagrangian(own: Array, duals: Array, multiplier: float, circle_penalty: float, penalty: float) -> SmoothFunction:
    """What the server minimises, with a term for every client."""

    def of(x: Array) -> tuple[float, Array]:
        h, slope = linear.acyclicity_of_weights(x)
        apart = own - x
        value = multiplier * h + circle_penalty / 2 * h**2 + (duals * apart).sum() + penalty / 2 * (apart**2).sum()
        return value, (multiplier + circle_penalty * h) * slope - (duals + penalty * apart).sum(axis=0)

    return of


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


# What they find


def test_a_chain_with_growing_variances_is_found():
    tables = split(chain_rows(300), 100, 100, 100)
    assert run_notears_admm(tables, CHAIN, threshold=0.3).directed == set(pairwise(CHAIN))


@pytest.mark.parametrize("seed", range(2))
def test_networks_find_a_step(seed: int):
    draw = np.random.default_rng(seed)
    cause = draw.standard_normal(200)
    rows = np.column_stack([cause, 6 / (1 + np.exp(-4 * cause)) + 0.5 * draw.standard_normal(200)])
    tables = {"north": rows[:120], "south": rows[120:]}
    assert run_notears_mlp_admm(tables, ("x", "y"), seed, rounds=50).directed == {("x", "y")}


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
