"""Requests and joint summaries: one way to write them, and refusals of what cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import studies

from fedcdh.errors import PlanMismatchError, SummaryError
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.joint import JointRequest, JointSummary, RoundBudget, answer_request, to_variable_set
from fedcdh.summaries.joint.request import MAX_SETS, bytes_per_entry, count_entries, payload_bytes

TABLES = studies.numbers(0, (60,), count=3)
PLAN = replace(studies.plan_of(TABLES), max_rounds=1, max_bytes=10**7)
CLIENT, TABLE = next(iter(TABLES.items()))
NAMES = to_variable_set(PLAN.names[:2])
REQUEST = JointRequest(PLAN.fingerprint, 1, (NAMES,))


def answer() -> JointSummary:
    ((found,), _) = answer_request(TABLE, PLAN, CLIENT, REQUEST, RoundBudget(), rows=60)
    return found


@pytest.mark.parametrize(
    "sets", [(), (("b", "a"),), (("a",),), (("a", "b"), ("a", "b")), (("b", "c"), ("a", "b")), (("a", "a"),)]
)
def test_requests_name_sorted_sets_of_two_or_more(sets):
    with pytest.raises(SummaryError, match="ask the coordinator for the request again"):
        JointRequest("0" * 64, 1, sets)


def test_sets_are_admitted_at_the_limit_and_refused_beyond():
    sets = tuple(sorted((f"a{k:05}", "b") for k in range(MAX_SETS + 1)))
    assert len(JointRequest("0" * 64, 1, sets[:-1]).sets) == MAX_SETS
    with pytest.raises(SummaryError, match=f"1 to {MAX_SETS} different sets"):
        JointRequest("0" * 64, 1, sets)


def test_the_same_sets_are_the_same_request():
    assert replace(REQUEST, number=2).digest == REQUEST.digest
    assert replace(REQUEST, plan="0" * 64).digest != REQUEST.digest
    with pytest.raises(SummaryError, match="from 1 upwards"):
        replace(REQUEST, number=0)


def test_sizes_are_known_beforehand():
    found = answer()
    assert found.n_entries == count_entries(PLAN, NAMES)
    assert payload_bytes(PLAN, [NAMES], 60) == bytes_per_entry(60) * found.n_entries


def test_bytes_per_entry_are_the_fewest():
    for width in (5, 6, 7):
        largest = ((1 << (8 * width - 1)) - 1) // GRID**2
        assert (bytes_per_entry(largest), bytes_per_entry(largest + 1)) == (width, width + 1)


def test_answers_that_cannot_be_are_refused():
    found = answer()
    found.check(PLAN)
    with pytest.raises(PlanMismatchError):
        replace(found, plan="0" * 64).check(PLAN)
    with pytest.raises(SummaryError, match="other shapes"):
        replace(found, own=found.own[1:])
    with pytest.raises(SummaryError, match="larger than 1 rows"):
        replace(found, rows=1)
    negative = found.own.copy()
    negative[0, 0] = -found.own[0, 0] - 60 * GRID
    with pytest.raises(SummaryError, match="a sum of squares is negative"):
        replace(found, own=negative).check(PLAN)


def test_only_answers_of_one_client_and_set_are_added():
    found = answer()
    assert np.array_equal((found + found).own, 2 * found.own)
    with pytest.raises(SummaryError, match="different plans, clients or sets"):
        found + replace(found, client="other")
