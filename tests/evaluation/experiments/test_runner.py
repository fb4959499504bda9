"""Runs of experiments: resumable, the same with any number of processes, and safe against failures."""

from __future__ import annotations

import sys

import pytest
from small_experiments import small, without_seconds

from fedcdh.errors import DataError, MissingDependencyError, SettingsError
from fedcdh.evaluation.experiments import runner
from fedcdh.evaluation.experiments.kinds import graph_recovery
from fedcdh.evaluation.experiments.kinds.graph_recovery import SIMULATED_GRAPHS
from fedcdh.evaluation.experiments.row_files import lock_rows, read_rows, result_columns
from fedcdh.evaluation.experiments.runner import run_experiment


def test_a_run_can_be_stopped_and_resumed(tmp_path):
    whole, torn = tmp_path / "whole.csv", tmp_path / "torn.csv"
    run_experiment(small(), whole)
    text = whole.read_text()
    cut = text.index("\n", len(text) // 2) + 30  # within a line
    torn.write_text(text[:cut])
    computed = []
    run_experiment(small(), torn, watch=lambda done, jobs, left: computed.append(done))
    assert without_seconds(torn) == without_seconds(whole)
    kept = text[:cut].count("\n") - 1
    assert computed == list(range(kept, 19))
    kept_lines = text[:cut].splitlines()[: kept + 1]
    assert torn.read_text().splitlines()[: kept + 1] == kept_lines  # to the last digit of the seconds


def test_processes_make_no_difference(tmp_path):
    run_experiment(small(), tmp_path / "one.csv")
    run_experiment(small(), tmp_path / "two.csv", workers=2)
    assert without_seconds(tmp_path / "one.csv") == without_seconds(tmp_path / "two.csv")


def test_thresholds_share_one_fit_and_both_count_its_seconds(tmp_path, monkeypatch):
    fitted, fit = [], type(SIMULATED_GRAPHS).fit

    def count(self, prepared, name, seed):
        fitted.append((name, seed))
        return fit(self, prepared, name, seed)

    monkeypatch.setattr(type(SIMULATED_GRAPHS), "fit", count)
    both = small(methods=("notears-admm", "oracle", "notears-admm-0.3"), seeds=(1, 2))
    rows = run_experiment(both, tmp_path / "rows.csv")
    assert len(fitted) == 2 * 2  # cases by seeds, not by thresholds
    seconds = {(row["method"], row["rows"], row["seed"]): float(row["seconds"]) for row in rows}
    for case in (("30", "1"), ("60", "2")):
        assert seconds["notears-admm-0.3", *case] == pytest.approx(seconds["notears-admm", *case], rel=0.5)
    alone = run_experiment(small(methods=("notears-admm-0.3",), seeds=(1, 2)), tmp_path / "alone.csv")
    assert [row["graph"] for row in alone] == [row["graph"] for row in rows if row["method"] == "notears-admm-0.3"]
    run_experiment(both, tmp_path / "two.csv", workers=2)
    assert without_seconds(tmp_path / "two.csv") == without_seconds(tmp_path / "rows.csv")


def test_jobs_of_one_fit_go_to_one_process():
    both = small(methods=("notears-admm", "oracle", "notears-admm-0.3"))
    groups = runner._group_by_fit(both, both.jobs())
    assert [job.method for job in groups[0]] == ["notears-admm", "notears-admm-0.3"]
    assert {len({job.seed for job in group}) for group in groups} == {1}
    assert sorted(job.key for group in groups for job in group) == sorted(job.key for job in both.jobs())


def test_rows_of_other_seeds_stay(tmp_path):
    run_experiment(small(seeds=(1,)), tmp_path / "rows.csv")
    run_experiment(small(seeds=(2, 3)), tmp_path / "rows.csv")
    assert {row["seed"] for row in read_rows(tmp_path / "rows.csv", result_columns(small()))} == {"1", "2", "3"}


def test_a_file_of_another_experiment_is_not_touched(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="other columns"):
        run_experiment(small(), path)
    assert path.read_text() == "a,b\n1,2\n"


def test_a_method_that_fails_is_a_finding_and_is_tried_again(tmp_path, monkeypatch):
    def fails(self, prepared, case, name, seed, fitted=None):
        raise ZeroDivisionError("no\nluck")

    with monkeypatch.context() as broken:
        broken.setattr(type(SIMULATED_GRAPHS), "measure", fails)
        rows = run_experiment(small(methods=("fedpc",)), tmp_path / "rows.csv")
    assert {row["failure"] for row in rows} == {"ZeroDivisionError: no"}
    assert {row["skeleton_f1"] for row in rows} == {"0"}
    again = run_experiment(small(methods=("fedpc",)), tmp_path / "rows.csv")
    assert not any(row["failure"] for row in again)


def test_what_cannot_run_is_refused_before_the_first_job(tmp_path, monkeypatch):
    with pytest.raises(SettingsError, match="the method 'fedpcc'"):
        run_experiment(small(methods=("oracle", "fedpcc")), tmp_path / "rows.csv")
    assert not (tmp_path / "rows.csv").exists()
    for name in ["causallearn", *(name for name in sys.modules if name.startswith("causallearn."))]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(graph_recovery, "_IMPORTED_EXTRAS", {""})
    needing = small(methods=("oracle", "cdnod-fisherz"))
    assert list(runner.missing_methods(needing)) == ["cdnod-fisherz"]
    with pytest.raises(MissingDependencyError):
        run_experiment(needing, tmp_path / "rows.csv")


def test_only_one_command_writes_to_a_file(tmp_path):
    with lock_rows(tmp_path / "rows.csv"), pytest.raises(SettingsError, match="another command is writing"):
        run_experiment(small(), tmp_path / "rows.csv")


def test_an_interrupt_keeps_what_is_done(tmp_path):
    path, seen = tmp_path / "rows.csv", []

    def stop(done, jobs, left):
        seen.append(done)
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(small(), path, workers=2, watch=stop)
    assert len(read_rows(path, result_columns(small()))) == 3
    assert len(run_experiment(small(), path)) == 18


def test_a_run_stops_at_its_time_and_continues(tmp_path, monkeypatch):
    path, now = tmp_path / "rows.csv", iter(range(10**6))
    with monkeypatch.context() as clock:
        clock.setattr(runner.time, "monotonic", lambda: float(next(now)))  # a second passes whenever one looks
        rows = run_experiment(small(), path, minutes=0.15)
    assert 0 < len(rows) < 18
    assert len(read_rows(path, result_columns(small()))) == len(rows)
    assert {row["seed"] for row in rows} <= {"1", "2"}  # all methods of a seed before those of the next
    assert run_experiment(small(), path, minutes=0) == rows
    assert len(run_experiment(small(), path, workers=2, minutes=60)) == 18


def test_time_left_is_told_once_every_method_has_run():
    jobs, rows = small().jobs(), [{"method": method, "seconds": "2"} for method in small().methods]
    assert runner._RemainingTime(rows[:-1], 2).left(jobs) is None
    assert runner._RemainingTime(rows, 2).left(jobs) == len(jobs)  # two seconds each, two at a time
