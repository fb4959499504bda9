"""Partial F tests: both ends of a query are alike, and slopes of different sign are found."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from query_studies import TOLERANCE, QueryStudy

from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query


@pytest.fixture(scope="module")
def study() -> QueryStudy:
    return QueryStudy()


def test_regressions_treat_both_ends_of_a_query_alike(study):
    test = RegressionTest(Basis.of(study.cohort))
    turned = test([Query(q.y, q.x, q.given) for q in study.queries])
    for answer, other in zip(test(study.queries), turned, strict=True):
        assert answer.p_value == pytest.approx(other.p_value, abs=TOLERANCE)


def test_effects_that_differ_in_sign_between_clients_are_seen_within_them():
    rng = np.random.default_rng(3)
    tables = {}
    for client, slope in (("a", 1.0), ("b", -1.0)):
        x = rng.standard_normal(100)
        tables[client] = {"x": x, "y": slope * x + rng.standard_normal(100)}
    test = RegressionTest(Basis.of(studies.cohort_of(tables)))
    (inside,) = test([Query("x", "y", frozenset({DOMAIN}))])
    assert inside.p_value < 1e-6
