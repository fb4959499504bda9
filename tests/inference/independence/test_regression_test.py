"""Independence tests: what the server computes from sums is what the pooled rows say."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pooled
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.inference.batched_regression import ResidualScatter
from fedcdh.inference.independence import stratum_pooling
from fedcdh.inference.independence.kernel_test import KernelTest, gamma_tail, random_domain_features
from fedcdh.inference.independence.query_batch import JointColumns
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query
from fedcdh.summaries.aggregation import Cohort
from fedcdh.summaries.features import Fourier, Hermite

TOLERANCE = 1e-9


def every_question(names: tuple[str, ...], largest: int = 2) -> list[Query]:
    return [
        Query(x, y, frozenset(chosen))
        for x, y in combinations(names, 2)
        for size in range(largest + 1)
        for chosen in combinations([name for name in names if name not in (x, y)], size)
    ]


def compare(test, questions, direct) -> None:
    answers = test(questions)
    assert [answer.query for answer in answers] == questions
    different = [
        (str(answer.query), answer.p_value, expected)
        for answer in answers
        if abs(answer.p_value - (expected := direct(answer.query))) > TOLERANCE
    ]
    assert not different, f"{len(different)} of {len(questions)} differ, such as {different[:3]}"


class Study:
    """A study of numbers and labels at five clients, the last too small for regressions of its own."""

    def __init__(self, seed: int = 0, family: Hermite | Fourier = Hermite(), sizes=(60, 50, 40, 30, 5)) -> None:  # noqa: B008
        self.tables = studies.mixed(seed, sizes)
        self.cohort = studies.cohort_of(self.tables, family)
        self.rows = pooled.Rows.of(self.tables, self.cohort.plan)
        self.nodes = (DOMAIN, *self.cohort.plan.names)
        self.questions = every_question(self.nodes)


@pytest.fixture(scope="module")
def study() -> Study:
    return Study()


@pytest.fixture(scope="module")
def study_of_paper() -> Study:
    return Study(1, Fourier(5, 1.0, 3))


def kinds(question: Query) -> str:
    return "domain" if DOMAIN in question.pair else "within" if DOMAIN in question.given else "plain"


@pytest.mark.parametrize("kind", ["plain", "within", "domain"])
def test_regressions_equal_those_of_the_pooled_rows(study, kind):
    questions = [question for question in study.questions if kinds(question) == kind]
    assert len(questions) > 50
    compare(RegressionTest(Basis.of(study.cohort)), questions, lambda q: pooled.regression_p(study.rows, q))


@settings(deadline=None, max_examples=8)
@given(
    st.integers(0, 10**6),
    st.lists(st.sampled_from([1, 2, 3, 6, 12, 30, 80]), min_size=1, max_size=5).filter(lambda sizes: sum(sizes) > 30),
)
def test_regressions_equal_those_of_the_pooled_rows_at_clients_of_any_size(seed, sizes):
    study = Study(seed, sizes=sizes)
    rng = np.random.default_rng(seed)
    chosen = [study.questions[i] for i in rng.choice(len(study.questions), 25, replace=False)]
    for answer in RegressionTest(Basis.of(study.cohort))(chosen):
        if DOMAIN in answer.query.pair and len(sizes) == 1:
            assert answer.p_value >= 0.89  # one client differs from none
            continue
        # small clients may be nearly collinear: what is exact in integers then loses digits in the inverse
        assert answer.p_value == pytest.approx(pooled.regression_p(study.rows, answer.query), abs=1e-6)


def pair_by_pair(strata, freedom, targets, others):
    """What `pooled_alone` is to give, looked up for every question."""
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
@pytest.mark.parametrize("together", [JointColumns(), JointColumns(with_squares=True)], ids=["plain", "closely"])
def test_reading_variables_once_changes_no_answer(monkeypatch, curves, sizes, together):
    basis = Basis.of(odd_study(3, sizes))
    basis = replace(basis, predictors={"as seen": basis.predictors, "none": basis.targets, "all": basis.spans}[curves])
    nodes = (DOMAIN, *basis.spans)
    questions = [
        Query(x, y, given)
        for x, y in combinations(nodes, 2)
        for given in {frozenset[str](), frozenset({DOMAIN}) - {x, y}}
    ]
    found = RegressionTest(basis, together)(questions)
    monkeypatch.setattr("fedcdh.inference.independence.partial_f_tests.pool_unconditional", pair_by_pair)
    for answer, other in zip(found, RegressionTest(basis, together)(questions), strict=True):
        assert answer.p_value == pytest.approx(other.p_value, rel=1e-10)
        assert answer.statistic == pytest.approx(other.statistic, rel=1e-10)


def test_the_papers_test_equals_that_of_the_pooled_rows(study_of_paper):
    domain = random_domain_features(study_of_paper.cohort, 5)
    assert domain.shape == (5, 5)
    test = KernelTest.of_paper(study_of_paper.cohort, seed=5)
    turned = [Query(q.y, q.x, q.given) for q in study_of_paper.questions]  # the roles of x and y differ in print
    compare(test, study_of_paper.questions + turned, lambda q: pooled.paper_p(study_of_paper.rows, q, domain))


def test_the_concatenated_test_equals_that_of_the_pooled_rows(study, study_of_paper):
    for one in (study, study_of_paper):
        test = KernelTest.concatenated(one.cohort)
        compare(test, one.questions, lambda q, one=one: pooled.concatenated_p(one.rows, q))


TESTS = {
    "regression": lambda cohort: RegressionTest(Basis.of(cohort)),
    "paper": KernelTest.of_paper,
    "concatenated": KernelTest.concatenated,
}


@pytest.mark.parametrize("test_of", TESTS.values(), ids=TESTS.keys())
def test_an_answer_does_not_depend_on_the_batch(study, test_of):
    test = test_of(study.cohort)
    questions = study.questions[::5]
    together = test(questions)
    assert [test([question])[0] for question in questions] == together
    assert test(questions[::-1]) == together[::-1]
    assert test([]) == []
    assert {answer.rows for answer in together} == {185}


def test_nor_with_many_clients():
    """From eight numbers on that are side by side in memory, numpy adds up several at a time."""
    study = Study(3, sizes=(30,) * 12)
    test = RegressionTest(Basis.of(study.cohort))
    assert [test([question])[0] for question in study.questions] == test(study.questions)


def test_nor_where_conditions_act_together_in_the_same_way_everywhere():
    study = Study(3, sizes=(30,) * 12)
    basis = Basis.of(study.cohort)
    last = max(basis.spans, key=lambda name: len(basis.spans[name]))
    test = RegressionTest(basis, JointColumns(common=basis.spans[last][-2:]))
    questions = [q for q in study.questions if DOMAIN in q.given and last not in q.pair | q.given]
    assert len(questions) > 20
    assert [test([question])[0] for question in questions] == test(questions)


@pytest.mark.parametrize("test_of", TESTS.values(), ids=TESTS.keys())
@pytest.mark.parametrize("sizes", [(18, 19), (3, 4), (1, 1, 1), (13, 13, 1)])
def test_more_conditions_than_rows_can_bear(test_of, sizes):
    tables = studies.numbers(8, sizes, count=9)
    nodes = (DOMAIN, *tables["site0"])
    questions = [
        Query(x, y, frozenset([name for name in nodes if name not in (x, y)][:size]))
        for x, y in combinations(nodes, 2)
        for size in range(9)
    ]
    for answer in test_of(studies.cohort_of(tables))(questions):
        assert 0.0 <= answer.p_value <= 1.0
        assert np.isfinite(answer.statistic)


def test_regressions_treat_both_ends_of_a_question_alike(study):
    test = RegressionTest(Basis.of(study.cohort))
    turned = test([Query(q.y, q.x, q.given) for q in study.questions])
    for answer, other in zip(test(study.questions), turned, strict=True):
        assert answer.p_value == pytest.approx(other.p_value, abs=TOLERANCE)


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


@pytest.mark.parametrize("test_of", [TESTS["regression"], TESTS["concatenated"]])
def test_what_is_there_is_seen(test_of):
    """Strong effects are found by every test, of number on number, label on number, and between clients."""
    test = test_of(studies.cohort_of(studies.mixed(0, sizes=(200, 200, 200))))
    seen = [("age", "score"), ("dose", "group"), ("group", "score"), (DOMAIN, "dose")]
    assert max(answer.p_value for answer in test([Query(x, y) for x, y in seen])) < 1e-4


def test_effects_that_differ_in_sign_between_clients_are_seen_within_them():
    rng = np.random.default_rng(3)
    tables = {}
    for client, slope in (("a", 1.0), ("b", -1.0)):
        x = rng.standard_normal(100)
        tables[client] = {"x": x, "y": slope * x + rng.standard_normal(100)}
    test = RegressionTest(Basis.of(studies.cohort_of(tables)))
    (inside,) = test([Query("x", "y", frozenset({DOMAIN}))])
    assert inside.p_value < 1e-6


@pytest.mark.parametrize(
    ("cell", "changed"),
    [
        (lambda rng, k: rng.standard_normal(80) + 0.7 * k, "mean"),
        (lambda rng, k: rng.standard_normal(80) * (1 + 0.7 * k), "noise"),
    ],
    ids=["mean", "noise"],
)
def test_changed_mechanisms_are_seen(cell, changed):
    tables = {
        f"c{k}": {"x": cell(np.random.default_rng(k), k), "y": np.random.default_rng(k + 9).standard_normal(80)}
        for k in range(3)
    }
    (answer,) = RegressionTest(Basis.of(studies.cohort_of(tables)))([Query(DOMAIN, "x")])
    assert answer.p_value < 1e-4, changed


@pytest.mark.parametrize(
    "change", [lambda z, k: (k - 1) * z, lambda z, k: (k - 1) * np.abs(z)], ids=["slope", "function"]
)
def test_changed_effects_are_seen(change):
    tables = {}
    for k in range(3):
        rng = np.random.default_rng(k)
        z = rng.standard_normal(150)
        tables[f"c{k}"] = {"x": change(z, k) + rng.standard_normal(150), "z": z}
    (answer,) = RegressionTest(Basis.of(studies.cohort_of(tables)))([Query(DOMAIN, "x", frozenset({"z"}))])
    assert answer.p_value < 1e-4


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_gamma_tail_is_a_p_value(statistic, mean, variance):
    p_value = float(gamma_tail(np.array(statistic), np.array(mean), np.array(variance)))
    assert 0.0 <= p_value <= 1.0
