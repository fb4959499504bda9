"""FedDAG: gradients are right, averages are averages, messages are counted, and known results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from feddag_cases import KINDS, mask_of, mechanism_of, point, rows, steepest
from scipy.special import expit

from fedcdh.errors import BaselineError, DataError, SettingsError
from fedcdh.evaluation.baselines import feddag
from fedcdh.evaluation.baselines.feddag import (
    MASKED_TRAINING,
    UNMASKED_TRAINING,
    FedDagTraining,
    acyclicity_of_mask,
    run_feddag,
    scale_penalty,
)
from fedcdh.evaluation.simulation import simulate
from fedcdh.graphs.metrics import compare

VARIANTS = [("graph", "mlp"), ("all", "mlp"), ("graph", "linear"), ("all", "linear"), ("all", "weights")]


SHORT = FedDagTraining(sparsity=0.05, temperature=0.5, steps=20, local_steps=8, updates=2, rho=1.0, layers=2, width=4)


def server_of(tables, sharing: str = "graph", mechanism: str = "mlp", training: FedDagTraining = SHORT, seed: int = 0):
    return feddag._FedDagServer(tables, sharing, mechanism, training, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_of_the_local_loss_with_the_noise_held_fast(kind):
    client = feddag._FedDagClient("a", rows(), kind, SHORT, seed=0)
    client._mechanism = mechanism_of(kind)
    client.parameters, _ = point(client._mechanism)
    noise = np.random.default_rng(5).logistic(size=(4, 4))

    def loss(logits: np.ndarray) -> float:
        client.logits = logits
        return client.slopes(noise, alpha=0.7, rho=2.0).loss

    logits = np.random.default_rng(6).normal(size=(4, 4))
    expected = steepest(loss, logits)
    client.logits = logits
    np.testing.assert_allclose(client.slopes(noise, 0.7, 2.0).logits, expected, rtol=1e-5, atol=1e-7)
    assert not np.diag(expected).any()  # no variable sees itself


def test_the_local_loss_is_made_of_the_four_parts():
    client = feddag._FedDagClient("a", rows(), "linear", replace(SHORT, sparsity=0.2), seed=0)
    noise = np.random.default_rng(5).logistic(size=(4, 4))
    mask = mask_of(client.logits, noise, 0.5)
    acyclicity, _ = acyclicity_of_mask(mask)
    fit = 0.5 * rows().var(axis=0).sum()  # nothing is predicted yet
    assert client.slopes(noise, 0.7, 2.0).loss == pytest.approx(
        fit + 0.2 * mask.sum() + 0.7 * acyclicity + acyclicity**2
    )


def test_h_is_zero_for_every_dag_and_for_nothing_else():
    draw = np.random.default_rng(3)
    for _ in range(20):
        order = draw.permutation(6)
        mask = np.triu(draw.random((6, 6)), 1)[np.ix_(order, order)]
        assert acyclicity_of_mask(mask)[0] == pytest.approx(0, abs=1e-12)
        effect, cause = draw.choice(np.argwhere(mask > 0.1))
        mask[cause, effect] = 0.1
        assert acyclicity_of_mask(mask)[0] > 1e-5


def test_h_counts_a_circle_by_its_length():
    circle = np.roll(np.identity(3), 1, axis=1)
    closed_walks = sum(3 / np.prod(np.arange(1, n + 1)) for n in (3, 6, 9, 12))
    assert acyclicity_of_mask(circle)[0] == pytest.approx(closed_walks)


def test_slope_of_h():
    mask = mask_of(np.zeros((4, 4)), np.random.default_rng(2).logistic(size=(4, 4)), 1.0)
    np.testing.assert_allclose(
        acyclicity_of_mask(mask)[1], steepest(lambda m: acyclicity_of_mask(m)[0], mask), rtol=1e-6, atol=1e-8
    )


def test_masks_are_drawn_with_the_probability_of_the_logits():
    draw = np.random.default_rng(8)
    logits = np.array([[0.0, 1.5], [-1.0, 0.0]])
    share = np.mean([mask_of(logits, draw.logistic(size=(2, 2)), 0.2) > 0.5 for _ in range(4000)], axis=0)
    expected = expit(logits) * (1 - np.identity(2))
    np.testing.assert_allclose(share, expected, atol=4 * 0.5 / np.sqrt(4000))


def test_alpha_and_rho_grow_as_long_as_circles_stay():
    class Stubborn:
        def __init__(self) -> None:
            self.seen: list[tuple[float, float]] = []
            self.left = iter([2.0, 1.0, 0.4, 0.0, 0.0, 0.0])

        def train(self, alpha: float, rho: float) -> None:
            self.seen.append((alpha, rho))

        def acyclicity(self, noise: bool = True) -> float:
            return next(self.left) if noise else 0.0

    server = Stubborn()
    feddag._solve_lagrangian(server, replace(MASKED_TRAINING, rho=1.0))
    # h: 2, then 1 and 0.4 (the first is no fall to a quarter), then none, and none for long enough
    assert server.seen == [(0, 1), (2, 1), (2, 10), (6, 10), (6, 10)]


def kinds_of_messages(sharing: str, mechanism: str) -> int:
    return 2 if sharing == "all" and mechanism != "weights" else 1


@pytest.mark.parametrize(("sharing", "mechanism"), VARIANTS)
def test_the_server_has_the_mean_of_what_clients_sent(sharing, mechanism, monkeypatch):
    sent: list[np.ndarray] = []
    answers: list[np.ndarray] = []
    channel = feddag.CountingChannel
    up, down = channel.to_server, channel.to_clients
    monkeypatch.setattr(channel, "to_server", lambda self, m: (sent.append(m.copy()), up(self, m))[1])
    monkeypatch.setattr(channel, "to_clients", lambda self, m: (answers.append(m.copy()), down(self, m))[1])
    server = server_of(simulate(clients=3, rows=20, seed=2).tables, sharing, mechanism)
    server.train(0.5, 2.0)
    assert answers.pop(0).tolist() == [0.5, 2.0]  # the weights of the constraint come first
    assert len(answers) == 3 * kinds_of_messages(sharing, mechanism)  # after 8, 16 and 20 steps
    for at, answer in enumerate(answers):
        messages = sent[3 * at : 3 * at + 3]
        assert not np.array_equal(messages[0], messages[1])
        np.testing.assert_array_equal(answer, np.mean(messages, axis=0))
    for client in server._clients:
        np.testing.assert_array_equal(client.logits, server.logits)
    if sharing == "all":
        for client in server._clients:
            np.testing.assert_array_equal(client.parameters, server._clients[0].parameters)


def test_what_is_not_shared_stays_different():
    server = server_of(simulate(clients=3, rows=20, seed=2).tables)
    server.train(0.0, 1.0)
    first, second, _ = (client.parameters for client in server._clients)
    assert not np.allclose(first, second)


@pytest.mark.parametrize(("sharing", "mechanism"), VARIANTS)
def test_traffic_is_logits_and_for_all_shared_the_parameters(sharing, mechanism):
    study = simulate(clients=3, rows=20, seed=2)
    found = run_feddag(study.tables, study.names, sharing=sharing, mechanism=mechanism, training=SHORT).traffic
    networks = 6 * (4 * 6 + 4 + 4 * 4 + 4 + 4 + 1) * 4  # bytes of six networks in single precision
    parameters = {"linear": 6 * 6 * 8, "mlp": networks, "weights": 0}[mechanism] if sharing == "all" else 0
    rounds, none_left = divmod(found.messages_up, 3 * kinds_of_messages(sharing, mechanism))
    assert not none_left
    assert not rounds % 3  # three averages each time the clients train
    assert found.bytes_up == rounds * 3 * (6 * 6 * 8 + parameters)
    trained = rounds // 3  # each time the clients are told α and ρ
    assert found.messages_down == found.messages_up + 3 * trained
    assert found.bytes_down == found.bytes_up + 3 * trained * 2 * 8


@pytest.mark.parametrize(("sharing", "mechanism"), VARIANTS)
def test_the_order_of_clients_makes_no_difference(sharing, mechanism):
    study = simulate(clients=3, rows=[20, 30, 40], seed=3)
    server, turned = (
        server_of(tables, sharing, mechanism) for tables in (study.tables, dict(reversed(study.tables.items())))
    )
    server.train(0.1, 1.0)
    turned.train(0.1, 1.0)
    np.testing.assert_array_equal(server.logits, turned.logits)


def test_the_seed_makes_the_draws_and_clients_draw_for_themselves():
    study = simulate(clients=2, rows=30, seed=3)
    alike = dict.fromkeys(study.tables, study.tables["client01"])

    def logits(seed: int, tables=alike) -> list[np.ndarray]:
        server = server_of(tables, seed=seed)
        for client in server._clients:
            client.train(20, 0.0, 1.0)
        return [client.logits for client in server._clients]

    np.testing.assert_array_equal(logits(0), logits(0))
    assert not np.allclose(logits(0)[0], logits(1)[0])
    assert not np.allclose(*logits(0))
    np.testing.assert_array_equal(logits(0)[0], logits(0, {"client01": alike["client01"]})[0])  # whoever else is there


def test_what_cannot_be_done_is_refused():
    study = simulate(clients=2, rows=10, changing=0)
    with pytest.raises(SettingsError, match="sharing is 'nothing'; expected one of 'graph', 'all'"):
        run_feddag(study.tables, study.names, sharing="nothing")
    with pytest.raises(SettingsError, match="mechanism is 'trees'"):
        run_feddag(study.tables, study.names, mechanism="trees")
    with pytest.raises(DataError, match=r"'client01' has shape \(10, 6\); expected rows × 2 variables"):
        run_feddag(study.tables, ("a", "b"))
    with pytest.raises(DataError, match="no client"):
        run_feddag({}, study.names)
    vast = {client: table * 1e30 for client, table in study.tables.items()}
    with pytest.raises(BaselineError, match="standardise"):
        run_feddag(vast, study.names, training=SHORT)


def chain(function, clients: int = 2, count: int = 100) -> dict[str, np.ndarray]:
    """a → b → c, the same at all clients."""
    tables = {}
    for k in range(clients):
        a, b, c = np.random.default_rng([3, k]).standard_normal((3, count))
        b = function(a) + 0.5 * b
        tables[f"c{k}"] = np.column_stack([a, b, function(b) + 0.5 * c])
    return tables


CHAIN = frozenset({("a", "b"), ("b", "c")})


@pytest.mark.parametrize("sharing", ["graph", "all"])
def test_masks_find_a_linear_chain(sharing):
    quick = replace(MASKED_TRAINING, steps=100, local_steps=25)
    found = run_feddag(chain(lambda x: 2 * x), "abc", sharing=sharing, mechanism="linear", training=quick)
    assert CHAIN <= found.directed <= CHAIN | {("a", "c")}


def test_weights_find_a_linear_chain():
    quick = replace(UNMASKED_TRAINING, steps=200, local_steps=50, rate=0.01)
    assert run_feddag(chain(lambda x: 2 * x), "abc", mechanism="weights", training=quick).directed == CHAIN


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ["graph", "all"])
def test_networks_find_a_chain_where_correlations_show_nothing(sharing):
    tables = chain(lambda x: x**2 - 1, count=200)
    assert run_feddag(tables, "abc", sharing=sharing).directed >= CHAIN
    assert not run_feddag(tables, "abc", sharing=sharing, mechanism="linear").directed >= CHAIN


@pytest.mark.slow
def test_does_well_on_raw_rows_of_like_clients_and_lives_on_their_scales():
    raw, standardised = [], []
    for seed in (1, 2):
        study = simulate(variables=5, clients=4, rows=200, changing=0, seed=seed)
        for scores, seen in ((raw, study), (standardised, study.standardised())):
            found = run_feddag(seen.tables, seen.names, seed, sharing="all", mechanism="weights")
            scores.append(compare(found.directed, study.arrows).direction.f1)
    assert np.mean(raw) > 0.9
    assert np.mean(standardised) < np.mean(raw) - 0.2


def first_slope(rho: float, variables: int) -> float:
    """Return the mean over draws of the steepest slope of rho h² / 2 when training begins."""
    draw, found = np.random.default_rng(variables), []
    for _ in range(20):
        mask = mask_of(np.zeros((variables, variables)), draw.logistic(size=(variables, variables)), 0.2)
        acyclicity, slopes = acyclicity_of_mask(mask)
        found.append(rho * acyclicity * np.abs(slopes).max())
    return float(np.mean(found))


def test_the_penalty_begins_no_steeper_with_more_variables():
    rho = MASKED_TRAINING.rho
    ten = first_slope(rho, 10)
    for variables in (14, 18, 24, 30):
        assert first_slope(rho, variables) > 10 * ten  # unscaled, it would be far steeper
        assert ten / 3 < first_slope(scale_penalty(rho, variables, 0.2), variables) < 3 * ten
    assert scale_penalty(rho, 6, 0.2) == rho


def test_arrows_are_found_among_eighteen_variables():
    study = simulate(variables=18, clients=3, rows=100, edges=18, changing=0, seed=7)
    found = run_feddag(study.tables, study.names, seed=7, mechanism="linear")
    assert compare(found.graph.arrows, study.arrows).skeleton.f1 > 0.6
