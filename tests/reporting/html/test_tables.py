"""The tables of a report show what is in the document."""

from __future__ import annotations

import json

import pytest
from reports import ParsedPage, document

from fedcdh import discover
from fedcdh.evaluation.demo import hospital_study
from fedcdh.reporting.html import render_report
from fedcdh.reporting.html.tables import MAX_PAIRS_LISTED, NO_DIRECTION_NOTE, absent_edge_table, edge_table, site_table
from fedcdh.reporting.result_files import render_result_json

FIVE = document([f"v{at}" for at in range(5)])


@pytest.fixture(scope="module")
def found():
    return discover(hospital_study().columns(), domain="hospital")


@pytest.mark.parametrize("method", ["constraint", "paper"])
def test_the_evidence_of_tests_is_p_values_and_separating_sets(method):
    result = discover(hospital_study().columns(), domain="hospital", method=method)
    page = ParsedPage(render_report(json.loads(render_result_json(result))))
    assert "Independent given" in page.text
    assert "p-value" in page.text
    assert "significance level 0.05" in page.text
    assert "Bayes factor)" not in page.text


@pytest.mark.parametrize(("direction", "noted"), [(None, True), (12.0, False)])
def test_a_note_explains_links_without_evidence_for_their_direction(direction, noted):
    edge = {"source": "a", "target": "b", "mark": "→", "log_bayes_presence": 9.0, "log_bayes_direction": direction}
    assert (NO_DIRECTION_NOTE in edge_table([edge], {frozenset("ab"): 0})) is noted


def test_tests_have_no_evidence_for_directions_to_explain():
    edge = {"source": "a", "target": "b", "mark": "→", "p_value": 0.01}
    assert NO_DIRECTION_NOTE not in edge_table([edge], {frozenset("ab"): 0})


def test_stability_may_come_with_its_runs(found):
    made = json.loads(render_result_json(found))
    edges = [
        {"source": "age", "target": "exercise", "mark": "—", "adjacent": 1.0, "same": 0.8, "gone_without": ["city"]},
    ]
    changing = [{"variable": "medication", "changing": True, "share": 0.6, "differs_without": ["north"]}]
    made["stability"] = {"kind": "leave-one-out", "edges": edges, "changing": changing, "runs": [{}] * 5, "notes": []}
    assert "Influence of each site" not in ParsedPage(render_report(made)).text
    whose = {"client": "north", "share": 0.25, "largest": 7.25, "total": 9.5, "n_changed": 3}
    made["stability"]["influence"] = [{**whose, "link": ["age", "exercise"]}, {**whose, "client": "city", "link": None}]
    text = ParsedPage(render_report(made)).text
    assert "Influence of each site" in text
    assert "+7.2" in text
    assert "age and exercise" in text
    assert "with each site left out in turn" in text
    assert "80\N{NO-BREAK SPACE}%" in text
    assert "60\N{NO-BREAK SPACE}%" in text


def test_a_long_list_of_absent_edges_is_cut_with_a_note():
    pair = next(edge for edge in FIVE["edges"] if not edge["mark"])
    assert "least certain of" not in absent_edge_table([pair] * MAX_PAIRS_LISTED)
    assert f"{MAX_PAIRS_LISTED} least certain of {MAX_PAIRS_LISTED + 1}" in absent_edge_table(
        [pair] * (MAX_PAIRS_LISTED + 1)
    )


def test_rows_left_out_are_shown_where_they_are_known():
    assert "10.0%" in site_table(FIVE["clients"])
    assert "Rows read" not in site_table([{"client": "all", "rows": 90}])
