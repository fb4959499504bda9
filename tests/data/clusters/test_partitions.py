"""The work on one partition, and the sum of the results."""

from __future__ import annotations

import clustered
import pytest
from clustered import rows
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.data.clusters import partitions
from fedcdh.errors import SettingsError

TABLE = rows(400)


def test_a_worker_with_another_version_is_refused(monkeypatch):
    given_out = partitions.make_task(clustered.where, "the table")
    monkeypatch.setattr(partitions, "FEDCDH_VERSION", "0.0.1")
    with pytest.raises(SettingsError, match=r"a worker of the cluster has fedcdh 0\.0\.1, but the work came from"):
        partitions.unwrap_result(given_out(TABLE))


@given(st.integers(1, 600))
def test_sums_are_made_of_few_at_a_time(leaves):
    most, waiting, held = 0, 0, 0

    def join(few):
        nonlocal most, waiting
        most, waiting = max(most, len(few)), waiting - len(few) + 1
        return sum(few)

    def coming():
        nonlocal waiting, held
        for _ in range(leaves):
            waiting += 1
            held = max(held, waiting)
            yield 1

    assert partitions.tree_reduce(coming(), join) == leaves
    assert most <= partitions.FAN_IN
    assert held <= partitions.FAN_IN * 4  # levels of 8: 600 leaves are fewer than 8⁴
