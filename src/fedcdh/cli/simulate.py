"""`fedcdh simulate`: a simulated study as files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, Quiet, split_names
from fedcdh.errors import SettingsError

Mechanisms = Literal["linear", "general"]
Dialect = Literal["paper", "authors"]


@report_errors
def simulate_command(
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Folder to write: one folder per site, and truth.json.", metavar="FOLDER"),
    ],
    model: Annotated[Mechanisms, typer.Option(help="Mechanisms: linear or general.", metavar="MODEL")] = "linear",
    variables: Annotated[int, typer.Option(min=1, help="Number of variables.", metavar="N")] = 6,
    sites: Annotated[str | None, typer.Option(help="Names of the sites.", metavar="A,B,...")] = None,
    clients: Annotated[int, typer.Option(min=1, help="Number of sites, if they have no names.", metavar="N")] = 3,
    rows: Annotated[
        str, typer.Option(help="Rows of each site: one number, or one per site.", metavar="N[,N,...]")
    ] = "500",
    edges: Annotated[
        int | None, typer.Option(min=0, help="Number of edges.", metavar="N", show_default="the number of variables")
    ] = None,
    changing: Annotated[
        int, typer.Option(min=0, help="Number of mechanisms that differ between sites.", metavar="N")
    ] = 2,
    dialect: Annotated[
        Dialect,
        typer.Option(help="Simulate as the text of the paper (paper) or its program (authors).", metavar="NAME"),
    ] = "paper",
    seed: Annotated[int, typer.Option(min=0, help="Random seed; the same seed gives the same files.", metavar="N")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a simulated study.

    Every site gets a folder with data.csv. truth.json holds the true graph.

    For example:

      fedcdh simulate -o study --sites north,south,coast --rows 400,700,1200 --seed 7
    """
    from fedcdh._io.storage import write_atomically
    from fedcdh.evaluation.simulation import AUTHORS, PAPER, simulate

    out, names = Output(quiet, as_json), split_names(sites)
    if names is not None and (len(set(names)) != len(names) or not all(map(_is_folder_name, names))):
        raise SettingsError(
            f"--sites was given {sites}. Expected different names that can be names of folders, separated by commas."
        )
    count = len(names) if names is not None else clients
    try:
        study = simulate(
            model,
            variables=variables,
            clients=count,
            rows=_parse_rows(rows, count),
            edges=edges,
            changing=changing,
            seed=seed,
            dialect={"paper": PAPER, "authors": AUTHORS}[dialect],
        )
    except ValueError as problem:
        if isinstance(problem, SettingsError):
            raise
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


def _parse_rows(text: str, sites: int) -> int | list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise SettingsError(f"--rows was given {text}. Expected whole numbers, separated by commas.") from None
    if len(numbers) not in (1, sites):
        raise SettingsError(f"--rows was given {text}. Expected one number, or one for each of the {sites} sites.")
    return numbers[0] if len(numbers) == 1 else numbers


def _is_folder_name(name: str) -> bool:
    return bool(name) and name not in (".", "..") and Path(name).name == name and name != "truth.json"


def to_csv(names: Iterable[str], rows: Iterable[Iterable[float]]) -> str:
    """Return rows as CSV, every number to its last digit."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([repr(value) for value in row] for row in rows)
    return out.getvalue()
