"""Laws of Fed-Sparse-BNSL with noise: sensitivities hold, the budget is what was asked for, noise matters."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines.private_sparse_bnsl import (
    NoiseSchedule,
    PrivateClient,
    run_private_sparse_bnsl,
    sum_clipped_gradients,
)
from fedcdh.evaluation.baselines.sparse_bnsl import shrink
from fedcdh.evaluation.baselines.zcdp import epsilon_of_cost
from fedcdh.evaluation.simulation import simulate


@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 30.0]), st.sampled_from([0.1, 1.0, 8.0]))
@settings(max_examples=80, deadline=None)
def test_one_row_more_moves_the_sum_by_at_most_the_clip(seed, size, clip):
    draw = np.random.default_rng(seed)
    variables = int(draw.integers(2, 8))
    rows = draw.standard_normal((int(draw.integers(0, 20)), variables))
    weights = draw.normal(0, 2, (variables, variables)) * (1 - np.identity(variables))
    extra = size * draw.standard_t(2, (1, variables))
    before = sum_clipped_gradients(rows, weights, clip)
    after = sum_clipped_gradients(np.concatenate([rows, extra]), weights, clip)
    assert np.linalg.norm(after - before) <= clip * (1 + 1e-9)
    assert not np.diag(after).any()


def test_the_bound_is_attained_and_short_rows_are_not_clipped():
    row = np.array([[50.0, -40.0, 30.0]])
    assert np.linalg.norm(sum_clipped_gradients(row, np.zeros((3, 3)), 2.0)) == pytest.approx(2.0)
    rows, weights = np.random.default_rng(1).standard_normal((40, 3)), np.full((3, 3), 0.2)
    exact = -rows.T @ (rows - rows @ weights)
    np.fill_diagonal(exact, 0.0)
    assert np.allclose(sum_clipped_gradients(rows, weights, 1e9), exact)


def test_scores_of_entries_move_no_more_than_the_gradient():
    """The score of an entry is curvature × |proximal move|; the noise of a choice relies on its sensitivity."""
    draw = np.random.default_rng(2)
    for _ in range(300):
        own, pull = draw.normal(0, 1, (2, 4, 4))
        gradient, change = draw.normal(0, 1, (4, 4)), draw.uniform(-0.5, 0.5, (4, 4))
        curvature, l1 = draw.uniform(0.1, 5), draw.uniform(0, 0.5)
        scores = [
            curvature * np.abs(shrink(own - (g + pull) / curvature, l1 / curvature) - own)
            for g in (gradient, gradient + change)
        ]
        assert (np.abs(scores[1] - scores[0]) <= np.abs(change) + 1e-12).all()


def test_all_rounds_together_cost_what_was_asked_for():
    for epsilon in (0.5, 1.0, 8.0):
        for rounds, picks in ((1, 1), (15, 12), (60, 30)):
            schedule = NoiseSchedule.calibrate(epsilon, 1e-5, rounds=rounds, picks=picks, clip=1.5)
            assert epsilon_of_cost(schedule.cost, 1e-5) == pytest.approx(epsilon, rel=1e-5)
            assert epsilon_of_cost(schedule.cost, 1e-5) <= epsilon


def make_client(schedule, seed=0, rows=400):
    table = np.random.default_rng(7).standard_normal((rows, 3))
    return PrivateClient(table, rows, 0.01, schedule, np.random.default_rng(seed))


def test_a_round_sends_the_picks_and_no_more():
    schedule = NoiseSchedule.calibrate(1.0, 1e-5, rounds=5, picks=2, clip=1.0)
    client = make_client(schedule)
    for number in range(5):
        answer = client.answer(np.zeros((3, 3)), 0.5)
        assert len(answer.places) <= 2
        assert not set(answer.places.tolist()) & {0, 4, 8}  # the diagonal
        assert client.rounds_spent == number + 1


def test_a_client_refuses_more_rounds_than_were_paid_for():
    client = make_client(NoiseSchedule.calibrate(1.0, 1e-5, rounds=2, picks=2, clip=1.0))
    client.answer(np.zeros((3, 3)), 0.5)
    client.answer(np.zeros((3, 3)), 0.5)
    with pytest.raises(SettingsError, match="2 rounds"):
        client.answer(np.zeros((3, 3)), 0.5)


def test_choices_have_the_chances_of_the_exponential_mechanism():
    schedule = NoiseSchedule(rounds=1, picks=1, clip=1.0, choice_epsilon=2.0, deviation=1.0)
    client = make_client(schedule, rows=10)
    scores = np.array([[0.0, 0.1, 0.0], [0.2, 0.0, 0.05], [0.0, 0.3, 0.0]])
    weights = np.exp(2.0 * scores / (2.0 * 1.0 / 10))
    np.fill_diagonal(weights, 0.0)
    counts = np.zeros((3, 3))
    for _ in range(20_000):
        counts[client._choose(scores)] += 1
    chances = weights / weights.sum()
    errors = 4.5 * np.sqrt(chances * (1 - chances) / 20_000)  # nine entries, 4.5 standard errors each
    assert (np.abs(counts / 20_000 - chances) <= errors).all()


def test_values_have_the_deviation_of_the_schedule():
    """At penalty 1 and no threshold, an entry moves by −noise / total / curvature besides what rows say."""
    schedule = NoiseSchedule(rounds=1, picks=6, clip=1.0, choice_epsilon=1.0, deviation=50.0)
    rows = np.zeros((100, 3))  # rows say nothing
    moved = []
    for seed in range(400):
        client = PrivateClient(rows, 100, 0.0, schedule, np.random.default_rng(seed))
        moved.extend(client.answer(np.zeros((3, 3)), 1.0).values.tolist())
    curvature = 2.0 + 1.0
    assert np.std(moved) == pytest.approx(50.0 / 100 / curvature, rel=0.06)


def test_stricter_privacy_makes_graphs_less_certain_and_seeds_fix_the_noise():
    """Noise is all that differs between seeds: graphs of two seeds differ more where there is more of it."""
    study = simulate(variables=4, clients=3, rows=3000, changing=0, seed=12)

    def disagreement(epsilon):
        found = [run_private_sparse_bnsl(study.tables, study.names, seed, epsilon=epsilon).graph for seed in range(6)]
        return np.mean([len(a.arrows ^ b.arrows) for a, b in combinations(found, 2)])

    assert disagreement(0.01) > disagreement(10.0) + 1.0
    first, second = (run_private_sparse_bnsl(study.tables, study.names, 3) for _ in range(2))
    assert first == second
