"""result.json with what differs where, and with stability where it is handed in."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
import studies

from fedcdh.discovery.api import discover, discover_from
from fedcdh.reporting.result_files import read_graph_claims, render_result_json, write_result
from fedcdh.summaries.aggregation import Aggregate

RESULT = discover(studies.mixed(0, (60, 45, 30, 14, 5)))


def test_drift_is_there_record_by_record():
    document = json.loads(render_result_json(RESULT))
    assert document["drift"] == [asdict(drift) for drift in RESULT.drift()]
    assert document["drift"]
    assert "stability" not in document


def test_drift_is_empty_where_nothing_changes_and_nothing_where_it_is_not_known():
    cohort = studies.cohort_of(studies.numbers(0, (50,)))
    assert json.loads(render_result_json(discover_from(cohort, cohort.plan)))["drift"] == []
    several = studies.cohort_of(studies.numbers(0))
    assert json.loads(render_result_json(discover_from(Aggregate.of(several), several.plan)))["drift"] is None


@pytest.mark.parametrize("runs", [None, 3])
def test_stability_is_there_when_handed_in(runs, tmp_path):
    stability = RESULT.stability(runs, seed=4)
    text = render_result_json(RESULT, stability)
    assert text == render_result_json(RESULT, RESULT.stability(runs, seed=4))
    found = json.loads(text)["stability"]
    assert [edge["adjacent"] for edge in found["edges"]] == [edge.adjacent for edge in stability.edges]
    assert len(found["runs"]) == len(stability.runs)
    assert {client: tuple(texts) for client, texts in found["changes_without"].items()} == stability.changes_without
    assert [one["largest"] for one in found["influence"]] == [one.largest for one in stability.influence]
    (*_, path) = write_result(RESULT, tmp_path, stability)
    assert path.read_text(encoding="utf-8") == text
    assert read_graph_claims(tmp_path).arrows == RESULT.graph.arrows
