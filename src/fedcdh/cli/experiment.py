"""Repeating the paper's experiments."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet
from fedcdh.errors import DataError, MissingDependencyError
from fedcdh.evaluation.experiments.definition import Experiment, experiment_names, load_experiment, parse_seeds
from fedcdh.evaluation.experiments.figures import draw_figures
from fedcdh.evaluation.experiments.results_page import TABLE_MEASURES, write_results_page
from fedcdh.evaluation.experiments.runner import JobProgress, ResultRow, missing_methods, run_experiment
from fedcdh.evaluation.experiments.tables import describe_setting, format_mean, methods_with_rows, split_panels

SECONDS_BETWEEN_LINES = 20.0
"""Seconds between two lines about progress, where nobody watches a terminal."""


@report_errors
def experiment_command(
    name: Annotated[
        str, typer.Argument(help="An experiment, a TOML file of yours, list, all, or page.", metavar="NAME")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for rows and figures.")] = Path("results"),
    quick: Annotated[bool, typer.Option(help="Fewer seeds and sizes, without the slow rivals: minutes.")] = False,
    smallest: Annotated[bool, typer.Option(help="Only to see that everything runs: seconds.")] = False,
    seeds: Annotated[str | None, typer.Option(help="Other seeds.", metavar="FIRST:LAST+1")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods.", metavar="A,B,...")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that work at the same time.")] = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Repeat an experiment of the paper, with our engines and their rivals on the same instances.

    A run that was stopped goes on where it was when the same command is given again. NAME "all" runs every experiment;
    "page" makes one page of all results in the folder, beside it; "list" says what there is.

    Examples:

      fedcdh experiment figure-3 --quick --workers 2

      fedcdh experiment power --methods fedcdh-constraint,rcit --seeds 1000:1005
    """
    out = Output(quiet, as_json)
    size = "smallest" if smallest else "quick" if quick else "full"
    if name == "list":
        _list_experiments(out)
    elif name == "page":
        folder = output.resolve()
        written = write_results_page(folder, folder.parent / f"{folder.name}.md", size)
        out.say(f"Wrote {written}.")
        out.result({"files": [str(written)]})
    else:
        everything = name == "all"
        chosen = [load_experiment(one, size) for one in (experiment_names() if everything else (name,))]
        asked = [_restrict(experiment, seeds, methods, everything) for experiment in chosen]
        made = [
            _run_experiment(experiment, output, workers, out, skip=everything)
            for experiment in asked
            if experiment.methods
        ]
        out.result({"files": [str(path) for paths in made for path in paths]})


def _list_experiments(out: Output) -> None:
    found = [load_experiment(name) for name in experiment_names()]
    out.table(
        ("experiment", "what", "cases", "jobs"),
        [(experiment.name, experiment.title, len(experiment.cases()), len(experiment.jobs())) for experiment in found],
    )
    out.result({experiment.name: experiment.title for experiment in found})


def _restrict(experiment: Experiment, seeds: str | None, methods: str | None, everything: bool) -> Experiment:
    """The seeds and methods asked for; where all experiments are run, those that this one has."""
    wanted = [method.strip() for method in methods.split(",")] if methods is not None else None
    if wanted is not None and everything:
        wanted = [method for method in wanted if method in experiment.methods]
    return experiment.restrict(seeds=parse_seeds(seeds) if seeds is not None else None, methods=wanted)


def _run_experiment(experiment: Experiment, folder: Path, workers: int, out: Output, *, skip: bool) -> list[Path]:
    path = folder / f"{experiment.name}.csv"
    for method, why in (lacking := missing_methods(experiment)).items():
        out.warn(f"{method} is left out: {why}")
    experiment = experiment.restrict(methods=[method for method in experiment.methods if method not in lacking])
    out.say(f"{experiment.title}: {len(experiment.jobs())} jobs, rows in {path}")
    try:
        rows = run_experiment(experiment, path, workers=workers, watch=_build_watch(out))
    except FileNotFoundError as absent:
        absence = f"{experiment.name}: {absent.filename} is not there; FEDCDH_SHARED names the folder that holds data/"
        if not skip:
            raise DataError(absence) from None
        out.warn(f"{absence}. Skipped.")
        return []
    except KeyboardInterrupt:
        out.warn(f"stopped; the rows so far are in {path}: the same command goes on from there", always=True)
        raise
    _show_table(experiment, rows, out)
    written = [path]
    try:
        written += draw_figures(experiment, rows, folder)
    except MissingDependencyError as lacking_library:
        out.warn(str(lacking_library))
    out.say(f"Wrote {', '.join(map(str, written))}.", "")
    return written


def _build_watch(out: Output) -> JobProgress:
    last = time.monotonic()

    def watch(done: int, jobs: int, left: float | None) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            remaining = "" if left is None else f", about {_format_duration(left)} left"
            out.warn(f"{done} of {jobs} jobs done{remaining}")

    return watch


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _show_table(experiment: Experiment, rows: Sequence[ResultRow], out: Output) -> None:
    """The first measure, methods × values, for each sweep: what one looks at first."""
    measure = TABLE_MEASURES[experiment.kind][0]
    for panel in split_panels(experiment, rows):
        out.say(f"{measure.replace('_', ' ')}, {describe_setting((*panel.setting, ('', 'mean ± sd over seeds')))}")
        lines = [
            (method, *(format_mean(panel.mean(method, value, measure)) for value in panel.values))
            for method in methods_with_rows(experiment, panel.rows)
        ]
        out.table((f"{panel.varied} =", *panel.values), lines)
    if failed := sum(bool(row["failure"]) for row in rows):
        out.warn(f"{failed} of {len(rows)} jobs failed; the column failure says how")
