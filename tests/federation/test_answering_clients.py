"""Who is asked about residuals, and about which: what the default policy of every site lets it answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from residual_studies import (
    PRODUCT_QUERIES,
    SHAPE,
    TIES,
    cohort_of,
    coordinates_of,
    interacting_causes,
    many_queries,
    many_variables,
    plan_of,
    request_for,
    tables,
)

from fedcdh.errors import DisclosureError
from fedcdh.federation.answering_clients import AnsweringClients, AnsweringSum
from fedcdh.privacy.disclosure.residual_counts import may_answer
from fedcdh.privacy.disclosure.thresholds import required_rows
from fedcdh.privacy.ledger.gate import ReleaseGate, spent_round_budget
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.releases import ReleaseContext, release_answer, release_summary
from fedcdh.summaries.aggregation import Aggregate, add_up
from fedcdh.summaries.joint import RoundBudget

DATA = many_variables((800, 200, 900))
PLAN = plan_of(DATA)
COHORT = cohort_of(DATA, PLAN)
FEW = many_variables((420, 300, 900))
FEW_PLAN = plan_of(FEW)
FEW_COHORT = cohort_of(FEW, FEW_PLAN)
WISHES = many_queries()


def test_small_clients_are_left_out_unless_nobody_controls_disclosure_there():
    assert AnsweringClients(COHORT).names == ("site0", "site2")
    assert AnsweringClients(COHORT, frozenset({"site1"})).names == COHORT.clients
    assert AnsweringClients(COHORT, silent=frozenset({"site0"})).names == ("site2",)


def test_where_a_client_has_too_few_rows_for_a_search_all_are_asked_for_coarse_sums():
    assert not AnsweringClients(COHORT).coarse
    clients, coordinates = AnsweringClients(FEW_COHORT), coordinates_of(FEW_COHORT)
    assert clients.coarse
    assert clients.names == FEW_COHORT.clients
    chosen = clients.select_affordable(WISHES, coordinates, [])
    assert chosen == tuple(WISHES)
    (request,) = clients.plan_requests(request_for(FEW_COHORT, *chosen), [])
    assert request.coarse
    research = replace(clients, uncontrolled=frozenset(FEW_COHORT.clients))
    assert not research.coarse
    assert not research.plan_requests(request_for(FEW_COHORT, *chosen), [])[0].coarse


def test_coarse_sums_are_not_about_products():
    data = interacting_causes((170, 180))
    cohort = cohort_of(data, plan_of(data))
    clients, wishes = AnsweringClients(cohort), [*PRODUCT_QUERIES[:2], replace(PRODUCT_QUERIES[0], about="shape")]
    assert clients.coarse
    assert clients.select_affordable(wishes, coordinates_of(cohort), []) == (wishes[2],)
    research = replace(clients, uncontrolled=frozenset(cohort.clients))
    assert set(research.select_affordable(wishes, coordinates_of(cohort), [])) == set(wishes)


def test_the_smallest_client_limits_what_is_asked_and_the_most_wanted_comes_first():
    clients, coordinates = AnsweringClients(COHORT), coordinates_of(COHORT)
    chosen = clients.select_affordable(WISHES, coordinates, [])
    assert chosen == tuple(WISHES[: len(chosen)])
    assert len(chosen) == 22  # 206 + 308 of 0.65 · 800 = 520 sums
    (request,) = clients.plan_requests(request_for(COHORT, *chosen), [])
    assert may_answer(PLAN, 800, RoundBudget.of([request], PLAN, 800))
    assert clients.select_affordable([WISHES[-1], *chosen], coordinates, [request]) == chosen
    alone = replace(clients, uncontrolled=frozenset(COHORT.clients))
    assert len(alone.select_affordable(WISHES, coordinates, [])) == len(WISHES)


def test_once_a_client_is_gone_questions_keep_their_answers_and_new_ones_are_not_asked():
    """Weights and coordinates are then others, and every site would refuse to answer by these."""
    (request,) = AnsweringClients(COHORT).plan_requests(request_for(COHORT, *WISHES[:2]), [])
    fewer = AnsweringClients(add_up([COHORT.summaries[0], COHORT.summaries[2]], PLAN, without={"site1"}))
    assert fewer.names == ("site0", "site2")
    changed = [replace(query, weights=tuple(0.9 * one for one in query.weights)) for query in WISHES[:3]]
    chosen = fewer.select_affordable(changed, coordinates_of(fewer.cohort), [request])
    assert chosen == tuple(changed[:2])
    assert fewer.plan_requests(request_for(fewer.cohort, *changed), [request]) == (request,)


@pytest.mark.parametrize(("data", "cohort"), [(DATA, COHORT), (FEW, FEW_COHORT)])
def test_what_is_asked_is_answered_by_every_site_with_the_default_policy(data, cohort, tmp_path):
    clients, plan = AnsweringClients(cohort), cohort.plan
    hostile = replace(SHAPE, weights=(90.0,))
    chosen = clients.select_affordable([hostile, *WISHES[1:]], coordinates_of(cohort), [])
    (request,) = clients.plan_requests(request_for(cohort, *chosen), [])
    for client in clients.names:
        gate = ReleaseGate(ReleaseLedger(tmp_path / client / "releases.jsonl"))
        context = ReleaseContext(client, gate=gate)
        release_summary(data[client], plan, context)
        answers, budget = release_answer(data[client], plan, context, request, RoundBudget())
        assert len(answers) == len(chosen)
        assert budget.rounds == 1
        assert spent_round_budget(gate.ledger.entries(), plan) == budget


@pytest.mark.parametrize("silent", [(), ("site0", "site2")])
def test_where_nobody_can_answer_nothing_is_asked(silent):
    small = tables((90, 80))
    cohort = cohort_of(small, plan_of(small))
    for clients in (AnsweringClients(cohort), AnsweringClients(COHORT, silent=frozenset({"site0", "site2"}))):
        assert clients.names == ()
        assert clients.plan_requests(request_for(clients.cohort, TIES), []) == ()
        assert clients.select_affordable([TIES], coordinates_of(clients.cohort), []) == ()


def test_under_masks_sums_are_counted_against_the_rows_of_several_clients(tmp_path):
    together = AnsweringSum(Aggregate.of(FEW_COHORT), threshold=3)
    assert not together.coarse
    assert together.min_rows == 300 + 2 * required_rows(FEW_PLAN)
    coordinates = coordinates_of(FEW_COHORT)
    chosen = together.select_affordable([replace(SHAPE, weights=(90.0,)), *WISHES[1:]], coordinates, [])
    assert len(chosen) == 20  # 206 + 280 of 0.65 · (300 + 2 · 232) = 496 sums
    (request,) = together.plan_requests(request_for(FEW_COHORT, *chosen), [])
    for client in FEW_COHORT.clients:
        context = ReleaseContext(client, gate=ReleaseGate(ReleaseLedger(tmp_path / client / "releases.jsonl")))
        release_summary(FEW[client], FEW_PLAN, context, masked=True)
        answers, _ = release_answer(FEW[client], FEW_PLAN, context, request, RoundBudget(), masked_with=2)
        assert len(answers) == len(chosen)
    with pytest.raises(DisclosureError, match="would be about"):
        release_answer(FEW["site1"], FEW_PLAN, ReleaseContext("site1"), request, RoundBudget())


def test_in_groups_a_client_has_the_rows_that_the_policy_demands():
    grouped = AnsweringSum(Aggregate.of(FEW_COHORT, dict.fromkeys(FEW_COHORT.clients, "all")), threshold=3)
    assert grouped.min_rows == 3 * required_rows(FEW_PLAN)
    everybody = replace(grouped, uncontrolled=frozenset(FEW_COHORT.clients))
    assert len(everybody.select_affordable(WISHES, coordinates_of(FEW_COHORT), [])) == len(WISHES)
