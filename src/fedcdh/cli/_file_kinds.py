"""The kind of a file that a command was given: exchanged arguments get advice about their order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fedcdh.cli._console import to_single_line
from fedcdh.errors import FedCDHError

MAX_HEAD_BYTES = 1 << 16
"""Bytes in which a file says what it is; a plan names its format after its variables and clients."""
TABLE_SUFFIXES = (
    *(".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab", ".parquet", ".pq", ".arrow", ".feather", ".ipc"),
    *(".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".sav", ".zsav", ".dta", ".sas7bdat", ".xpt"),
)


class FileKind(NamedTuple):
    """A kind of file, and how its content begins."""

    name: str
    marker: bytes
    order: str  # where a command expects it


KINDS = (
    FileKind(
        "a signature", b"fedcdh-signature-", "It is read by itself beside the file that it signs; do not name it."
    ),
    FileKind("a sum", b"fedcdh-aggregate-", "A sum follows the plan: fedcdh discover PLAN SUM."),
    FileKind("a summary", b"fedcdh-summary-", "Summaries follow the plan: fedcdh discover PLAN SUMMARY..."),
    FileKind("a profile", b"fedcdh-profile-", "Profiles are for the plan: fedcdh plan PROFILE..."),
    FileKind("a request", b"request-", "A request follows the plan: fedcdh rounds answer PLAN REQUEST DATA..."),
    FileKind("an answer", b"answer-", "Answers belong into the folder of fedcdh discover PLAN ... --ask FOLDER."),
    FileKind("a result", b"fedcdh-result-", "A result is for fedcdh report RESULT."),
    FileKind(
        "a plan", b"fedcdh-study-", "The plan comes first: fedcdh summarize PLAN DATA..., fedcdh discover PLAN ..."
    ),
)
_FOLDER = FileKind("a folder", b"", "Name the file itself.")
_TABLE = FileKind("a table", b"", "Tables follow the plan: fedcdh summarize PLAN DATA... --client NAME.")


def recognise_file(path: Path) -> FileKind | None:
    """Return what a file is by its first bytes or its name; None if it is unknown, or cannot be read."""
    if path.name.lower().endswith(TABLE_SUFFIXES):
        return _TABLE
    if path.is_dir():
        return _FOLDER
    try:
        with path.open("rb") as file:
            head = file.read(MAX_HEAD_BYTES)
    except OSError:
        return None
    marked = b'"fedcdh' in head or b'\\"fedcdh' in head
    return next((kind for kind in KINDS if marked and kind.marker in head), None)


def refuse_other_kind(path: Path, expected: str, refuse: Callable[[str], FedCDHError], order: str = "") -> None:
    """Raise an error if a file is known to be of another kind than a command expects in its place; advise an order."""
    found = recognise_file(path)
    if found is not None and found.name not in expected:
        raise refuse(
            f"{to_single_line(str(path))} is {found.name}; expected {expected} in its place. Were two arguments "
            f"exchanged? {order or found.order}"
        )
