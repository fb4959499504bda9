"""The tables of a report show what is in the document."""

from __future__ import annotations

import json

import pytest
from reports import ParsedPage, document

from fedcdh import discover
from fedcdh.evaluation.demo import hospital_study
from fedcdh.reporting.html import render_report
from fedcdh.reporting.html.edge_tables import (
    MAX_PAIRS_LISTED,
    MAX_POSSIBLE_LISTED,
    NO_DIRECTION_NOTE,
    absent_edge_table,
    edge_table,
    possible_edge_table,
)
from fedcdh.reporting.html.tables import changing_table, site_table
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
    assert "Searches by tests give no probabilities" in page.text
    assert "Possible, not drawn" not in page.text


@pytest.mark.parametrize(("direction", "noted"), [(None, True), (12.0, False)])
def test_a_note_explains_links_without_evidence_for_their_direction(direction, noted):
    edge = {"source": "a", "target": "b", "mark": "→", "log_bayes_presence": 9.0, "log_bayes_direction": direction}
    assert (NO_DIRECTION_NOTE in edge_table([edge], {frozenset("ab"): 0})) is noted


def test_links_with_probabilities_show_no_bayes_factors():
    edge = {"source": "a", "target": "b", "mark": "→", "log_bayes_presence": 9.5, "log_bayes_direction": None}
    edge |= {"probability": 0.97, "probability_forward": 0.86, "strength": 0.123}
    line = {**edge, "target": "c", "mark": "—", "probability_forward": 0.3, "strength": None}
    page = ParsedPage(edge_table([line, edge], {frozenset("ab"): 0, frozenset("ac"): 1}))
    for shown in ("0.97", "0.86", "likely", "12\N{NO-BREAK SPACE}%", "← 0.67", "very likely"):
        assert shown in page.text
    assert page.text.index("0.86") < page.text.index("0.67")  # arrows first
    assert "9.5" not in page.text
    assert NO_DIRECTION_NOTE not in page.text


def test_possible_pairs_are_listed_from_one_in_ten():
    pair = {"source": "a", "target": "b", "mark": "", "probability": 0.1, "probability_forward": 0.07}
    likelier = {**pair, "target": "c", "probability": 0.45}
    text = ParsedPage(possible_edge_table([pair, {**pair, "target": "d", "probability": 0.099}, likelier])).text
    assert "0.10" in text
    assert text.index("0.45") < text.index("0.10")
    assert "→ 0.07" in text
    assert "d" not in text.split()
    assert possible_edge_table([{**pair, "probability": 0.05}]) == ""
    many = possible_edge_table([pair] * (MAX_POSSIBLE_LISTED + 1))
    assert f"{MAX_POSSIBLE_LISTED} likeliest of {MAX_POSSIBLE_LISTED + 1}" in many


def test_differences_have_probabilities():
    made = {**FIVE, "changing": ["v1"], "probability_of_change": {"v0": 0.02, "v1": 0.97, "v2": 0.3}}
    text = ParsedPage(changing_table(made)).text
    assert "v1differsvery likely0.97" in text.replace("\n", "")
    assert text.index("0.97") < text.index("0.30") < text.index("0.02")
    assert "Bayes" not in text


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
