"""`fedcdh demo`."""

from __future__ import annotations

import re

from fedcdh.cli import main


def test_the_demo_shows_the_graph_and_where_the_report_is(tmp_path, capsys):
    assert main(["demo", "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "smoker → cholesterol" in shown
    assert re.search(r"mechanisms that differ between clients: medication \(.*\), systolic_pressure \(.*\)", shown)
    assert "one site" in shown
    assert str(tmp_path / "out" / "report.html") in shown
    names = ["edges.csv", "effects.csv", "graph.dot", "graph.txt", "report.html", "result.json"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    (tmp_path / "taken").write_text("a file, not a folder", encoding="utf-8")
    assert main(["demo", "-o", str(tmp_path / "taken"), "-q"]) == 8
    assert "Choose another place" in capsys.readouterr().err
    assert (tmp_path / "taken").read_text(encoding="utf-8") == "a file, not a folder"
