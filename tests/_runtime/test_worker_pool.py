"""Any number of workers, of any kind, gives the same bytes; and questions as arrays are those that were asked."""

from __future__ import annotations

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh._runtime import cpu_count
from fedcdh._runtime.worker_pool import make_worker_pool
from fedcdh.discovery.api import discover
from fedcdh.discovery.settings import default_alpha
from fedcdh.errors import SettingsError
from fedcdh.evaluation.simulation import simulate
from fedcdh.inference import batched_regression
from fedcdh.inference.independence.query_batch import QueryBatch
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query

joblib = pytest.importorskip("joblib")


@pytest.fixture(scope="module")
def basis():
    return Basis.of(studies.cohort_of(studies.mixed(4)))


@pytest.fixture
def small_parts(monkeypatch):
    """So few numbers at a time that a handful of questions are many parts."""
    monkeypatch.setattr(batched_regression, "_MAX_ELEMENTS", 2_000)


def questions_of(names):
    a, *rest = sorted(names)
    given = [frozenset(), frozenset({DOMAIN}), frozenset({DOMAIN, rest[-1]}), frozenset(rest[-2:])]
    pairs = [(x, y) for x in (a, rest[0], DOMAIN) for y in rest[1:3]] + [(rest[1], DOMAIN)]
    return [Query(x, y, one - {x, y}) for one in given for x, y in pairs if x != y and not {x, y} & (one - {DOMAIN})]


def config(backend):
    if backend == "dask":
        distributed = pytest.importorskip("distributed")
        cluster = distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
        return cluster, joblib.parallel_config(backend="dask")
    return None, joblib.parallel_config(backend=backend)


@pytest.mark.parametrize("backend", ["threading", *(pytest.param(b, marks=pytest.mark.slow) for b in ("loky", "dask"))])
def test_whoever_answers_the_answers_are_the_same(basis, small_parts, backend):
    questions = questions_of(basis.spans)
    alone = RegressionTest(basis)(questions)
    cluster, chosen = config(backend)
    with chosen:
        assert RegressionTest(basis, pool=make_worker_pool(2))(questions) == alone
    if cluster is not None:
        cluster.close()


def test_a_search_by_several_workers_finds_the_same(small_parts):
    study = simulate("general", variables=5, seed=3)
    one, two = (
        discover(dict(study.tables), names=study.names, method="constraint", workers=workers) for workers in (1, 2)
    )
    assert one.edges() == two.edges()
    assert one.settings == two.settings


@pytest.mark.parametrize("workers", [0, -2, 1.5, "two"])
def test_workers_are_counted(workers):
    with pytest.raises(SettingsError, match="workers is"):
        discover({"a": {"x": [1.0, 2.0]}}, method="constraint", workers=workers)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=40), st.integers(1, 5))
def test_parts_hold_every_question_once_and_one_shape_each(shapes, size):
    table = np.array(shapes, dtype=np.intp).reshape(len(shapes), 2)
    parts = batched_regression.group_by_shape(table, lambda shape: batched_regression._MAX_ELEMENTS // size)
    assert sorted(np.concatenate([*parts, np.zeros(0, dtype=int)])) == list(range(len(shapes)))
    for part in parts:
        assert len(part) <= size
        assert len({tuple(table[position]) for position in part}) == 1


names = st.sampled_from("abcdef")


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(names, names, st.frozensets(st.sampled_from([*"abcdef", DOMAIN]), max_size=4)), min_size=1))
def test_questions_as_numbers_are_those_asked(asked):
    questions = [Query(x, y, given_) for x, y, given_ in asked]
    order = [*"abcdef", DOMAIN]
    found = QueryBatch.of(questions, "abcdef")
    positions = np.arange(len(questions))[::2]
    for some, chosen in ((found, questions), (found.part(positions), questions[::2])):
        told = zip(some.x, some.y, some.given, some.within[some.which], strict=True)
        for question, (x, y, members, within) in zip(chosen, told, strict=True):
            assert (order[x], order[y], within) == (question.x, question.y, DOMAIN in question.given)
            assert {order[number] for number in members} - {DOMAIN} == question.given - {DOMAIN}


def test_the_usual_level_lets_no_more_pairs_stay_by_chance():
    levels = [default_alpha("constraint", variables) for variables in range(2, 200)]
    pairs = [variables * (variables - 1) / 2 for variables in range(2, 200)]
    assert levels == sorted(levels, reverse=True)
    assert max(level * count for level, count in zip(levels, pairs, strict=True)) == pytest.approx(0.05 * 435)
    assert levels[:29] == [0.05] * 29
    assert default_alpha("paper", 1000) == 0.05


@pytest.mark.parametrize(
    ("says", "expected"), [("max 100000", 64), ("200000 100000", 2), ("150000 100000", 2), ("5000 100000", 1), ("", 64)]
)
def test_a_container_has_as_many_workers_as_it_was_given_processors(monkeypatch, tmp_path, says, expected):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(64), raising=False)
    (tmp_path / "cpu.max").write_text(says, encoding="ascii")
    monkeypatch.setattr(cpu_count, "_CGROUP_QUOTA_FILE", tmp_path / "cpu.max")
    assert cpu_count.available_cpus() == expected
    monkeypatch.setattr(cpu_count, "_CGROUP_QUOTA_FILE", tmp_path / "nowhere")
    assert cpu_count.available_cpus() == 64


def test_workers_of_wide_tables_are_few(monkeypatch):
    monkeypatch.setattr(cpu_count, "available_cpus", lambda: 64)
    found = {columns: cpu_count.default_workers(columns) for columns in (100, 500, 1000, 2000, 4000, 20_000)}
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert (found[100], found[20_000]) == (64, 1)
    assert all(workers == 1 or workers * 16 * 8 * columns**2 <= 2 << 30 for columns, workers in found.items())
