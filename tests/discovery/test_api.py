"""`discover` and `discover_from`: their arguments, and what they refuse."""

from __future__ import annotations

import pandas as pd
import pytest
import studies

import fedcdh
from fedcdh.discovery.api import discover, discover_from
from fedcdh.discovery.methods import METHODS
from fedcdh.errors import DataError, KnowledgeError, PlanError, PlanMismatchError, SettingsError, SummaryError
from fedcdh.graphs.knowledge import Knowledge
from fedcdh.protocols import DOMAIN
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.features import Fourier
from fedcdh.summaries.plan import StudyPlan

NAMES = sorted(METHODS)


TABLES = studies.mixed(0, sizes=(80, 60, 40))


POOLED = studies.pooled_table(TABLES)


@pytest.mark.parametrize(
    ("data", "settings_", "error", "complaint"),
    [
        (
            TABLES,
            {"method": "magic"},
            SettingsError,
            "no method 'magic'; choose one of 'auto', 'evid",
        ),
        (TABLES, {"alpha": 1.5}, SettingsError, "alpha is 1.5"),
        (TABLES, {"max_conditioning_size": -1}, ValueError, "max_conditioning_size is -1"),
        (TABLES, {"variables": ["age", "weight"]}, DataError, r"client 'clinic a': there is no column 'weight'"),
        (TABLES, {"variables": []}, PlanError, "expected at least one"),
        (TABLES, {"kinds": {"weight": "continuous"}}, DataError, "'weight'.*client 'clinic a' has no such column"),
        (POOLED, {}, DataError, "which client a row belongs to"),
        (pd.DataFrame(POOLED), {}, DataError, "which client a row belongs to"),
        ({}, {}, DataError, "which client a row belongs to"),
        (POOLED, {"domain": "hospital"}, DataError, "no column 'hospital'.*the table has 'site'.*parameter domain"),
        (TABLES, {"domain": "site"}, SettingsError, "one table per client and the domain 'site'"),
        (TABLES, {"variables": "age"}, SettingsError, "variables is the text 'age'"),
        (TABLES, {"alpha": "0.05"}, SettingsError, "alpha is '0.05'"),
        (TABLES, {"max_conditioning_size": 1.5}, SettingsError, "max_conditioning_size is 1.5"),
        (TABLES, {"seed": -1}, SettingsError, "seed is -1"),
        (TABLES, {"min_probability": 0.2}, SettingsError, "min_probability is 0.2.*parameter min_probability"),
        (TABLES, {"min_arrow_probability": 1}, SettingsError, "min_arrow_probability is 1"),
        (TABLES, {"min_effect": 2}, SettingsError, "min_effect is 2"),
        (TABLES, {"max_missing_share": 7}, SettingsError, "max_missing_share is 7"),
        (TABLES, {"knowledge": {"required": []}}, SettingsError, "expected fedcdh.Knowledge"),
    ],
)
def test_what_cannot_be_done_is_refused(data, settings_, error, complaint):
    with pytest.raises(error, match=complaint):
        discover(data, **settings_)


def test_variables_choose_and_order_the_columns():
    result = studies.found(POOLED, domain="site", variables=["score", "age"])
    assert result.graph.nodes == ("score", "age")
    assert result.cohort.plan.names == ("score", "age")


def test_plans_and_summaries_must_belong_together():
    plan = studies.plan_of(TABLES)
    summaries = [fedcdh.summarize(table, plan, client) for client, table in TABLES.items()]
    with pytest.raises(PlanError, match="not this plan"):
        discover_from(summaries, studies.plan_of(TABLES, Fourier()))


@pytest.mark.parametrize("method", NAMES)
def test_knowledge_is_obeyed(method):
    known = Knowledge(
        required=[("flag", "age"), (DOMAIN, "flag")],
        forbidden=[("dose", "score"), ("score", "dose"), (DOMAIN, "sex")],
        tiers=[["flag", "sex"], ["age", "group"], ["score"]],
    )
    result = studies.found(TABLES, method=method, knowledge=known)
    assert ("flag", "age") in result.graph.arrows
    assert "flag" in result.changing
    assert "sex" not in result.changing
    assert not result.graph.is_adjacent("dose", "score")
    for late, early in [("age", "sex"), ("group", "flag"), ("score", "age"), ("score", "group"), ("score", "sex")]:
        assert (late, early) not in result.graph.arrows
        assert not result.graph.has_line(late, early)
    dag = result.to_dag()
    assert ("flag", "age") in dag.arrows
    assert result.settings.knowledge == known


@pytest.mark.parametrize(
    "known",
    [
        Knowledge(required=[("age", "dose"), ("dose", "age")]),
        Knowledge(required=[("age", "dose")], forbidden=[("age", "dose")]),
        Knowledge(required=[("score", "age")], tiers=[["age"], ["score"]]),
        Knowledge(required=[("age", DOMAIN)]),
        Knowledge(required=[("age", "weight")]),
        Knowledge(tiers=[["age"], ["age"]]),
        Knowledge(tiers=[[DOMAIN], ["age"]]),
    ],
)
def test_contradictory_knowledge_is_refused(known):
    with pytest.raises(KnowledgeError, match="correct it"):
        discover(TABLES, knowledge=known)


def test_knowledge_about_the_domain_is_idle_with_one_client():
    known = Knowledge(required=[(DOMAIN, "age")], forbidden=[(DOMAIN, "dose")])
    assert studies.found({"here": TABLES["clinic a"]}, knowledge=known).changing == frozenset()


def test_a_cohort_is_as_good_as_its_summaries():
    plan = StudyPlan.from_tables(TABLES)
    summaries = [summarize(table, plan, client) for client, table in TABLES.items()]
    cohort = add_up(summaries, plan)
    assert discover_from(cohort, plan).edges() == discover_from(summaries, plan).edges()
    with pytest.raises(PlanMismatchError, match="not this plan"):
        discover_from(cohort, StudyPlan.from_tables(TABLES, family=Fourier(6)))
    with pytest.raises(SummaryError, match="came twice"):
        discover_from([*summaries, summaries[0]], plan)
    half = summaries[0]
    with pytest.raises(SummaryError, match="came twice"):  # in any order, also among other parts
        add_up([half, summarize(TABLES[half.clients[0]], plan, half.clients[0]) + half, *summaries], plan)
