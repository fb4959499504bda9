"""`fedcdh experiment`: the experiments of the paper, repeated."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet, split_names
from fedcdh.errors import DataError, MissingDependencyError

if TYPE_CHECKING:
    from fedcdh.evaluation.experiments.definition import Experiment
    from fedcdh.evaluation.experiments.row_files import ResultRow
    from fedcdh.evaluation.experiments.runner import JobProgress

SECONDS_BETWEEN_LINES = 20.0
"""Interval of progress lines."""


@report_errors
def experiment_command(
    name: Annotated[
        str, typer.Argument(help="Experiment, TOML file of your own, or one of: list, all, page.", metavar="NAME")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for result rows and figures.", metavar="FOLDER")
    ] = Path("results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer seeds and sizes, without the slow baselines: minutes.")
    ] = False,
    smallest: Annotated[bool, typer.Option("--smallest", help="Only check that everything runs: seconds.")] = False,
    seeds: Annotated[str | None, typer.Option(help="Other seeds.", metavar="FIRST:LAST+1")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods.", metavar="A,B,...")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes.", metavar="N")] = 1,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Begin no job after this time; continue with the same command.", metavar="N"),
    ] = None,
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="Merge the rows of another run of this experiment, and run nothing.", metavar="FILE"),
    ] = None,
    drop: Annotated[
        str | None, typer.Option(help="Leave out the rows of these methods, and run nothing.", metavar="A,B,...")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Repeat an experiment of the paper.

    All methods run on the same simulated studies. A run that was stopped continues when the same command is given
    again. "list" names the experiments, "all" runs them, "page" makes one page of all results in the folder.

    For example:

      fedcdh experiment list

      fedcdh experiment power --smallest --methods fedcdh-constraint
    """
    from fedcdh.evaluation.experiments.definition import experiment_names, load_experiment
    from fedcdh.evaluation.experiments.results_page import write_results_page

    out = Output(quiet, as_json)
    size = "smallest" if smallest else "quick" if quick else "full"
    if name == "list":
        _list_experiments(out)
    elif name == "page":
        folder = output.resolve()
        written = write_results_page(folder, folder.parent / f"{folder.name}.md", size)
        out.say(f"Wrote {written}.")
        out.result({"files": [str(written)]})
    elif merge or drop:
        _change_rows(load_experiment(name, size), output, merge or [], split_names(drop) or [], out)
    else:
        everything = name == "all"
        chosen = [load_experiment(one, size) for one in (experiment_names() if everything else (name,))]
        restricted = [_restrict(experiment, seeds, methods, everything) for experiment in chosen]
        files = [
            path
            for experiment in restricted
            if experiment.methods
            for path in _run_experiment(experiment, output, workers, minutes, out, skip=everything)
        ]
        out.result({"files": list(map(str, files))})


def _list_experiments(out: Output) -> None:
    from fedcdh.evaluation.experiments.definition import experiment_names, load_experiment

    found = [load_experiment(name) for name in experiment_names()]
    out.table(
        ("experiment", "title", "cases", "jobs"),
        [(experiment.name, experiment.title, len(experiment.cases()), len(experiment.jobs())) for experiment in found],
    )
    out.result({experiment.name: experiment.title for experiment in found})


def _restrict(experiment: Experiment, seeds: str | None, methods: str | None, everything: bool) -> Experiment:
    """Keep the seeds and methods that were asked for; of all experiments, each keeps the methods it has."""
    from fedcdh.evaluation.experiments.definition import parse_seeds

    wanted = split_names(methods)
    if wanted is not None and everything:
        wanted = [method for method in wanted if method in experiment.methods]
    return experiment.restrict(seeds=parse_seeds(seeds) if seeds is not None else None, methods=wanted)


def _change_rows(experiment: Experiment, folder: Path, merge: list[Path], drop: list[str], out: Output) -> None:
    """Leave out rows and merge others, in this order, and report how many."""
    from fedcdh.evaluation.experiments.row_files import drop_rows, merge_rows

    path = folder / f"{experiment.name}.csv"
    found = {"dropped": drop_rows(experiment, path, drop) if drop else 0}
    if merge:
        found |= merge_rows(experiment, path, merge)._asdict()
    out.say(f"{path}: rows {', '.join(f'{verb} {count}' for verb, count in found.items())}.")
    out.result({"file": str(path), **found})


def _run_experiment(
    experiment: Experiment, folder: Path, workers: int, minutes: float | None, out: Output, *, skip: bool
) -> list[Path]:
    from fedcdh.evaluation.experiments.figures import draw_figures
    from fedcdh.evaluation.experiments.runner import missing_methods, run_experiment

    path = folder / f"{experiment.name}.csv"
    for method, reason in (missing := missing_methods(experiment)).items():
        out.warn(f"{method} is left out: {reason}")
    experiment = experiment.restrict(methods=[method for method in experiment.methods if method not in missing])
    out.say(f"{experiment.title}: {len(experiment.jobs())} jobs, rows in {path}")
    try:
        rows = run_experiment(experiment, path, workers=workers, minutes=minutes, watch=_build_watch(out))
    except FileNotFoundError as absent:
        absence = (
            f"{experiment.name} needs {absent.filename}, which does not exist. Set FEDCDH_SHARED to the folder that "
            "holds data/."
        )
        if not skip:
            raise DataError(absence) from None
        out.warn(f"{absence} The experiment is skipped.")
        return []
    except KeyboardInterrupt:
        out.warn(f"stopped; {path} holds the rows so far, and the same command continues from there", always=True)
        raise
    if missing_rows := len(experiment.jobs()) - len(rows):
        out.warn(f"the time is over with {missing_rows} jobs left; the same command continues from there", always=True)
    _show_table(experiment, rows, out)
    written = [path]
    try:
        written += draw_figures(experiment, rows, folder)
    except MissingDependencyError as problem:
        out.warn(str(problem))
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
    """Print the first measure, methods by values, for each sweep."""
    from fedcdh.evaluation.experiments.details_page import TABLE_MEASURES
    from fedcdh.evaluation.experiments.tables import describe_setting, format_mean, methods_with_rows, split_panels

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
