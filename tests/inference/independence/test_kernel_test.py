"""The kernel tests of the paper equal those of the pooled rows."""

from __future__ import annotations

import numpy as np
import pooled
import pytest
import studies
from hypothesis import given
from hypothesis import strategies as st
from query_studies import QueryStudy, assert_p_values

from fedcdh.inference.independence.kernel_test import KernelTest, gamma_tail, random_domain_features
from fedcdh.protocols import Query
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
    assert_p_values(test, study_of_paper.queries + turned, lambda q: pooled.paper_p(study_of_paper.rows, q, domain))


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
