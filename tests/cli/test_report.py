"""`fedcdh report`."""

from __future__ import annotations

from cli_study import plan_of, run, summaries

from fedcdh.cli import main


def test_a_report_replaces_only_a_report(study, here, capsys):
    run("discover", plan_of(study), *summaries(study), "-q")
    run("report", "result")
    assert "Wrote report.html" in capsys.readouterr().out
    first = (here / "report.html").read_bytes()
    assert first.startswith(b"<!doctype html>")
    run("report", "result/result.json", "-q")
    assert (here / "report.html").read_bytes() == first
    (here / "letter.html").write_text("<p>a letter", encoding="utf-8")
    assert main(["report", "result", "-o", "letter.html"]) == 2
    assert (here / "letter.html").read_text(encoding="utf-8") == "<p>a letter"
    assert main(["report", "nowhere"]) == 3
