"""How many workers a site has, unless somebody says so: what this machine, or the container it is in, has to give."""

from __future__ import annotations

import os
from pathlib import Path

MAX_WORKERS = 256
_MAX_SUM_BYTES, _MATRICES_PER_WORKER = 2 << 30, 16
"""Bytes that the sums of all workers may take by default, and how many matrices of them one worker has: what policy
and ledger look at is made of copies."""
_CGROUP_QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")


def available_cpus() -> int:
    """How many processors this process may use; of very many, as many as there may be workers."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(found, _cgroup_cpus(), MAX_WORKERS)


def default_workers(columns: int) -> int:
    """One for each processor, as long as the sums of so many columns, some for each of them, take no more memory.

    >>> default_workers(columns=4000)
    1
    """
    return max(1, min(available_cpus(), _MAX_SUM_BYTES // (_MATRICES_PER_WORKER * 8 * columns**2)))


def _cgroup_cpus() -> int:
    """The processors' time that a container has, in processors: Linux gives all of them, and then makes them wait."""
    try:
        quota, period = _CGROUP_QUOTA_FILE.read_text(encoding="ascii").split()
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):  # there is none, or it is called "max"
        return MAX_WORKERS
