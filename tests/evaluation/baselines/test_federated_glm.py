"""Federated regressions against regressions on all rows with one intercept per client."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from fedcdh.evaluation.baselines.federated_glm import Design, GlmClient, GlmServer
from fedcdh.evaluation.baselines.interface import CountingChannel

LEVELS = {1: np.array([0.0, 1.0]), 2: np.array([2.0, 5.0, 7.0])}


def mixed_tables(seed, rows=(80, 60, 90)):
    """A number x, a binary label c, and a label y of three levels that depends on both and on the client."""
    tables = []
    for k, count in enumerate(rows):
        draw = np.random.default_rng([seed, k])
        x, c = draw.standard_normal(count), draw.integers(0, 2, count)
        logits = np.column_stack([np.zeros(count), 0.5 * x + 0.4 * k - 0.3 * c, -0.7 * x + 0.8 * c])
        chosen = (logits + draw.gumbel(size=logits.shape)).argmax(axis=1)
        tables.append(np.column_stack([x + k, c, LEVELS[2][chosen]]))
    return tables


def serve(tables, levels):
    design = Design.of(tables[0].shape[1], levels)
    channel = CountingChannel(len(tables))
    return GlmServer([GlmClient(table, design) for table in tables], channel, design, max(map(len, tables)))


def pooled_deviance(tables, levels, target, predictors):
    """−2 log-likelihood of the multinomial model with a dummy for every client, by a general optimiser."""
    rows = np.concatenate(tables)
    sites = np.repeat(np.eye(len(tables)), [len(table) for table in tables], axis=0)
    design = Design.of(rows.shape[1], levels)
    columns = np.column_stack([sites, design.encode(rows)[:, design.columns(predictors)]])
    outcome = np.searchsorted(levels[target], rows[:, target])
    others = len(levels[target]) - 1

    def deviance(flat):
        logits = np.column_stack([np.zeros(len(rows)), columns @ flat.reshape(others, -1).T])
        top = logits.max(axis=1)
        norm = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        chances = np.exp(logits - norm[:, None])
        slope = chances[:, 1:] - (outcome[:, None] == np.arange(1, others + 1))
        return 2 * (norm - logits[np.arange(len(rows)), outcome]).sum(), 2 * (slope.T @ columns).ravel()

    found = minimize(deviance, np.zeros(others * columns.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7})
    return found.fun


@pytest.mark.parametrize("fit", [(2, ()), (2, (0,)), (2, (0, 1)), (1, ()), (1, (0, 2)), (1, (2,))])
def test_labels_have_the_likelihood_of_all_rows_with_an_intercept_per_client(fit):
    for seed in (1, 2):
        tables = mixed_tables(seed)
        server = serve(tables, LEVELS)
        server.fit([fit])
        assert server.deviances[fit] == pytest.approx(pooled_deviance(tables, LEVELS, *fit), abs=2e-3)


@pytest.mark.parametrize("predictors", [(), (1,), (1, 2)])
def test_numbers_have_the_residuals_of_all_rows_with_an_intercept_per_client(predictors):
    tables = mixed_tables(3)
    server = serve(tables, LEVELS)
    server.fit([(0, predictors)])
    rows = np.concatenate(tables)
    sites = np.repeat(np.eye(3), [len(table) for table in tables], axis=0)
    columns = np.column_stack([sites, server.design.encode(rows)[:, server.design.columns(predictors)]])
    left = rows[:, 0] - columns @ np.linalg.lstsq(columns, rows[:, 0], rcond=None)[0]
    assert server.deviances[0, predictors] == pytest.approx(len(rows) * np.log(left @ left / len(rows)), abs=1e-4)


def test_a_client_without_a_level_gives_it_no_probability():
    tables = mixed_tables(4)
    lacking = tables[1][tables[1][:, 2] != 2.0]  # even the level that others compare with
    server = serve([tables[0], lacking], LEVELS)
    server.fit([(2, (0,))])
    alone = serve([tables[0]], LEVELS)
    alone.fit([(2, (0,))])
    constant = serve([tables[0], tables[1][tables[1][:, 2] == 5.0]], LEVELS)
    constant.fit([(2, (0,))])
    assert constant.deviances[2, (0,)] == pytest.approx(alone.deviances[2, (0,)], abs=1e-3)
    assert server.deviances[2, (0,)] > alone.deviances[2, (0,)]
    assert np.isfinite(server.deviances[2, (0,)])


def test_labels_that_a_number_tells_apart_keep_finite_coefficients():
    x = np.linspace(-1, 1, 40)
    table = np.column_stack([x, (x > 0).astype(float)])
    server = serve([table], {1: np.array([0.0, 1.0])})
    server.fit([(1, ()), (1, (0,))])
    assert 0 <= server.deviances[1, (0,)] < 0.2 * server.deviances[1, ()]


def test_a_known_fit_is_not_asked_again():
    server = serve(mixed_tables(5), LEVELS)
    server.fit([(0, (1,)), (2, (0,))])
    before = server.channel.traffic
    server.fit([(2, (0,)), (0, (1,))])
    assert server.channel.traffic == before


def test_numbers_are_asked_three_times_and_all_fits_of_one_size_at_once():
    server = serve(mixed_tables(6), {})
    server.fit([(0, (1,)), (1, (2,)), (2, (0,))])
    traffic = server.channel.traffic
    assert (traffic.messages_down, traffic.messages_up) == (9, 9)
    assert traffic.bytes_down == 9 * 3 * 8
    assert traffic.bytes_up == 9 * 3 * (1 + 1 + 2) * 8
