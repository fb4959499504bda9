"""What a site does: describe its columns, and send its one message."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedcdh._runtime.cpu_count import usual_workers
from fedcdh.cli._bootstrap_files import copies_beside, copy_paths, not_named_like_a_copy, write_with_copies
from fedcdh.cli._console import Output
from fedcdh.cli._errors import speaking
from fedcdh.cli._inputs import file_name, read_study, replaceable, the_gate, the_key, the_policy, write_signed
from fedcdh.cli._options import (
    AsJson,
    Client,
    Decimal,
    Delimiter,
    Encoding,
    Files,
    KeyFile,
    LedgerFile,
    Missing,
    OnlyCheck,
    PlanFile,
    PolicyFile,
    Quiet,
    Renames,
    Research,
    Workers,
    csv_style,
    not_an_input,
    open_data,
    pairs,
)
from fedcdh.cli._site_setup import invited, own_columns
from fedcdh.data.sources import Kind
from fedcdh.errors import PolicyRefusal, SettingsError
from fedcdh.messages.profile_file import to_text
from fedcdh.messages.signing import fingerprint
from fedcdh.messages.summary_file import SummaryMessage, pack
from fedcdh.privacy.releases import checked_profile, checked_summary
from fedcdh.summaries.bootstrap import COPIES_AT_MOST
from fedcdh.summaries.column_profiles import ColumnProfile
from fedcdh.summaries.profiles import Profile
from fedcdh.summaries.summary import Summary

KINDS: dict[str, Kind] = {"continuous": "continuous", "categorical": "categorical"}


@speaking
def profile_command(
    files: Files,
    client: Client,
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
    renames: Renames = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    check: OnlyCheck = False,
    research: Research = False,
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
    target = output or file_name(client, ".profile.json")
    rules, signing = the_policy(policy, research, out), the_key(key, out)
    gate = the_gate(ledger, signing, out, only_asking=check)
    names = [name.strip() for name in variables.split(",")] if variables is not None else None
    kinds: dict[str, Kind] = {name: _kind(name, text) for name, text in pairs(kind, "--kind", "NAME=KIND").items()}
    own, draft = own_columns(renames), None
    if plan is not None:
        study, signer = read_study(plan)
        rules.check_plan(study.plan, signer, own)
        draft = study.plan.fingerprint
        names = list(study.plan.names) if names is None else names
        kinds = {name: found for name, found in study.plan.kinds.items() if name in names} | kinds
    with out.progress("profile") as advance:
        source = open_data(files, renames, csv_style(delimiter, decimal, encoding, missing), advance)
        not_an_input(target, [file.path for file in source.files])
        replaceable(target, "profile")
        message = checked_profile(
            source,
            client,
            rules,
            own,
            variables=names,
            kinds=kinds,
            draft=draft,
            complete=complete,
            key=signing,
            gate=gate,
        )
    content, found = to_text(message).encode("utf-8"), message.profile
    _show_profile(out, found)
    if check:
        _may_leave(out, "profile", found.client, found.rows)
        return
    out.say("", f"{found.rows} rows read. The profile has {len(content)} bytes; nothing else leaves.")
    written = write_signed(target, content, "profile", signing)
    _wrote(out, written, signing.public if signing else None)
    out.result({"client": client, "rows": found.rows, "bytes": len(content), "files": list(map(str, written))})


@speaking
def summarize_command(
    plan: PlanFile,
    files: Files,
    client: Client,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The message; else NAME.summary.")] = None,
    renames: Renames = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    max_dropped: Annotated[
        float, typer.Option(help="The share of rows that may be left out for missing values.", metavar="SHARE")
    ] = 0.5,
    bootstrap: Annotated[
        int,
        typer.Option(
            min=0,
            max=COPIES_AT_MOST,
            help="So many copies more, with rows drawn anew; B copies need B + 1 times as many rows.",
            metavar="B",
        ),
    ] = 0,
    workers: Workers = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    check: OnlyCheck = False,
    research: Research = False,
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
    target = output or file_name(client, ".summary")
    not_named_like_a_copy(target)
    study, signer, rules, signing, gate, own = invited(
        plan,
        client,
        out,
        policy=policy,
        research=research,
        ledger=ledger,
        key=key,
        renames=renames,
        only_asking=check,
    )
    out.say(f"Plan {study.plan.fingerprint[:12]}, {_signature(signer)}: {len(study.plan.names)} variables.")
    if study.plan.noise is not None and study.plan.noise.shared == "together":
        raise SettingsError("in this plan sites add noise together, for masked sums only; take part with fedcdh mask")
    with out.progress("summarize") as advance:
        source = open_data(files, renames, csv_style(delimiter, decimal, encoding, missing), advance)
        for path in (target, *copy_paths(target, bootstrap)):
            not_an_input(path, [plan, *(file.path for file in source.files)])
            replaceable(path, "summary")
        older = copies_beside(target, client)
        try:
            summary, copies = checked_summary(
                source,
                study.plan,
                client,
                rules,
                own,
                max_dropped=max_dropped,
                copies=bootstrap,
                gate=gate,
                workers=workers or usual_workers(study.plan.columns),
            )
        except PolicyRefusal as refusal:
            there = f"\n{target} is an older file; do not send it in place of this one" if target.exists() else ""
            raise PolicyRefusal(f"{refusal}{there}") from None
    _show_missing(out, summary)
    if check:
        _may_leave(out, "summary", client, summary.rows)
        return
    content, *further = [pack(SummaryMessage(one, rules.research), study.plan) for one in (summary, *copies)]
    entries, total = study.plan.columns * (study.plan.columns + 1) // 2, len(content) + sum(map(len, further))
    more = f", and with {bootstrap} bootstrap copies {total} bytes in {bootstrap + 1} files" if copies else ""
    out.say(
        f"The message has {len(content)} bytes: {entries} sums over {summary.rows} rows{more}; nothing else leaves."
    )
    written = write_with_copies(target, content, further, older, signing)
    if gone := [path for path in older if not path.exists()]:
        out.say(f"Removed {len(gone)} older bootstrap copies, which belong to the summary that is replaced.")
    _wrote(out, written, signing.public if signing else None)
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
            "research": rules.research,
        }
    )


def _may_leave(out: Output, what: str, client: str, rows: int) -> None:
    out.say(f"This {what} may leave, say the policy and the ledger of this site. Nothing was written or noted.")
    out.result({"client": client, "rows": rows, "may_leave": True, "files": []})


def _kind(name: str, text: str) -> Kind:
    if text not in KINDS:
        raise SettingsError(f"--kind says {name!r} is {text!r}; choose one of {', '.join(KINDS)}")
    return KINDS[text]


def _signature(signer: str | None) -> str:
    return "not signed" if signer is None else f"signed by {fingerprint(signer)}"


def _wrote(out: Output, written: list[Path], public: str | None) -> None:
    shown = [str(path) for path in written]
    if len(shown) > 4:
        shown = [*shown[:2], f"{len(shown) - 2} more up to {shown[-1]}"]
    out.say(f"Wrote {' and '.join(shown)}" + (f", signed by {fingerprint(public)}." if public else "."))


def _show_profile(out: Output, found: Profile) -> None:
    rows = [(name, column.kind, column.missing, _content(column)) for name, column in found.columns.items()]
    out.table(("variable", "kind", "missing", "mean ± spread, or labels"), rows)


def _content(column: ColumnProfile) -> str:
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
