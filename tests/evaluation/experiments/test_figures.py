"""Figures of experiments: one file per setting and group of measures, and curves that are the means of the rows."""

from __future__ import annotations

import pytest
from small_experiments import row, small

from fedcdh.evaluation.experiments.figures import FIGURE_SUFFIXES, draw_curves, draw_figures, figure_name
from fedcdh.evaluation.experiments.runner import run_experiment
from fedcdh.evaluation.experiments.tables import ResultPanel, split_panels


def test_a_figure_is_drawn_for_every_group_of_measures(tmp_path):
    pytest.importorskip("matplotlib")
    experiment = small(seeds=(1, 2))
    rows = run_experiment(experiment, tmp_path / "rows.csv")
    written = draw_figures(experiment, rows, tmp_path / "figures")
    assert [path.name for path in written] == [f"small{suffix}.png" for suffix in FIGURE_SUFFIXES]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_words_along_an_axis_are_drawn_without_lines(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    experiment = small(seeds=(1,), sweeps={"scale": ("raw", "standardised")})
    rows = run_experiment(experiment, tmp_path / "rows.csv")
    assert [path.name for path in draw_figures(experiment, rows, tmp_path / "figures")] == ["small.png"]
    _, ax = pyplot.subplots()
    draw_curves(ax, split_panels(experiment, rows)[0], ["fedpc", "sort-by-variance"], "direction_f1")
    assert [line.get_linestyle() for line in ax.get_lines()] == ["None", "None"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["raw", "standardised"]
    pyplot.close()


def test_curves_are_the_means_and_the_band_is_their_error():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    scores = {"fedcdh": (0.9, 0.7), "fedpc": (0.5, 0.1)}
    rows = [
        row(method, seed, 0, direction_f1=str(f1)) for method, both in scores.items() for seed, f1 in enumerate(both)
    ]
    _, ax = pyplot.subplots()
    draw_curves(ax, ResultPanel((), "rows", ("5",), tuple(rows)), ["fedcdh", "fedpc"], "direction_f1")
    assert [line.get_ydata()[0] for line in ax.get_lines()] == pytest.approx([0.8, 0.3])
    (band,) = ax.collections
    assert band.get_paths()[0].vertices[:, 1].min() == pytest.approx(0.8 - 0.1)  # deviation 0.1 · √2 over √2 seeds
    pyplot.close()


def test_the_name_of_a_figure_has_its_setting():
    assert figure_name(small(), (("scale", "raw"), ("model", "linear"))) == "small-raw-linear"
