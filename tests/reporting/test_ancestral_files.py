"""Files of a graph with hidden causes, and pictures that refuse to draw one wrongly."""

from __future__ import annotations

import csv
import io
import json

import pytest

import fedcdh
from fedcdh.errors import DataError, SettingsError
from fedcdh.graphs.convert import pag_to_dot
from fedcdh.reporting import render_edges_csv, render_html, render_result_json, render_svg, to_pandas

RESULT = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital", hidden=True)


def test_every_file_has_the_marks(tmp_path):
    written = fedcdh.write_result(RESULT, tmp_path)
    assert [path.name for path in written] == ["graph.txt", "graph.dot", "edges.csv", "result.json"]
    text, dot, table, document = (path.read_text("utf-8") for path in written)
    assert text == f"{RESULT}\n"
    assert dot == pag_to_dot(RESULT.graph)  # whose round trip has its own test
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["mark"] for row in rows] == [edge.mark for edge in RESULT.edges()]
    assert len(rows) == 36
    found = json.loads(document)
    assert found["settings"]["hidden"] is True
    marks = {(e["source"], e["target"]): (e["mark_at_source"], e["mark_at_target"]) for e in found["graph"]}
    assert marks == {(a, b): (at_a, at_b) for a, b, at_a, at_b in RESULT.graph.edges}
    assert document == render_result_json(RESULT)
    assert table.splitlines() == render_edges_csv(RESULT).splitlines()


def test_pictures_and_readers_refuse_it(tmp_path):
    fedcdh.write_result(RESULT, tmp_path)
    for drawn in (RESULT, RESULT.graph):
        with pytest.raises(SettingsError, match="circles and ↔"):
            render_svg(drawn)
    with pytest.raises(DataError, match="hidden causes"):
        fedcdh.read_result(tmp_path)
    with pytest.raises(SettingsError, match="neither"):
        fedcdh.write_result(RESULT, tmp_path, effects=[object()])
    assert "↔" in render_html(RESULT) or "○" in render_html(RESULT)


def test_edges_become_a_data_frame():
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert set(to_pandas(RESULT.edges())["mark"]) <= {"", "→", "○→", "↔", "○–○", "–"}
