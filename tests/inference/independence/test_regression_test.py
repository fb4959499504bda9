"""Independence tests: what the server computes from sums is what the pooled rows say."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pooled
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from query_studies import QueryStudy, assert_p_values
from time_series import unrelated

from fedcdh.inference.counted_rows import variable_shares
from fedcdh.inference.independence.kernel_test import KernelTest
from fedcdh.inference.independence.query_batch import JointColumns
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.row_dependence import ALL_ROWS, RowShares


@pytest.fixture(scope="module")
def study() -> QueryStudy:
    return QueryStudy()


def kinds(query: Query) -> str:
    return "domain" if DOMAIN in query.pair else "within" if DOMAIN in query.given else "plain"


@pytest.mark.parametrize("kind", ["plain", "within", "domain"])
def test_regressions_equal_those_of_the_pooled_rows(study, kind):
    queries = [query for query in study.queries if kinds(query) == kind]
    assert len(queries) > 50
    assert_p_values(RegressionTest(Basis.of(study.cohort)), queries, lambda q: pooled.regression_p(study.rows, q))


@settings(deadline=None, max_examples=8)
@given(
    st.integers(0, 10**6),
    st.lists(st.sampled_from([1, 2, 3, 6, 12, 30, 80]), min_size=1, max_size=5).filter(lambda sizes: sum(sizes) > 30),
)
def test_regressions_equal_those_of_the_pooled_rows_at_clients_of_any_size(seed, sizes):
    study = QueryStudy(seed, sizes=sizes)
    rng = np.random.default_rng(seed)
    chosen = [study.queries[i] for i in rng.choice(len(study.queries), 25, replace=False)]
    for answer in RegressionTest(Basis.of(study.cohort))(chosen):
        if DOMAIN in answer.query.pair and len(sizes) == 1:
            assert answer.p_value >= 0.89  # one client differs from none
            continue
        # small clients may be nearly collinear: what is exact in integers then loses digits in the inverse
        assert answer.p_value == pytest.approx(pooled.regression_p(study.rows, answer.query), abs=1e-6)


TESTS = {
    "regression": lambda cohort: RegressionTest(Basis.of(cohort)),
    "paper": KernelTest.of_paper,
    "concatenated": KernelTest.concatenated,
}


@pytest.mark.parametrize("test_of", TESTS.values(), ids=TESTS.keys())
def test_an_answer_does_not_depend_on_the_batch(study, test_of):
    test = test_of(study.cohort)
    queries = study.queries[::5]
    together = test(queries)
    assert [test([query])[0] for query in queries] == together
    assert test(queries[::-1]) == together[::-1]
    assert test([]) == []
    assert {answer.rows for answer in together} == {185}


def test_nor_with_many_clients():
    """From eight numbers on that are side by side in memory, numpy adds up several at a time."""
    study = QueryStudy(3, sizes=(30,) * 12)
    test = RegressionTest(Basis.of(study.cohort))
    assert [test([query])[0] for query in study.queries] == test(study.queries)


def test_nor_where_conditions_act_together_in_the_same_way_everywhere():
    study = QueryStudy(3, sizes=(30,) * 12)
    basis = Basis.of(study.cohort)
    last = max(basis.spans, key=lambda name: len(basis.spans[name]))
    test = RegressionTest(basis, JointColumns(common=basis.spans[last][-2:]))
    queries = [q for q in study.queries if DOMAIN in q.given and last not in q.pair | q.given]
    assert len(queries) > 20
    assert [test([query])[0] for query in queries] == test(queries)


@pytest.mark.parametrize("test_of", TESTS.values(), ids=TESTS.keys())
@pytest.mark.parametrize("sizes", [(18, 19), (3, 4), (1, 1, 1), (13, 13, 1)])
def test_more_conditions_than_rows_can_bear(test_of, sizes):
    tables = studies.numbers(8, sizes, count=9)
    nodes = (DOMAIN, *tables["site0"])
    queries = [
        Query(x, y, frozenset([name for name in nodes if name not in (x, y)][:size]))
        for x, y in combinations(nodes, 2)
        for size in range(9)
    ]
    for answer in test_of(studies.cohort_of(tables))(queries):
        assert 0.0 <= answer.p_value <= 1.0
        assert np.isfinite(answer.statistic)


@pytest.mark.parametrize("test_of", [TESTS["regression"], TESTS["concatenated"]])
def test_what_is_there_is_seen(test_of):
    """Strong effects are found by every test, of number on number, label on number, and between clients."""
    test = test_of(studies.cohort_of(studies.mixed(0, sizes=(200, 200, 200))))
    seen = [("age", "score"), ("dose", "group"), ("group", "score"), (DOMAIN, "dose")]
    assert max(answer.p_value for answer in test([Query(x, y) for x, y in seen])) < 1e-4


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_answers_about_dependent_rows_are_calibrated(seed):
    """Series without any link: with the shares of their tables, p-values are not too small."""
    tables = unrelated(seed, clients=4, rows=250)
    cohort = studies.cohort_of(tables)
    basis, names = Basis.of(cohort), cohort.plan.names
    queries = [Query(a, b) for a, b in combinations(names, 2)] + [Query(DOMAIN, name) for name in names]
    naive, counted = RegressionTest(basis)(queries), RegressionTest(basis, shares=variable_shares(cohort.plan))(queries)
    assert min(answer.p_value for answer in counted) > 1e-6
    assert min(answer.p_value for answer in counted) > min(answer.p_value for answer in naive)
    assert [answer.rows for answer in counted] == [answer.rows for answer in naive]


def test_shares_of_one_and_the_order_of_queries_change_nothing():
    cohort = studies.cohort_of(studies.mixed(2))
    basis, names = Basis.of(cohort), cohort.plan.names
    queries = [Query(a, b) for a, b in combinations(names, 2)] + [Query(DOMAIN, name) for name in names]
    all_rows = RegressionTest(basis, shares=dict.fromkeys(names, ALL_ROWS))
    assert all_rows(queries) == RegressionTest(basis)(queries)
    some = RegressionTest(basis, shares={names[0]: RowShares(0.5, 0.2), names[1]: RowShares(0.7, 0.6)})
    turned = [answer.p_value for answer in some(queries[::-1])][::-1]
    assert turned == pytest.approx([answer.p_value for answer in some(queries)])
