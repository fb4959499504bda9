"""`fedcdh demo`: a simulated study of five hospitals, analysed and scored."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet
from fedcdh.cli.compare import score_document
from fedcdh.errors import MissingDependencyError

if TYPE_CHECKING:
    from fedcdh.graphs.metrics import Score


@report_errors
def demo_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the report.", metavar="FOLDER")] = Path(
        "fedcdh-demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the simulated patients.", metavar="N")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Analyse a simulated study of five hospitals.

    The result is compared with the true graph of the simulation.

    For example:

      fedcdh demo
    """
    from fedcdh.cli._single_sites import say_hinges
    from fedcdh.discovery.api import discover
    from fedcdh.evaluation.demo import hospital_study
    from fedcdh.graphs.metrics import compare, compare_changing
    from fedcdh.reporting.result_files import write_result

    out = Output(quiet, as_json)
    study = hospital_study(seed)
    out.say(textwrap.fill(study.description, 100), "")
    result = discover(study.columns(), domain="hospital")
    out.say(str(result), "")
    stability = say_hinges(out, result)
    score = compare(result.graph.arrows, study.arrows, result.graph.lines).skeleton
    changing = compare_changing(result.changing, study.changing)
    out.say(
        f"Compared with the truth of this simulation: {_format_score(score)} edges, {_format_score(changing)} changing "
        "mechanisms."
    )
    written = list(write_result(result, output, stability))
    try:
        written.append(result.report(output / "report.html", stability=stability))
        out.say(f"The report is {output / 'report.html'}; open it in a browser. {output / 'edges.csv'} has every pair.")
    except MissingDependencyError as problem:
        out.say(f"The report is {output / 'graph.txt'}. {output / 'edges.csv'} has the evidence for every pair.")
        out.warn(str(problem))
    out.result({"files": list(map(str, written)), "edges": score_document(score), "changing": score_document(changing)})


def _format_score(score: Score) -> str:
    return f"{score.correct} of {score.true} (and {score.claimed - score.correct} false)"
