"""Shares of rows that count, where rows depend on each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from time_series import series

from fedcdh.data.sources import to_source
from fedcdh.summaries.profiles import profile
from fedcdh.summaries.row_dependence import ALL_ROWS, MIN_COUNTED_ROWS, RowShares, row_shares

seeds = st.integers(0, 10**6)


def shares_of(table: dict[str, object], **options: bool) -> dict[str, RowShares]:
    return row_shares(to_source(table, "client 'a'"), profile(table, "a").columns, **options)


def test_shares_are_those_of_bartlett():
    rng = np.random.default_rng(1)
    table = {"a": series(rng, 20_000, 0.8), "b": series(rng, 20_000, 0.5), "c": rng.normal(size=20_000)}
    found = shares_of(table)
    assert found["a"].mean == pytest.approx(1 / 9, rel=0.15)  # 1 + 2 · 0.8 / 0.2
    assert found["b"].mean == pytest.approx(1 / 3, rel=0.15)
    both = 1 / (1 + 2 * 0.4 / 0.6)  # the products of the two have the autocorrelations 0.4, 0.16, ...
    assert found["a"].product == pytest.approx(both, rel=0.15)
    assert found["b"].product == found["a"].product
    assert found["c"] == ALL_ROWS


def test_means_and_correlations_vary_like_those_of_the_rows_that_count():
    """The variances over many tables agree with the mean of the shares that one table names."""
    rng, rows = np.random.default_rng(2), 400
    pairs = [(series(rng, rows, 0.7), series(rng, rows, 0.7)) for _ in range(300)]
    named = [shares_of({"x": x, "y": y})["x"] for x, y in pairs[:40]]
    product = 1 / (rows * np.var([np.corrcoef(x, y)[0, 1] for x, y in pairs]))
    mean = 1 / (rows * np.var([x.mean() for x, _ in pairs]))
    assert np.mean([one.product for one in named]) == pytest.approx(product, rel=0.25)
    assert np.mean([one.mean for one in named]) == pytest.approx(mean, rel=0.3)


def test_one_dependent_column_leaves_correlations_alone():
    rng = np.random.default_rng(3)
    found = shares_of({"x": series(rng, 2000, 0.9), "y": rng.normal(size=2000)})
    assert found["x"].product == 1.0
    assert found["x"].mean < 0.1
    assert found["y"] == ALL_ROWS


def _independent_columns(rng: np.random.Generator, rows: int) -> dict[str, object]:
    return {
        "normal": rng.normal(size=rows),
        "cauchy": rng.standard_cauchy(rows),
        "rare": (rng.random(rows) < 0.03).astype(float),
        "outliers": np.where(rng.random(rows) < 0.02, 1e9, rng.normal(size=rows)),
        "counts": rng.poisson(0.3, rows).astype(float),
        "label": rng.choice(list("abc"), rows, p=[0.6, 0.3, 0.1]).tolist(),
        "rare label": rng.choice(["no", "yes"], rows, p=[0.97, 0.03]).tolist(),
        "many labels": [str(k) for k in rng.integers(40, size=rows)],
    }


@given(seeds, st.sampled_from([40, 150, 1000]))
@settings(max_examples=60, deadline=None)
def test_independent_rows_count_fully_in_any_order(seed, rows):
    """Heavy tails, outliers, rare values and rare labels side by side are no dependence."""
    table = _independent_columns(np.random.default_rng(seed), rows)
    assert set(shares_of(table).values()) == {ALL_ROWS}


@given(seeds, st.lists(st.integers(1, 399), max_size=5))
@settings(max_examples=25, deadline=None)
def test_batches_do_not_matter(seed, cuts):
    rng = np.random.default_rng(seed)
    x, walk = series(rng, 400, 0.8), series(rng, 400, 0.95)
    x[rng.random(400) < 0.05] = np.nan
    table = {"x": x, "walk": walk, "label": np.where(walk > 0, "up", "down")}
    edges = [0, *sorted(cuts), 400]
    batches = [{name: column[low:high] for name, column in table.items()} for low, high in pairwise(edges)]
    assert profile([one for one in batches if len(one["x"])], "a") == profile(table, "a")


@given(seeds, st.floats(-1e6, 1e6), st.sampled_from([-0.001, 0.5, 2.0, 1e4]))
@settings(max_examples=25, deadline=None)
def test_level_unit_and_direction_do_not_matter(seed, level, unit):
    rng = np.random.default_rng(seed)
    one, other = series(rng, 500, 0.6), series(rng, 500, 0.8)
    moved = {"x": np.round(level) + unit * one, "y": other}
    backwards = {"x": one[::-1], "y": other[::-1]}
    plain = np.array(list(shares_of({"x": one, "y": other}).values()))
    for table in (moved, backwards):
        assert np.array(list(shares_of(table).values())) == pytest.approx(plain, abs=0.011)  # the last digit may turn


def test_dependent_noise_is_found_behind_an_independent_cause():
    """x varies more than the noise of y and z, and hides its autocorrelation: 0.09 · 0.9ᵏ instead of 0.9ᵏ."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=3000)
    table = {"x": x, "y": 3 * x + series(rng, 3000, 0.9), "z": 3 * x + series(rng, 3000, 0.9)}
    found = shares_of(table)
    assert found["y"].product < 0.2
    assert found["z"].mean < 0.15
    table["label"] = np.where(x > 0, "high", "low")
    assert shares_of({name: table[name] for name in ("y", "z", "label")})["y"].mean < 1


def test_regressions_need_several_rows_per_column():
    """Forty columns of noise and sixty rows: nothing is regressed, and nothing found."""
    rng = np.random.default_rng(10)
    assert set(shares_of({f"v{k}": rng.normal(size=60) for k in range(40)}).values()) == {ALL_ROWS}


def test_rows_without_a_value_are_left_out():
    rng = np.random.default_rng(4)
    x, y = series(rng, 20_000, 0.8), series(rng, 20_000, 0.8)
    gaps = np.where(rng.random(20_000) < 0.3, np.nan, x)
    whole, some = shares_of({"x": x, "y": y})["x"], shares_of({"x": gaps, "y": y})["x"]
    assert some == pytest.approx(whole, rel=0.1)


def test_labels_that_follow_each_other_count_less():
    rng = np.random.default_rng(5)
    x = series(rng, 5000, 0.9)
    table = {"label": np.where(x > 0.5, "high", np.where(x < -0.5, "low", "middle")), "y": series(rng, 5000, 0.9)}
    found = shares_of(table)["label"]
    assert found.mean < 0.3
    assert found.product < 0.5


@pytest.mark.parametrize("sorted_by", ["x", "label", "nearly"])
def test_a_table_that_is_sorted_by_a_column_says_nothing_about_time(sorted_by):
    rng = np.random.default_rng(6)
    x = rng.normal(size=600)
    table = {"x": x, "y": x + rng.normal(size=600), "label": np.where(x > 0, "b", "a"), "nearly": x}
    order = np.argsort(table[sorted_by], kind="stable")
    table = {name: column[order] for name, column in table.items()}
    table["nearly"] = table["nearly"] + 1e-4 * rng.normal(size=600)
    if sorted_by == "label":
        table = {name: table[name] for name in ("y", "label")}
    assert set(shares_of(table).values()) == {ALL_ROWS}
    assert shares_of(table, in_time_order=True)["y"].mean < 1


def test_a_nested_design_says_nothing_about_time():
    """Rows of a grid, one factor within the other: each value of the outer factor comes in one run, in any order."""
    rng = np.random.default_rng(9)
    outer, inner = np.repeat([3.0, 1.0, 4.0, 2.0], 100), np.tile(np.repeat([2.0, 1.0, 5.0, 3.0], 25), 4)
    table = {"outer": outer, "inner": inner, "y": outer + inner + rng.normal(size=400)}
    assert set(shares_of(table).values()) == {ALL_ROWS}
    assert shares_of(table, in_time_order=True)["y"].mean < 0.5


def test_few_rows_and_constants_count_fully():
    rng = np.random.default_rng(7)
    assert set(shares_of({"x": series(rng, 25, 0.99), "y": series(rng, 25, 0.99)}).values()) == {ALL_ROWS}
    assert set(shares_of({"x": np.ones(100), "label": ["a"] * 100}).values()) == {ALL_ROWS}


@given(seeds, st.sampled_from([100, 400]))
@settings(max_examples=25, deadline=None)
def test_shares_have_two_digits_and_leave_ten_rows(seed, rows):
    rng = np.random.default_rng(seed)
    for share in shares_of({"x": rng.normal(size=rows).cumsum(), "y": rng.normal(size=rows).cumsum()}).values():
        for number in share:
            assert MIN_COUNTED_ROWS / rows <= number <= 1
            assert number == float(f"{number:.2g}")


@given(seeds, st.floats(-1e9, 1e9))
@settings(max_examples=40, deadline=None)
def test_one_row_hardly_moves_a_share(seed, value):
    """An attack: a person who changes one cell at will learns at most a little about the rest.

    Levels and units leave no trace (see above), and one cell moves a share by a few of its at most 181 values. Two
    shares are thus less than 16 bits about a whole column, next to a mean that is exact.
    """
    rng = np.random.default_rng(seed)
    x, y = series(rng, 300, 0.7), series(rng, 300, 0.7)
    before = shares_of({"x": x, "y": y})["x"]
    x[int(rng.integers(300))] = value
    after = shares_of({"x": x, "y": y})["x"]
    assert after.product == pytest.approx(before.product, rel=0.2)
    assert after.mean == pytest.approx(before.mean, rel=0.6)  # the last lag that counts may move


def test_the_factor_of_means_turns_one_share_into_the_other():
    assert RowShares(0.4, 0.1).mean_factor == pytest.approx(0.5)
