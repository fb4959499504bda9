"""Experiments: designs that are what they say, runs that can be stopped, tables that are right, and all of it once."""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fedcdh.cli import main
from fedcdh.errors import DataError, MissingDependencyError, SettingsError
from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.experiments import runner
from fedcdh.evaluation.experiments.definition import Experiment, experiment_names, load_experiment, parse_experiment
from fedcdh.evaluation.experiments.kinds import find_kind, graph_recovery
from fedcdh.evaluation.experiments.kinds.communication import COMMUNICATION_SIZE
from fedcdh.evaluation.experiments.kinds.graph_recovery import ORACLE_METHOD, SIMULATED_GRAPHS
from fedcdh.evaluation.experiments.kinds.independent_change import CRITERION_FORMS
from fedcdh.evaluation.experiments.kinds.rejection_rates import COMPARED_TESTS, REJECTION_RATE
from fedcdh.evaluation.experiments.paper_comparison import load_printed_figures
from fedcdh.evaluation.experiments.real_data import data_folder
from fedcdh.evaluation.experiments.results_page import render_results_page
from fedcdh.evaluation.experiments.runner import read_rows, result_columns, run_experiment
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
from fedcdh.evaluation.simulation import simulate
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.summaries.accumulator import summarize
from fedcdh.summaries.plan import StudyPlan

SIZES_OF = ("full", "quick", "smallest")
NEEDS_DATA = {"fmri", "real", "stocks"}
CASE = {
    "model": "linear",
    "variables": 4,
    "clients": 3,
    "rows": 60,
    "density": 1.0,
    "changing": 1,
    "dialect": "paper",
    "scale": "raw",
    "sizes": "equal",
    "order": "given",
    "width": 0,
}
LIMITED = """
title = "x"
kind = "graphs"
seeds = [0]
methods = ["fedpc"]
[base]
rows = 30
[limits]
fedpc = { seeds = 2, max_values = { rows = 30 } }
"""


def small(**changed: object) -> Experiment:
    experiment = parse_experiment(
        "small",
        """
        title = "Small"
        kind = "graphs"
        seeds = "1:4"
        methods = ["oracle", "fedpc", "sort-by-variance"]
        [base]
        """
        + "\n".join(f"{name} = {value!r}" for name, value in CASE.items())
        + """
        [sweep]
        rows = [30, 60]
        """,
    )
    return replace(experiment, **changed)


def without_seconds(path: Path) -> list[list[str]]:
    rows = list(csv.reader(path.read_text().splitlines()))
    clock = rows[0].index("seconds")
    return [row[:clock] + row[clock + 1 :] for row in rows]


# Designs


@pytest.mark.parametrize("size", SIZES_OF)
@pytest.mark.parametrize("name", experiment_names())
def test_every_design_is_sound(name, size):
    experiment = load_experiment(name, size)
    jobs = experiment.jobs()
    assert jobs
    assert len({job.key for job in jobs}) == len(jobs)
    known = {"tests": COMPARED_TESTS, "principle": CRITERION_FORMS}.get(experiment.kind, {ORACLE_METHOD, *BASELINES})
    assert {*experiment.methods} <= {*known}
    assert {*experiment.limits} <= {*load_experiment(name).methods}
    assert min(experiment.seeds) >= 1000 or experiment.kind == "bytes"  # below, settings were chosen
    assert set(result_columns(experiment)) >= {*experiment.parameters, "method", "seed", "seconds", "failure"}
    assert len(set(result_columns(experiment))) == len(result_columns(experiment))


@pytest.mark.parametrize("name", experiment_names())
def test_smaller_designs_cost_less_and_keep_the_seeds(name):
    full, quick, smallest = (load_experiment(name, size) for size in SIZES_OF)
    assert len(full.jobs()) >= len(quick.jobs()) >= len(smallest.jobs())
    assert {*quick.seeds} <= {*full.seeds}
    assert {*quick.methods} <= {*full.methods}


def test_the_paper_s_sizes():
    for name, model in (("figure-3", "linear"), ("figure-4", "general")):
        experiment = load_experiment(name)
        assert experiment.base["model"] == (model,)
        assert experiment.sweeps["variables"] == (6, 12, 18, 24, 30)
        assert experiment.sweeps["clients"] == (2, 4, 8, 16, 32)
        assert experiment.sweeps["rows"] == (25, 50, 100, 200, 400)
        assert experiment.base["scale"] == ("raw", "standardised")
        assert len(experiment.seeds) >= 10
        assert "sort-by-variance" in experiment.methods


def test_limits_spare_slow_methods_only():
    experiment = small(limits=parse_experiment("x", LIMITED).limits)
    by_method = {
        method: {(job.seed, job.case["rows"]) for job in experiment.jobs() if job.method == method}
        for method in experiment.methods
    }
    assert by_method["fedpc"] == {(1, 30), (2, 30)}
    assert by_method["oracle"] == {(seed, rows) for seed in (1, 2, 3) for rows in (30, 60)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("title = 3 =", "not TOML"),
        ('title = "x"', "lacks base, kind"),
        ('title="x"\nkind="graphs"\nseeds=[1]\nmethods=[]\n[base]\n[sweep]\nrows=[1]', "varies 'rows'"),
        ('title="x"\nkind="graphs"\nseeds=[1]\nmethods=[]\ncolour=1\n[base]', "unknown key 'colour'"),
        ('title="x"\nkind="graphs"\nseeds=[1]\nmethods=[]\n[base]\n[limits]\na.b={seeds=1}', "quotation marks"),
        ('title="x"\nkind="graphs"\nseeds="9:3"\nmethods=[]\n[base]', "first:last"),
    ],
)
def test_a_wrong_file_is_refused_in_words(text, problem):
    with pytest.raises(SettingsError, match=problem):
        parse_experiment("mine", text)


def test_unknown_names_are_refused():
    with pytest.raises(SettingsError, match="no experiment 'figure-9'"):
        load_experiment("figure-9")
    with pytest.raises(SettingsError, match="no method 'magic'"):
        small().restrict(methods=["magic"])
    with pytest.raises(SettingsError, match="no kind"):
        find_kind("magic")


# Running


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
    def fails(self, prepared, case, name, seed):
        raise ZeroDivisionError("no\nluck")

    with monkeypatch.context() as broken:
        broken.setattr(type(SIMULATED_GRAPHS), "measure", fails)
        rows = run_experiment(small(methods=("fedpc",)), tmp_path / "rows.csv")
    assert {row["failure"] for row in rows} == {"ZeroDivisionError: no"}
    assert {row["skeleton_f1"] for row in rows} == {"0"}
    again = run_experiment(small(methods=("fedpc",)), tmp_path / "rows.csv")
    assert not any(row["failure"] for row in again)


def test_what_cannot_run_is_refused_before_the_first_job(tmp_path, monkeypatch):
    with pytest.raises(SettingsError, match="no method 'fedpcc'"):
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
    with runner._lock_results(tmp_path / "rows.csv"), pytest.raises(SettingsError, match="another command is writing"):
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


def test_time_left_is_told_once_every_method_has_run():
    jobs, rows = small().jobs(), [{"method": method, "seconds": "2"} for method in small().methods]
    assert runner._RemainingTime(rows[:-1], 2).left(jobs) is None
    assert runner._RemainingTime(rows, 2).left(jobs) == len(jobs)  # two seconds each, two at a time


# What is measured


def test_the_oracle_has_the_right_skeleton_and_changes():
    instance = SIMULATED_GRAPHS.prepare_instance(CASE, 5)
    found = SIMULATED_GRAPHS.measure(instance, CASE, ORACLE_METHOD, 5)
    assert found["skeleton_f1"] == found["changing_recall"] == found["changing_precision"] == 1
    assert SIMULATED_GRAPHS.failure_measures(instance)["skeleton_shd"] == len(instance.arrows)


@pytest.mark.parametrize("engine", ["fedcdh-evidence", "fedcdh-constraint"])
def test_our_engines_see_neither_scale_nor_order(engine):
    found = {
        (scale, order): SIMULATED_GRAPHS.measure(SIMULATED_GRAPHS.prepare_instance(case, 7), case, engine, 7)["graph"]
        for scale in ("raw", "standardised")
        for order in ("given", "shuffled")
        for case in [{**CASE, "scale": scale, "order": order}]
    }
    assert len({*found.values()}) == 1


def test_shuffled_clients_swap_names_and_keep_their_rows():
    given, shuffled = (
        SIMULATED_GRAPHS.prepare_instance({**CASE, "clients": 6, "order": order}, 3) for order in ("given", "shuffled")
    )
    assert list(given.tables) == list(shuffled.tables)
    assert {table.tobytes() for table in given.tables.values()} == {t.tobytes() for t in shuffled.tables.values()}
    assert [t.tobytes() for t in given.tables.values()] != [t.tobytes() for t in shuffled.tables.values()]


@pytest.mark.parametrize("seed", range(20))
def test_unequal_clients_have_as_many_rows_together(seed):
    instance = SIMULATED_GRAPHS.prepare_instance({**CASE, "clients": 5, "sizes": "unequal"}, seed)
    counts = [len(table) for table in instance.tables.values()]
    assert sum(counts) == 300
    assert min(counts) >= 10
    assert len({*counts}) > 1


def test_a_message_has_the_size_that_is_claimed():
    study = simulate(variables=6, clients=1, rows=50, changing=0, seed=1, names=[f"v{i:04d}" for i in range(1, 7)])
    plan = StudyPlan.from_tables({c: dict(zip(study.names, t.T, strict=True)) for c, t in study.tables.items()})
    ((client, table),) = study.tables.items()
    summary = summarize(dict(zip(study.names, table.T, strict=True)), plan, client)
    case = {"variables": 6, "rows": 50, "width": plan.family.width}
    claimed = COMMUNICATION_SIZE.measure(case, case, "fedcdh-evidence", 0)
    assert claimed["message"] == len(pack_summary(SummaryMessage(summary), plan))
    assert claimed["raw"] == table.nbytes


def test_the_post_nonlinear_data_are_what_they_claim():
    """x and y share a cause: z where x ⫫ y | z is to hold, w (not shown) where it is not."""
    for hypothesis, shared in (("dependent", False), ("independent", True)):
        case = {"hypothesis": hypothesis, "rows": 400, "clients": 10, "simulations": 30}
        tables = REJECTION_RATE.prepare_instance(case, 1000)
        assert all(table.shape == (400, 3) for table in tables)
        with_z = np.mean([stats.spearmanr(np.abs(t[:, 0]), np.abs(t[:, 2])).pvalue < 0.01 for t in tables])
        assert (with_z > 0.3) == shared


# Tables


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


def row(method: str, seed: int, value: float, **more: str) -> dict[str, str]:
    return {"method": method, "seed": str(seed), "f1": str(value), "rows": "5", "graph": "g", **more}


def test_duels_use_the_seeds_that_both_have():
    mine = [row("fedcdh-evidence", seed, 0.9) for seed in range(8)]
    theirs = [row("other", seed, 0.5) for seed in range(3, 12)]
    (met,) = compare_methods(ResultPanel((), "rows", ("5",), (*mine, *theirs)), "5", ["other", "absent"], "f1")
    assert (met.pairs, met.ours, met.theirs) == (5, pytest.approx(0.9), 0.5)


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


def test_the_printed_figures_are_whole():
    """Every row of the paper's three tables."""
    said = load_printed_figures()
    sizes = {(d, 10, 100) for d in (6, 12, 18, 24, 30)} | {(6, k, 100) for k in (2, 4, 8, 16, 32)}
    sizes |= {(6, 10, n) for n in (25, 50, 200, 400)}
    assert {tuple(line[:3]) for line in said["times"]} == {tuple(line[:3]) for line in said["wilcoxon"]} == sizes
    assert {len(line) for line in said["wilcoxon"]} == {15}
    assert [line[0] for line in said["features"]] == [5, 10, 15, 20, 25, 30]


# The smallest form of all


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
