"""Options that several commands share. Nothing heavy is imported here: `--help` reads this module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fedcdh.errors import SettingsError

if TYPE_CHECKING:
    from fedcdh.cli._console import RowProgress
    from fedcdh.data.readers import CsvStyle, TableFiles

MAX_THREADS = 256  # equals _runtime.cpu_count.MAX_WORKERS, which a test asserts
_CSV_PANEL = "CSV files"

Method = Literal["auto", "evidence", "constraint", "paper"]
Rounds = Literal["auto", "one", "residuals", "adaptive"]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
ClientName = Annotated[str, typer.Option("--client", help="Name of this site in the study.", metavar="NAME")]
DataFiles = Annotated[
    list[str],
    typer.Argument(
        help="CSV, Parquet, Arrow, Excel, SPSS, Stata or SAS files, queries, folders, or patterns in quotes.",
        metavar="DATA...",
    ),
]
PlanFile = Annotated[Path, typer.Argument(help="Plan file of the study.", metavar="PLAN")]
PlanKey = Annotated[
    str | None,
    typer.Option(help="Public key that must have signed the plan: a file, or ed25519:...", metavar="KEY"),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key",
        help="Private key to sign with.",
        metavar="FILE",
        show_default="$FEDCDH_KEY or site.key in ~/.config/fedcdh",
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        help="Disclosure policy of this site.",
        metavar="FILE",
        show_default="$FEDCDH_POLICY or policy.toml in ~/.config/fedcdh",
    ),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="Release ledger of this site.",
        metavar="FILE",
        show_default="$FEDCDH_LEDGER or releases.jsonl",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check policy and ledger; release and record nothing.")]
NoDisclosureControl = Annotated[
    bool,
    typer.Option(
        "--no-disclosure-control",
        help="For simulated or public data: skip the disclosure rules; the file says so.",
    ),
]
ColumnMapFile = Annotated[
    Path | None,
    typer.Option(
        "--column-map",
        help='Study names of your columns: TOML with "yours" = "study name", or CSV.',
        metavar="FILE",
    ),
]
MaxMissingShare = Annotated[
    float,
    typer.Option(help="Largest share of rows that may be left out for missing values.", metavar="SHARE"),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MAX_THREADS,
        help="Number of threads; the result is the same.",
        metavar="N",
        show_default="one per processor",
    ),
]
RecipeFiles = Annotated[
    list[Path] | None,
    typer.Option("--recipes", help="Recipes that a site asks for (fedcdh advise -o); may be repeated.", metavar="FILE"),
]
ExcludedColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", help="Column that is no variable, such as an identifier; may be repeated.", metavar="NAME"
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Separator of cells.",
        metavar="TEXT",
        show_default="a comma; a tab in .tsv and .txt",
        rich_help_panel=_CSV_PANEL,
    ),
]
Decimal = Annotated[
    str, typer.Option(help="Decimal mark: a point or a comma.", metavar="TEXT", rich_help_panel=_CSV_PANEL)
]
Encoding = Annotated[
    str, typer.Option(help="Text encoding, such as latin-1.", metavar="NAME", rich_help_panel=_CSV_PANEL)
]
MissingMarkers = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help="Cell that means no value; may be repeated.",
        metavar="TEXT",
        show_default="NA, NaN, NULL and the like",
        rich_help_panel=_CSV_PANEL,
    ),
]


def open_data(
    files: list[str], column_map: Path | None, style: CsvStyle, progress: RowProgress | None = None
) -> TableFiles:
    """Open a site's table files, with the study's names for their columns."""
    from fedcdh.cli._file_kinds import refuse_other_kind
    from fedcdh.data.readers import open_tables, read_column_map
    from fedcdh.errors import DataError

    for name in files:
        refuse_other_kind(Path(name), "a table or a folder", DataError)
    return open_tables(
        files, rename=read_column_map(column_map) if column_map else None, style=style, progress=progress
    )


def build_csv_style(delimiter: str | None, decimal: str, encoding: str, missing: list[str] | None) -> CsvStyle:
    """Return the CSV style that the options describe."""
    from fedcdh.data.readers import CsvStyle

    given: dict[str, Any] = {"decimal": decimal, "encoding": encoding}
    if delimiter is not None:
        given["delimiter"] = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if missing is not None:
        given["missing"] = ("", *missing)
    return CsvStyle(**given)


def parse_pairs(given: list[str] | None, option: str, expected: str) -> dict[str, str]:
    """Return NAME=VALUE pairs as a mapping.

    >>> parse_pairs(["ward=categorical"], "--kind", "NAME=KIND")
    {'ward': 'categorical'}
    """
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise SettingsError(f"{option} was given {text!r}. Write it as {option} {expected}.")
        found[name] = value
    return found


def split_names(text: str | None) -> list[str] | None:
    """Return names that are separated by commas.

    >>> split_names("age, bmi")
    ['age', 'bmi']
    """
    return None if text is None else [name.strip() for name in text.split(",")]
