"""Laws of studies in which sites lack variables."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcdh
from fedcdh.errors import DisclosureError, PlanError, SettingsError
from fedcdh.inference.absent_variables import CompletedCohort, complete_cohort
from fedcdh.messages.summary_file import SummaryMessage, pack_summary, unpack_summary
from fedcdh.privacy.ledger.ledger_file import ReleaseLedger
from fedcdh.privacy.releases import release
from fedcdh.reporting.result_files import render_result_json
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.client_changes import change_clients, iter_earlier_plans
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


def regular_tables(rows=400):
    """Values without far outliers, so that no single summary is refused for the leverage of a row."""
    rng = np.random.default_rng(7)
    draw = {name: rng.uniform(-1, 1, rows) for name in NAMES[:3]}
    return {
        client: {name: np.roll(v, place) + 0.2 * place for name, v in draw.items()}
        for place, client in enumerate(CLIENTS)
    }


def without_rows(table, count):
    return {name: values[count:] for name, values in table.items()}


@pytest.mark.parametrize(
    "lacks", [({}, {"east": ["crp"]}), ({"east": ["crp"]}, {}), ({"east": ["crp"]}, {"east": ["bmi"]})]
)
def test_the_ledger_refuses_the_difference_of_one_row_by_plans_with_other_absent_columns(tmp_path, lacks):
    tables, ledger = regular_tables(), tmp_path / "releases.jsonl"
    whole = StudyPlan.from_tables(tables)
    first, second = (replace(whole, absent=absent) for absent in lacks)
    release(tables["east"], first, "east", ledger=ledger)
    with pytest.raises(DisclosureError, match="must not leave after the releases"):
        release(without_rows(tables["east"], 1), second, "east", ledger=ledger)


@pytest.mark.parametrize(
    "lacks", [({}, {"east": ["crp"]}), ({"east": ["crp"]}, {}), ({"east": ["crp"]}, {"east": ["bmi"]})]
)
def test_the_ledger_allows_the_same_rows_by_plans_with_other_absent_columns(tmp_path, lacks):
    tables, ledger = regular_tables(), tmp_path / "releases.jsonl"
    whole = StudyPlan.from_tables(tables)
    for absent in lacks:
        release(tables["east"], replace(whole, absent=absent), "east", ledger=ledger)


def test_the_ledger_knows_the_numbers_of_a_part_again(tmp_path):
    tables, ledger = regular_tables(), ReleaseLedger(tmp_path / "releases.jsonl")
    plan = replace(StudyPlan.from_tables(tables), absent={"east": ["crp"]})
    for study in ("one", "two"):
        release(tables["east"], replace(plan, study=study), "east", ledger=ledger.path)
    first, second = (entry.release for entry in ledger.entries())
    assert first.digest == second.digest
    part = plan.for_client("east")
    assert part.numbers_fingerprint == replace(part, absent={}, part_of=()).numbers_fingerprint
    assert part.numbers_fingerprint != plan.numbers_fingerprint


def test_summaries_stay_valid_when_a_client_that_lacked_variables_leaves():
    tables = make_tables(rows=60)
    plan = replace(StudyPlan.from_tables(tables), absent={"east": ["crp"], "north": ["age"]})
    later = change_clients(plan, without=["east"])
    assert [*iter_earlier_plans(later)] == [plan]
    assert StudyPlan.from_json(later.to_json()) == later
    assert later.for_client("north").fingerprints == later.fingerprints == {plan.fingerprint, later.fingerprint}
    staying = [fedcdh.summarize(tables[client], plan, client) for client in later.clients]
    again = [fedcdh.summarize(tables[client], later, client) for client in later.clients]
    assert admit_summaries(staying, later).summaries == admit_summaries(again, later).summaries
    blobs = [pack_summary(SummaryMessage(one), plan) for one in staying]
    assert [unpack_summary(blob, later).summary.rows for blob in blobs] == [60, 60, 60]
    results = [fedcdh.discover_from(some, later, rounds="one") for some in (staying, again)]
    assert render_result_json(results[0]) == render_result_json(results[1])


def test_the_only_client_with_a_variable_cannot_leave():
    plan = replace(StudyPlan.from_tables(make_tables(rows=60)), absent={client: ["crp"] for client in CLIENTS[1:]})
    with pytest.raises(PlanError, match="without east, no client would have the variable 'crp'; expected one"):
        change_clients(plan, without=["east"])


def test_imputed_values_need_all_variables_everywhere():
    tables = without(make_tables(), {"east": ["crp"]})
    with pytest.raises(PlanError, match="asks for imputed values, and some clients lack variables"):
        fedcdh.discover(tables, absent="allow", missing="impute")


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_effects_are_refused_and_left_out_of_the_files(method):
    result = fedcdh.discover(without(make_tables(), {"east": ["crp"]}), absent="allow", method=method, rounds="one")
    with pytest.raises(SettingsError, match="some clients lack variables, so that effects cannot be pooled"):
        result.effects()
    document = json.loads(render_result_json(result))
    assert document["effects"] is None
    assert all(edge["slope"] is None for edge in document["edges"])
    assert any("can draw false edges" in note for note in document["notes"]) == (method == "evidence")
