"""Tables of results: paired tests, panels, equal graphs, means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from small_experiments import row, small

from fedcdh.evaluation.experiments.runner import run_experiment
from fedcdh.evaluation.experiments.tables import (
    PairedComparison,
    ResultPanel,
    compare_methods,
    count_equal_graphs,
    format_mean,
    means_table,
    signed_rank_p_value,
    split_panels,
)


def test_wilcoxon_ties_and_signs():
    assert signed_rank_p_value([1, 1, 1], [1, 1, 1]) == 1
    assert signed_rank_p_value([2] * 10, [1] * 10) < 0.01
    assert signed_rank_p_value([1, 2, 1, 2], [2, 1, 2, 1]) == pytest.approx(1)
    draw = np.random.default_rng(1)
    for _ in range(20):  # without ties, scipy's own exact test
        first, second = draw.standard_normal((2, 9))
        assert signed_rank_p_value(first, second) == pytest.approx(stats.wilcoxon(first - second).pvalue)
    assert PairedComparison("x", 5, 0.2, 1.0, 0.0625).verdict == "too few"
    assert PairedComparison("x", 10, 0.9, 0.8, 0.01).verdict == "better"
    assert PairedComparison("x", 10, 0.7, 0.8, 0.01).verdict == "worse"
    assert PairedComparison("x", 10, 0.9, 0.8, 0.2).verdict == "tied"


def test_duels_use_the_seeds_that_both_have():
    mine = [row("fedcdh", seed, 0.9) for seed in range(8)]
    theirs = [row("other", seed, 0.5) for seed in range(3, 12)]
    (compared,) = compare_methods(ResultPanel((), "rows", ("5",), (*mine, *theirs)), "5", ["other", "absent"], "f1")
    assert (compared.pairs, compared.ours, compared.theirs) == (5, pytest.approx(0.9), 0.5)


def test_panels_hold_what_is_varied_and_nothing_else(tmp_path):
    experiment = small(
        sweeps={"rows": (30, 60), "clients": (2, 3)}, base={**small().base, "scale": ("raw", "standardised")}
    )
    rows = run_experiment(experiment, tmp_path / "rows.csv")
    found = split_panels(experiment, rows)
    assert [(dict(panel.setting)["scale"], panel.varied) for panel in found] == [
        (scale, varied) for varied in ("rows", "clients") for scale in ("raw", "standardised")
    ]
    assert all({r["clients"] for r in panel.rows} == {"3"} for panel in found if panel.varied == "rows")
    assert sum(len(panel.of("fedpc", value)) for panel in found for value in panel.values) == 2 * (2 + 2) * 3


def test_same_graphs_counts_instances():
    rows = [row("a", 1, 0, scale="raw"), row("a", 1, 0, scale="standardised"), row("a", 2, 0, scale="raw")]
    rows += [row("a", 3, 0, scale="raw"), row("a", 3, 0, scale="standardised", graph="h")]
    rows += [row("a", 4, 0, scale=scale, graph="") for scale in ("raw", "standardised")]  # failed on both
    assert count_equal_graphs(rows, "scale") == {"a": (1, 2)}


def test_means_say_over_which_seeds():
    rows = [row("a", seed, 0.5) for seed in range(3)] + [row("b", seed, 0.5) for seed in (0, 7)]
    shown = means_table(ResultPanel((), "rows", ("5",), tuple(rows)), ["a", "b"], "f1", format_mean)
    assert "| a | 0.50 ± 0.00 [3] |" in shown  # seed 7 is b's alone
    assert "| b | 0.50 ± 0.00 [2] |" in shown
    assert format_mean((0.5, float("nan"))) == "0.50"
