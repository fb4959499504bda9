"""Pooling of strata: without conditions, reading every variable once changes no answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.inference.batched_regression import ResidualScatter
from fedcdh.inference.independence import stratum_pooling
from fedcdh.inference.independence.query_batch import JointColumns
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.aggregation import Cohort


def pair_by_pair(strata, freedom, targets, others):
    """What `pooled_alone` is to give, looked up for every query."""
    columns = np.concatenate([targets, others], axis=1)
    left = ResidualScatter(strata, columns)
    return stratum_pooling.pool_strata(left, freedom, *np.split(np.arange(columns.shape[1]), [targets.shape[1]]))


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 10**6),
    st.integers(0, 5),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30),
)
def test_where_nothing_is_given_a_variable_is_read_once(seed, strata, widths, pairs):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((strata, 9, 12)) * rng.choice([0.0, 1e-5, 1.0], (strata, 1, 12), p=[0.1, 0.1, 0.8])
    scatter, freedom = rows.swapaxes(1, 2) @ rows, rng.choice([-1.0, 0.0, 8.0], (strata, 1), p=[0.1, 0.1, 0.8])
    targets, others = (3 * np.array(pairs)[:, [end]] + np.arange(width) for end, width in enumerate(widths))
    found = stratum_pooling.pool_unconditional([*scatter], freedom, targets, others)
    expected = pair_by_pair([*scatter], freedom, targets, others)
    size = np.abs(expected.scatter).max(axis=(1, 2), keepdims=True)
    assert (np.abs(found.scatter - expected.scatter) <= 1e-12 * size).all()
    assert np.array_equal(found.freedom, expected.freedom)
    assert found.targets == expected.targets


def odd_study(seed: int, sizes: tuple[int, ...]) -> Cohort:
    """Numbers and labels of many widths, a constant, one that is constant at one client, and one twice."""
    tables = studies.mixed(seed, sizes)
    for k, (table, size) in enumerate(zip(tables.values(), sizes, strict=True)):
        rng = np.random.default_rng([seed, 7, k])
        table["ward"] = rng.choice([*"abcdefg"], size)
        table["nothing"] = np.full(size, 3.0)
        table["later"] = rng.standard_normal(size) * bool(k)
        table["again"] = table["age"]
    return studies.cohort_of(tables)


@pytest.mark.parametrize("curves", ["as seen", "none", "all"])
@pytest.mark.parametrize("sizes", [(60, 45, 30, 14, 5), (40, 3, 1), (80,)], ids=str)
@pytest.mark.parametrize("joint", [JointColumns(), JointColumns(with_squares=True)], ids=["plain", "closely"])
def test_reading_variables_once_changes_no_answer(monkeypatch, curves, sizes, joint):
    basis = Basis.of(odd_study(3, sizes))
    basis = replace(basis, predictors={"as seen": basis.predictors, "none": basis.targets, "all": basis.spans}[curves])
    nodes = (DOMAIN, *basis.spans)
    queries = [
        Query(x, y, given)
        for x, y in combinations(nodes, 2)
        for given in {frozenset[str](), frozenset({DOMAIN}) - {x, y}}
    ]
    found = RegressionTest(basis, joint)(queries)
    monkeypatch.setattr("fedcdh.inference.independence.partial_f_tests.pool_unconditional", pair_by_pair)
    for answer, other in zip(found, RegressionTest(basis, joint)(queries), strict=True):
        assert answer.p_value == pytest.approx(other.p_value, rel=1e-10)
        assert answer.statistic == pytest.approx(other.statistic, rel=1e-10)
