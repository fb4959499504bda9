"""What has left this site: its ledger, shown and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._inputs import load_signing_key, open_ledger, read_public_key
from fedcdh.cli._options import AsJson, KeyFile, LedgerFile, Quiet
from fedcdh.errors import SignatureError
from fedcdh.messages.signing import key_fingerprint
from fedcdh.privacy.ledger import WITHDRAWN, LedgerEntry

ledger_app = typer.Typer(no_args_is_help=True, help="What has left this site, and whether the list of it is whole.")


@ledger_app.command("show")
@report_errors
def show_command(path: LedgerFile = None, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Show all that left: when, what, by which plan, of how many rows. No data, and nothing they could be read from.

    Example:

      fedcdh ledger show --json
    """
    out, book = Output(quiet, as_json), open_ledger(path)
    entries = book.entries()
    rows = [
        (
            entry.number,
            entry.time,
            _describe_kind(entry),
            entry.release.client,
            entry.release.plan[:12],
            entry.release.rows,
            entry.release.numbers,
            entry.release.epsilon or None,
        )
        for entry in entries
    ]
    if rows:
        out.table(("number", "time (UTC)", "what", "client", "plan", "rows", "numbers", "epsilon"), rows)
    out.say(f"{len(entries)} releases in {book.path}")
    out.result({"ledger": str(book.path), "releases": [_to_document(entry) for entry in entries]})


@ledger_app.command("verify")
@report_errors
def verify_command(
    path: LedgerFile = None,
    key: Annotated[
        str | None,
        typer.Option(help="The site's public key, or its file: every release has to be signed by it.", metavar="KEY"),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Check that no line of the ledger was changed, taken away, added or moved, and who signed it.

    Example:

      fedcdh ledger verify --key site.pub
    """
    out, book = Output(quiet, as_json), open_ledger(path)
    entries = book.entries()
    if key is not None:
        _check_all_signed(entries, read_public_key(key), book.path)
    signed = sum(bool(entry.key) for entry in entries)
    by = f" by {key_fingerprint(read_public_key(key))}" if key is not None else ""
    out.say(
        f"{book.path} is whole: {len(entries)} releases, {signed} of them signed{by}."
        if book.path.exists()
        else f"There is no ledger {book.path}: nothing left that is noted there, or it was taken away."
    )
    out.result({"ledger": str(book.path), "releases": len(entries), "signed": signed})


@ledger_app.command("withdraw")
@report_errors
def withdraw_command(
    number: Annotated[int, typer.Argument(help="The number of the release (fedcdh ledger show).", metavar="NUMBER")],
    reason: Annotated[str, typer.Option(help="Why it never left, for whoever reads the ledger.", metavar="TEXT")],
    path: LedgerFile = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say that a profile or a summary was made and never sent: then it counts no more. This is noted, and stays.

    If it was sent after all, the next message about nearly the same rows gives single people away: be sure.

    Example:

      fedcdh ledger withdraw 3 --reason "a column was wrong; the file was deleted before it was sent"
    """
    out, book = Output(quiet, as_json), open_ledger(path)
    line = book.withdraw(number, reason, load_signing_key(key, out))
    out.say(
        f"Release {number} counts no more, says release {line} of {book.path}. Delete the file if there still is one."
    )
    out.result({"ledger": str(book.path), "withdrawn": number, "noted": line})


def _check_all_signed(entries: tuple[LedgerEntry, ...], public: str, path: Path) -> None:
    for entry in entries:
        if entry.key != public:
            found = f"signed by {key_fingerprint(entry.key)}" if entry.key else "not signed"
            raise SignatureError(
                f"{path}: release {entry.number} is {found}, expected {key_fingerprint(public)}; find out who made it"
            )


def _describe_kind(entry: LedgerEntry) -> str:
    if entry.release.kind == WITHDRAWN:
        return f"withdrawn: {entry.release.details['number']}"
    copies = f" + {entry.release.replicates} replicates" if entry.release.replicates else ""
    return f"{entry.release.kind}{copies}" + ("" if entry.release.disclosure_control else ", without disclosure control")


def _to_document(entry: LedgerEntry) -> dict[str, Any]:
    """What may be shown to others: no secret, no sketches."""
    release = entry.release
    return {
        "number": entry.number,
        "time": entry.time,
        "kind": release.kind,
        "client": release.client,
        "plan": release.plan,
        "digest": release.digest,
        "rows": release.rows,
        "numbers": release.numbers,
        "replicates": release.replicates,
        "epsilon": release.epsilon,
        "delta": release.delta,
        "disclosure_control": release.disclosure_control,
        "variables": sorted(release.columns),
        "load": {name: round(told.load, 6) for name, told in sorted(release.columns.items()) if told.load},
        "key": entry.key,
        **({"withdraws": dict(release.details)} if release.kind == WITHDRAWN else {}),
    }
