"""The journal of a sum: whole, of this version, or refused."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import (
    CLIENTS,
    PLAN,
    STUDY,
    SUMMARIES,
    summary_of,
)

from fedcdh.errors import (
    DuplicateClientError,
    PlanMismatchError,
    SettingsError,
    SummaryError,
)
from fedcdh.federation.streaming.running_sum import RunningSum
from fedcdh.federation.streaming.sum_journal import FORMAT, to_container
from fedcdh.messages.summary_file import SummaryMessage
from fedcdh.summaries.integer_vectors import vector_length


def _left_behind() -> bytes:
    sums = RunningSum(STUDY)
    for client in CLIENTS[:3]:
        sums.add(SummaryMessage(SUMMARIES[client]), hashlib.sha256(client.encode()).hexdigest())
    with pytest.raises(DuplicateClientError):
        sums.add(SummaryMessage(summary_of(CLIENTS[0], seed=1)), "0" * 64)
    assert RunningSum.from_bytes(sums.to_bytes(), STUDY).to_bytes() == sums.to_bytes()
    return sums.to_bytes()


@given(place=st.integers(0, 10**6), bit=st.integers(0, 7))
@settings(max_examples=60, deadline=None)
def test_a_changed_bit_is_found(place, bit):
    blob = bytearray(_left_behind())
    blob[place % len(blob)] ^= 1 << bit
    with pytest.raises((SummaryError, SettingsError, PlanMismatchError)):
        RunningSum.from_bytes(bytes(blob), STUDY)


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_a_shortened_journal_is_refused(length):
    blob = _left_behind()
    with pytest.raises(SummaryError):
        RunningSum.from_bytes(blob[: length % len(blob)], STUDY)
    with pytest.raises(SummaryError):
        RunningSum.from_bytes(blob + b"\0" * (1 + length % 9), STUDY)


def test_a_journal_of_an_older_version_is_refused():
    older = _left_behind().replace(b"fedcdh-adding-3", b"fedcdh-adding-2")
    with pytest.raises(SummaryError, match=r"older version of this program\. .* Remove the journal to start again"):
        RunningSum.from_bytes(older, STUDY)


@pytest.mark.parametrize("kind", ["differing", "shared"])
@pytest.mark.parametrize("clients", [["nobody"], ["site b", "site a"], ["site a", "site a"], [3], [["site a"]]])
def test_only_clients_of_the_plan_can_be_in_conflict(kind, clients):
    sums = RunningSum(STUDY)
    said = {
        "format": FORMAT,
        **sums._belongs_to,
        "added": [],
        "aside": [],
        "differing": [],
        "shared": [],
        kind: clients,
    }
    forged = to_container(said, bytes(8 * vector_length(PLAN, len(CLIENTS))))
    with pytest.raises(SummaryError, match="unknown client"):
        RunningSum.from_bytes(forged, STUDY)
