"""The cost of probabilities: parts add up, and every study gets a row."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from benchmarks import bench_posterior
from benchmarks.bench_posterior import Cost, main, measure_cost, measure_labels, measure_size
from fedcdh.discovery import score_search
from fedcdh.evaluation.simulation import simulate


def write_labels(folder, name="bn_asia", rows=120):
    """Write a study of labels: b follows a, and two domains."""
    rng = np.random.default_rng(0)
    a, noise, c = rng.integers(0, 2, rows), rng.integers(0, 2, rows), rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.8, a, noise)
    path = folder / "data" / name
    path.mkdir(parents=True)
    with (path / "data.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["a", "b", "c", "domain"])
        table.writerows(zip(a, b, c, np.repeat(["north", "south"], rows // 2), strict=True))
    (path / "truth.json").write_text(json.dumps({"nodes": ["a", "b", "c"], "edges": [["a", "b"]]}), encoding="utf-8")


def test_every_part_takes_time_and_nothing_stays_replaced():
    before = score_search.compute_posterior, score_search.ScoreSearch.__call__
    cost = measure_size("linear", 4, 60, 0)
    assert min(cost) > 0
    assert cost.families > 10
    assert (score_search.compute_posterior, score_search.ScoreSearch.__call__) == before


def test_parts_add_up(monkeypatch):
    """By a clock that goes on by one at every look, and parts that look at it a known number of times."""
    ticks = iter(range(10_000))
    monkeypatch.setattr(bench_posterior, "process_time", lambda: float(next(ticks)))
    cost = measure_cost(simulate("linear", variables=4, edges=4, rows=60, seed=0).columns("site"), domain="site")
    assert cost.reading > 0
    assert cost.search >= 0
    assert cost.probabilities >= 1
    assert sum(cost[:3]) == next(ticks) - 1  # from the first look to the last


def test_a_study_of_labels_is_read_and_timed(tmp_path, monkeypatch):
    write_labels(tmp_path)
    monkeypatch.setenv("FEDCDH_SHARED", str(tmp_path))
    assert min(measure_labels("bn_asia", 0)) > 0


@pytest.fixture
def in_this_process(monkeypatch):
    monkeypatch.setattr(bench_posterior, "run_in_process", lambda run, seeds: np.mean([run(s) for s in seeds], axis=0))


def test_every_study_has_a_row_and_missing_data_are_named(tmp_path, monkeypatch, capsys, in_this_process):
    write_labels(tmp_path)
    monkeypatch.setenv("FEDCDH_SHARED", str(tmp_path))
    few = ["--variables", "4", "--models", "linear", "--rows", "60", "--seeds", "0:2"]
    main([*few, "--labels", "bn_asia", "bn_child"])
    printed = capsys.readouterr().out
    assert "means over seeds 0..1" in printed
    row = next(line for line in printed.splitlines() if line.startswith("linear   d = 4")).split()
    assert len(row) == 8
    asia = next(line for line in printed.splitlines() if line.startswith("bn_asia")).split()
    reading, search, probabilities, total = map(float, asia[1:5])
    assert total == pytest.approx(reading + search + probabilities, abs=0.03)
    assert "bn_child" in printed
    assert "not found, skipped" in printed


def test_ratios_are_those_of_the_parts(monkeypatch, capsys):
    monkeypatch.setattr(bench_posterior, "run_in_process", lambda run, seeds: Cost(0.5, 2.0, 1.0, 10))
    monkeypatch.setattr(bench_posterior, "available_studies", lambda names: names)
    main(["--quick"])
    printed = capsys.readouterr().out
    assert printed.count("0.50        10") == 4  # probabilities beside the search, two models of two sizes
    assert printed.count("6.0        10") == 2  # search and probabilities beside reading
