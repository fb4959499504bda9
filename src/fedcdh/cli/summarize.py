"""`fedcdh summarize`: the summary of a site, the one file it sends."""

from __future__ import annotations

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
    KeyFile,
    LedgerFile,
    MaxMissingShare,
    MissingMarkers,
    NoDisclosureControl,
    PlanFile,
    PolicyFile,
    Quiet,
    Workers,
    build_csv_style,
    open_data,
)
from fedcdh.cli.profile import say_may_leave
from fedcdh.errors import DisclosureError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedcdh.cli._site_setup import SiteSetup
    from fedcdh.summaries.summary import Summary

MAX_REPLICATES = 1000  # equals summaries.bootstrap.MAX_REPLICATES, which a test asserts


@report_errors
def summarize_command(
    plan: PlanFile,
    files: DataFiles,
    client: ClientName,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Summary to write.", metavar="FILE", show_default="NAME.summary"),
    ] = None,
    column_map: ColumnMapFile = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: MissingMarkers = None,
    max_missing_share: MaxMissingShare = 0.5,
    bootstrap: Annotated[
        int,
        typer.Option(
            min=0,
            max=MAX_REPLICATES,
            help="Number of bootstrap replicates; they need B + 1 times as many rows.",
            metavar="B",
        ),
    ] = 0,
    workers: Workers = None,
    policy: PolicyFile = None,
    ledger: LedgerFile = None,
    dry_run: DryRun = False,
    no_disclosure_control: NoDisclosureControl = False,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compute the summary of this site, the one file it sends.

    A summary holds sums of features and of their products over the complete rows. With --bootstrap, summaries of
    resampled rows are written beside it, as NAME.boot-001.summary and so on. Send all of them.

    For example:

      fedcdh summarize study.plan.json data.parquet --client north

      fedcdh summarize study.plan.json export.csv.gz --client north --column-map names.toml -o to-send/north.summary
    """
    from fedcdh._runtime.cpu_count import default_workers
    from fedcdh.cli._bootstrap_files import find_replicates, refuse_replicate_name, replicate_paths
    from fedcdh.cli._keys import describe_signature
    from fedcdh.cli._outputs import check_replaceable, default_file_name, refuse_input_as_output
    from fedcdh.cli._site_settings import announcing_ledger
    from fedcdh.cli._site_setup import SiteOptions, set_up_site
    from fedcdh.privacy.releases import ReleaseContext, release_summary

    out = Output(quiet, as_json)
    target = output or default_file_name(client, ".summary")
    refuse_replicate_name(target)
    options = SiteOptions(policy, ledger, key, column_map, no_disclosure_control, dry_run)
    site = set_up_site(plan, client, out, options)
    found = site.study.plan
    out.say(f"Plan {found.fingerprint[:12]}, {describe_signature(site.signer)}: {len(found.names)} variables.")
    if found.noise is not None and found.noise.distributed:
        raise SettingsError(
            "This plan has distributed noise, which only a secure sum can add up. Take part with "
            "`fedcdh secure-sum join`."
        )
    with announcing_ledger(site.gate, out), out.progress("summarize") as advance:
        source = open_data(files, column_map, build_csv_style(delimiter, decimal, encoding, missing), advance)
        for path in (target, *replicate_paths(target, bootstrap)):
            refuse_input_as_output(path, [plan, *(file.path for file in source.files)])
            check_replaceable(path, "summary")
        older = find_replicates(target, client)
        threads = workers or default_workers(found.layout.n_columns)
        context = ReleaseContext(client, site.policy, site.own_names, site.gate, max_missing_share, threads)
        try:
            summary, replicates = release_summary(source, found, context, replicates=bootstrap)
        except DisclosureError as refusal:
            there = f"\n{target} is an older file; do not send it instead." if target.exists() else ""
            command = f"fedcdh advise {plan} {' '.join(files)} --client {client}"
            advice = f"\nTo find the smallest change: {command}" if refusal.findings else ""  # none for the ledger's
            raise DisclosureError(f"{refusal}{advice}{there}") from None
    _show_missing(out, summary)
    if dry_run:
        say_may_leave(out, "summary", client, summary.rows)
        return
    _say_repeated(out, site)
    _write_messages(out, target, site, (summary, *replicates), older)


def _say_repeated(out: Output, site: SiteSetup) -> None:
    """Say so where the ledger knows the same numbers from an earlier plan."""
    *earlier, new = site.gate.ledger.entries()
    if same := [entry for entry in earlier if entry.release.kind == "summary" and new.release.repeats(entry.release)]:
        out.say(f"Release {same[0].number} of the ledger had the same numbers: nothing new leaves.")


def _write_messages(
    out: Output, target: Path, site: SiteSetup, summaries: Sequence[Summary], older: Sequence[Path]
) -> None:
    """Write the summary and its bootstrap replicates in place of older ones."""
    from fedcdh.cli._bootstrap_files import write_with_replicates
    from fedcdh.messages.signing import key_fingerprint
    from fedcdh.messages.summary_file import SummaryMessage, pack_summary

    plan, summary, replicates = site.study.plan, summaries[0], len(summaries) - 1
    disclosure_control = site.policy.disclosure_control
    content, *further = [pack_summary(SummaryMessage(one, disclosure_control), plan) for one in summaries]
    entries, total = plan.layout.n_columns * (plan.layout.n_columns + 1) // 2, len(content) + sum(map(len, further))
    more = f", and with {replicates} bootstrap replicates {total} bytes in {replicates + 1} files" if further else ""
    out.say(
        f"The summary has {len(content)} bytes: {entries} sums over {summary.rows} rows{more}; nothing else leaves "
        "this site."
    )
    written = write_with_replicates(target, content, further, older, site.signing)
    if gone := [path for path in older if not path.exists()]:
        out.say(f"Removed {len(gone)} older bootstrap replicates, which belonged to the summary that was replaced.")
    out.say_written(written, f", signed by {key_fingerprint(site.signing.public)}" if site.signing else "")
    out.say(f"To see what it reveals: fedcdh inspect {target}")
    out.result(
        {
            "bytes": len(content),
            "bytes_in_all": total,
            "client": summary.clients[0],
            "files": list(map(str, written)),
            "missing": dict(summary.missing),
            "plan": plan.fingerprint,
            "replicates": replicates,
            "rows": summary.rows,
            "rows_read": summary.rows_read,
            "disclosure_control": disclosure_control,
        }
    )


def _show_missing(out: Output, summary: Summary) -> None:
    from fedcdh.summaries.summary import describe_coarsened

    if summary.noise:
        out.say(
            f"Noise was added: the summary says {summary.rows} rows, which is not the exact number, and nothing about "
            "missing values. Keep it: every new summary of these rows spends epsilon again."
        )
        return
    dropped = summary.rows_read - summary.rows
    if max(summary.missing.values(), default=0) > dropped:
        out.say(
            f"{summary.rows_read} rows were read and {summary.rows} used; values were drawn in place of missing ones, "
            "by a model of these rows."
        )
    else:
        out.say(
            f"{summary.rows_read} rows were read, {summary.rows} complete rows were used, {dropped} were left out for "
            "missing values."
        )
    if gaps := {name: count for name, count in summary.missing.items() if count}:
        out.table(("missing in", "rows"), list(gaps.items()))
    for part in describe_coarsened(summary.coarsened):
        out.say(f"To protect few people, {part}. The summary says so.")
