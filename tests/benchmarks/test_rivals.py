"""The benchmark of rivals: the same instances for all methods, and failures are counted."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.bench_rivals import RivalSetting, main, measure, measure_all
from fedcdh.evaluation.simulation import simulate

SMALL = RivalSetting("linear", 4, 3, 60, "paper")


def test_instances_are_standardised_and_those_of_the_simulator():
    instance = SMALL.draw(3)
    pooled = np.concatenate(list(instance.tables.values()))
    np.testing.assert_allclose(pooled.std(axis=0), 1)
    study = simulate(variables=4, clients=3, rows=60, seed=3)
    assert (instance.arrows, instance.changing) == (study.arrows, study.changing)
    cut = SMALL._replace(interventions=2, changing=0).draw(3)
    assert cut.changing


def test_the_oracle_is_an_upper_bound_and_failures_are_counted():
    found = measure_all(SMALL, ("oracle", "bic-sum"), 3)
    assert found["oracle"]["skeleton_f1"] == 1
    assert found["bic-sum"]["skeleton_f1"] <= 1
    large = RivalSetting("linear", 11, 2, 20, "paper").draw(1)
    failed = measure(large, "peri-whole", 1)
    assert (failed["failed"], failed["skeleton_f1"]) == (1, 0)


def test_the_command_prints_a_row_per_method_and_model(monkeypatch, capsys):
    sizes = ["--variables", "4", "--clients", "3", "--rows", "50"]
    monkeypatch.setattr(sys, "argv", ["bench_rivals", "--methods", "bic-sum,peri", "--seeds", "1:3", *sizes])
    main()
    printed = capsys.readouterr().out
    for name in ("oracle", "bic-sum", "peri"):
        assert len([line for line in printed.splitlines() if line.startswith(name)]) == 2
