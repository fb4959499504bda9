"""Any number of workers, of any kind, gives the same results in the same order."""

from __future__ import annotations

import sys
import threading

import pytest
import studies

from fedcdh._runtime.worker_pool import make_worker_pool, run_in_threads, run_serially
from fedcdh.discovery.api import discover
from fedcdh.errors import MissingDependencyError, SettingsError
from fedcdh.evaluation.simulation import simulate
from fedcdh.inference import batched_regression
from fedcdh.inference.independence.regression_test import RegressionTest
from fedcdh.inference.orthonormal_basis import Basis
from fedcdh.protocols import DOMAIN, Query


@pytest.fixture(scope="module")
def basis():
    return Basis.of(studies.cohort_of(studies.mixed(4)))


@pytest.fixture
def small_parts(monkeypatch):
    """Parts are so small that a handful of queries make many of them."""
    monkeypatch.setattr(batched_regression, "_MAX_ELEMENTS", 2_000)


def queries_of(names):
    a, *rest = sorted(names)
    given = [frozenset(), frozenset({DOMAIN}), frozenset({DOMAIN, rest[-1]}), frozenset(rest[-2:])]
    pairs = [(x, y) for x in (a, rest[0], DOMAIN) for y in rest[1:3]] + [(rest[1], DOMAIN)]
    return [Query(x, y, one - {x, y}) for one in given for x, y in pairs if x != y and not {x, y} & (one - {DOMAIN})]


def config(backend):
    joblib = pytest.importorskip("joblib")
    if backend == "dask":
        distributed = pytest.importorskip("distributed")
        cluster = distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
        return cluster, joblib.parallel_config(backend="dask")
    return None, joblib.parallel_config(backend=backend)


@pytest.mark.parametrize("backend", ["threading", *(pytest.param(b, marks=pytest.mark.slow) for b in ("loky", "dask"))])
def test_whoever_answers_the_answers_are_the_same(basis, small_parts, backend):
    queries = queries_of(basis.spans)
    alone = RegressionTest(basis)(queries)
    cluster, chosen = config(backend)
    with chosen:
        assert RegressionTest(basis, pool=make_worker_pool(2))(queries) == alone
    if cluster is not None:
        cluster.close()


def test_a_search_by_several_workers_finds_the_same(small_parts):
    pytest.importorskip("joblib")
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


@pytest.mark.parametrize("pool", [run_serially, run_in_threads, make_worker_pool(1)])
def test_every_pool_returns_the_results_in_the_order_of_the_parts(pool):
    assert pool(lambda shared, part: shared * part, 10, [3, 1, 2]) == [30, 10, 20]


def test_threads_work_at_the_same_time_and_the_calling_one_is_among_them():
    meeting = threading.Barrier(3, timeout=30)

    def work(shared, part):
        meeting.wait()  # none gets past it alone
        return threading.current_thread()

    threads = run_in_threads(work, None, range(3))
    assert len(set(threads)) == 3
    assert threads[0] is threading.current_thread()


def test_of_several_errors_in_threads_that_of_the_first_part_is_raised():
    def work(shared, part):
        raise ValueError(f"part {part}")

    with pytest.raises(ValueError, match="part 0"):
        run_in_threads(work, None, range(4))


def test_more_workers_need_joblib(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert make_worker_pool(1) is run_serially
    with pytest.raises(MissingDependencyError, match=r"pip install 'fedcdh\[parallel\]'"):
        make_worker_pool(2)
