"""Files of rows: merged from several runs, and without those of some methods."""

from __future__ import annotations

import pytest
from small_experiments import small, without_seconds

from fedcdh.errors import DataError
from fedcdh.evaluation.experiments.row_files import (
    MergeCounts,
    drop_rows,
    merge_rows,
    read_design_rows,
    read_rows,
    result_columns,
    rows_to_csv,
)
from fedcdh.evaluation.experiments.runner import run_experiment


def test_parts_of_a_design_become_the_whole(tmp_path):
    run_experiment(small(), tmp_path / "whole.csv")
    for method in small().methods:
        run_experiment(small(methods=(method,)), tmp_path / f"{method}.csv")
    counts = merge_rows(small(), tmp_path / "merged.csv", [tmp_path / f"{method}.csv" for method in small().methods])
    assert counts == MergeCounts(18, 0, 0)
    assert without_seconds(tmp_path / "merged.csv") == without_seconds(tmp_path / "whole.csv")
    again = merge_rows(small(), tmp_path / "merged.csv", [tmp_path / "whole.csv"])
    assert again == MergeCounts(0, 18, 0)


def test_a_newer_row_counts_more_and_a_failure_less(tmp_path):
    one = small(methods=("fedpc",), seeds=(1, 2))
    rows = run_experiment(one, tmp_path / "rows.csv")
    columns = result_columns(one)
    newer = [{**row, "skeleton_f1": "0.5"} for row in rows[:1]]
    failed = [{**row, "skeleton_f1": "0", "failure": "no luck"} for row in rows[1:2]]
    (tmp_path / "newer.csv").write_text(rows_to_csv([*newer, *failed], columns))
    assert merge_rows(one, tmp_path / "rows.csv", [tmp_path / "newer.csv"]) == MergeCounts(0, 1, 1)
    assert read_rows(tmp_path / "rows.csv", columns) == [newer[0], *rows[1:]]


def test_other_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="found no file"):
        merge_rows(small(), tmp_path / "rows.csv", [tmp_path / "nowhere.csv"])
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="other columns"):
        merge_rows(small(), tmp_path / "rows.csv", [tmp_path / "other.csv"])


def test_rows_of_a_method_are_dropped_and_computed_anew(tmp_path):
    path = tmp_path / "rows.csv"
    run_experiment(small(), path)
    before = without_seconds(path)
    assert drop_rows(small(), path, ["fedpc"]) == 6
    assert {row["method"] for row in read_design_rows(small(), path)} == {"oracle", "sort-by-variance"}
    run_experiment(small(), path)
    assert without_seconds(path) == before
