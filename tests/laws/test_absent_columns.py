"""Laws of studies in which sites lack variables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcdh
from fedcdh.errors import DisclosureError
from fedcdh.inference.absent_variables import CompletedCohort, complete_cohort
from fedcdh.messages.summary_file import SummaryMessage, pack_summary, unpack_summary
from fedcdh.privacy.releases import release
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.plan import StudyPlan
from fedcdh.summaries.validation import admit_summaries, validate_summary

NAMES = ("age", "bmi", "crp", "ward")
CLIENTS = ("east", "north", "south", "west")


def make_tables(seed=0, rows=120):
    """Four variables that depend on each other, one of them categorical, at four sites."""
    tables = {}
    for place, client in enumerate(CLIENTS):
        rng = np.random.default_rng([seed, place])
        age = rng.normal(size=rows)
        bmi = 0.8 * age + rng.exponential(size=rows)
        crp = 0.7 * bmi + rng.normal(size=rows)
        ward = np.where(crp + rng.normal(size=rows) > 0.8, "b", "a")
        tables[client] = {"age": age, "bmi": bmi, "crp": crp, "ward": ward}
    return tables


def without(tables, absent):
    return {c: {n: v for n, v in table.items() if n not in absent.get(c, ())} for c, table in tables.items()}


lacking = st.dictionaries(
    st.sampled_from(CLIENTS[:3]), st.sets(st.sampled_from(NAMES), max_size=3).map(sorted), max_size=3
)


@settings(max_examples=25, deadline=None)
@given(absent=lacking)
def test_a_summary_is_the_sub_blocks_of_the_whole_one(absent):
    tables = make_tables()
    whole = StudyPlan.from_tables(tables)
    plan = replace(whole, absent=absent)
    for client, table in tables.items():
        full = fedcdh.summarize(table, whole, client)
        part = plan.for_client(client)
        places = [0, *(i for n in part.names for i in range(*whole.layout.spans[n].indices(10**6)))]
        found = fedcdh.summarize(without(tables, absent)[client], plan, client)
        assert np.array_equal(found.moments, full.moments[np.ix_(places, places)])
        assert found.plan == plan.fingerprint
        validate_summary(found, plan)


@settings(max_examples=25, deadline=None)
@given(absent=lacking)
def test_a_file_holds_the_blocks_of_its_columns_only(absent):
    tables = make_tables()
    plan = replace(StudyPlan.from_tables(tables), absent=absent)
    sizes = {}
    for client, table in without(tables, absent).items():
        message = SummaryMessage(fedcdh.summarize(table, plan, client))
        blob = pack_summary(message, plan)
        assert unpack_summary(blob, plan) == message
        sizes[client] = len(blob)
    assert all((sizes[c] < sizes["west"]) == bool(absent.get(c)) for c in CLIENTS)


@given(absent=lacking)
def test_a_plan_survives_its_file(absent):
    plan = replace(StudyPlan.from_tables(make_tables(rows=10)), absent=absent)
    assert StudyPlan.from_json(plan.to_json()) == plan
    assert ('"absent"' in plan.to_json()) == any(absent.values())
    assert {plan.for_client(client).fingerprint for client in CLIENTS} == {plan.fingerprint}


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_where_nobody_lacks_anything_the_result_is_the_same(method):
    tables = make_tables()
    allowed, refused = (fedcdh.discover(tables, method=method, absent=rule) for rule in ("allow", "refuse"))
    assert render_result_json(allowed) == render_result_json(refused)


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_the_order_of_clients_is_irrelevant(method):
    tables = without(make_tables(), {"east": ["crp"], "north": ["age"], "south": ["bmi"]})
    backwards = dict(reversed(tables.items()))
    one, other = (fedcdh.discover(some, method=method, absent="allow") for some in (tables, backwards))
    assert render_result_json(one) == render_result_json(other)


@pytest.mark.parametrize("rounds", ["one", "auto"])
def test_by_messages_the_result_is_that_of_discover(rounds):
    tables = without(make_tables(), {"east": ["crp"], "north": ["age"]})
    outcome = fedcdh.simulate_federation(tables, absent="allow", rounds=rounds)
    assert not outcome.missing
    assert outcome.study.plan.absent == {"east": ("crp",), "north": ("age",)}
    found = fedcdh.discover(tables, absent="allow", rounds=rounds)
    assert outcome.result.graph == found.graph
    assert outcome.result.probability_of_change == found.probability_of_change


def test_completed_sums_keep_what_was_sent():
    tables = without(make_tables(), {"east": ["crp"], "north": ["age", "ward"]})
    plan = StudyPlan.from_tables(tables, absent="allow")
    cohort = admit_summaries([fedcdh.summarize(table, plan, client) for client, table in tables.items()], plan)
    completed = complete_cohort(cohort)
    assert isinstance(completed, CompletedCohort)
    for before, after in zip(cohort.summaries, completed.summaries, strict=True):
        part = plan.for_variables(before.missing)
        places = [0, *(i for n in part.names for i in range(*plan.layout.spans[n].indices(10**6)))]
        assert np.array_equal(after.moments[np.ix_(places, places)], before.moments)
        values = np.linalg.eigvalsh(after.means_and_scatter()[1])
        assert values.min() > -1e-6 * values.max()
        counts = after.moments[0, plan.layout.spans["ward"]]
        assert (counts >= 0).all()
        assert abs(int(counts.sum()) - int(after.moments[0, 0])) < 10


def test_a_cohort_without_gaps_is_not_completed():
    tables = make_tables()
    plan = StudyPlan.from_tables(tables)
    cohort = add_up([fedcdh.summarize(table, plan, client) for client, table in tables.items()], plan)
    assert complete_cohort(cohort) is cohort


def test_the_ledger_compares_plans_with_other_absent_columns(tmp_path):
    tables = {
        client: {n: v for n, v in table.items() if n != "ward"} for client, table in make_tables(rows=400).items()
    }
    whole = StudyPlan.from_tables(tables)
    plan = replace(whole, absent={"east": ["crp"]})
    ledger = tmp_path / "releases.jsonl"
    release(tables["east"], whole, "east", ledger=ledger)
    fewer = {name: values[1:] for name, values in tables["east"].items()}
    with pytest.raises(DisclosureError, match="must not leave"):
        release(fewer, plan, "east", ledger=ledger)
