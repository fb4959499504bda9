"""Standings: highest means, best rivals and verdicts, cell by cell and over all instances."""

from __future__ import annotations

import numpy as np
import pytest
from small_experiments import small

from fedcdh.evaluation.experiments.runner import run_experiment
from fedcdh.evaluation.experiments.standings import ResultCell, Standing, split_cells


def cell(**scores):
    """Return a cell with the scores of each method, in the order of seeds."""
    return ResultCell((), "base", {method: dict(enumerate(map(float, found))) for method, found in scores.items()})


def test_cells_are_the_cases_of_the_design(tmp_path):
    experiment = small(methods=("oracle", "fedpc"))
    rows = run_experiment(experiment, tmp_path / "rows.csv")
    cells = split_cells(experiment, rows, "direction_f1")
    assert [one.label for one in cells] == ["rows = 30", "base"]
    found = np.mean([float(row["direction_f1"]) for row in rows if row["method"] == "fedpc" and row["rows"] == "30"])
    assert cells[0].means["fedpc"] == pytest.approx(found)


def test_a_case_that_two_sweeps_share_is_one_cell(tmp_path):
    experiment = small(methods=("oracle",), seeds=(1,), sweeps={"rows": (30, 60), "clients": (3, 4)})
    rows = run_experiment(experiment, tmp_path / "rows.csv")
    assert [one.label for one in split_cells(experiment, rows, "direction_f1")] == ["rows = 30", "base", "clients = 4"]


def test_rivals_with_fewer_seeds_have_no_mean():
    one = cell(fedcdh=[0.8, 0.6], fedpc=[0.5, 0.5], feddag=[0.9])
    assert one.means == {"fedcdh": pytest.approx(0.7), "fedpc": 0.5}
    assert one.best_rival == "fedpc"
    assert one.is_reference_highest
    assert Standing([one]).format_mean("feddag") == "0.90 [1]"
    assert Standing([one]).format_mean("fedpc") == "0.50"
    assert Standing([one]).format_mean("gou") == "–"


def test_ours_and_the_oracle_are_no_rivals():
    one = cell(fedcdh=[0.5], oracle=[1], **{"fedcdh-constraint": [0.9]})
    assert one.rivals == {}
    assert one.is_reference_highest
    assert Standing([one]).best_rival == ""


def test_counts_over_cells():
    high = cell(fedcdh=[0.9] * 8, fedpc=[0.1] * 8)
    low = cell(fedcdh=[0.1] * 8, fedpc=np.linspace(0.5, 0.9, 8))
    equal = cell(fedcdh=[0.5] * 8, fedpc=[0.5] * 8)
    standing = Standing([high, low, equal])
    assert (standing.highest, standing.higher_rivals) == (2, {"fedpc": 1})
    assert standing.verdicts == {"fedpc": {"better": 1, "worse": 1, "tied": 1}}
    assert standing.overall == {"fedcdh": pytest.approx(0.5), "fedpc": pytest.approx((0.1 + 0.7 + 0.5) / 3)}
    assert standing.instances == 24


def test_the_overall_mean_is_of_methods_with_all_instances():
    standing = Standing([cell(fedcdh=[1, 0], fedpc=[1, 1]), cell(fedcdh=[1, 0])])
    assert standing.overall == {"fedcdh": 0.5}
    assert standing.available["fedpc"] == 1
