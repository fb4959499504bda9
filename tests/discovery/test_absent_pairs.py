from __future__ import annotations

import numpy as np
import pytest

import fedcdh
from fedcdh.errors import PlanError, SettingsError
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.result_files import render_edges_csv, render_result_json
from fedcdh.summaries.aggregation import add_up
from fedcdh.summaries.bootstrap import admit_replicates, bootstrap_summaries
from fedcdh.summaries.plan import StudyPlan

ABSENT = {"east": ("a",), "north": ("a", "d"), "south": ("c",), "west": ("c", "d")}


def make_tables(absent=ABSENT, rows=150):
    tables = {}
    for place, client in enumerate(("east", "north", "south", "west")):
        rng = np.random.default_rng([11, place])
        a = rng.normal(size=rows)
        b = a + rng.exponential(size=rows)
        values = {"a": a, "b": b, "c": b + rng.normal(size=rows), "d": rng.normal(size=rows)}
        tables[client] = {name: value for name, value in values.items() if name not in absent.get(client, ())}
    return tables


@pytest.fixture(scope="module", params=["evidence", "constraint"])
def result(request):
    return fedcdh.discover(make_tables(), method=request.param, absent="allow")


def test_a_pair_that_nobody_measured_is_neither_found_nor_excluded(result):
    (edge,) = [one for one in result.edges() if {one.source, one.target} == {"a", "c"}]
    assert (edge.mark, edge.status, edge.probability, edge.p_value) == ("", "not measured together", None, None)
    assert all(not one.status for one in result.edges() if {one.source, one.target} != {"a", "c"})
    assert any("not measured together: a and c" in note for note in result.notes)


def test_links_that_were_measured_are_found(result):
    assert {frozenset("ab"), frozenset("bc")} <= result.graph.skeleton


def test_the_status_is_in_all_outputs(result, tmp_path):
    assert '"status": "not measured together"' in render_result_json(result)
    header, *rows = render_edges_csv(result).splitlines()
    assert header.endswith(",status")
    assert sum(row.endswith("not measured together") for row in rows) == 1
    page = result.report(tmp_path / "study.html").read_text(encoding="utf-8")
    assert "Not measured together: a link is neither found nor excluded" in page
    assert "Not measured" in page


def test_without_absent_variables_nothing_has_a_status():
    found = fedcdh.discover(make_tables({}), rounds="one")
    assert "status" not in render_edges_csv(found).splitlines()[0]
    assert '"status"' not in render_result_json(found)
    assert '"absent"' not in render_result_json(found)


def test_a_variable_at_one_client_cannot_be_said_to_differ():
    found = fedcdh.discover(
        make_tables({"east": ("d",), "north": ("d",), "south": ("d",)}), rounds="one", absent="allow"
    )
    (edge,) = [one for one in found.edges() if {one.source, one.target} == {DOMAIN, "d"}]
    assert edge.status == "not measured together"
    assert "d" not in found.changing
    assert any("only one client has d" in note for note in found.notes)


def test_drift_and_stability_know_who_had_what(result):
    clients = {record.client for record in result.drift(["c"])}
    assert clients == {"east", "north"}
    assert len(result.stability().runs) == 4


@pytest.mark.parametrize("method", ["evidence", "constraint"])
def test_without_the_only_client_that_has_a_variable_the_rest_is_found(method):
    tables = make_tables({"east": ("d",), "north": ("d",), "south": ("d",)})
    plan = StudyPlan.from_tables(tables, absent="allow")
    summaries = [fedcdh.summarize(table, plan, client) for client, table in tables.items()]
    found = fedcdh.discover_from(summaries, plan, method=method, without=["west"])
    assert {frozenset("ab"), frozenset("bc")} <= found.graph.skeleton
    assert "d" not in {name for pair in found.graph.skeleton for name in pair}
    assert any("no client that is left has d" in note for note in found.notes)
    assert '"status": "not measured together"' in render_result_json(found)


def test_rows_are_resampled_where_clients_lack_variables():
    tables = make_tables()
    plan = StudyPlan.from_tables(tables, absent="allow")
    cohort = add_up([fedcdh.summarize(table, plan, client) for client, table in tables.items()], plan)
    drawn = [one for client, table in tables.items() for one in bootstrap_summaries(table, plan, client, 3, seed=5)]
    replicates = admit_replicates(drawn, cohort)
    assert [one.columns_of for one in replicates] == [cohort.columns_of] * 3
    stability = fedcdh.discover_from(cohort, plan, rounds="one").stability(replicates=replicates)
    assert len(stability.runs) == 3


def test_what_needs_all_variables_says_so():
    with pytest.raises(PlanError, match=r"'east' has no column 'a'.*absent='allow'"):
        fedcdh.discover(make_tables())
    with pytest.raises(SettingsError, match="choose method 'evidence' or 'constraint'"):
        fedcdh.discover(make_tables(), method="paper", absent="allow")
    with pytest.raises(SettingsError, match="adaptive rounds ask all clients about the same variables"):
        fedcdh.discover(make_tables(), method="constraint", rounds="adaptive", absent="allow")
    with pytest.raises(SettingsError, match="a search for hidden causes asks all clients about all pairs"):
        fedcdh.discover(make_tables(), hidden=True, rounds="one", absent="allow")
