"""`fedcdh add`: very many summaries, or very large ones, become one file that `fedcdh discover` takes."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fedcdh.adding import Adding, Outcome
from fedcdh.cli.failing import speaking
from fedcdh.cli.options import AsJson, KeyFile, PlanFile, PlanKey, Quiet, not_an_input
from fedcdh.cli.output import Output
from fedcdh.cli.places import named, read_trusted, replaceable, the_key, write_signed, writing
from fedcdh.cli.receiving import FILES, Receiving
from fedcdh.errors import FedCDHError, SettingsError, SummaryError
from fedcdh.files.aggregates import AggregateMessage, aggregate_bytes_at_most, pack_aggregate, unpack_aggregate
from fedcdh.files.disk import read_regular
from fedcdh.files.summaries import most_bytes
from fedcdh.plan import StudyPlan, some_of

GROUPS_AT_MOST = 1 << 24
"""Bytes of a file of groups."""
SHOWN = 20
"""Refusals that are given one by one."""
_HEADING = ["client", "group"]


@speaking
def add_command(
    plan: PlanFile,
    summaries: Annotated[
        list[Path],
        typer.Argument(
            help="The sites' summaries: files, patterns, or folders with *.summary; all, or the next portion.",
            metavar="SUMMARY...",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The sum.")] = Path("study.aggregate"),
    groups: Annotated[
        Path | None,
        typer.Option(help="CSV with client,group of every client: means by group, not by client.", metavar="FILE"),
    ] = None,
    go_on: Annotated[bool, typer.Option("--go-on", help="Go on without those whose summary is not there.")] = False,
    plan_key: PlanKey = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Add up the sites' summaries, each checked as discover does: one at a time is in memory.

    What was added is kept in a file beside the sum until all have come: run it again after a stop, or when more came.

    Examples:

      fedcdh add study.plan.json inbox/ -o study.aggregate

      fedcdh discover study.plan.json study.aggregate
    """
    out = Output(quiet, as_json)
    study = read_trusted(plan, plan_key, out)
    paths, signing = named(summaries, FILES), the_key(key, out)
    if not paths:
        raise SettingsError(
            f"no file fits {some_of(map(str, summaries))}; name the files that the sites sent, or their folder"
        )
    replaceable(output, "aggregate")
    not_an_input(output, paths)
    adding = Adding.beside(output, study, None if groups is None else read_groups(groups))
    receiving = Receiving(study)
    with adding.alone():
        with out.counting("adding summaries", len(paths)) as progress, writing(adding.journal):
            outcome = adding.of(paths, most_bytes(study.plan), receiving.opened, progress)
        receiving.note(out)
        _say(out, outcome, adding.journal)
        if outcome.refused:
            raise _refusal(outcome, adding.journal)
        if (lacking := outcome.sums.lacking) and not go_on:
            raise SummaryError(
                f"no summary from client {some_of(lacking)}; what was added is kept in {adding.journal}: run this "
                "again when more have come (what is in it need not be named again), or with --go-on without them"
            )
        message = _message(outcome, adding.journal)
        _check_nobody_lost(output, message.aggregate.total.clients, study.plan)
        written = write_signed(output, pack_aggregate(message), "aggregate", signing)
        if not lacking:
            adding.done()
    total = message.aggregate.total
    out.say(
        f"Clients in the sum: {len(total.clients)}, with {total.rows} rows. Wrote {' and '.join(map(str, written))}.",
        *([f"Without {some_of(lacking)}, who can still be added: {adding.journal} is kept."] if lacking else []),
        f"Now: fedcdh discover {plan} {output}",
    )
    out.result(
        {
            "clients": len(total.clients),
            "groups": len(message.aggregate.groups),
            "rows": total.rows,
            "without": lacking,
            "files": list(map(str, written)),
        }
    )


def _say(out: Output, outcome: Outcome, journal: Path) -> None:
    out.say(f"Summaries added now, each checked: {outcome.new}.")
    if kept := len(outcome.sums.added) - outcome.new:
        again = f"; named again, and unchanged: {outcome.before}" if outcome.before else ""
        out.say(f"Added before ({journal}): {kept}{again}.")
    if outcome.copies:
        out.warn(f"{len(outcome.copies)} bootstrap copies are left aside: a sum has no place for them")


def _message(outcome: Outcome, journal: Path) -> AggregateMessage:
    try:
        return outcome.sums.message()
    except SummaryError as problem:
        if not outcome.sums.added:
            raise
        raise SummaryError(
            f"no rows can have given this sum, though each summary was checked: {journal} is not as it was left; "
            f"remove it to begin again, and find out who changed it ({problem})"
        ) from None


def _check_nobody_lost(output: Path, clients: Sequence[str], plan: StudyPlan) -> None:
    """Refuses to replace a sum of others: the files it was made of, and what it was made in, may be gone."""
    if not output.exists():
        return
    try:
        blob = read_regular(output, aggregate_bytes_at_most(plan), "a sum of this plan")
        older = unpack_aggregate(blob, plan).aggregate.total.clients
    except FedCDHError:  # of another plan, or damaged
        return
    if lost := sorted(set(older) - set(clients)):
        raise SettingsError(
            f"{output} is a sum in which there are also {some_of(lost)}, and is not overwritten by one without them; "
            "name their summaries as well, choose another name with -o, or remove it first"
        )


def _refusal(outcome: Outcome, journal: Path) -> Exception:
    """All that was refused at once, since each takes a letter to a site; it goes by the first."""
    refused = outcome.refused
    sentences = [str(problem) if str(path) in str(problem) else f"{path}: {problem}" for path, problem in refused]
    rest = [f"... and {len(refused) - SHOWN} more"] if len(refused) > SHOWN else []
    advice = "no sum was written; put these right, or take them out, and run this again"
    if admitted := len(outcome.sums.added):
        advice += f": what was admitted ({admitted}) is kept in {journal}; remove that to begin from nothing"
    heading = f"refused files: {len(refused)}"
    return type(refused[0][1])("\n".join([heading, *sentences[:SHOWN], *rest, advice]))


def read_groups(path: Path) -> dict[str, str]:
    """The group of every client, from CSV (client,group)."""
    try:
        text = read_regular(path, GROUPS_AT_MOST, "a file of groups", refuse=SettingsError).decode("utf-8-sig")
        rows = [row for row in csv.reader(text.splitlines(keepends=True), strict=True) if row]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise SettingsError(f"{path} is not CSV in UTF-8 ({problem}); expected two columns, client,group") from None
    if not rows or rows[0] != _HEADING or any(len(row) != 2 or not all(row) for row in rows):
        raise SettingsError(f"{path} is not a file of groups; expected the heading client,group and two cells a row")
    found = dict(rows[1:])
    if len(found) != len(rows) - 1:
        raise SettingsError(f"{path} names a client twice; keep one row of each")
    return found
