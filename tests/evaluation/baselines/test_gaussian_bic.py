"""The Gaussian BIC: least squares, equivalence classes, pooled moments, and tables without information."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from fedcdh.evaluation.baselines.gaussian_bic import (
    GaussianBic,
    GaussianMoments,
    pool_moments,
    pool_within_clients,
)
from fedcdh.protocols import Family

NAMES = tuple("abcde")


def draw_rows(seed: int, rows: int = 40) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return draw.standard_normal((rows, 5)) @ draw.standard_normal((5, 5)) + draw.standard_normal(5)


def every_family() -> list[Family]:
    others = {node: [name for name in NAMES if name != node] for node in NAMES}
    return [Family(node, frozenset(P)) for node in NAMES for size in range(5) for P in combinations(others[node], size)]


def test_the_score_is_that_of_least_squares():
    """The residual variance of a regression with an intercept, and (log n)/2 for each weight and once more."""
    table = draw_rows(1)
    families = every_family()
    for family, score in zip(families, GaussianBic.of_table(table, NAMES)(families), strict=True):
        places = [NAMES.index(parent) for parent in sorted(family.parents)]
        design = np.column_stack([np.ones(len(table)), table[:, places]])
        target = table[:, NAMES.index(family.node)]
        residual = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
        expected = -20 * np.log((residual**2).mean()) - np.log(40) / 2 * (len(places) + 1)
        assert score == pytest.approx(expected, abs=1e-6), family


def test_dags_of_one_class_have_the_same_score():
    for seed in range(20):
        score = GaussianBic.of_table(draw_rows(seed), NAMES)
        for given in (frozenset(), frozenset("c"), frozenset("ce")):
            forward = sum(score([Family("a", given), Family("b", given | {"a"})]))
            backward = sum(score([Family("b", given), Family("a", given | {"b"})]))
            assert forward == pytest.approx(backward, abs=1e-6), f"seed {seed}"


def test_a_batch_gives_what_single_questions_give():
    """Repeated families, too; and the order within a batch does not matter."""
    families = every_family()
    batch = GaussianBic.of_table(draw_rows(2), NAMES)
    single = GaussianBic.of_table(draw_rows(2), NAMES)
    found = batch([*families, *reversed(families)])
    assert found == [single([family])[0] for family in [*families, *reversed(families)]]


def test_units_change_all_graphs_by_the_same_number():
    table, scale = draw_rows(3), np.array([1e-3, 2.0, 1e4, 7.0, 1.0])
    families = every_family()
    before, after = (GaussianBic.of_table(rows, NAMES)(families) for rows in (table, table * scale))
    for family, one, two in zip(families, before, after, strict=True):
        assert two - one == pytest.approx(-40 * np.log(scale[NAMES.index(family.node)]), abs=1e-6)


def test_moments_of_clients_add_up():
    table = draw_rows(4, 90) + 10
    parts = np.split(table, [20, 50])
    moments = [GaussianMoments.of(part) for part in parts]
    np.testing.assert_allclose(pool_moments(moments).covariance, np.cov(table.T, bias=True))
    np.testing.assert_allclose(pool_moments(moments).means, table.mean(axis=0))
    centred = np.concatenate([part - part.mean(axis=0) for part in parts])
    np.testing.assert_allclose(pool_within_clients(moments).covariance, centred.T @ centred / 90)
    received = GaussianMoments.from_message(moments[0].to_message(), 5)
    assert received.rows == 20
    np.testing.assert_array_equal(received.means, moments[0].means)
    np.testing.assert_array_equal(received.covariance, moments[0].covariance)


def test_columns_and_rows_without_information_add_no_parents():
    """Constant and duplicate columns, and fewer rows than variables: finite scores, and no parents from nothing."""
    constant = draw_rows(5)
    constant[:, 2] = 3.0
    score = GaussianBic.of_table(constant, NAMES)
    alone, explained = score([Family("c"), Family("c", frozenset("abd"))])
    assert alone > explained
    without, with_constant = score([Family("a", frozenset("b")), Family("a", frozenset("bc"))])
    assert without > with_constant
    twice = draw_rows(6)
    twice[:, 1] = twice[:, 0]
    once, both = GaussianBic.of_table(twice, NAMES)([Family("d", frozenset("a")), Family("d", frozenset("ab"))])
    assert once > both
    for rows in (1, 2, 3, 4):
        few = GaussianBic.of_table(draw_rows(7, rows), NAMES)
        assert np.isfinite(few(every_family())).all()
        saturated = frozenset(NAMES[1 : rows + 1])
        assert few([Family("a")])[0] >= few([Family("a", saturated)])[0]
