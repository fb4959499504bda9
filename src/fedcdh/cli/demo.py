"""Trying it out: a built-in study, simulated ones as files, and scores against the truth."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from fedcdh._io.storage import write_atomically
from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet
from fedcdh.discovery.api import discover
from fedcdh.errors import MissingDependencyError, SettingsError
from fedcdh.evaluation.demo import hospital_study
from fedcdh.evaluation.simulation import AUTHORS, PAPER, MechanismModel, simulate
from fedcdh.graphs.metrics import Score, compare, compare_changing
from fedcdh.reporting.result_files import read_graph_claims, write_result


@report_errors
def demo_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for the report.")] = Path("fedcdh-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other patients.")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find the causal graph of a simulated study of five hospitals, and hold it against the truth.

    Example:

      fedcdh demo
    """
    out = Output(quiet, as_json)
    study = hospital_study(seed)
    out.say(textwrap.fill(study.description, 100), "")
    result = discover(study.columns(), domain="hospital")
    out.say(str(result), "")
    score = compare(result.graph.arrows, study.arrows, result.graph.lines).skeleton
    changing = compare_changing(result.changing, study.changing)
    out.say(
        f"Against the truth of this simulation: {_format_score(score)} edges, {_format_score(changing)} changing mechanisms."
    )
    written = list(write_result(result, output))
    try:
        written.append(result.report(output / "report.html"))
        out.say(
            f"The report: {output / 'report.html'}, to be opened in a browser; {output / 'edges.csv'} has every pair."
        )
    except MissingDependencyError as lacking:
        out.say(f"The report: {output / 'graph.txt'}, and {output / 'edges.csv'} with the evidence for every pair.")
        out.warn(str(lacking))
    out.result({"files": list(map(str, written)), "edges": _to_document(score), "changing": _to_document(changing)})


@report_errors
def simulate_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder: one folder per site, and truth.json.")],
    model: Annotated[str, typer.Option(help=f"The mechanisms: {' or '.join(get_args(MechanismModel))}.")] = "linear",
    variables: Annotated[int, typer.Option(min=1, help="How many variables.")] = 6,
    sites: Annotated[
        str | None, typer.Option(help="Names of the sites, separated by commas.", metavar="A,B,...")
    ] = None,
    clients: Annotated[int, typer.Option(min=1, help="How many sites, where they have no names.")] = 3,
    rows: Annotated[str, typer.Option(help="Rows of each site: one number, or one for each.", metavar="N,...")] = "500",
    edges: Annotated[int | None, typer.Option(min=0, help="How many edges; else as many as variables.")] = None,
    changing: Annotated[int, typer.Option(min=0, help="How many mechanisms differ between sites.")] = 2,
    dialect: Annotated[str, typer.Option(help="The paper's text (paper) or its authors' program (authors).")] = "paper",
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same files.")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a synthetic study: a folder with data.csv for every site, and truth.json.

    Example:

      fedcdh simulate -o study --sites north,south,coast --rows 400,700,1200 --seed 7
    """
    out = Output(quiet, as_json)
    names = [name.strip() for name in sites.split(",")] if sites is not None else None
    if names is not None and (len(set(names)) != len(names) or not all(map(_is_folder_name, names))):
        raise SettingsError(f"--sites {sites}: expected different names that can be names of folders")
    if dialect not in (dialects := {"paper": PAPER, "authors": AUTHORS}):
        raise SettingsError(f"--dialect {dialect}: choose one of {', '.join(dialects)}")
    count = len(names) if names is not None else clients
    try:
        study = simulate(
            model,  # type: ignore[arg-type]  # refused there if it is none
            variables=variables,
            clients=count,
            rows=_parse_rows(rows, count),
            edges=edges,
            changing=changing,
            seed=seed,
            dialect=dialects[dialect],
        )
    except ValueError as problem:
        raise SettingsError(str(problem)) from None
    written = []
    for name, table in zip(names or study.tables, study.tables.values(), strict=True):
        write_atomically(output / name / "data.csv", to_csv(study.names, table.tolist()))
        written.append(output / name / "data.csv")
    truth = {"edges": sorted(study.arrows), "nodes": study.names, "changing": sorted(study.changing)}
    write_atomically(output / "truth.json", json.dumps(truth, indent=2, sort_keys=True) + "\n")
    out.say(*(f"Wrote {path} ({len(table)} rows)" for path, table in zip(written, study.tables.values(), strict=True)))
    out.say(f"Wrote {output / 'truth.json'} ({len(study.arrows)} edges, {len(study.changing)} changing mechanisms)")
    out.result({"files": [*map(str, written), str(output / "truth.json")], **truth})


@report_errors
def compare_command(
    result: Annotated[Path, typer.Argument(help="A result's folder, or its result.json.", metavar="RESULT")],
    truth: Annotated[Path, typer.Argument(help="truth.json: edges and changing variables.", metavar="TRUTH")],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Score a result against a truth: which edges were found, which way they point, which mechanisms change.

    Example:

      fedcdh compare result/ study/truth.json
    """
    out = Output(quiet, as_json)
    found, true = read_graph_claims(result), read_graph_claims(truth)
    try:
        scores = compare(found.arrows, true.arrows, found.lines)
    except ValueError as problem:
        raise SettingsError(f"these cannot be compared: {problem}") from None
    rows = {"edges": scores.skeleton, "directions": scores.direction}
    if found.changing is not None and true.changing is not None:
        rows["changing"] = compare_changing(found.changing, true.changing)
    heads = ("", "right", "claimed", "true", "precision", "recall", "F1", "distance")
    out.table(
        heads,
        [(name, s.correct, s.claimed, s.true, s.precision, s.recall, s.f1, s.shd) for name, s in rows.items()],
    )
    out.result({name: _to_document(score) for name, score in rows.items()})


def _format_score(score: Score) -> str:
    return f"{score.correct} of {score.true} (and {score.claimed - score.correct} false)"


def _to_document(score: Score) -> dict[str, Any]:
    names = ("correct", "claimed", "true", "precision", "recall", "f1", "shd")
    return {name: getattr(score, name) for name in names}


def _parse_rows(text: str, sites: int) -> int | list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise SettingsError(f"--rows {text}: expected whole numbers, separated by commas") from None
    if len(numbers) not in (1, sites):
        raise SettingsError(f"--rows {text}: expected one number, or one for each of the {sites} sites")
    return numbers[0] if len(numbers) == 1 else numbers


def _is_folder_name(name: str) -> bool:
    return bool(name) and name not in (".", "..") and Path(name).name == name and name != "truth.json"


def to_csv(names: Iterable[str], rows: Iterable[Iterable[float]]) -> str:
    """Rows as CSV, every number to its last digit."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([repr(value) for value in row] for row in rows)
    return out.getvalue()
