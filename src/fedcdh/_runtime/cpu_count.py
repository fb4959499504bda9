"""The number of processors of this machine or container, and the default number of workers."""

from __future__ import annotations

import os
from pathlib import Path

MAX_WORKERS = 256

_MAX_SUM_BYTES, _MATRICES_PER_WORKER = 2 << 30, 16
"""Memory for the sums of all workers by default, and the number of matrices that one worker holds.

Disclosure control and the ledger need copies of the sums.
"""
_CGROUP_QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")


def available_cpus() -> int:
    """Return the number of processors that this process may use, at most `MAX_WORKERS`."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(found, _cgroup_cpus(), MAX_WORKERS)


def default_workers(columns: int) -> int:
    """Return one worker per processor, or fewer where the sums of this number of columns would take too much memory.

    >>> default_workers(columns=4000)
    1
    """
    return max(1, min(available_cpus(), _MAX_SUM_BYTES // (_MATRICES_PER_WORKER * 8 * columns**2)))


def _cgroup_cpus() -> int:
    """Return the processor time that a container has, in processors.

    Linux shows a container all processors of the machine, and makes it wait once its quota is used up.
    """
    try:
        quota, period = _CGROUP_QUOTA_FILE.read_text(encoding="ascii").split()
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):  # there is no quota, or it is "max"
        return MAX_WORKERS
