"""Which pairs stay possible: all that look dependent and, among many variables, all that do beside others."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import studies

from fedcdh.inference import parent_screening
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.inference.parent_screening import (
    MAX_PAIRWISE_VARIABLES,
    MIN_SCREENED_VARIABLES,
    SCREENING_ALPHA,
    screen_parents,
)
from fedcdh.protocols import DOMAIN, Query


def basis_of(count: int, seed: int = 0, **columns) -> Basis:
    """Numbers without any effect on each other; columns are made of them, by their names."""
    tables = {}
    for k in range(3):
        rng = np.random.default_rng([seed, k])
        table = {f"v{j:03}": rng.standard_normal(120) for j in range(count)}
        for name, made in columns.items():
            table[name] = made(table, rng.standard_normal(120))
        tables[f"site {k}"] = table
    return Basis.of(studies.cohort_of(tables))


def names_of(basis: Basis) -> tuple[str, ...]:
    return tuple(basis.spans)


def test_every_pair_of_few_variables_is_possible():
    basis = basis_of(MIN_SCREENED_VARIABLES - 1)
    assert screen_parents(basis, names_of(basis)) is None


def test_up_to_a_hundred_variables_a_pair_is_possible_if_it_looks_dependent():
    basis = basis_of(MAX_PAIRWISE_VARIABLES - 1, copy=lambda table, noise: table["v003"] + noise)
    names = names_of(basis)
    answers = RegressionTest(basis)([Query(a, b, frozenset({DOMAIN})) for a, b in combinations(names, 2)])
    dependent = {answer.query.pair for answer in answers if answer.p_value < SCREENING_ALPHA}
    possible = screen_parents(basis, names)
    assert {frozenset((a, b)) for a, others in possible.items() for b in others} == dependent
    assert "v003" in possible["copy"]


def cancelling() -> Basis:
    """cause → y and cause → between → y; the two ways cancel each other, so that cause and y look independent."""
    return basis_of(
        MAX_PAIRWISE_VARIABLES + 1,
        between=lambda table, noise: table["v000"] + noise,
        y=lambda table, noise: table["between"] - table["v000"] + noise,
    )


def test_a_cause_that_is_seen_only_beside_another_stays_possible():
    basis = cancelling()
    names = names_of(basis)
    (alone,) = RegressionTest(basis)([Query("y", "v000", frozenset({DOMAIN}))])
    assert alone.p_value > parent_screening.EXPECTED_FALSE_COMPANIONS / len(names)
    assert {"v000", "between"} <= screen_parents(basis, names)["y"]


def test_candidates_go_both_ways_and_do_not_depend_on_the_order_of_names():
    basis = cancelling()
    names = names_of(basis)
    possible = screen_parents(basis, names)
    assert {(a, b) for a, others in possible.items() for b in others} == {
        (b, a) for a, others in possible.items() for b in others
    }
    assert not any(name in others for name, others in possible.items())
    assert screen_parents(basis, names[::-1]) == possible


def test_chance_does_not_leave_more_candidates_among_more_variables():
    few, many = (
        np.mean([len(others) for others in screen_parents(basis, names_of(basis)).values()])
        for basis in (basis_of(MAX_PAIRWISE_VARIABLES + 5), basis_of(3 * MAX_PAIRWISE_VARIABLES))
    )
    assert many < 1.5 * few
    assert many < SCREENING_ALPHA * 3 * MAX_PAIRWISE_VARIABLES
