"""Figures of experiments: one file per setting and group of measures, none where the varied parameter is no number."""

from __future__ import annotations

import pytest
from small_experiments import small

from fedcdh.evaluation.experiments.figures import FIGURE_SUFFIXES, draw_figures, figure_name
from fedcdh.evaluation.experiments.runner import run_experiment


def test_a_figure_is_drawn_for_every_group_of_measures(tmp_path):
    pytest.importorskip("matplotlib")
    experiment = small(seeds=(1, 2))
    rows = run_experiment(experiment, tmp_path / "rows.csv")
    written = draw_figures(experiment, rows, tmp_path / "figures")
    assert [path.name for path in written] == [f"small{suffix}.png" for suffix in FIGURE_SUFFIXES]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_words_are_not_drawn_along_an_axis(tmp_path):
    pytest.importorskip("matplotlib")
    experiment = small(seeds=(1,), sweeps={"scale": ("raw", "standardised")})
    rows = run_experiment(experiment, tmp_path / "rows.csv")
    assert draw_figures(experiment, rows, tmp_path / "figures") == []


def test_the_name_of_a_figure_has_its_setting():
    assert figure_name(small(), (("scale", "raw"), ("model", "linear"))) == "small-raw-linear"
