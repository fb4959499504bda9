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

from fedcdh._io.storage import read_regular, write_whole
from fedcdh._io.text import some_of
from fedcdh.cli._console import Output, in_one_line
from fedcdh.cli._errors import speaking
from fedcdh.cli._inputs import named, read_trusted, replaceable, the_key, write_signed, writing
from fedcdh.cli._options import AsJson, KeyFile, PlanFile, PlanKey, Quiet, not_an_input
from fedcdh.cli._summaries import FILES, Receiving
from fedcdh.errors import DuplicateClient, FedCDHError, SettingsError, SummaryError
from fedcdh.federation.streaming.aggregate_files import Adding, Outcome
from fedcdh.messages.aggregate_file import AggregateMessage, aggregate_bytes_at_most, pack_aggregate, unpack_aggregate
from fedcdh.messages.summary_file import most_bytes
from fedcdh.summaries.plan import StudyPlan

GROUPS_AT_MOST = 1 << 24
"""Bytes of a file of groups."""
SHOWN = 20
"""Refusals that are given one by one on the screen; all of them are in a file."""
REFUSED = ".refused.csv"
"""What the name of that file ends in, after that of the sum."""
_HEADING = ["client", "group"]


class Refusal(NamedTuple):
    """What was refused, each part in one line; the names are the headings in the file of them."""

    file: str  # or nothing, if it is about a client and not one file
    kind: str  # of error
    problem: str


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
    replaceable(output, "aggregate")
    not_an_input(output, paths)
    adding = Adding.beside(output, study, None if groups is None else read_groups(groups))
    receiving = Receiving(study)
    with _stopped_in_order(), adding.alone():
        _forget(listed := output.with_name(output.name + REFUSED))
        with out.counting("adding summaries", len(paths)) as progress, writing(adding.journal):
            outcome = adding.of(paths, most_bytes(study.plan), receiving.opened, progress)
        receiving.note(out)
        _say(out, outcome, adding.journal)
        if refused := _refusals(outcome):
            _list(listed, refused)
            out.result({**_found(outcome, refused), "files": [str(listed)]})
            raise _refusal(outcome, refused, adding.journal, listed)
        if (lacking := outcome.sums.lacking) and not (go_on and outcome.sums.added):
            out.result({**_found(outcome), "files": []})
            raise _too_few(outcome, adding.journal)
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
            **_found(outcome),
            "groups": len(message.aggregate.groups),
            "rows": total.rows,
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


def _refusals(outcome: Outcome) -> list[Refusal]:
    """All files that were refused, and after them the clients who have to be asked before there is a sum."""
    found = []
    for path, problem in outcome.refused:
        name, text = in_one_line(str(path)), in_one_line(str(problem))
        found.append(Refusal(name, type(problem).__name__, text if name in text else f"{name}: {text}"))
    for client in outcome.sums.contested:
        text = f"which summary of client {client!r} holds is not known: two came that cannot both hold"
        found.append(Refusal("", DuplicateClient.__name__, text))
    return found


def _refusal(outcome: Outcome, refused: Sequence[Refusal], journal: Path, listed: Path) -> Exception:
    """All that was refused at once, since each takes a letter to a site; it goes by the first."""
    admitted, contested = len(outcome.sums.added), outcome.sums.contested
    rest = [f"... and {len(refused) - SHOWN} more"] if len(refused) > SHOWN else []
    if contested:
        advice = (
            f"no sum is written before it is known which summary of {some_of(contested)} holds: ask them, then remove "
            f"{journal}, and run this again with all files, but of these clients only those that hold"
        )
    else:
        advice = "no sum was written; put these right, or take them out, and run this again"
        if admitted:
            advice += f": what was admitted ({admitted}) is kept in {journal}; remove that to begin from nothing"
    heading = f"refused files: {len(outcome.refused) or 'none of these'}"
    lines = [heading, *(one.problem for one in refused[:SHOWN]), *rest, f"all of this is listed in {listed}", advice]
    kind = type(outcome.refused[0][1]) if outcome.refused else DuplicateClient
    return kind("\n".join(map(in_one_line, lines)))


def _too_few(outcome: Outcome, journal: Path) -> SummaryError:
    if not outcome.sums.added:
        return SummaryError(
            f"nothing was added: what was named ({len(outcome.copies)}) is bootstrap copies, which have no place in a "
            "sum; name the summaries that they belong to"
        )
    return SummaryError(
        f"no summary from client {some_of(outcome.sums.lacking)}; what was added is kept in {journal}: run this again "
        "when more have come (what is in it need not be named again), or with --go-on without them"
    )


def _found(outcome: Outcome, refused: Sequence[Refusal] = ()) -> dict[str, Any]:
    """What programs are told, whether there is a sum or not."""
    return {
        "clients": len(outcome.sums.added),
        "without": outcome.sums.lacking,
        "contested": outcome.sums.contested,
        "refused": [one._asdict() for one in refused],
    }


def _list(path: Path, refused: Sequence[Refusal]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([Refusal._fields, *refused])
    with writing(path):
        write_whole(path, text.getvalue())


def _forget(path: Path) -> None:
    """Removes the list of an earlier run, of which nothing need be true any more; and nothing else."""
    if not os.path.lexists(path):
        return
    heading, found = ",".join(Refusal._fields).encode(), b""
    if path.is_file():
        with path.open("rb") as file:
            found = file.read(len(heading))
    if found != heading:
        raise SettingsError(f"{path} is something else and is not overwritten; choose another name with -o")
    path.unlink()


@contextmanager
def _stopped_in_order() -> Iterator[None]:
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
