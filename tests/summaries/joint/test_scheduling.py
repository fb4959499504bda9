"""Requests hold every set once, within the budget."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.summaries.joint import (
    JointRequest,
    RoundBudget,
    plan_requests,
    to_variable_set,
)
from fedcdh.summaries.joint.request import payload_bytes
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.variables import Continuous


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_requests_hold_what_is_wanted_once_and_within_the_budget(data):
    """Searches that start over as often as they like: a site that answers every request stays within its plan."""
    rounds, most = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 30_000))
    variables = tuple(map(Continuous, "abcd"))
    plan = StudyPlan(variables, ("north",), max_rounds=rounds, max_bytes=most)
    sets = [to_variable_set(names) for size in (2, 3) for names in combinations("abcd", size)]
    before, ledger = list[JointRequest](), RoundBudget()
    for wish in data.draw(st.lists(st.sets(st.sampled_from(sets), min_size=1), max_size=6)):
        wanted = JointRequest(plan.fingerprint, 1, tuple(sorted(wish)))
        requests = plan_requests(wanted, before, plan, rows=300)
        assert requests == plan_requests(wanted, [*before, *(r for r in requests if r not in before)], plan, rows=300)
        for request in requests:
            ledger = ledger.charge(request, plan, rows=300)  # raises beyond the budget
            before += [request] if request not in before else []
        answered = {names for request in requests for names in request.sets} & wish
        affordable = plan.max_bytes - ledger.bytes
        for names in wish - answered:
            assert len(before) == rounds or payload_bytes(plan, [names], 300) > affordable
    asked = [names for request in before for names in request.sets]
    assert len(asked) == len(set(asked))
    assert [request.number for request in before] == list(range(1, len(before) + 1))
