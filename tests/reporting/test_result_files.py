"""result.json with what differs where, and with stability where it is handed in."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict

import numpy as np
import pytest
import studies

from fedcdh._io.csv_cells import unescape_cell
from fedcdh.discovery.api import discover, discover_from
from fedcdh.errors import DataError
from fedcdh.reporting.result_files import FORMAT, read_graph_claims, render_edges_csv, render_result_json, write_result
from fedcdh.summaries.aggregation import Aggregate

RESULT = discover(studies.mixed(0, (300, 200, 150, 100, 60)))


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


def test_keys_of_settings_and_disclosure_control():
    document = json.loads(render_result_json(RESULT, without_disclosure_control=["b", "a"]))
    assert document["format"] == FORMAT == "fedcdh-result-4"
    assert document["without_disclosure_control"] == ["a", "b"]
    assert "max_conditioning_size" in document["settings"]
    assert "without_disclosure_control" not in json.loads(render_result_json(RESULT))


def test_probabilities_are_in_both_files():
    result = discover_from(RESULT.cohort, RESULT.cohort.plan, min_effect=0.01)
    document = json.loads(render_result_json(result))
    assert document["probability_of_change"] == result.probability_of_change
    assert document["settings"]["min_effect"] == 0.01
    rows = list(csv.DictReader(render_edges_csv(result).splitlines()))
    for edge, record, row in zip(result.edges(), document["edges"], rows, strict=True):
        assert edge.probability == record["probability"] == float(row["probability"])
        assert edge.probability_forward == record["probability_forward"] == float(row["probability_forward"])
        assert edge.strength == record["strength"] == (float(row["strength"]) if row["strength"] else None)


def test_searches_by_tests_have_no_probabilities():
    result = discover_from(RESULT.cohort, RESULT.cohort.plan, method="constraint")
    document = json.loads(render_result_json(result))
    assert document["probability_of_change"] is None
    assert {edge["probability"] for edge in document["edges"]} == {None}
    assert {row["probability"] for row in csv.DictReader(render_edges_csv(result).splitlines())} == {""}


def test_the_csv_has_a_row_for_every_pair():
    rows = list(csv.DictReader(render_edges_csv(RESULT).splitlines()))
    assert [(row["source"], row["target"], row["mark"]) for row in rows] == [
        (edge.source, edge.target, edge.mark) for edge in RESULT.edges()
    ]


@pytest.mark.parametrize("text", ["[]", "{}", '{"edges": [["a"]]}', '{"edges": [["a", 3]]}', '{"edges": 3}'])
def test_a_file_without_claims_is_refused(text, tmp_path):
    (tmp_path / "truth.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="is not a result or a truth"):
        read_graph_claims(tmp_path / "truth.json")


def test_no_cell_of_the_csv_is_a_formula_and_names_can_be_read_back():
    rng = np.random.default_rng(5)
    names = ("=1+1", "-log p", "@x", "'quoted", "a;=2")
    columns = rng.standard_normal((5, 60)).cumsum(axis=0)
    tables = {client: dict(zip(names, columns[:, part], strict=True)) for client, part in HALVES.items()}
    result = discover(tables)
    rows = list(csv.DictReader(io.StringIO(render_edges_csv(result), newline="")))
    for edge, row in zip(result.edges(), rows, strict=True):
        assert not {row["source"][0], row["target"][0]} & set("=+-@")
        assert (unescape_cell(row["source"]), unescape_cell(row["target"])) == (edge.source, edge.target)
        assert unescape_cell(row["separating_set"]) == "; ".join(edge.separating_set or ())


HALVES = {"north": slice(0, 30), "south": slice(30, 60)}
