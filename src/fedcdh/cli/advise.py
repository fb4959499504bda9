"""`fedcdh advise`: the smallest change that lets a summary leave."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import (
    AsJson,
    ClientName,
    ColumnMapFile,
    Decimal,
    Delimiter,
    Encoding,
    ExcludedColumns,
    MaxMissingShare,
    MissingMarkers,
    PolicyFile,
    Quiet,
    RecipeFiles,
    build_csv_style,
    open_data,
    parse_pairs,
    split_names,
)
from fedcdh.errors import DisclosureError, SettingsError

if TYPE_CHECKING:
    from fedcdh.data.readers import TableFiles
    from fedcdh.privacy.advice import Advice
    from fedcdh.privacy.release_context import ReleaseContext

FEW_COLUMNS = 2
"""Feature columns of a number that are tried where variables would have to be left out."""


@report_errors
def advise_command(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Plan (.json) or declaration (.toml), if there is one, then the data of this site.",
            metavar="[PLAN] DATA...",
            show_default=False,
        ),
    ],
    client: ClientName,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write with the lines for the declaration.", metavar="FILE"),
    ] = None,
    variables: Annotated[
        str | None,
        typer.Option(help="Columns of the study, without a plan.", metavar="A,B,...", show_default="all columns"),
    ] = None,
    exclude: ExcludedColumns = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="Kind of a column, such as ward=categorical for codes; may be repeated.", metavar="NAME=KIND"
        ),
    ] = None,
    recipes: RecipeFiles = None,
    feature_columns: Annotated[
        int | None,
        typer.Option(
            help="Feature columns of a number, without a plan; a summary with fewer needs fewer rows.",
            metavar="N",
            show_default="4",
        ),
    ] = None,
    column_map: ColumnMapFile = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: MissingMarkers = None,
    max_missing_share: MaxMissingShare = 0.5,
    policy: PolicyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find the smallest change that lets the summary leave.

    Recipes are tried against the policy of this site: groups of rare levels, logarithms, clips, and as the last resort
    the exclusion of a variable. Nothing leaves and nothing is recorded; earlier releases are not looked at. The lines
    for the declaration hold no counts and may be sent to the coordinator; the rest is for this site. The exit code is 0
    if the summary may leave as it is, and 7 if not.

    For example:

      fedcdh advise data.csv --client north

      fedcdh advise study.plan.json data.csv --client north -o north.recipes.toml
    """
    from fedcdh.cli._advice import describe_advice, show_advice
    from fedcdh.cli._outputs import refuse_input_as_output
    from fedcdh.cli._site_settings import load_policy
    from fedcdh.cli._site_setup import read_own_columns
    from fedcdh.privacy.release_context import ReleaseContext

    out = Output(quiet, as_json)
    first, data = _split_files(files)
    rules = load_policy(policy, False, out)
    context = ReleaseContext(client, rules, read_own_columns(column_map), max_missing_share=max_missing_share)
    with out.progress("advise") as advance:
        source = open_data(data, column_map, build_csv_style(delimiter, decimal, encoding, missing), advance)
        if output is not None:
            refuse_input_as_output(output, [*([first] if first else []), *(file.path for file in source.files)])
        columns = _Columns(split_names(variables), kind, recipes, feature_columns, exclude or ())
        advice = _advise(source, first, context, columns)
        narrow = _advise_with_few_columns(source, first, context, columns, advice)
    show_advice(out, advice)
    if narrow is not None:
        out.say(
            "",
            f"With {FEW_COLUMNS} feature columns of a number, {len(narrow.variables)} variables may leave. Ask the "
            f"coordinator for fedcdh plan --feature-columns {FEW_COLUMNS}; this command with --feature-columns "
            f"{FEW_COLUMNS} prints the lines.",
        )
    if output is not None and advice.changes:
        _write_recipes(out, output, advice)
    out.result({"client": client, **describe_advice(advice)})
    if not advice.may_leave:
        raise DisclosureError(
            f"The summary of {client} must not leave as it is. Expected the changes above, or more rows."
        )


class _Columns(NamedTuple):
    """The options that describe the columns where there is no plan."""

    names: list[str] | None
    kind: list[str] | None
    recipes: list[Path] | None
    features: int | None = None
    exclude: Sequence[str] = ()


def _split_files(files: list[str]) -> tuple[Path | None, list[str]]:
    """Return the plan or declaration that comes first, if there is one, and the data."""
    first = Path(files[0])
    if first.suffix.lower() not in (".json", ".toml") or first.name.lower().endswith(".query.toml"):
        return None, files
    if len(files) == 1:
        raise SettingsError(f"{first} was given without data. Name the data of this site after it.")
    return first, files[1:]


def _advise_with_few_columns(
    source: TableFiles, first: Path | None, context: ReleaseContext, columns: _Columns, advice: Advice
) -> Advice | None:
    """Return the advice for a plan with few feature columns, if more variables may leave then."""
    has_plan = first is not None and first.suffix.lower() == ".json"
    if has_plan or columns.features is not None or not (advice.changes.excluded or advice.remaining):
        return None
    narrow = _advise(source, first, context, columns._replace(features=FEW_COLUMNS))
    return narrow if not narrow.remaining and len(narrow.variables) > len(advice.variables) else None


def _advise(source: TableFiles, first: Path | None, context: ReleaseContext, columns: _Columns) -> Advice:
    """Return the advice for a plan, or for the site's own columns where there is none."""
    from fedcdh.cli._advice import declared_levels, read_declaration
    from fedcdh.cli._inputs import read_study
    from fedcdh.cli.profile import declared_columns, parse_kind
    from fedcdh.data.excluded_columns import exclude_columns
    from fedcdh.federation.planning.declaration import Declaration
    from fedcdh.privacy.advice import advise, advise_from_profile
    from fedcdh.summaries.features import Hermite
    from fedcdh.summaries.plan import DEFAULT_FAMILY
    from fedcdh.summaries.profiles import profile

    given = {name: parse_kind(name, text) for name, text in parse_pairs(columns.kind, "--kind", "NAME=KIND").items()}
    if first is not None and first.suffix.lower() == ".json":
        if columns.names or given or columns.recipes or columns.features or columns.exclude:
            raise SettingsError(
                "A plan has columns, kinds, recipes and features. Leave --variables, --exclude, --kind, --recipes and "
                "--feature-columns out."
            )
        study, signer = read_study(first)
        context.policy.check_plan(study.plan, signer, context.local_names)
        return advise(source, study.plan, context)
    declared = read_declaration(first, columns.recipes) or Declaration()
    names, kinds, recipes = declared_columns(declared, columns.names, given)
    kinds, recipes = exclude_columns(source, columns.exclude, kinds, recipes)
    found = profile(source, context.client, variables=names, kinds=kinds, recipes=recipes)
    family = DEFAULT_FAMILY if columns.features is None else Hermite(columns.features)
    return advise_from_profile(source, found, context, declared_levels(declared), family=family)


def _write_recipes(out: Output, output: Path, advice: Advice) -> None:
    from fedcdh._io.storage import write_atomically

    if output.exists() and b"[recipes." not in output.read_bytes()[:4096]:
        raise SettingsError(
            f"{output} exists already and is something else. It is not overwritten. Choose another name."
        )
    write_atomically(output, advice.changes.to_toml())
    out.say("", f"Wrote {output}. Send it to the coordinator: fedcdh plan ... --recipes {output.name}")
