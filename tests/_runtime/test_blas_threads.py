"""Linear algebra has one thread while this package computes, and what it had before afterwards."""

import threading
from contextlib import contextmanager

from threadpoolctl import threadpool_info, threadpool_limits

from fedcdh._runtime.blas_threads import ProcessWideContext, single_blas_thread


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_one_thread_inside_and_its_own_number_afterwards():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with single_blas_thread():
            assert blas_threads() == {1}
            with single_blas_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_a_setting_is_made_by_the_first_thread_and_undone_by_the_last():
    log = []

    @contextmanager
    def setting():
        log.append("made")
        yield
        log.append("undone")

    shared, entered, leave = ProcessWideContext(setting), threading.Event(), threading.Event()

    def work():
        with shared():
            entered.set()
            leave.wait()

    other = threading.Thread(target=work)
    with shared():
        other.start()
        entered.wait()
    assert log == ["made"]
    leave.set()
    other.join()
    assert log == ["made", "undone"]
