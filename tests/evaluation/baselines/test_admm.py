"""Consensus ADMM: the acyclicity measure, the exact l1 penalty, and the textbook's algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from chain_studies import chain_rows, split, weights_of

from fedcdh._runtime.array_types import Array
from fedcdh.evaluation.baselines import notears_admm as linear
from fedcdh.evaluation.baselines.admm import SmoothFunction, acyclicity_of_strengths, minimise_with_l1, penalty_schedule


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


def test_server_and_clients_do_together_what_the_textbook_does_in_one_place():
    """The server knows no multipliers but their mean; written out with those of every client, W is the same."""
    tables = split(chain_rows(90), 20, 30, 40)
    clients = [linear._LinearClient(table, 90) for table in tables.values()]
    shared, multiplier, duals = np.zeros(9), 0.0, np.zeros((3, 9))
    for cycle_penalty, penalty in penalty_schedule(0.001, 25):
        targets = shared - duals / penalty
        own = np.array([clients[k].proximal_step(targets[k], penalty, shared) for k in range(3)])
        shared = minimise_with_l1(lagrangian(own, duals, multiplier, cycle_penalty, penalty), shared, 9, 0.01)
        multiplier += cycle_penalty * linear.acyclicity_of_weights(shared)[0]
        duals = duals + penalty * (own - shared)
    np.testing.assert_allclose(weights_of(tables, 25).ravel(), shared, atol=1e-3)
    assert np.abs(shared).max() > 0.5


def lagrangian(own: Array, duals: Array, multiplier: float, cycle_penalty: float, penalty: float) -> SmoothFunction:
    """What the server minimises, with a term for every client."""

    def of(x: Array) -> tuple[float, Array]:
        h, slope = linear.acyclicity_of_weights(x)
        apart = own - x
        value = multiplier * h + cycle_penalty / 2 * h**2 + (duals * apart).sum() + penalty / 2 * (apart**2).sum()
        return value, (multiplier + cycle_penalty * h) * slope - (duals + penalty * apart).sum(axis=0)

    return of
