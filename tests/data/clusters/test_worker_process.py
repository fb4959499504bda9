"""Settings of a worker process while it works."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import clustered
import pytest
from clustered import rows
from threadpoolctl import ThreadpoolController

from fedcdh.data.clusters import partitions

TABLE = rows(400)


@pytest.fixture
def two_blas_threads():
    """Whatever the environment says, and set by no thread in particular."""
    controller = ThreadpoolController()
    limited = controller.limit(limits=2, user_api="blas")
    let_go = [getattr(library, "clear_controlling_thread", lambda: None) for library in controller.lib_controllers]
    for done in let_go:
        done()
    yield clustered.threads(None)
    limited.restore_original_limits()
    for done in let_go:
        done()


def test_threads_of_a_worker_leave_its_linear_algebra_as_it_was(two_blas_threads):
    for again in range(5):
        before, together = two_blas_threads, Barrier(4, timeout=300)

        def work(source, together=together):
            together.wait()
            return clustered.threads(source)

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(partitions.make_task(work, "the table"), [TABLE] * 8)) == [1] * 8, f"again {again}"
        assert clustered.threads(None) == before, f"again {again}"


FAULTS = """
import resource
import numpy as np
from fedcdh.data.clusters.worker_process import worker_settings

def faults():  # pages that had to be asked for
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        np.ones(1 << 17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
with worker_settings():
    faults()
    second = faults()
print(first, second, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this is about a setting of glibc")
def test_workers_of_dask_keep_their_memory_while_they_add_up_and_no_longer():
    setting = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}  # as Dask starts them
    run = subprocess.run([sys.executable, "-c", FAULTS], env=setting, capture_output=True, text=True, check=True)
    before, meanwhile, afterwards = map(int, run.stdout.split())
    assert meanwhile < min(before, afterwards) / 10
