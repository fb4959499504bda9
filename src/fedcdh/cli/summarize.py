"""What a site does: describe its columns, and send its one message."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh._runtime.cpu_count import default_workers
from fedcdh.cli._bootstrap_files import find_replicates, refuse_replicate_name, replicate_paths, write_with_replicates
from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._inputs import (
    check_replaceable,
    default_file_name,
    load_policy,
    load_signing_key,
    open_gate,
    read_study,
    write_signed,
)
from fedcdh.cli._options import (
    AsJson,
    ClientName,
    ColumnMapFile,
    DataFiles,
    Decimal,
    Delimiter,
    DryRun,
    Encoding,
    KeyFile,
    LedgerFile,
    Missing,
    NoDisclosureControl,
    PlanFile,
    PolicyFile,
    Quiet,
    Workers,
    build_csv_style,
    open_data,
    parse_pairs,
    refuse_input_as_output,
)
from fedcdh.cli._site_setup import read_own_columns, set_up_site
from fedcdh.data.sources import ColumnKind
from fedcdh.errors import DisclosureError, SettingsError
from fedcdh.messages.profile_file import profile_to_json
from fedcdh.messages.signing import key_fingerprint
from fedcdh.messages.summary_file import SummaryMessage, pack_summary
from fedcdh.privacy.releases import ReleaseContext, release_profile, release_summary
from fedcdh.summaries.bootstrap import MAX_REPLICATES
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.profiles import Profile
from fedcdh.summaries.summary import Summary

KIND_NAMES: dict[str, ColumnKind] = {"continuous": "continuous", "categorical": "categorical"}


@report_errors
def profile_command(
    files: DataFiles,
    client: ClientName,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The profile; else NAME.profile.json.")] = None,
    variables: Annotated[
        str | None, typer.Option(help="The columns of the study, separated by commas; else all.", metavar="A,B,...")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="NAME=categorical reads numbers as labels; may be repeated.", metavar="NAME=KIND"),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="A draft plan whose variables and kinds are to be followed.", metavar="FILE")
    ] = None,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete", help="Only rows without a missing value, as in a summary: then both are of the same."
        ),
    ] = False,
    renames: ColumnMapFile = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    check: DryRun = False,
    research: NoDisclosureControl = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Describe the columns of this site: counts, means, spreads, a few quantiles, labels. No rows, no extremes.

    Examples:

      fedcdh profile data.parquet --client north

      fedcdh profile "2024/*.csv" --client north --delimiter ";" --decimal , --kind ward=categorical

      fedcdh profile data.parquet --client north --check
    """
    out = Output(quiet, as_json)
    target = output or default_file_name(client, ".profile.json")
    rules, signing = load_policy(policy, research, out), load_signing_key(key, out)
    gate = open_gate(ledger, signing, out, dry_run=check)
    names = [name.strip() for name in variables.split(",")] if variables is not None else None
    kinds: dict[str, ColumnKind] = {
        name: _parse_kind(name, text) for name, text in parse_pairs(kind, "--kind", "NAME=KIND").items()
    }
    own, draft = read_own_columns(renames), None
    if plan is not None:
        study, signer = read_study(plan)
        rules.check_plan(study.plan, signer, own)
        draft = study.plan.fingerprint
        names = list(study.plan.names) if names is None else names
        kinds = {name: found for name, found in study.plan.kinds.items() if name in names} | kinds
    with out.progress("profile") as advance:
        source = open_data(files, renames, build_csv_style(delimiter, decimal, encoding, missing), advance)
        refuse_input_as_output(target, [file.path for file in source.files])
        check_replaceable(target, "profile")
        message = release_profile(
            source,
            ReleaseContext(client, rules, own, gate),
            variables=names,
            kinds=kinds,
            draft=draft,
            complete=complete,
            key=signing,
        )
    content, found = profile_to_json(message).encode("utf-8"), message.profile
    _show_profile(out, found)
    if check:
        _say_may_leave(out, "profile", found.client, found.rows)
        return
    out.say("", f"{found.rows} rows read. The profile has {len(content)} bytes; nothing else leaves.")
    written = write_signed(target, content, "profile", signing)
    _say_written(out, written, signing.public if signing else None)
    out.result({"client": client, "rows": found.rows, "bytes": len(content), "files": list(map(str, written))})


@report_errors
def summarize_command(
    plan: PlanFile,
    files: DataFiles,
    client: ClientName,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The message; else NAME.summary.")] = None,
    renames: ColumnMapFile = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    max_missing_share: Annotated[
        float, typer.Option(help="The share of rows that may be left out for missing values.", metavar="SHARE")
    ] = 0.5,
    bootstrap: Annotated[
        int,
        typer.Option(
            min=0,
            max=MAX_REPLICATES,
            help="So many copies more, with rows drawn anew; B copies need B + 1 times as many rows.",
            metavar="B",
        ),
    ] = 0,
    workers: Workers = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    check: DryRun = False,
    research: NoDisclosureControl = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make the one message of this site: sums of features and of their products over its complete rows.

    With --bootstrap, the same for rows drawn anew, in NAME.boot-001.summary and so on: send all of them.

    Examples:

      fedcdh summarize study.plan.json data.parquet --client north

      fedcdh summarize study.plan.json export.csv.gz --client north --map names.toml -o to-send/north.summary
    """
    out = Output(quiet, as_json)
    target = output or default_file_name(client, ".summary")
    refuse_replicate_name(target)
    study, signer, rules, signing, gate, own = set_up_site(
        plan,
        client,
        out,
        policy=policy,
        research=research,
        ledger=ledger,
        key=key,
        renames=renames,
        dry_run=check,
    )
    out.say(f"Plan {study.plan.fingerprint[:12]}, {_describe_signature(signer)}: {len(study.plan.names)} variables.")
    if study.plan.noise is not None and study.plan.noise.shared == "together":
        raise SettingsError("in this plan sites add noise together, for masked sums only; take part with fedcdh mask")
    with out.progress("summarize") as advance:
        source = open_data(files, renames, build_csv_style(delimiter, decimal, encoding, missing), advance)
        for path in (target, *replicate_paths(target, bootstrap)):
            refuse_input_as_output(path, [plan, *(file.path for file in source.files)])
            check_replaceable(path, "summary")
        older = find_replicates(target, client)
        threads = workers or default_workers(study.plan.columns)
        context = ReleaseContext(client, rules, own, gate, max_missing_share, threads)
        try:
            summary, copies = release_summary(source, study.plan, context, replicates=bootstrap)
        except DisclosureError as refusal:
            there = f"\n{target} is an older file; do not send it in place of this one" if target.exists() else ""
            raise DisclosureError(f"{refusal}{there}") from None
    _show_missing(out, summary)
    if check:
        _say_may_leave(out, "summary", client, summary.rows)
        return
    content, *further = [pack_summary(SummaryMessage(one, not rules.disclosure_control), study.plan) for one in (summary, *copies)]
    entries, total = study.plan.columns * (study.plan.columns + 1) // 2, len(content) + sum(map(len, further))
    more = f", and with {bootstrap} bootstrap copies {total} bytes in {bootstrap + 1} files" if copies else ""
    out.say(
        f"The message has {len(content)} bytes: {entries} sums over {summary.rows} rows{more}; nothing else leaves."
    )
    written = write_with_replicates(target, content, further, older, signing)
    if gone := [path for path in older if not path.exists()]:
        out.say(f"Removed {len(gone)} older bootstrap copies, which belong to the summary that is replaced.")
    _say_written(out, written, signing.public if signing else None)
    out.say(f"See what it tells: fedcdh inspect {target}")
    out.result(
        {
            "bytes": len(content),
            "bytes_in_all": total,
            "client": client,
            "copies": bootstrap,
            "files": list(map(str, written)),
            "missing": dict(summary.missing),
            "plan": study.plan.fingerprint,
            "rows": summary.rows,
            "rows_read": summary.rows_read,
            "research": not rules.disclosure_control,
        }
    )


def _say_may_leave(out: Output, what: str, client: str, rows: int) -> None:
    out.say(f"This {what} may leave, say the policy and the ledger of this site. Nothing was written or noted.")
    out.result({"client": client, "rows": rows, "may_leave": True, "files": []})


def _parse_kind(name: str, text: str) -> ColumnKind:
    if text not in KIND_NAMES:
        raise SettingsError(f"--kind says {name!r} is {text!r}; choose one of {', '.join(KIND_NAMES)}")
    return KIND_NAMES[text]


def _describe_signature(signer: str | None) -> str:
    return "not signed" if signer is None else f"signed by {key_fingerprint(signer)}"


def _say_written(out: Output, written: list[Path], public: str | None) -> None:
    shown = [str(path) for path in written]
    if len(shown) > 4:
        shown = [*shown[:2], f"{len(shown) - 2} more up to {shown[-1]}"]
    out.say(f"Wrote {' and '.join(shown)}" + (f", signed by {key_fingerprint(public)}." if public else "."))


def _show_profile(out: Output, found: Profile) -> None:
    rows = [(name, column.kind, column.missing, _describe_column(column)) for name, column in found.columns.items()]
    out.table(("variable", "kind", "missing", "mean ± spread, or labels"), rows)


def _describe_column(column: ColumnProfile) -> str:
    if not column.count:
        return "no values"
    return f"{column.mean:.4g} ± {column.scale:.4g}" if column.kind == "continuous" else ", ".join(column.levels)


def _show_missing(out: Output, summary: Summary) -> None:
    if summary.noise:
        out.say(
            f"Noise was added: the message tells of {summary.rows} rows, not of how many there are, and nothing of "
            "missing values. Keep it: every new message about these rows spends epsilon again."
        )
        return
    dropped = summary.rows_read - summary.rows
    out.say(f"{summary.rows_read} rows read, {summary.rows} complete and used, {dropped} left out for missing values.")
    if gaps := {name: count for name, count in summary.missing.items() if count}:
        out.table(("missing in", "rows"), list(gaps.items()))
