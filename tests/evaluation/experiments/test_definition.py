"""Designs of experiments: sound, smaller in their smaller forms, and refused in words where they are wrong."""

from __future__ import annotations

from collections import Counter

import pytest
from small_experiments import small

from fedcdh.errors import SettingsError
from fedcdh.evaluation.baselines import BASELINES
from fedcdh.evaluation.experiments.definition import EVERY_METHOD, experiment_names, load_experiment, parse_experiment
from fedcdh.evaluation.experiments.kinds import find_kind
from fedcdh.evaluation.experiments.kinds.dependent_changes import DIRECTING_METHODS
from fedcdh.evaluation.experiments.kinds.graph_recovery import ORACLE_METHOD
from fedcdh.evaluation.experiments.kinds.independent_change import CRITERION_FORMS
from fedcdh.evaluation.experiments.kinds.rejection_rates import COMPARED_TESTS
from fedcdh.evaluation.experiments.row_files import result_columns

SIZES_OF = ("full", "quick", "smallest")


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


@pytest.mark.parametrize("size", SIZES_OF)
@pytest.mark.parametrize("name", experiment_names())
def test_every_design_is_sound(name, size):
    experiment = load_experiment(name, size)
    jobs = experiment.jobs()
    assert jobs
    assert len({job.key for job in jobs}) == len(jobs)
    own = {"tests": COMPARED_TESTS, "principle": CRITERION_FORMS, "dependent": DIRECTING_METHODS}
    known = own.get(experiment.kind, {ORACLE_METHOD, *BASELINES})
    assert {*experiment.methods} <= {*known}
    assert {*experiment.limits} - {EVERY_METHOD} <= {*load_experiment(name).methods}
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


def test_limits_of_every_method_hold_beside_its_own():
    text = """
title = "x"
kind = "graphs"
seeds = [0, 1, 2]
methods = ["fedpc", "oracle"]
[base]
rows = 30
[sweep]
rows = [30, 60]
[limits]
every = [{ max_values = { rows = 30 } }, { seeds = 1 }]
fedpc = { seeds = 2 }
"""
    jobs = [(job.method, job.case["rows"], job.seed) for job in parse_experiment("x", text).jobs()]
    large = [("fedpc", 60, 0), ("oracle", 60, 0)]
    assert sorted(jobs) == sorted(
        [("fedpc", 30, 0), ("fedpc", 30, 1), ("oracle", 30, 0), ("oracle", 30, 1), ("oracle", 30, 2), *large]
    )


def test_limits_name_the_cases_that_a_method_is_made_for():
    text = LIMITED.replace("max_values = { rows = 30 }", "values = { rows = [60, 90] }")
    experiment = small(limits=parse_experiment("x", text).limits)
    done = {(job.seed, job.case["rows"]) for job in experiment.jobs() if job.method == "fedpc"}
    assert done == {(1, 60), (2, 60)}


def test_the_paper_s_rivals_are_in_every_figure():
    """FedPC has the seeds that ours has; the slow ones have some seeds of every case up to 12 variables."""
    for name in ("figure-3", "figure-4", "dense", "fmri", "stocks"):
        experiment = load_experiment(name)
        jobs = Counter((job.method, tuple(job.case.values())) for job in experiment.jobs())
        slow = {"notears-admm", "feddag"} | ({"notears-mlp-admm"} if name != "figure-3" else set())
        for case in experiment.cases():
            here = tuple(case.values())
            assert jobs["fedpc", here] == jobs["fedcdh", here] > 0
            if case.get("variables", 0) <= 12:
                assert all(jobs[method, here] for method in slow), f"{name}: {case}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("title = 3 =", "not TOML"),
        ('title = "x"', "lacks base, kind"),
        ('title="x"\nkind="graphs"\nseeds=[1]\nmethods=[]\n[base]\n[sweep]\nrows=[1]', "varies 'rows'"),
        ('title="x"\nkind="graphs"\nseeds=[1]\nmethods=[]\ncolour=1\n[base]', "unknown key 'colour'"),
        ('title="x"\nkind="graphs"\nseeds=[1]\nmethods=[]\n[base]\n[limits]\na.b={seeds=1}', "quotation marks"),
        (
            'title="x"\nkind="graphs"\nseeds=[1]\nmethods=["a"]\n[base]\nrows=1\n[limits]\na={at_most={rows=9}}',
            "limits 'a' by 'at_most'; expected seeds, max_values or values",
        ),
        (
            'title="x"\nkind="graphs"\nseeds=[1]\nmethods=["a"]\n[base]\nrows=1\n[limits]\na={max_values={d=9}}',
            "limits 'd', which has no value",
        ),
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
