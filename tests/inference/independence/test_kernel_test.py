"""The kernel tests of the paper equal those of the pooled rows."""

from __future__ import annotations

import numpy as np
import pooled
import pytest
import studies
from hypothesis import given
from hypothesis import strategies as st
from query_studies import QueryStudy, assert_p_values, every_query

from fedcdh.inference.independence.kernel_test import KernelTest, gamma_tail, random_domain_features
from fedcdh.inference.independent_change import PrintedChange
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.features import Fourier


@pytest.fixture(scope="module")
def study() -> QueryStudy:
    return QueryStudy()


@pytest.fixture(scope="module")
def study_of_paper() -> QueryStudy:
    return QueryStudy(1, Fourier(5, 1.0, 3))


def test_the_papers_test_equals_that_of_the_pooled_rows(study_of_paper):
    domain = random_domain_features(study_of_paper.cohort, 5)
    assert domain.shape == (5, 5)
    test = KernelTest.of_paper(study_of_paper.cohort, seed=5)
    turned = [Query(q.y, q.x, q.given) for q in study_of_paper.queries]  # the roles of x and y differ in print
    assert_p_values(
        test,
        study_of_paper.queries + turned,
        lambda q: pooled.paper_p(study_of_paper.rows, q, domain),
        tolerance=1e-7,  # with a ridge of 1e-10, rounding is felt from the eighth digit on
    )


def test_features_without_variance_and_copies_of_variables_have_answers():
    draw = np.random.default_rng(0)
    tables = {}
    for client in ("north", "south"):  # fewer clients than features of the domain
        x = draw.standard_normal(50)
        columns = {"x": x, "copy": x, "double": 2 * x, "constant": np.ones(50), "two": (x > 0).astype(float)}
        tables[client] = columns | {"y": x + draw.standard_normal(50)}
    cohort = studies.cohort_of(tables, Fourier(5))
    test = KernelTest.of_paper(cohort)
    p_values = {answer.query: answer.p_value for answer in test(every_query((DOMAIN, *cohort.plan.names), 3))}
    assert all(0 <= p_value <= 1 for p_value in p_values.values())
    assert p_values[Query("x", "y")] < 1e-3
    assert p_values[Query("copy", "y", frozenset({"x"}))] > 0.5
    assert p_values[Query("constant", "y")] == 1
    changes = PrintedChange(test.space)([(x, y) for x in cohort.plan.names for y in cohort.plan.names if x != y])
    assert all(0 <= value.forward <= 1 + 1e-9 for value in changes)


def test_the_concatenated_test_equals_that_of_the_pooled_rows(study, study_of_paper):
    for one in (study, study_of_paper):
        test = KernelTest.concatenated(one.cohort)
        assert_p_values(test, one.queries, lambda q, one=one: pooled.concatenated_p(one.rows, q))


def test_only_the_names_of_clients_key_the_domains_features():
    tables = studies.numbers(1)
    turned = dict(reversed(tables.items()))
    assert np.array_equal(
        random_domain_features(studies.cohort_of(tables)), random_domain_features(studies.cohort_of(turned))
    )
    renamed = {f"other {client}": table for client, table in tables.items()}
    assert not np.array_equal(
        random_domain_features(studies.cohort_of(tables)), random_domain_features(studies.cohort_of(renamed))
    )


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_gamma_tail_is_a_p_value(statistic, mean, variance):
    p_value = float(gamma_tail(np.array(statistic), np.array(mean), np.array(variance)))
    assert 0.0 <= p_value <= 1.0
