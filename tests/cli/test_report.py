"""`fedcdh report`."""

from __future__ import annotations

import json
import stat
import subprocess
import sys

import pytest
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


def test_letters_to_one_site_and_to_all(study, here, capsys):
    run("discover", plan_of(study), *summaries(study), "-q")
    sites = [client["client"] for client in json.loads((here / "result" / "result.json").read_text())["clients"]]
    run("report", "result", "--site", sites[0])
    assert f"Wrote {sites[0]}.letter.html" in capsys.readouterr().out
    one = (here / f"{sites[0]}.letter.html").read_bytes()
    run("report", "result", "--all-sites")
    assert f"Wrote {len(sites)} letters to letters" in capsys.readouterr().out
    assert sorted(path.name for path in (here / "letters").iterdir()) == [f"{site}.letter.html" for site in sites]
    assert (here / "letters" / f"{sites[0]}.letter.html").read_bytes() == one
    run("report", "result", "--all-sites", "-o", "post", "--json")
    assert len(json.loads(capsys.readouterr().out)["files"]) == len(sites)
    assert main(["report", "result", "--site", "nowhere"]) == 2
    assert "the study has no site 'nowhere'" in capsys.readouterr().err
    assert main(["report", "result", "--site", sites[0], "--all-sites"]) == 2
    assert main(["report", "result", "--all-sites", "--open"]) == 2
    run("report", "result", "-q")
    assert main(["report", "result", "--site", sites[0], "-o", "report.html"]) == 2


@pytest.fixture
def browser(here, monkeypatch):
    """A program in the place of the browser, which writes down what it is asked to show."""
    program = here / "browser"
    monkeypatch.setenv("BROWSER", str(program))

    def make(code):
        program.write_text(f'#!/bin/sh\necho "$1" > shown.txt\nexit {code}\n', encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    return make


def report_in_new_process(*options):
    """Python looks for browsers once in a process."""
    words = [sys.executable, "-m", "fedcdh", "report", "result", *options]
    return subprocess.run(words, capture_output=True, text=True, check=True)


def test_the_browser_shows_the_page(study, here, browser):
    run("discover", plan_of(study), *summaries(study), "-q")
    browser(0)
    found = report_in_new_process("-o", "a page.html", "--open")
    address = (here / "a page.html").resolve().as_uri()
    assert (here / "shown.txt").read_text().strip() == address
    assert "No browser" not in found.stderr
    browser(1)
    found = report_in_new_process("-o", "a page.html", "--open", "-q")
    assert f"No browser opened the page. Open it yourself: {address}" in found.stderr
