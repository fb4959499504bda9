"""Laws of Fed-Sparse-BNSL: greedy moves descend to the client's optimum, and only what moved is sent."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.evaluation.baselines import find_baseline
from fedcdh.evaluation.baselines.sparse_bnsl import GreedyClient, run_sparse_bnsl
from fedcdh.evaluation.simulation import simulate


def objective(table, total, l1, weights, target, penalty):
    """Return the client's objective, computed from its rows."""
    rows = table - table.mean(axis=0)
    loss = np.square(rows - rows @ weights).sum() / (2 * total)
    return loss + l1 * len(table) / total * np.abs(weights).sum() + penalty / 2 * np.square(weights - target).sum()


def test_greedy_moves_end_at_the_optimum():
    """No entry off the diagonal can be moved to advantage, by little or much."""
    draw = np.random.default_rng(3)
    for seed in range(4):
        table = simulate(variables=4, clients=1, changing=0, rows=60, seed=seed).tables["client01"]
        client = GreedyClient(table, 200, 0.05, moves=5000)
        target, penalty = draw.normal(0, 0.5, (4, 4)), 0.3
        client.move_entries(target, penalty)
        best = objective(table, 200, 0.05, client._own, target, penalty)
        for tail, head in ((i, j) for i in range(4) for j in range(4) if i != j):
            for step in (1e-4, -1e-4, 0.1, -0.1, -client._own[tail, head]):
                moved = client._own.copy()
                moved[tail, head] += step
                assert objective(table, 200, 0.05, moved, target, penalty) >= best - 1e-9
        assert not np.diag(client._own).any()


def test_every_move_lowers_the_objective():
    table = simulate(variables=5, clients=1, changing=0, rows=80, seed=9).tables["client01"]
    target, before = np.zeros((5, 5)), np.inf
    for moves in range(1, 12):
        client = GreedyClient(table, 80, 0.02, moves)
        client.move_entries(target, 0.1)
        value = objective(table, 80, 0.02, client._own, target, 0.1)
        assert value < before
        assert np.count_nonzero(client._own) <= moves
        before = value


def test_answers_are_sparse():
    table = simulate(variables=6, clients=1, changing=0, rows=80, seed=1).tables["client01"]
    client = GreedyClient(table, 80, 0.02, moves=3)
    answer = client.answer(np.zeros((6, 6)), 0.1)
    assert 0 < len(answer.places) == len(answer.values) <= 3
    assert np.allclose(client._own.ravel()[answer.places], answer.values)


def test_it_sends_less_than_notears_admm_and_finds_a_like_graph():
    """With many moves the local step is nearly solved: weights of the two methods then differ little."""
    study = simulate(variables=4, clients=3, rows=300, changing=0, seed=21)
    greedy = run_sparse_bnsl(study.tables, study.names, threshold=0.3)
    admm = find_baseline("notears-admm-0.3")(study.tables, study.names)
    assert greedy.graph.skeleton == admm.graph.skeleton
    assert greedy.traffic.bytes_up < admm.traffic.bytes_up


def test_directions_come_from_the_scale_as_in_notears():
    draw = np.random.default_rng(5)
    cause = draw.standard_normal(2000)
    table = np.column_stack([cause, 2 * cause + draw.standard_normal(2000)])
    tables = {"a": table[:1000], "b": table[1000:]}
    assert run_sparse_bnsl(tables, "xy").graph.arrows == {("x", "y")}
    shrunk = {client: rows * [1.0, 0.1] for client, rows in tables.items()}
    assert run_sparse_bnsl(shrunk, "xy", threshold=0.05).graph.arrows == {("y", "x")}


@pytest.mark.parametrize("name", ["fed-sparse-bnsl", "fed-sparse-bnsl-dp"])
def test_one_variable_and_constant_columns_do_no_harm(name):
    assert not find_baseline(name)({"a": np.ones((5, 1))}, "x").graph.skeleton
    tables = {"a": np.column_stack([np.arange(9.0), np.ones(9)]), "b": np.zeros((3, 2))}
    assert find_baseline(name)(tables, "xy").graph.is_acyclic()
