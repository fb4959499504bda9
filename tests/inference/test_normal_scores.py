"""Normal scores from sums of features: none for normal data, and those of the ranks for other data."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from scipy.stats import norm, rankdata

from fedcdh.data.table import to_table
from fedcdh.inference.normal_scores import find_normal_scores
from fedcdh.summaries.aggregation import Aggregate, Cohort
from fedcdh.summaries.encoder import GRID, Encoder

ROWS = 1000
SCALES = {
    "exponential": (lambda u: np.exp(u), lambda u: u),
    "weak exponential": (lambda u: np.exp(0.5 * u), lambda u: np.log(0.5) + 0.5 * u),
    "sinh": (lambda u: np.sinh(1.5 * u), lambda u: np.log(1.5 * np.cosh(1.5 * u))),
    "cube root": (np.cbrt, lambda u: -2 / 3 * np.log(np.abs(u)) - np.log(3)),
}
"""Monotone functions of normal numbers, and the logarithms of their derivatives."""


def normal_numbers(seed: int, rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(rows)


def split(x: np.ndarray, clients: int = 2) -> studies.Tables:
    return {f"c{k}": {"x": part} for k, part in enumerate(np.array_split(x, clients))}


def scores_of(cohort: Cohort, tables: studies.Tables) -> tuple[np.ndarray, float]:
    """Return the score of every row, and its Jacobian."""
    score, span = find_normal_scores(cohort)["x"], cohort.plan.layout.spans["x"]
    rows = [Encoder(cohort.plan, client)(to_table(table))[span] / GRID for client, table in tables.items()]
    return score.weights @ np.concatenate(rows, axis=1), score.log_jacobian


def test_normal_data_have_no_scores():
    for seed in range(40):
        rows = (200, 1000, 4000)[seed % 3]
        assert not find_normal_scores(studies.cohort_of(split(50 + 12 * normal_numbers(seed, rows)))), seed


@pytest.mark.parametrize("name", SCALES)
def test_scores_are_those_of_the_ranks(name):
    for seed in range(4):
        x = SCALES[name][0](normal_numbers(seed))
        tables = split(x)
        found, _ = scores_of(studies.cohort_of(tables), tables)
        exact = norm.ppf((rankdata(x) - 0.5) / len(x))
        assert np.corrcoef(found, exact)[0, 1] > 0.97, seed


@pytest.mark.parametrize("name", SCALES)
def test_the_jacobian_is_the_sum_of_the_log_derivatives_less_a_price(name):
    bend, log_slope = SCALES[name]
    for seed in range(4):
        u = normal_numbers(seed, 4000)
        tables = split(bend(u))
        _, found = scores_of(studies.cohort_of(tables), tables)
        exact = float((np.log(bend(u).std()) - log_slope(u)).sum())
        assert 0.85 * exact < found < exact, seed


@pytest.mark.parametrize("name", SCALES)
def test_units_do_not_matter(name):
    x = SCALES[name][0](normal_numbers(0))
    expected, jacobian = scores_of(studies.cohort_of(split(x)), split(x))
    for factor, shift in ((1e-3, 0.0), (1e3, 5e4), (-2.0, 7.0)):
        tables = split(factor * x + shift)
        found, other = scores_of(studies.cohort_of(tables), tables)
        assert abs(np.corrcoef(found, expected)[0, 1]) > 0.999, factor
        assert other == pytest.approx(jacobian, rel=0.01), factor


def test_where_rows_live_does_not_matter():
    x = SCALES["exponential"][0](normal_numbers(1, 600))
    alone = studies.cohort_of(split(x, 1))
    several = studies.cohort_of(split(x, 6))
    first, second = (find_normal_scores(known)["x"] for known in (several, Aggregate.of(several)))
    assert np.array_equal(first.weights, second.weights)
    assert first.log_jacobian == second.log_jacobian
    assert first.log_jacobian == pytest.approx(find_normal_scores(alone)["x"].log_jacobian, rel=1e-2)


def test_labels_and_constants_have_no_scores():
    label = np.where(normal_numbers(0, 400) > 0, "yes", "no")
    assert find_normal_scores(studies.cohort_of({"north": {"constant": np.full(400, 3.0), "label": label}})) == {}


def test_two_bumps_have_scores_that_rise():
    """Where few rows are, between the bumps, the score may rise steeply; it must not fall among the rows."""
    for width in (0.2, 0.4):
        rng = np.random.default_rng(0)
        x = rng.choice([-1.0, 1.0], ROWS) + width * rng.standard_normal(ROWS)
        found, _ = scores_of(studies.cohort_of(split(x)), split(x))
        assert np.corrcoef(rankdata(found), rankdata(x))[0, 1] > 0.99
