"""The page of results, from the smallest form of all experiments and from the committed rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedcdh.cli import main
from fedcdh.errors import SettingsError
from fedcdh.evaluation.experiments.definition import experiment_names, load_experiment
from fedcdh.evaluation.experiments.real_data import data_folder
from fedcdh.evaluation.experiments.results_page import (
    find_figure,
    main_standings,
    main_table,
    read_all_rows,
    render_pages,
)
from fedcdh.evaluation.experiments.row_files import read_rows, result_columns
from fedcdh.evaluation.experiments.runner import run_experiment

NEEDS_DATA = {"fmri", "real", "stocks"}


def test_the_smallest_form_of_every_experiment(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "results"
    present = [name for name in experiment_names() if name not in NEEDS_DATA or data_folder().exists()]
    for name in present:
        rows = run_experiment(load_experiment(name, "smallest"), folder / f"{name}.csv")
        assert len(rows) == len(load_experiment(name, "smallest").jobs())
        assert not [row["failure"] for row in rows if row["failure"]]
    assert main(["experiment", "page", "--smallest", "-o", str(folder), "--quiet"]) == 0
    page = (tmp_path / "results.md").read_text()
    for name in present:
        assert f"(results/{name}.md)" in page
        details = (folder / f"{name}.md").read_text()
        assert details.startswith(f"# {load_experiment(name).title}\n")
        pictures = re.findall(r"\]\(([^)]+\.png)\)", details)
        assert pictures
        assert all((folder / picture).read_bytes().startswith(b"\x89PNG") for picture in pictures)
    pictures = re.findall(r"\]\((results/[^)]+\.png)\)", page)
    assert len(pictures) >= 3
    assert all((tmp_path / picture).read_bytes().startswith(b"\x89PNG") for picture in pictures)


def test_what_is_missing_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEDCDH_SHARED", str(tmp_path / "nowhere"))
    assert main(["experiment", "stocks", "--smallest", "-o", str(tmp_path)]) != 0
    assert "FEDCDH_SHARED" in capsys.readouterr().err


def test_the_list(capsys):
    assert main(["experiment", "list"]) == 0
    assert all(name in capsys.readouterr().out for name in ["figure-3"])


def test_a_discussion_that_states_a_figure_is_refused(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "discussion.txt").write_text("The engine keeps 0.9 and more.\n")
    with pytest.raises(SettingsError, match=r"states the figure '0\.9'"):
        render_pages(folder, tmp_path / "results.md", "smallest")
    (folder / "discussion.txt").write_text("## What this rests on\n\n`notears-admm-0.3` is [slow](figure-3.md).\n")
    assert "is [slow]" in render_pages(folder, tmp_path / "results.md", "smallest")[folder / "basis.md"]


def test_figures_are_found_in_text():
    texts = ["has 140 of 140", "F1 of .9", "ten seeds", "`h = 5` in code", "[Figure](figure-3.md)", "1,000 rows"]
    assert [find_figure(text) for text in texts] == ["140", "1", "", "", "", "1,000"]


def test_the_main_table_has_the_means_of_the_rows(tmp_path):
    folder = tmp_path / "results"
    for name in ("figure-3", "figure-4"):
        run_experiment(load_experiment(name, "smallest"), folder / f"{name}.csv")
    found = read_all_rows(folder, "smallest")
    table = main_table(found, main_standings(found))
    assert "| method | linear | general | kB | seconds |" in table  # five columns are as many as a phone shows
    for method in ("fedcdh", "fedpc"):
        line = next(line for line in table.splitlines() if line.startswith(f"| `{method}` |"))
        scores = [float(row["direction_f1"]) for row in found["figure-3"][1] if row["method"] == method]
        assert line.split("|")[2].strip() == f"{sum(scores) / len(scores):.2f}"


def test_the_committed_pages_are_made_from_the_committed_rows():
    docs = Path(__file__).parents[3] / "docs"
    for path, text in render_pages(docs / "results", docs / "results.md").items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `fedcdh experiment page -o docs/results`"


def test_the_short_page_is_short():
    """About four screens: lines of text and of tables, and figures, none of them high."""
    text = (Path(__file__).parents[3] / "docs" / "results.md").read_text(encoding="utf-8")
    assert len(text.split("```{toctree}")[0].splitlines()) <= 70
    assert text.count(".png)") <= 3


def test_the_committed_rows_belong_to_the_designs():
    """A run can be stopped and resumed, so rows may be missing; none is outside the design or there twice."""
    docs = Path(__file__).parents[3] / "docs"
    for name in experiment_names():
        experiment = load_experiment(name)
        rows = read_rows(docs / "results" / f"{name}.csv", result_columns(experiment))
        keys = [tuple(row[column] for column in (*experiment.parameters, "method", "seed")) for row in rows]
        assert rows, f"{name}: run `fedcdh experiment {name} -o docs/results`"
        assert len({*keys}) == len(keys), f"{name}: a row is there twice"
        assert {*keys} <= {job.key for job in experiment.jobs()}, f"{name}: rows outside the design"


def test_pages_say_what_was_cut_and_when():
    results = Path(__file__).parents[3] / "docs" / "results"
    for name in experiment_names():
        said = "decided before the rows in question were seen" in (results / f"{name}.md").read_text(encoding="utf-8")
        assert said == bool(load_experiment(name).limits), name
    assert "every method variables ≤ 18" in (results / "dense.md").read_text(encoding="utf-8")
    assert "except for `feddag-all-linear`" in (results / "figure-3.md").read_text(encoding="utf-8")
