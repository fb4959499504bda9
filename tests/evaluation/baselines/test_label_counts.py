"""Counts of labels: levels that clients agree on, and cut points for numbers."""

from __future__ import annotations

import numpy as np
import pytest

from fedcdh.errors import DataError
from fedcdh.evaluation.baselines.interface import CountingChannel
from fedcdh.evaluation.baselines.label_counts import MAX_LEVELS, agree_on_levels, bin_numbers


def test_counts_of_clients_add_up_to_those_of_all_rows():
    for seed in range(5):
        rows = np.random.default_rng(seed).integers(0, 4, (80, 3)).astype(float) * [1, 3, 7]
        tables = {"a": rows[:9], "b": rows[9:30], "c": rows[30:]}
        spread, one = agree_on_levels(tables, CountingChannel(3)), agree_on_levels({"all": rows}, CountingChannel(1))
        assert spread.levels == one.levels
        assert sorted(spread.ranks) == [0, 1, 2]
        for columns in ((0,), (2, 1), (1, 0, 2)):
            total = np.sum([client.count(columns) for client in spread.clients], axis=0)
            np.testing.assert_array_equal(total, one.clients[0].count(columns))
            expected = np.histogramdd(rows[:, columns], [np.array([0, 1, 2, 3, 4]) * [1, 3, 7][c] for c in columns])[0]
            np.testing.assert_array_equal(total, expected)


def test_a_table_of_no_columns_holds_the_rows():
    study = agree_on_levels({"c": np.zeros((7, 1))}, CountingChannel(1))
    assert int(study.clients[0].count(())) == 7


def test_numbers_and_too_many_levels_are_no_labels():
    for column in (np.linspace(0, 1, 9), np.arange(MAX_LEVELS + 1.0)):
        with pytest.raises(DataError, match=f"found {len(column)} different values in column 1"):
            agree_on_levels({"c": column[:, None]}, CountingChannel(1))
    assert agree_on_levels({"c": np.arange(float(MAX_LEVELS))[:, None]}, CountingChannel(1)).levels == (MAX_LEVELS,)


def test_tertiles_are_those_of_all_rows_up_to_the_grid_of_quantiles():
    for seed in range(5):
        draw = np.random.default_rng(seed)
        tables = {f"c{k}": draw.normal(k, 1 + k, (300 + 200 * k, 2)) for k in range(3)}
        channel = CountingChannel(3)
        binned = np.concatenate(list(bin_numbers(tables, channel).values()))
        shares = np.stack([np.bincount(column.astype(int), minlength=3) for column in binned.T]) / len(binned)
        assert np.abs(shares - 1 / 3).max() < 0.03
        assert channel.traffic.bytes_up == 3 * (8 + 19 * 2 * 8)
        assert channel.traffic.bytes_down == 3 * 2 * 2 * 8


def test_binning_keeps_the_order_of_numbers_and_takes_constants():
    rows = np.random.default_rng(1).standard_normal((90, 1))
    rows = np.column_stack([rows, np.full(90, 3.0)])
    binned = bin_numbers({"c": rows}, CountingChannel(1))["c"]
    assert (np.diff(binned[np.argsort(rows[:, 0]), 0]) >= 0).all()
    assert len(np.unique(binned[:, 1])) == 1
