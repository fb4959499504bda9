"""`fedcdh add`: very many summaries, or very large ones, become one file that `fedcdh discover` takes."""

from __future__ import annotations

import csv
import io
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from fedcdh._io.storage import read_regular_file, write_atomically
from fedcdh._io.text import abbreviate_list
from fedcdh.cli._console import Output, to_single_line
from fedcdh.cli._errors import report_errors
from fedcdh.cli._inputs import (
    check_replaceable,
    expand_paths,
    load_signing_key,
    naming_output,
    read_trusted_study,
    write_signed,
)
from fedcdh.cli._options import AsJson, KeyFile, PlanFile, PlanKey, Quiet, refuse_input_as_output
from fedcdh.cli._summaries import SUMMARY_PATTERN, SummaryReader
from fedcdh.errors import DuplicateClientError, FedCDHError, SettingsError, SummaryError
from fedcdh.federation.streaming.aggregate_files import AggregationReport, StreamingAggregation
from fedcdh.messages.aggregate_file import AggregateMessage, max_aggregate_bytes, pack_aggregate, unpack_aggregate
from fedcdh.messages.summary_file import max_summary_bytes
from fedcdh.summaries.plan import StudyPlan

MAX_GROUPS_BYTES = 1 << 24
"""Bytes of a file of groups."""
MAX_SHOWN = 20
"""Refusals that are given one by one on the screen; all of them are in a file."""
REFUSALS_SUFFIX = ".refused.csv"
"""What the name of that file ends in, after that of the sum."""
_GROUPS_HEADER = ["client", "group"]


class FileRefusal(NamedTuple):
    """What was refused, each part in one line; the names are the headings in the file of them."""

    file: str  # or nothing, if it is about a client and not one file
    kind: str  # of error
    problem: str


@report_errors
def aggregate_command(
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
    study = read_trusted_study(plan, plan_key, out)
    paths, signing = expand_paths(summaries, SUMMARY_PATTERN), load_signing_key(key, out)
    check_replaceable(output, "aggregate")
    refuse_input_as_output(output, paths)
    adding = StreamingAggregation.beside(output, study, None if groups is None else read_groups(groups))
    receiving = SummaryReader(study)
    with _interrupt_on_sigterm(), adding.alone():
        _remove_old_list(listed := output.with_name(output.name + REFUSALS_SUFFIX))
        with out.counting("adding summaries", len(paths)) as progress, naming_output(adding.journal):
            outcome = adding.of(paths, max_summary_bytes(study.plan), receiving.opened, progress)
        receiving.note(out)
        _say_progress(out, outcome, adding.journal)
        if refused := _list_refusals(outcome):
            _write_refusals(listed, refused)
            out.result({**_to_document(outcome, refused), "files": [str(listed)]})
            raise _build_refusal(outcome, refused, adding.journal, listed)
        if (lacking := outcome.sums.lacking) and not (go_on and outcome.sums.added):
            out.result({**_to_document(outcome), "files": []})
            raise _build_missing_error(outcome, adding.journal)
        message = _build_message(outcome, adding.journal)
        _check_no_client_lost(output, message.aggregate.total.clients, study.plan)
        written = write_signed(output, pack_aggregate(message), "aggregate", signing)
        if not lacking:
            adding.done()
    total = message.aggregate.total
    out.say(
        f"Clients in the sum: {len(total.clients)}, with {total.rows} rows. Wrote {' and '.join(map(str, written))}.",
        *(
            [f"Without {abbreviate_list(lacking)}, who can still be added: {adding.journal} is kept."]
            if lacking
            else []
        ),
        f"Now: fedcdh discover {plan} {output}",
    )
    out.result(
        {
            **_to_document(outcome),
            "groups": len(message.aggregate.groups),
            "rows": total.rows,
            "files": list(map(str, written)),
        }
    )


def _say_progress(out: Output, outcome: AggregationReport, journal: Path) -> None:
    out.say(f"Summaries added now, each checked: {outcome.new}.")
    if kept := len(outcome.sums.added) - outcome.new:
        again = f"; named again, and unchanged: {outcome.before}" if outcome.before else ""
        out.say(f"Added before ({journal}): {kept}{again}.")
    if outcome.copies:
        out.warn(f"{len(outcome.copies)} bootstrap copies are left aside: a sum has no place for them")


def _build_message(outcome: AggregationReport, journal: Path) -> AggregateMessage:
    try:
        return outcome.sums.message()
    except SummaryError as problem:
        if not outcome.sums.added:
            raise
        raise SummaryError(
            f"no rows can have given this sum, though each summary was checked: {journal} is not as it was left; "
            f"remove it to begin again, and find out who changed it ({problem})"
        ) from None


def _check_no_client_lost(output: Path, clients: Sequence[str], plan: StudyPlan) -> None:
    """Refuses to replace a sum of others: the files it was made of, and what it was made in, may be gone."""
    if not output.exists():
        return
    try:
        blob = read_regular_file(output, max_aggregate_bytes(plan), "a sum of this plan")
        older = unpack_aggregate(blob, plan).aggregate.total.clients
    except FedCDHError:  # of another plan, or damaged
        return
    if lost := sorted(set(older) - set(clients)):
        raise SettingsError(
            f"{output} is a sum in which there are also {abbreviate_list(lost)}, and is not overwritten by one without them; "
            "name their summaries as well, choose another name with -o, or remove it first"
        )


def _list_refusals(outcome: AggregationReport) -> list[FileRefusal]:
    """All files that were refused, and after them the clients who have to be asked before there is a sum."""
    found = []
    for path, problem in outcome.refused:
        name, text = to_single_line(str(path)), to_single_line(str(problem))
        found.append(FileRefusal(name, type(problem).__name__, text if name in text else f"{name}: {text}"))
    for client in outcome.sums.contested:
        text = f"which summary of client {client!r} holds is not known: two came that cannot both hold"
        found.append(FileRefusal("", DuplicateClientError.__name__, text))
    return found


def _build_refusal(
    outcome: AggregationReport, refused: Sequence[FileRefusal], journal: Path, listed: Path
) -> Exception:
    """All that was refused at once, since each takes a letter to a site; it goes by the first."""
    admitted, contested = len(outcome.sums.added), outcome.sums.contested
    rest = [f"... and {len(refused) - MAX_SHOWN} more"] if len(refused) > MAX_SHOWN else []
    if contested:
        advice = (
            f"no sum is written before it is known which summary of {abbreviate_list(contested)} holds: ask them, then remove "
            f"{journal}, and run this again with all files, but of these clients only those that hold"
        )
    else:
        advice = "no sum was written; put these right, or take them out, and run this again"
        if admitted:
            advice += f": what was admitted ({admitted}) is kept in {journal}; remove that to begin from nothing"
    heading = f"refused files: {len(outcome.refused) or 'none of these'}"
    lines = [
        heading,
        *(one.problem for one in refused[:MAX_SHOWN]),
        *rest,
        f"all of this is listed in {listed}",
        advice,
    ]
    kind = type(outcome.refused[0][1]) if outcome.refused else DuplicateClientError
    return kind("\n".join(map(to_single_line, lines)))


def _build_missing_error(outcome: AggregationReport, journal: Path) -> SummaryError:
    if not outcome.sums.added:
        return SummaryError(
            f"nothing was added: what was named ({len(outcome.copies)}) is bootstrap copies, which have no place in a "
            "sum; name the summaries that they belong to"
        )
    return SummaryError(
        f"no summary from client {abbreviate_list(outcome.sums.lacking)}; what was added is kept in {journal}: run this again "
        "when more have come (what is in it need not be named again), or with --go-on without them"
    )


def _to_document(outcome: AggregationReport, refused: Sequence[FileRefusal] = ()) -> dict[str, Any]:
    """What programs are told, whether there is a sum or not."""
    return {
        "clients": len(outcome.sums.added),
        "without": outcome.sums.lacking,
        "contested": outcome.sums.contested,
        "refused": [one._asdict() for one in refused],
    }


def _write_refusals(path: Path, refused: Sequence[FileRefusal]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([FileRefusal._fields, *refused])
    with naming_output(path):
        write_atomically(path, text.getvalue())


def _remove_old_list(path: Path) -> None:
    """Removes the list of an earlier run, of which nothing need be true any more; and nothing else."""
    if not os.path.lexists(path):
        return
    heading, found = ",".join(FileRefusal._fields).encode(), b""
    if path.is_file():
        with path.open("rb") as file:
            found = file.read(len(heading))
    if found != heading:
        raise SettingsError(f"{path} is something else and is not overwritten; choose another name with -o")
    path.unlink()


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Lets SIGTERM, by which clusters end what takes too long, stop it as ctrl-C does: what was added is then kept."""
    mine = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if mine:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if mine:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def read_groups(path: Path) -> dict[str, str]:
    """The group of every client, from CSV (client,group)."""
    try:
        text = read_regular_file(path, MAX_GROUPS_BYTES, "a file of groups", refuse=SettingsError).decode("utf-8-sig")
        rows = [row for row in csv.reader(text.splitlines(keepends=True), strict=True) if row]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise SettingsError(f"{path} is not CSV in UTF-8 ({problem}); expected two columns, client,group") from None
    if not rows or rows[0] != _GROUPS_HEADER or any(len(row) != 2 or not all(row) for row in rows):
        raise SettingsError(f"{path} is not a file of groups; expected the heading client,group and two cells a row")
    found = dict(rows[1:])
    if len(found) != len(rows) - 1:
        raise SettingsError(f"{path} names a client twice; keep one row of each")
    return found
