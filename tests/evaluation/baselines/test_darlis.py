"""Laws of DARLIS: its rounds reach the optimum, its annealing the best order, its bytes are those sent."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, special

from fedcdh.evaluation.baselines import find_baseline
from fedcdh.evaluation.baselines.column_scales import ColumnScales, exchange_scales
from fedcdh.evaluation.baselines.darlis import NUMBER_SETTINGS, DarlisSettings, OrderSearch, prune_parents, run_darlis
from fedcdh.evaluation.baselines.darlis_clients import DarlisClient, DesignLayout, FamilyProblem, ProblemBatch
from fedcdh.evaluation.baselines.darlis_rounds import DarlisServer
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.simulation import simulate

TIGHT = {"tolerance": 1e-8, "max_rounds": 20_000}


def make_server(tables, levels=None):
    """Return a server over these tables, its layout, and the number of rows."""
    channel = CountingChannel(len(tables))
    scales = exchange_scales(tables, channel)
    layout = DesignLayout(tuple(levels or [()] * len(scales.deviations)))
    return DarlisServer([DarlisClient(table, scales, layout) for table in tables.values()], layout, channel), layout


def pooled_moments(tables):
    """Return the correlations within clients: the exact shortcut of the Gaussian case."""
    scatter = sum((table - table.mean(axis=0)).T @ (table - table.mean(axis=0)) for table in tables.values())
    scale = np.sqrt(np.diag(scatter))
    return scatter / np.outer(scale, scale)


def descend(moments, node, candidates, penalty):
    """Minimise −log ρ + ½ |ρ x_j − Σ φ_i x_i|² + penalty |φ|₁ by coordinate descent on summed moments."""
    inside, cross = moments[np.ix_(candidates, candidates)], moments[candidates, node]
    phi, rho = np.zeros(len(candidates)), 1.0
    for _ in range(20_000):
        before = np.array([rho, *phi])
        slope = float(cross @ phi)
        rho = (slope + math.sqrt(slope**2 + 4.0)) / 2.0
        for i in range(len(candidates)):
            left = rho * cross[i] - inside[i] @ phi + inside[i, i] * phi[i]
            phi[i] = math.copysign(max(abs(left) - penalty, 0.0), left) / inside[i, i]
        if np.abs(before - [rho, *phi]).max() < 1e-12:
            break
    quadratic = 0.5 * (rho**2 - 2 * rho * cross @ phi + phi @ inside @ phi)
    return -math.log(rho) + quadratic + penalty * np.abs(phi).sum(), np.array([rho, *phi])


def test_gradient_rounds_and_summed_moments_have_the_same_optimum():
    for seed in range(6):
        study = simulate("general" if seed % 2 else "linear", variables=5, clients=3, rows=[40, 80, 120], seed=seed)
        moments = pooled_moments(study.tables)
        server, _ = make_server(study.tables)
        problems = [FamilyProblem(4, (0, 1, 2, 3)), FamilyProblem(0, (2, 4)), FamilyProblem(1, ())]
        for penalty in (0.3, 0.05, 0.005):
            for problem, fit in zip(problems, server.fit(problems, penalty, **TIGHT), strict=True):
                objective, parameters = descend(moments, problem.node, list(problem.candidates), penalty)
                assert fit.objective == pytest.approx(objective, abs=1e-6), f"seed {seed}, penalty {penalty}"
                assert np.abs(fit.parameters - parameters).max() < 1e-5 * max(1.0, np.abs(parameters).max())
                kept = [i for i, value in zip(problem.candidates, parameters[1:], strict=True) if abs(value) > 1e-7]
                assert list(fit.parents) == kept


def test_without_penalty_the_loss_is_half_the_log_of_the_residual_variance():
    study = simulate(variables=4, clients=2, rows=100, seed=3)
    moments = pooled_moments(study.tables)
    server, _ = make_server(study.tables)
    (fit,) = server.fit([FamilyProblem(3, (0, 1, 2))], 0.0, **TIGHT)
    residual = 1 / np.linalg.inv(moments)[3, 3]
    assert fit.loss == pytest.approx(0.5 * math.log(residual) + 0.5, abs=1e-6)


def best_order_score(moments, penalty):
    """Return the least penalised loss over all orders, by dynamic programming over sets of variables."""
    size, best = len(moments), {0: 0.0}
    for chosen in range(1, 1 << size):
        inside = [j for j in range(size) if chosen >> j & 1]
        best[chosen] = min(
            best[chosen ^ (1 << j)] + descend(moments, j, [i for i in inside if i != j], penalty)[0] for j in inside
        )
    return best[(1 << size) - 1]


def test_annealing_finds_the_best_of_all_orders():
    settings = replace(NUMBER_SETTINGS, tolerance=1e-6, proposals_per_variable=60)
    for seed in range(3):
        study = simulate(variables=4, clients=2, rows=150, seed=40 + seed)
        server, layout = make_server(study.tables)
        search = OrderSearch(server, layout, 0.05, settings)
        found = search.anneal((0, 1, 2, 3), np.random.default_rng(seed))
        assert search.score(found) == pytest.approx(best_order_score(pooled_moments(study.tables), 0.05), abs=1e-6)


def label_tables(seed, clients=2, rows=250):
    """x → y, both labels of three and two levels, whose shares differ between clients; z is on its own."""
    tables = {}
    for k in range(clients):
        draw = np.random.default_rng([seed, k])
        x = draw.choice(3, rows, p=[[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]][k % 2])
        y = (draw.random(rows) < special.expit(1.5 * (x - 1.0) + 0.5 * k)).astype(int)
        tables[f"c{k}"] = np.column_stack([x, y, draw.choice(2, rows)]).astype(float)
    return tables


LEVELS = ((0.0, 1.0, 2.0), (0.0, 1.0), (0.0, 1.0))


def multinomial_loss(tables, node, candidates, flat):
    """Return the mean loss with intercepts of every client among the parameters, computed row by row."""
    levels = len(LEVELS[node])
    width = sum(len(LEVELS[i]) for i in candidates)
    weights = flat[: width * levels].reshape(width, levels)
    intercepts = flat[width * levels :].reshape(len(tables), levels)
    total = 0.0
    for own, table in zip(intercepts, tables.values(), strict=True):
        design = np.column_stack([np.equal.outer(table[:, i], LEVELS[i]) for i in candidates]).astype(float)
        scores = design @ weights + own
        total -= (scores[np.arange(len(table)), table[:, node].astype(int)] - special.logsumexp(scores, axis=1)).sum()
    return total / sum(map(len, tables.values()))


def test_labels_reach_the_multinomial_optimum_with_intercepts_per_client():
    tables = label_tables(1)
    server, _ = make_server(tables, LEVELS)
    for node, candidates in ((1, (0, 2)), (0, (1,))):
        (fit,) = server.fit([FamilyProblem(node, candidates)], 0.0, **TIGHT)
        size = (sum(len(LEVELS[i]) for i in candidates) + len(tables)) * len(LEVELS[node])
        found = optimize.minimize(
            lambda flat, n=node, c=candidates: multinomial_loss(tables, n, c, flat), np.zeros(size), tol=1e-12
        )
        assert fit.loss == pytest.approx(found.fun, abs=1e-6)


def test_penalised_labels_fulfil_the_conditions_of_an_optimum():
    """The gradient of a block is −λ B/‖B‖ where the block is there, and at most λ in norm where it is not."""
    tables, penalty = label_tables(2), 0.05
    channel = CountingChannel(2)
    layout = DesignLayout(LEVELS)
    scales = exchange_scales(tables, channel)
    clients = [DarlisClient(table, scales, layout) for table in tables.values()]
    server = DarlisServer(clients, layout, channel)
    (fit,) = server.fit([FamilyProblem(1, (0, 2))], penalty, **TIGHT)
    assert fit.parents == (0,)
    batch = ProblemBatch([FamilyProblem(1, (0, 2))], layout)
    slope = sum(client.answer(batch, fit.parameters) for client in clients)[: batch.size]
    there, absent = slice(0, 6), slice(6, 10)
    block = fit.parameters[there]
    assert np.abs(slope[there] + penalty * block / np.linalg.norm(block)).max() < 1e-6
    assert np.linalg.norm(slope[absent]) <= penalty


def test_labels_are_searched_with_their_own_loss():
    """Levels 0, 1, 2 of a label whose middle one is the effect's: a line through the codes would not see it."""
    tables = {}
    for k in range(2):
        draw = np.random.default_rng([9, k])
        x = draw.choice(3, 400)
        y = np.where(x == 1, draw.random(400) < 0.9, draw.random(400) < 0.1).astype(float)
        tables[f"c{k}"] = np.column_stack([x, y, draw.choice(2, 400)]).astype(float)
    kinds = dict.fromkeys("xyz", "categorical")
    assert run_darlis(tables, "xyz", kinds=kinds).graph.skeleton == {frozenset("xy")}
    assert not run_darlis(tables, "xyz").graph.skeleton


def test_numbers_and_labels_may_be_mixed():
    tables = {}
    for k in range(2):
        draw = np.random.default_rng([11, k])
        x = draw.choice(2, 300)
        y = 1.5 * x + draw.standard_normal(300)
        tables[f"c{k}"] = np.column_stack([x, y, draw.standard_normal(300)])
    found = run_darlis(tables, "xyz", kinds={"x": "categorical"})
    assert found.graph.skeleton == {frozenset("xy")}


def test_a_weak_parent_is_pruned_and_a_strong_one_kept():
    study = simulate(variables=4, clients=2, rows=400, edges=0, changing=0, seed=1)
    tables = {client: table.copy() for client, table in study.tables.items()}
    for table in tables.values():
        table[:, 3] += table[:, 0]
    server, layout = make_server(tables)
    assert prune_parents(server, layout, {3: (0, 1, 2), 2: (1,)}, 800, DarlisSettings()) == {3: (0,), 2: ()}


def test_scales_and_levels_of_clients_do_not_matter():
    study = simulate(clients=3, rows=120, seed=5)
    moved = {
        client: 1000.0 * table * np.arange(1, 7) + 7.0 * k for k, (client, table) in enumerate(study.tables.items())
    }
    assert run_darlis(moved, study.names).graph == run_darlis(study.tables, study.names).graph


def test_every_round_sends_parameters_down_and_gradients_up():
    """One fit of one problem with two candidates: 3 parameters a message, one more number for the loss."""
    study = simulate(variables=3, clients=4, rows=50, seed=2)
    channel = CountingChannel(4)
    scales = exchange_scales(study.tables, channel)
    layout = DesignLayout(((),) * 3)
    server = DarlisServer([DarlisClient(t, scales, layout) for t in study.tables.values()], layout, channel)
    before = channel.traffic
    server.fit([FamilyProblem(0, (1, 2))], 0.1, tolerance=0.0, max_rounds=7)
    after = channel.traffic
    assert after.messages_up - before.messages_up == 4 * (7 + 1)
    assert after.bytes_up - before.bytes_up == 4 * (7 + 1) * 4 * 8
    assert after.bytes_down - before.bytes_down == 4 * ((7 + 1) * 3 * 8 + 1 + 1)


def test_variables_that_do_not_vary_have_no_edges():
    study = simulate(variables=4, clients=2, rows=100, seed=6)
    tables = {client: np.column_stack([table, np.full(100, 3.0)]) for client, table in study.tables.items()}
    found = find_baseline("darlis")(tables, (*study.names, "constant")).graph
    assert not found.neighbours("constant")
    assert found.drop("constant") == find_baseline("darlis")(study.tables, study.names).graph
    nothing = {"c0": np.ones((5, 2)), "c1": np.zeros((5, 2))}
    assert not run_darlis(nothing, "xy").graph.skeleton


def test_column_scales_sort_by_content():
    scales = ColumnScales(10, np.array([1.0, 0.0, 2.0, 1.0]), np.array([0.8, 0.0, 0.7, 0.75]))
    assert scales.order.tolist() == [2, 3, 0]
