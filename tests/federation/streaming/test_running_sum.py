"""The running sum: each client once, exact, and unchanged by what is refused."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import (
    CLIENTS,
    PLAN,
    STUDY,
    SUMMARIES,
    all_at_once,
    more_rows,
    same,
    summary_of,
)

from fedcdh.errors import (
    DuplicateClientError,
    SettingsError,
    SummaryError,
)
from fedcdh.federation.streaming.running_sum import RunningSum
from fedcdh.messages.aggregate_file import pack_aggregate, unpack_aggregate
from fedcdh.messages.study_file import Study
from fedcdh.messages.summary_file import SummaryMessage
from fedcdh.privacy.differential.mechanism import add_noise
from fedcdh.summaries.aggregation import Aggregate
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.features import bounded
from fedcdh.summaries.validation import admit_summaries


@given(st.lists(st.sampled_from(["north", "south", "coast"]), min_size=len(CLIENTS), max_size=len(CLIENTS)))
@settings(max_examples=15, deadline=None)
def test_groups_are_those_of_an_aggregate(names):
    groups = dict(zip(CLIENTS, names, strict=True))
    sums = RunningSum(STUDY, groups)
    for client, summary in SUMMARIES.items():
        sums.add(SummaryMessage(summary), hashlib.sha256(client.encode()).hexdigest())
    again = RunningSum.from_bytes(sums.to_bytes(), STUDY, groups)
    assert same(again.message().aggregate, all_at_once(groups))


def test_noise_variances_add_up_over_all_clients():
    plan = replace(
        PLAN, clients=CLIENTS[::-1], noise=DPParameters(1.0, 1e-6, expected_rows=500), clip=bounded.BOUNDED_CLIP
    )
    study, sums = Study(plan), RunningSum(Study(plan))
    sent = [add_noise(summary_of(client, plan), plan) for client in CLIENTS]
    for number, summary in enumerate(sent):
        sums.add(SummaryMessage(summary), f"{number:064x}")
    sums = RunningSum.from_bytes(sums.to_bytes(), study)
    cohort = admit_summaries(sent, plan)
    message = sums.message()
    assert same(message.aggregate, Aggregate.from_total(cohort.total, plan))
    assert unpack_aggregate(pack_aggregate(message), plan).aggregate.total == cohort.total
    with pytest.raises(SettingsError, match="Leave the groups out"):
        RunningSum(study, dict.fromkeys(CLIENTS, "all"))


def test_one_summary_is_added_once():
    sums, message = RunningSum(STUDY), SummaryMessage(SUMMARIES["site a"])
    sums.add(message, "0" * 64)
    with pytest.raises(DuplicateClientError, match="in the sum already"):
        sums.add(message, "0" * 64)
    assert sums.contested == ()


def test_a_refused_summary_changes_nothing():
    sums = RunningSum(STUDY)
    before = sums.to_bytes()
    with pytest.raises(SummaryError, match="levels"):
        sums.add(SummaryMessage(more_rows(SUMMARIES["site a"])), "0" * 64)
    assert sums.to_bytes() == before
    sums.add(SummaryMessage(SUMMARIES["site a"]), "0" * 64)
    before = sums.to_bytes()
    with pytest.raises(DuplicateClientError):
        sums.add(SummaryMessage(SUMMARIES["site a"]), "0" * 64)
    assert sums.to_bytes() == before  # the same once more contests nothing


def test_a_sum_of_several_clients_is_no_summary():
    sums = RunningSum(STUDY)
    pair = admit_summaries([SUMMARIES["site a"], SUMMARIES["site b"]], PLAN, without=CLIENTS[2:]).total
    with pytest.raises(SummaryError, match="Expected the summary of one client"):
        sums.add(SummaryMessage(pair), "0" * 64)
    assert sums.lacking == CLIENTS
