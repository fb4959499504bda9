"""The page of results, from the smallest form of all experiments and from the committed rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedcdh.cli import main
from fedcdh.evaluation.experiments.definition import experiment_names, load_experiment
from fedcdh.evaluation.experiments.real_data import data_folder
from fedcdh.evaluation.experiments.results_page import render_results_page
from fedcdh.evaluation.experiments.row_files import read_rows, result_columns

NEEDS_DATA = {"fmri", "real", "stocks"}


def test_the_smallest_form_of_every_experiment(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "results"
    present = [name for name in experiment_names() if name not in NEEDS_DATA or data_folder().exists()]
    for name in present:
        assert main(["experiment", name, "--smallest", "-o", str(folder), "--quiet"]) == 0
        rows = read_rows(folder / f"{name}.csv", result_columns(load_experiment(name, "smallest")))
        assert len(rows) == len(load_experiment(name, "smallest").jobs())
        assert not [row["failure"] for row in rows if row["failure"]]
    assert main(["experiment", "page", "--smallest", "-o", str(folder), "--quiet"]) == 0
    page = (tmp_path / "results.md").read_text()
    for name in present:
        assert f"## {load_experiment(name).title}\n" in page
    pictures = re.findall(r"\]\((results/[^)]+\.png)\)", page)
    assert pictures
    assert all((tmp_path / picture).read_bytes().startswith(b"\x89PNG") for picture in pictures)


def test_what_is_missing_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEDCDH_SHARED", str(tmp_path / "nowhere"))
    assert main(["experiment", "stocks", "--smallest", "-o", str(tmp_path)]) != 0
    assert "FEDCDH_SHARED" in capsys.readouterr().err


def test_the_list(capsys):
    assert main(["experiment", "list"]) == 0
    assert all(name in capsys.readouterr().out for name in ["figure-3"])


def test_the_committed_page_is_made_from_the_committed_rows():
    docs = Path(__file__).parents[3] / "docs"
    assert (docs / "results.md").read_text(encoding="utf-8") == render_results_page(
        docs / "results", docs / "results.md"
    )
    for name in experiment_names():
        rows = read_rows(docs / "results" / f"{name}.csv", result_columns(load_experiment(name)))
        assert len(rows) == len(load_experiment(name).jobs())
