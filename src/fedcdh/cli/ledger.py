"""`fedcdh ledger`: the list of all that has left this site."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedcdh.cli._console import Output
from fedcdh.cli._errors import report_errors
from fedcdh.cli._options import AsJson, KeyFile, LedgerFile, Quiet
from fedcdh.errors import SignatureError

if TYPE_CHECKING:
    from fedcdh.privacy.ledger import LedgerEntry

_WITHDRAWN = "withdrawn"
_COARSENED = "coarsened"  # key of the details
_MIXTURES = "mixtures"  # another


@report_errors
def show_command(ledger: LedgerFile = None, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """List all releases of this site.

    The list has the time, the kind, the plan and the number of rows of each release. It holds no data.

    For example:

      fedcdh ledger show

      fedcdh ledger show --json
    """
    from fedcdh.cli._site_settings import open_ledger

    out, opened = Output(quiet, as_json), open_ledger(ledger)
    entries = opened.entries()
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
        out.table(("number", "time (UTC)", "kind", "client", "plan", "rows", "numbers", "epsilon"), rows)
    out.say(f"{len(entries)} releases in {opened.path}")
    out.result({"ledger": str(opened.path), "releases": [_to_document(entry) for entry in entries]})


@report_errors
def verify_command(
    ledger: LedgerFile = None,
    key: Annotated[
        str | None,
        typer.Option(help="Public key that must have signed every release: a file, or ed25519:...", metavar="KEY"),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Check that the ledger is complete and unchanged.

    The check finds lines that were changed, removed, added or moved.

    For example:

      fedcdh ledger verify

      fedcdh ledger verify --key site.pub
    """
    from fedcdh.cli._keys import read_public_key
    from fedcdh.cli._site_settings import open_ledger
    from fedcdh.messages.signing import key_fingerprint

    out, opened = Output(quiet, as_json), open_ledger(ledger)
    entries = opened.entries()
    if key is not None:
        _check_all_signed(entries, read_public_key(key), opened.path)
    signed = sum(bool(entry.key) for entry in entries)
    by = f" by {key_fingerprint(read_public_key(key))}" if key is not None else ""
    out.say(
        f"{opened.path} is complete: {len(entries)} releases, {signed} of them signed{by}."
        if opened.path.exists()
        else f"There is no ledger {opened.path}. Either nothing has left this site, or the file was removed."
    )
    out.result({"ledger": str(opened.path), "releases": len(entries), "signed": signed})


@report_errors
def withdraw_command(
    number: Annotated[int, typer.Argument(help="Number of the release, see fedcdh ledger show.", metavar="NUMBER")],
    reason: Annotated[str, typer.Option(help="Why it was never sent; kept in the ledger.", metavar="TEXT")],
    ledger: LedgerFile = None,
    key: KeyFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Record that a release was never sent.

    It then no longer counts against later releases. Be sure: if the file was sent after all, the next release about
    nearly the same rows can reveal single people.

    For example:

      fedcdh ledger withdraw 1 --reason "a column was wrong; the file was deleted before it was sent"
    """
    from fedcdh.cli._keys import load_signing_key
    from fedcdh.cli._site_settings import open_ledger

    out, opened = Output(quiet, as_json), open_ledger(ledger)
    line = opened.withdraw(number, reason, load_signing_key(key, out))
    out.say(
        f"Release {number} no longer counts; release {line} of {opened.path} records this. "
        "Delete the file if it still exists."
    )
    out.result({"ledger": str(opened.path), "withdrawn": number, "noted": line})


def _check_all_signed(entries: Sequence[LedgerEntry], public: str, path: Path) -> None:
    from fedcdh.cli._keys import describe_signature
    from fedcdh.messages.signing import key_fingerprint

    for entry in entries:
        if entry.key != public:
            raise SignatureError(
                f"{path}: release {entry.number} is {describe_signature(entry.key or None)}. "
                f"Expected {key_fingerprint(public)}. Find out who made it."
            )


def _describe_kind(entry: LedgerEntry) -> str:
    if entry.release.kind == _WITHDRAWN:
        return f"withdrawn: {entry.release.details['number']}"
    replicates = f" + {entry.release.replicates} replicates" if entry.release.replicates else ""
    control = "" if entry.release.disclosure_control else ", without disclosure control"
    coarser = ", rare cells coarser" if entry.release.details.get(_COARSENED) else ""
    mixtures = entry.release.details.get(_MIXTURES)
    mixed = f" of a sum with {mixtures} mixture{'s' * (mixtures > 1)} of clients" if mixtures else ""
    return f"{entry.release.kind}{mixed}{replicates}{coarser}{control}"


def _to_document(entry: LedgerEntry) -> dict[str, Any]:
    """Return what may be shown to others: no secret and no sketches of rows."""
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
        "load": {name: round(column.load, 6) for name, column in sorted(release.columns.items()) if column.load},
        "key": entry.key,
        **({"coarsened": release.details[_COARSENED]} if _COARSENED in release.details else {}),
        **({"mixtures": release.details[_MIXTURES]} if _MIXTURES in release.details else {}),
        **({"withdraws": dict(release.details)} if release.kind == _WITHDRAWN else {}),
    }
