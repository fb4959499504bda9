"""Requests hold every set once, within the budget."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from fedcdh.summaries.joint import (
    JointRequest,
    RoundBudget,
    plan_requests,
    plan_residual_requests,
    select_affordable_queries,
    to_variable_set,
)
from fedcdh.summaries.joint.request import payload_bytes
from fedcdh.summaries.joint.round_budget import FurtherRequest, queries_of
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.residuals import Coordinates, ResidualQuery, ResidualRequest
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


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_queries_are_asked_once_and_within_the_budget_that_joint_features_share(data):
    rounds, most = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 1500))
    plan = StudyPlan(tuple(map(Continuous, "abcd")), ("north",), max_rounds=rounds, max_bytes=most)
    coordinates = {name: Coordinates((0.0,) * 6, ((plan.clip, *(0.0,) * 5),)) for name in "abcd"}
    queries = [ResidualQuery(node, (), about, (), (), 1.0) for node in "abcd" for about in ("shape", "ties")]
    before, ledger = list[FurtherRequest](), RoundBudget()
    for wish in data.draw(st.lists(st.lists(st.sampled_from(queries), min_size=1, unique=True), max_size=6)):
        if data.draw(st.booleans()):
            joint = plan_requests(JointRequest(plan.fingerprint, 1, (("a", "b"),)), before, plan, rows=300)
            before += [request for request in joint if request not in before]
        affordable = select_affordable_queries(wish, coordinates, before, plan, rows=300)
        assert [query for query in wish if query in affordable] == list(affordable)
        if not affordable:
            continue
        ordered = tuple(sorted(affordable, key=lambda query: query.key))
        wanted = ResidualRequest(plan.fingerprint, 1, coordinates, ordered)
        requests = plan_residual_requests(wanted, before, plan, rows=300)
        assert {query for request in requests for query in request.queries} >= {*affordable}
        before += [request for request in requests if request not in before]
    for request in before:
        ledger = ledger.charge(request, plan, rows=300)  # raises beyond the budget
    assert ledger == RoundBudget.of(before, plan, 300)
    asked = [query for request in before for query in queries_of(request, plan)]
    assert len(asked) == len(set(asked))
    assert [request.number for request in before] == list(range(1, len(before) + 1))
