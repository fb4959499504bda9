"""Completed tables: the same as by plain iterative proportional fitting, and better where that is slow."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedcdh.inference.evidence import _table_completion
from fedcdh.inference.evidence._table_completion import complete_tables


def margins(table: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    axes = range(table.ndim)
    return {
        pair: table.sum(axis=tuple(axis for axis in axes if axis not in pair))[..., None]
        for pair in itertools.combinations(axes, 2)
    }


def test_tables_without_interactions_are_completed_exactly():
    rng = np.random.default_rng(2)
    shape = (2, 3, 4)
    table = np.ones(shape)
    for kept in itertools.combinations(range(3), 2):
        table = table * rng.uniform(0.3, 3.0, [size if axis in kept else 1 for axis, size in enumerate(shape)])
    table *= 500 / table.sum()
    assert complete_tables(margins(table))[..., 0] == pytest.approx(table, abs=1e-3)


def test_or_is_completed_exactly():
    rng = np.random.default_rng(3)
    a, b = (rng.random((2, 400)) < 0.3).astype(int)
    table = np.zeros((2, 2, 2))
    np.add.at(table, (a | b, a, b), 1)
    assert complete_tables(margins(table))[..., 0] == pytest.approx(table, abs=1e-3)


def test_every_pair_of_a_completed_table_has_its_counts():
    rng = np.random.default_rng(3)
    table = rng.poisson(0.7, (3, 2, 3, 2)).astype(float)
    completed = complete_tables(margins(table))[..., 0]
    for pair, wanted in margins(table).items():
        assert margins(completed)[pair] == pytest.approx(wanted, abs=0.01 * table.sum())


def stack(several: list[np.ndarray]) -> dict[tuple[int, int], np.ndarray]:
    return {pair: np.concatenate([margins(t)[pair] for t in several], axis=-1) for pair in margins(several[0])}


@pytest.mark.parametrize("shape", [(3, 3, 3), (2, 3, 2, 4), (2, 2, 3, 2, 2)], ids=str)
def test_a_table_does_not_depend_on_the_others_of_its_batch(shape, monkeypatch):
    rng = np.random.default_rng(4)
    several = [rng.poisson(mean, shape).astype(float) for mean in (0.5, 5, 50, 0.1, 1, 500)]
    several += [np.ones(shape), several[0] * 0]
    alone = [complete_tables(margins(table))[..., 0] for table in several]
    for smallest in (0, 10**9):  # tables that fit leave early, or never
        monkeypatch.setattr(_table_completion, "_SMALL_SIZE", smallest)
        at_once = complete_tables(stack(several))
        for place, table in enumerate(alone):
            assert np.array_equal(at_once[..., place], table)


@pytest.mark.parametrize("shape", [(2, 2, 3), (2, 3, 2, 2), (2, 2, 2, 3, 2)], ids=str)
def test_levels_without_rows_change_nothing(shape):
    rng = np.random.default_rng(5)
    for mean in (0.3, 2, 40):
        several = [rng.poisson(mean, shape).astype(float) for _ in range(4)]
        padded = [np.pad(table, [(0, axis % 3) for axis in range(len(shape))]) for table in several]
        expected, found = complete_tables(stack(several)), complete_tables(stack(padded))
        kept = tuple(slice(size) for size in shape)
        assert np.array_equal(found[kept], expected)
        assert found.sum() == pytest.approx(expected.sum())


def fit_plainly(table: np.ndarray, sweeps: int) -> np.ndarray:
    """Iterative proportional fitting of a table without zeros in its pairs, as in a textbook."""
    fitted = np.ones(table.shape)
    for _ in range(sweeps):
        for kept in itertools.combinations(range(table.ndim), 2):
            others = tuple(axis for axis in range(table.ndim) if axis not in kept)
            fitted *= table.sum(axis=others, keepdims=True) / fitted.sum(axis=others, keepdims=True)
    return fitted


def draw_dependent(rng: np.random.Generator, shape: tuple[int, ...], rows: int, strength: float) -> np.ndarray:
    """Counts of rows in which neighbouring variables depend on each other; every pair of levels occurs."""
    logits = sum(
        strength * rng.standard_normal([size if axis in (i, i + 1) else 1 for axis, size in enumerate(shape)])
        for i in range(len(shape) - 1)
    )
    shares = np.exp(logits + np.zeros(shape))
    return rng.multinomial(rows, (shares / shares.sum()).ravel()).reshape(shape) + 1.0


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3, 4), (3, 3, 3, 2), (2, 3, 2, 3, 2)], ids=str)
@pytest.mark.parametrize("strength", [0.3, 1.5])
def test_acceleration_finds_what_plain_fitting_finds(shape, strength):
    for seed in range(10):
        table = draw_dependent(np.random.default_rng([20, seed]), shape, 500, strength)
        expected = fit_plainly(table, 3000)
        assert complete_tables(margins(table))[..., 0] == pytest.approx(expected, abs=2e-4 * table.sum())


def test_acceleration_comes_closer_than_as_many_plain_sweeps(monkeypatch):
    monkeypatch.setattr(_table_completion, "FIT_TOLERANCE", 0.0)
    sweeps, worst = _table_completion.MAX_SWEEPS, []
    for seed in range(10):
        table = draw_dependent(np.random.default_rng([21, seed]), (3, 3, 3, 3), 300, 2.5)
        expected, plain = fit_plainly(table, 5000), fit_plainly(table, sweeps)
        worst.append([np.abs(found - expected).max() for found in (complete_tables(margins(table))[..., 0], plain)])
    accelerated, plain = np.median(worst, axis=0)
    assert accelerated < plain / 5


def test_zeros_of_pairs_stay_zeros():
    for seed in range(20):
        table = np.random.default_rng([22, seed]).poisson(0.4, (3, 3, 3, 2)).astype(float)
        completed = complete_tables(margins(table))[..., 0]
        assert np.isfinite(completed).all()
        for pair, counts in margins(table).items():
            assert (margins(completed)[pair][counts == 0] == 0).all()
