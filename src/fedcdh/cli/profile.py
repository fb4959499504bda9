"""`fedcdh profile`: a description of a site's columns."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import (
    AsJson,
    ClientName,
    ColumnMapFile,
    DataFiles,
    Decimal,
    Delimiter,
    DryRun,
    Encoding,
    ExcludedColumns,
    KeyFile,
    LedgerFile,
    MissingMarkers,
    NoDisclosureControl,
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
    from fedcdh.data.recipe_file import Recipes
    from fedcdh.data.sources import ColumnKind
    from fedcdh.federation.planning.declaration import Declaration
    from fedcdh.privacy.disclosure.policy import Policy
    from fedcdh.summaries.column_profiles import ColumnProfile
    from fedcdh.summaries.profiles import Profile

KIND_NAMES: dict[str, ColumnKind] = {"continuous": "continuous", "categorical": "categorical"}


@report_errors
def profile_command(
    files: DataFiles,
    client: ClientName,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Profile to write.", metavar="FILE", show_default="NAME.profile.json"),
    ] = None,
    variables: Annotated[
        str | None,
        typer.Option(help="Columns of the study.", metavar="A,B,...", show_default="all columns"),
    ] = None,
    exclude: ExcludedColumns = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="Kind of a column, such as ward=categorical for codes; may be repeated.", metavar="NAME=KIND"
        ),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="Draft plan whose variables and kinds are followed.", metavar="FILE")
    ] = None,
    declare: Annotated[
        Path | None,
        typer.Option(help="Declaration whose variables, kinds and recipes are followed (TOML).", metavar="FILE"),
    ] = None,
    recipes: RecipeFiles = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="Use only rows without missing values, as a summary does.")
    ] = False,
    order_by: Annotated[
        str | None,
        typer.Option(
            help="Column with the time of each row, by which rows are sorted. It does not leave.", metavar="COLUMN"
        ),
    ] = None,
    column_map: ColumnMapFile = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: MissingMarkers = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    dry_run: DryRun = False,
    no_disclosure_control: NoDisclosureControl = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Describe the columns of this site.

    The profile holds counts, means, standard deviations, five quantiles and levels. It holds no rows and no extremes.
    Where neighbouring rows depend on each other, it also holds which share of the rows counts. What a summary would be
    refused for is shown here, and to nobody else.

    For example:

      fedcdh profile data.parquet --client north

      fedcdh profile "2024/*.csv" --client north --delimiter ";" --decimal , --kind ward=categorical

      fedcdh profile data.parquet --client north --dry-run
    """
    from fedcdh.cli._advice import declared_levels, foretell, read_declaration, suggest_recipes
    from fedcdh.cli._keys import load_signing_key
    from fedcdh.cli._outputs import check_replaceable, default_file_name, refuse_input_as_output, write_signed
    from fedcdh.cli._site_settings import announcing_ledger, load_policy, open_gate
    from fedcdh.cli._site_setup import read_own_columns
    from fedcdh.data.excluded_columns import exclude_columns
    from fedcdh.messages.profile_file import profile_to_json
    from fedcdh.messages.signing import key_fingerprint
    from fedcdh.privacy.releases import ReleaseContext, release_profile
    from fedcdh.summaries.profiles import profile

    out = Output(quiet, as_json)
    target = output or default_file_name(client, ".profile.json")
    rules, signing = load_policy(policy, no_disclosure_control, out), load_signing_key(key, out)
    gate = open_gate(ledger, signing, dry_run=dry_run)
    own = read_own_columns(column_map)
    declared = read_declaration(declare, recipes)
    names, kinds, chosen, draft = _choose_columns(variables, kind, plan, declared, rules, own)
    with announcing_ledger(gate, out), out.progress("profile") as advance:
        source = open_data(files, column_map, build_csv_style(delimiter, decimal, encoding, missing), advance)
        refuse_input_as_output(target, [file.path for file in source.files])
        check_replaceable(target, "profile")
        kinds, chosen = exclude_columns(source, exclude or (), kinds, chosen)
        context = ReleaseContext(client, rules, own, gate)
        try:
            message = release_profile(
                source,
                context,
                variables=names,
                kinds=kinds,
                draft=draft,
                complete=complete,
                order_by=order_by,
                key=signing,
                recipes=chosen,
            )
        except DisclosureError:
            found = profile(source, client, variables=names, kinds=kinds, order_by=order_by, recipes=chosen)
            suggest_recipes(out, source, found, context, declared_levels(declared))
            raise
    content, found = profile_to_json(message).encode("utf-8"), message.profile
    _show_profile(out, found)
    _warn_of_duplicates(out, source, found)
    if dry_run:
        say_may_leave(out, "profile", found.client, found.rows)
        foretell(out, source, found, context, declared_levels(declared))
        return
    out.say("", f"{found.rows} rows were read. The profile has {len(content)} bytes; nothing else leaves this site.")
    written = write_signed(target, content, "profile", signing)
    out.say_written(written, f", signed by {key_fingerprint(signing.public)}" if signing else "")
    foretell(out, source, found, context, declared_levels(declared))
    out.result({"client": client, "rows": found.rows, "bytes": len(content), "files": list(map(str, written))})


def _choose_columns(
    variables: str | None,
    kind: list[str] | None,
    plan: Path | None,
    declared: Declaration | None,
    policy: Policy,
    own: dict[str, str],
) -> tuple[list[str] | None, dict[str, ColumnKind], Recipes, str | None]:
    """Return the columns of the profile, their kinds and recipes, and the fingerprint of the plan that was followed."""
    from fedcdh.cli._inputs import read_study
    from fedcdh.data.recipe_file import NO_RECIPES, Recipes

    names = split_names(variables)
    kinds = {name: parse_kind(name, text) for name, text in parse_pairs(kind, "--kind", "NAME=KIND").items()}
    if plan is not None and declared is not None:
        raise SettingsError(
            "A draft plan was given beside a declaration or recipes. The plan has both. Leave one of them out."
        )
    if declared is not None:
        return (*declared_columns(declared, names, kinds), None)
    if plan is None:
        return names, kinds, NO_RECIPES, None
    study, signer = read_study(plan)
    policy.check_plan(study.plan, signer, own)
    names = list(study.plan.names) if names is None else names
    kinds = {name: found for name, found in study.plan.kinds.items() if name in names} | kinds
    recipes = Recipes({name: one for name, one in study.plan.recipes.items() if name in names})
    return names, kinds, recipes, study.plan.fingerprint


def declared_columns(
    declared: Declaration, names: list[str] | None, kinds: dict[str, ColumnKind]
) -> tuple[list[str] | None, dict[str, ColumnKind], Recipes]:
    """Return the columns that a declaration names, their kinds and recipes; options take precedence."""
    from fedcdh.data.recipe_file import Recipes

    listed = names if names is not None else [one.name for one in declared.variables] or None
    known = {one.name: one.kind for one in declared.variables if one.kind is not None}
    kinds = {name: found for name, found in {**known, **kinds}.items() if listed is None or name in listed}
    recipes = declared.recipes
    chosen = {name: one for name, one in recipes.by_variable.items() if listed is None or name in listed}
    return listed, kinds, Recipes(chosen, recipes.excluded)


def parse_kind(name: str, text: str) -> ColumnKind:
    """Return the kind of a column that an option names."""
    if text not in KIND_NAMES:
        raise SettingsError(f"--kind gives {name!r} the kind {text!r}. Choose one of {', '.join(KIND_NAMES)}.")
    return KIND_NAMES[text]


def say_may_leave(out: Output, what: str, client: str, rows: int) -> None:
    """Report that a dry run found nothing against a release."""
    out.say(f"Policy and ledger of this site admit this {what}. Nothing was written or recorded.")
    out.result({"client": client, "rows": rows, "may_leave": True, "files": []})


def _show_profile(out: Output, found: Profile) -> None:
    from fedcdh.cli._descriptions import describe_shares

    rows = [(name, column.kind, column.missing, _describe_column(column)) for name, column in found.columns.items()]
    out.table(("variable", "kind", "missing", "mean ± standard deviation, or levels"), rows)
    for line in describe_shares(found):
        out.say(line)


def _warn_of_duplicates(out: Output, source: TableFiles, found: Profile) -> None:
    """Name columns with the same values in every row; nothing can tell which of them is the cause."""
    from fedcdh._io.text import abbreviate_list
    from fedcdh.summaries.duplicate_columns import find_duplicate_columns

    for kept, *copies in find_duplicate_columns(source, found):
        left = " ".join(f"--exclude {shlex.quote(name)}" for name in copies)
        out.warn(
            f"{abbreviate_list(map(repr, copies))} and {kept!r} have the same value in every row. If they are one "
            f"measurement, leave the copy out: {left}",
            always=True,
        )


def _describe_column(column: ColumnProfile) -> str:
    if not column.count:
        return "no values"
    return f"{column.mean:.4g} ± {column.scale:.4g}" if column.kind == "continuous" else ", ".join(column.levels)
