"""`fedcdh aggregate`: very many or very large summaries, added up into one file that `fedcdh discover` takes."""

from __future__ import annotations

import csv
import io
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from fedcdh.cli._console import Output, to_single_line
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, KeyFile, PlanFile, PlanKey, Quiet
from fedcdh.errors import DuplicateClientError, FedCDHError, SettingsError, SummaryError

if TYPE_CHECKING:
    from fedcdh.federation.streaming.aggregate_files import AggregationReport
    from fedcdh.messages.aggregate_file import AggregateMessage
    from fedcdh.summaries.plan import StudyPlan

MAX_GROUPS_BYTES = 1 << 24
"""Bytes of a file of groups."""
MAX_SHOWN = 20
"""Refusals that are printed one by one; all of them are in a file."""
REFUSALS_SUFFIX = ".refused.csv"
"""The name of that file is the name of the sum with this suffix."""
_GROUPS_HEADER = ["client", "group"]


class FileRefusal(NamedTuple):
    """A refusal, each part in one line; the names are the header of the file of refusals."""

    file: str  # empty if it is about a client and not about one file
    kind: str  # of error
    problem: str


@report_errors
def aggregate_command(
    plan: PlanFile,
    summaries: Annotated[
        list[Path],
        typer.Argument(
            help="Summaries of the sites, all or the next portion: files, patterns, folders.", metavar="SUMMARY..."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Sum to write.", metavar="FILE")] = Path(
        "study.aggregate"
    ),
    groups: Annotated[
        Path | None,
        typer.Option(help="CSV with client,group for every client: keep means per group.", metavar="FILE"),
    ] = None,
    go_on: Annotated[bool, typer.Option("--go-on", help="Continue without clients whose summary is missing.")] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(help="Site that is not waited for; may be repeated.", metavar="NAME"),
    ] = None,
    plan_key: PlanKey = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Add up very many or very large summaries.

    Every summary is checked as discover does; one at a time is in memory. The unfinished sum is kept beside the output
    until all summaries are in it. Run the command again after a stop, or when more summaries have come.

    For example:

      fedcdh aggregate study.plan.json inbox/ -o study.aggregate

      fedcdh discover study.plan.json study.aggregate
    """
    from fedcdh._io.storage import naming_target
    from fedcdh.cli._inputs import expand_paths, read_trusted_study
    from fedcdh.cli._keys import load_signing_key
    from fedcdh.cli._later_plans import check_left_out
    from fedcdh.cli._outputs import check_replaceable, refuse_input_as_output, write_signed
    from fedcdh.cli._summaries import SUMMARY_PATTERN, SummaryReader, drop_files
    from fedcdh.federation.streaming.aggregate_files import StreamingAggregation
    from fedcdh.messages.aggregate_file import pack_aggregate
    from fedcdh.messages.summary_file import max_summary_bytes

    out = Output(quiet, as_json)
    study = read_trusted_study(plan, plan_key, out)
    left_out = check_left_out(without or (), study.plan)
    paths, signing = expand_paths(summaries, SUMMARY_PATTERN), load_signing_key(key, out)
    paths = drop_files(paths, left_out, max_summary_bytes(study.plan), out)
    check_replaceable(output, "aggregate")
    refuse_input_as_output(output, paths)
    adding = StreamingAggregation.for_output(output, study, None if groups is None else read_groups(groups))
    reader = SummaryReader(study)
    with _interrupt_on_sigterm(), adding.lock():
        _remove_old_list(listed := output.with_name(output.name + REFUSALS_SUFFIX))
        with out.file_progress("adding summaries", len(paths)) as progress, naming_target(adding.journal):
            outcome = adding.add_files(paths, max_summary_bytes(study.plan), reader.unpack, progress)
        reader.warn(out)
        _say_progress(out, outcome, adding.journal)
        _refuse_added(outcome, left_out, adding.journal)
        _refuse_incomplete(
            out, outcome, adding.journal, listed, go_on=go_on or left_out.issuperset(outcome.sums.lacking)
        )
        message = _build_message(outcome, adding.journal)
        _check_no_client_lost(output, message.aggregate.total.clients, study.plan)
        written = write_signed(output, pack_aggregate(message), "aggregate", signing)
        if not outcome.sums.lacking:
            adding.finish()
    _say_result(out, outcome, message, written, adding.journal, f"fedcdh discover {plan} {output}")


def _refuse_added(outcome: AggregationReport, left_out: frozenset[str], journal: Path) -> None:
    """Refuse to leave out a client whose summary is in the sum: nothing can be taken out of a sum."""
    from fedcdh._io.text import abbreviate_list

    if held := sorted(left_out.intersection(outcome.sums.added)):
        raise SettingsError(
            f"The summary of {abbreviate_list(held)} is in the sum, and is to be left out. A sum cannot be taken "
            f"apart. Remove {journal}, and run this command again with the summaries of the other clients only."
        )


def _refuse_incomplete(out: Output, outcome: AggregationReport, journal: Path, listed: Path, *, go_on: bool) -> None:
    """Raise an error if files were refused or summaries are missing."""
    if refused := _list_refusals(outcome):
        _write_refusals(listed, refused)
        out.result({**_to_document(outcome, refused), "files": [str(listed)]})
        raise _build_refusal(outcome, refused, journal, listed)
    if outcome.sums.lacking and not (go_on and outcome.sums.added):
        out.result({**_to_document(outcome), "files": []})
        raise _build_missing_error(outcome, journal)


def _say_result(
    out: Output,
    outcome: AggregationReport,
    message: AggregateMessage,
    written: list[Path],
    journal: Path,
    next_command: str,
) -> None:
    from fedcdh._io.text import abbreviate_list

    total, missing = message.aggregate.total, outcome.sums.lacking
    out.say(
        f"The sum has {len(total.clients)} clients with {total.rows} rows. Wrote {' and '.join(map(str, written))}."
    )
    if missing:
        out.say(f"{abbreviate_list(missing)} can still be added: {journal} is kept.")
    out.say(f"Next: {next_command}")
    out.result(
        {
            **_to_document(outcome),
            "groups": len(message.aggregate.groups),
            "rows": total.rows,
            "files": list(map(str, written)),
        }
    )


def _say_progress(out: Output, outcome: AggregationReport, journal: Path) -> None:
    out.say(f"Summaries checked and added now: {outcome.n_added}.")
    if kept := len(outcome.sums.added) - outcome.n_added:
        again = f"; named again and unchanged: {outcome.n_known}" if outcome.n_known else ""
        out.say(f"Added before ({journal}): {kept}{again}.")
    if outcome.replicates:
        out.warn(f"{len(outcome.replicates)} bootstrap replicates are left out: a sum cannot hold them")


def _build_message(outcome: AggregationReport, journal: Path) -> AggregateMessage:
    try:
        return outcome.sums.message()
    except SummaryError as problem:
        if not outcome.sums.added:
            raise
        raise SummaryError(
            f"No rows can have this sum, though each summary was checked: {journal} was changed after it was written. "
            f"Find out who changed it, then remove it and begin again ({problem})."
        ) from None


def _check_no_client_lost(output: Path, clients: Sequence[str], plan: StudyPlan) -> None:
    """Refuse to replace a sum of more clients: their summaries may no longer exist."""
    from fedcdh._io.storage import read_regular_file
    from fedcdh._io.text import abbreviate_list
    from fedcdh.messages.aggregate_file import max_aggregate_bytes, unpack_aggregate

    if not output.exists():
        return
    try:
        blob = read_regular_file(output, max_aggregate_bytes(plan), "a sum of this plan")
        older = unpack_aggregate(blob, plan).aggregate.total.clients
    except FedCDHError:  # of another plan, or damaged
        return
    if lost := sorted(set(older) - set(clients)):
        raise SettingsError(
            f"{output} is a sum that also has {abbreviate_list(lost)}, and is not replaced by one without them. Name "
            "their summaries as well, choose another name with -o, or remove the file first."
        )


def _list_refusals(outcome: AggregationReport) -> list[FileRefusal]:
    """Return all files that were refused, and then the clients who have to be asked before there is a sum."""
    found = []
    for path, problem in outcome.refused:
        name, text = to_single_line(str(path)), to_single_line(str(problem))
        found.append(FileRefusal(name, type(problem).__name__, text if name in text else f"{name}: {text}"))
    for client in outcome.sums.contested:
        text = f"Client {client!r} sent two summaries that cannot both be right. Ask the client which one is."
        found.append(FileRefusal("", DuplicateClientError.__name__, text))
    return found


def _build_refusal(
    outcome: AggregationReport, refused: Sequence[FileRefusal], journal: Path, listed: Path
) -> Exception:
    """Return one error about all refusals, since each takes a letter to a site; its type is that of the first."""
    from fedcdh._io.text import abbreviate_list

    admitted, contested = len(outcome.sums.added), outcome.sums.contested
    rest = [f"... and {len(refused) - MAX_SHOWN} more"] if len(refused) > MAX_SHOWN else []
    if contested:
        advice = (
            f"No sum is written until it is known which summary of {abbreviate_list(contested)} is right. Ask these "
            f"clients, remove {journal}, and run this command again with all files, but only the right one of these."
        )
    else:
        advice = "No sum was written. Correct or remove these files, and run this command again."
        if admitted:
            advice += f" The {admitted} summaries that were admitted are kept in {journal}; remove it to start again."
    heading = f"Refused files: {len(outcome.refused) or 'none of these'}"
    lines = [heading, *(one.problem for one in refused[:MAX_SHOWN]), *rest, f"The full list is {listed}.", advice]
    kind = type(outcome.refused[0][1]) if outcome.refused else DuplicateClientError
    return kind("\n".join(map(to_single_line, lines)))


def _build_missing_error(outcome: AggregationReport, journal: Path) -> SummaryError:
    from fedcdh._io.text import abbreviate_list

    if not outcome.sums.added:
        return SummaryError(
            f"Only bootstrap replicates were named ({len(outcome.replicates)}), which a sum cannot hold. Name the "
            "summaries that they belong to."
        )
    return SummaryError(
        f"There is no summary from client {abbreviate_list(outcome.sums.lacking)}. What was added is kept in "
        f"{journal}. Run this command again with the summaries that are missing, or go on without them: with --without "
        "NAME for each of these clients, or with --go-on for all of them."
    )


def _to_document(outcome: AggregationReport, refused: Sequence[FileRefusal] = ()) -> dict[str, Any]:
    """Return what programs read, whether there is a sum or not."""
    return {
        "clients": len(outcome.sums.added),
        "without": outcome.sums.lacking,
        "contested": outcome.sums.contested,
        "refused": [one._asdict() for one in refused],
    }


def _write_refusals(path: Path, refused: Sequence[FileRefusal]) -> None:
    from fedcdh._io.csv_cells import escape_cell
    from fedcdh._io.storage import naming_target, write_atomically

    text = io.StringIO()
    cells = (tuple(map(escape_cell, one)) for one in refused)
    csv.writer(text, lineterminator="\n").writerows([FileRefusal._fields, *cells])
    with naming_target(path):
        write_atomically(path, text.getvalue())


def _remove_old_list(path: Path) -> None:
    """Remove the list of refusals of an earlier run, and nothing else."""
    if not os.path.lexists(path):
        return
    heading, found = ",".join(FileRefusal._fields).encode(), b""
    if path.is_file():
        with path.open("rb") as file:
            found = file.read(len(heading))
    if found != heading:
        raise SettingsError(
            f"{path} exists already and is something else; it is not overwritten. Choose another name with -o."
        )
    path.unlink()


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Let SIGTERM, by which clusters end long jobs, stop the command as ctrl-C does, so that nothing is lost."""
    mine = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if mine:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if mine:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def read_groups(path: Path) -> dict[str, str]:
    """Return the group of every client, from CSV with the header client,group."""
    from fedcdh._io.storage import read_regular_file

    try:
        text = read_regular_file(path, MAX_GROUPS_BYTES, "a file of groups", refuse=SettingsError).decode("utf-8-sig")
        rows = [row for row in csv.reader(text.splitlines(keepends=True), strict=True) if row]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise SettingsError(
            f"{path} is not CSV in UTF-8 ({problem}). Expected two columns with the header client,group."
        ) from None
    if not rows or rows[0] != _GROUPS_HEADER or any(len(row) != 2 or not all(row) for row in rows):
        raise SettingsError(
            f"{path} is not a file of groups. Expected the header client,group and two cells in every row."
        )
    found = dict(rows[1:])
    if len(found) != len(rows) - 1:
        raise SettingsError(f"{path} names a client twice. Keep one row of each client.")
    return found
