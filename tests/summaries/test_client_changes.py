"""A later plan differs in its clients only, so what was made by the earlier one stays valid."""

from __future__ import annotations

import pytest
import studies
from hypothesis import given
from hypothesis import strategies as st

from fedcdh.discovery.api import discover_from
from fedcdh.errors import PlanError, PlanMismatchError, SummaryError
from fedcdh.messages.aggregate_file import AggregateMessage, pack_aggregate, unpack_aggregate
from fedcdh.messages.summary_file import SummaryMessage, pack_summary, unpack_summary
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.bootstrap import admit_replicates, bootstrap_summaries
from fedcdh.summaries.client_changes import (
    MAX_CLIENT_CHANGES,
    ClientChange,
    adopt_summary,
    change_clients,
    find_left_clients,
    iter_earlier_plans,
)
from fedcdh.summaries.dp_parameters import DPParameters
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.validation import admit_summaries
from fedcdh.summaries.variables import Continuous

TABLES = studies.numbers(0, (120, 110, 100, 90))
PLAN = studies.plan_of(TABLES)
SUMMARIES = {client: summarize(table, PLAN, client) for client, table in TABLES.items()}
GONE, *STAYING = PLAN.clients
LATER = change_clients(PLAN, without=[GONE])

names = st.sampled_from([f"site {number}" for number in range(6)])


@given(st.lists(st.tuples(st.booleans(), names), max_size=12))
def test_every_plan_of_the_history_is_found_again(steps):
    plan = StudyPlan((Continuous("x"),), ("first", "second"))
    made = [plan]
    for joins, name in steps:
        if joins != (name in plan.clients):
            plan = change_clients(plan, **{"joined" if joins else "without": [name]})
            made.append(plan)
    assert [*iter_earlier_plans(plan)] == made[-2::-1]
    assert plan.fingerprints == {one.fingerprint for one in made}
    assert {one.numbers_fingerprint for one in made} == {plan.numbers_fingerprint}
    assert StudyPlan.from_json(plan.to_json()) == plan


def test_a_plan_without_changes_names_none():
    assert "client_changes" not in PLAN.to_json()
    assert PLAN.fingerprints == {PLAN.fingerprint}


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_the_result_is_that_of_a_study_that_never_had_the_client(method):
    never = StudyPlan(PLAN.variables, tuple(STAYING), PLAN.family, PLAN.clip)
    apart = [summarize(TABLES[client], never, client) for client in STAYING]
    expected = discover_from(apart, never, method=method)
    left = discover_from(SUMMARIES.values(), PLAN, method=method, without=[GONE])
    later = discover_from([SUMMARIES[client] for client in STAYING], LATER, method=method)
    for found in (left, later):
        assert found.graph == expected.graph
        assert found.changing == expected.changing
        assert studies.same_findings(found, expected)
        assert any(GONE in note for note in found.notes)


def test_a_client_that_joins_adds_its_summary_to_the_others():
    started = StudyPlan(PLAN.variables, tuple(STAYING), PLAN.family, PLAN.clip)
    earlier = [summarize(TABLES[client], started, client) for client in STAYING]
    later = change_clients(started, joined=[GONE])
    found = discover_from([*earlier, summarize(TABLES[GONE], later, GONE)], later)
    whole = discover_from(SUMMARIES.values(), PLAN)
    assert render_result_json(found).replace(later.fingerprint, "") == render_result_json(whole).replace(
        PLAN.fingerprint, ""
    )


def test_files_by_the_earlier_plan_are_read_by_the_later_one_and_not_the_reverse():
    client = STAYING[0]
    blob = pack_summary(SummaryMessage(SUMMARIES[client]), PLAN)
    assert unpack_summary(blob, LATER).summary == adopt_summary(SUMMARIES[client], LATER)
    newer = pack_summary(SummaryMessage(summarize(TABLES[client], LATER, client)), LATER)
    with pytest.raises(PlanMismatchError):
        unpack_summary(newer, PLAN)
    with pytest.raises(SummaryError, match=GONE):
        unpack_summary(pack_summary(SummaryMessage(SUMMARIES[GONE]), PLAN), LATER)


def test_other_scales_are_another_plan():
    other = StudyPlan(studies.plan_of(studies.numbers(1)).variables, PLAN.clients)
    assert other.numbers_fingerprint != PLAN.numbers_fingerprint
    with pytest.raises(PlanMismatchError):
        add_up([summarize(TABLES[client], other, client) for client in STAYING], LATER)


def test_replicates_by_the_earlier_plan_stay_valid():
    drawn = [bootstrap_summaries(TABLES[client], PLAN, client, 2, seed=1) for client in STAYING]
    kept = [SUMMARIES[client] for client in STAYING]
    cohort = admit_summaries(kept, LATER)
    replicates = admit_replicates([one for of_client in drawn for one in of_client], cohort)
    assert len(replicates) == 2
    assert len(discover_from(cohort, LATER).stability(replicates=replicates).runs) == 2


def test_sums_by_the_earlier_plan_stay_valid_and_are_not_taken_apart():
    kept = add_up([SUMMARIES[client] for client in STAYING], PLAN, without=[GONE])
    blob = pack_aggregate(AggregateMessage(Aggregate.of(kept), summaries=dict.fromkeys(STAYING, "0" * 64)))
    assert unpack_aggregate(blob, LATER).aggregate.total.clients == tuple(STAYING)
    whole = Aggregate.of(add_up(SUMMARIES.values(), PLAN))
    with pytest.raises(SummaryError, match="cannot be taken apart"):
        discover_from(whole, PLAN, without=[GONE])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"without": ["nobody"]}, "no client 'nobody'"),
        ({"joined": [STAYING[0]]}, "in the plan already"),
        ({"without": PLAN.clients}, "no client would be left"),
        ({}, "one or more different names"),
    ],
)
def test_changes_that_cannot_be_are_refused(change, said):
    with pytest.raises(PlanError, match=said):
        change_clients(PLAN, **change)


def test_a_misspelt_client_is_suggested():
    with pytest.raises(PlanError, match="did you mean 'north'"):
        change_clients(StudyPlan((Continuous("x"),), ("north", "south")), without=["nort"])


def test_plans_for_secure_sums_with_noise_keep_their_clients():
    noise = DPParameters(1.0, 1e-6, distributed=True, honest=2, expected_rows=1000)
    plan = StudyPlan((Continuous("x"),), ("a", "b", "c"), clip=3.0, noise=noise)
    assert plan.numbers_fingerprint
    with pytest.raises(PlanError, match="only a secure sum"):
        change_clients(plan, without=["a"])


def test_a_history_that_cannot_have_been_is_refused():
    for changes in (ClientChange(joined=("c",)), ClientChange(left=("a",)), ClientChange(joined=("a", "b"))):
        with pytest.raises(PlanError, match="changes"):
            StudyPlan((Continuous("x"),), ("a", "b"), client_changes=(changes,))
    many = (ClientChange(left=("c",)), ClientChange(joined=("c",))) * MAX_CLIENT_CHANGES
    with pytest.raises(PlanError, match="at most"):
        StudyPlan((Continuous("x"),), ("a", "b", "c"), client_changes=many)
    with pytest.raises(PlanError):
        StudyPlan.from_json(LATER.to_json().replace(f'"left":["{GONE}"]', f'"left":"{GONE}"'))


def test_who_left_and_came_back_is_there():
    assert find_left_clients(LATER) == (GONE,)
    assert find_left_clients(change_clients(LATER, joined=[GONE])) == ()
