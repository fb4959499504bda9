"""Options that several commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedcdh._runtime.cpu_count import MAX_WORKERS
from fedcdh.cli._console import RowProgress
from fedcdh.data.readers import MISSING_VALUES, CsvStyle, TableFiles, open_tables, read_column_map
from fedcdh.errors import SettingsError

_CSV_PANEL = "How CSV files are written"

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
ClientName = Annotated[str, typer.Option(help="The name of this site in the study.", metavar="NAME")]
DataFiles = Annotated[
    list[str], typer.Argument(help="CSV (also .gz), Parquet or Arrow files, folders or patterns.", metavar="DATA...")
]
PlanFile = Annotated[Path, typer.Argument(help="The study's plan file.", metavar="PLAN")]
PlanKey = Annotated[
    str | None,
    typer.Option(help="The public key that has to have signed the plan: a file, or ed25519:...", metavar="KEY"),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key",
        help="The private key to sign with; else $FEDCDH_KEY, the one in your settings folder, or site.key here.",
        metavar="FILE",
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        help="The site's policy; else $FEDCDH_POLICY, the one in your settings folder, or policy.toml here.",
        metavar="FILE",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--check", help="Ask policy and ledger whether it may leave; write and note nothing.")
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="The list of all that left this site; else $FEDCDH_LEDGER, or releases.jsonl in your settings folder.",
        metavar="FILE",
    ),
]
NoDisclosureControl = Annotated[
    bool,
    typer.Option(
        "--research",
        help="Simulated or public data: no smallest numbers of rows or people; a summary says so.",
    ),
]
ColumnMapFile = Annotated[
    Path | None,
    typer.Option("--map", help='Names of columns: TOML with "theirs" = "study\'s", or CSV.', metavar="FILE"),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MAX_WORKERS,
        help="Threads that share the work; else one for each processor that may be used. The result is the same.",
        metavar="N",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="Between cells; else a comma, in .tsv files a tab.", rich_help_panel=_CSV_PANEL)
]
Decimal = Annotated[str, typer.Option(help="In numbers: a point, or a comma.", rich_help_panel=_CSV_PANEL)]
Encoding = Annotated[str, typer.Option(help="Of the letters, such as latin-1.", rich_help_panel=_CSV_PANEL)]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help=f"A cell that means no value; may be repeated; else {', '.join(filter(None, MISSING_VALUES))} and empty.",
        rich_help_panel=_CSV_PANEL,
        metavar="TEXT",
    ),
]


def open_data(
    files: list[str],
    renames: Path | None,
    style: CsvStyle,
    progress: RowProgress | None = None,
) -> TableFiles:
    """The site's files, with the study's names for their columns."""
    return open_tables(files, rename=read_column_map(renames) if renames else None, style=style, progress=progress)


def build_csv_style(delimiter: str | None, decimal: str, encoding: str, missing: list[str] | None) -> CsvStyle:
    """How CSV files are written, from options; what is not given is as usual."""
    given: dict[str, Any] = {"decimal": decimal, "encoding": encoding}
    if delimiter is not None:
        given["delimiter"] = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if missing is not None:
        given["missing"] = ("", *missing)
    return CsvStyle(**given)


def parse_pairs(given: list[str] | None, option: str, expected: str) -> dict[str, str]:
    """NAME=VALUE, as often as it was given."""
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise SettingsError(f"{option} {text}: expected {expected}")
        found[name] = value
    return found


def refuse_input_as_output(output: Path, inputs: list[Path]) -> None:
    """Refuses to write where something is read from."""
    for path in inputs:
        if path.exists() and output.exists() and path.samefile(output):
            raise SettingsError(f"-o {output} would overwrite what is read; choose another name")
