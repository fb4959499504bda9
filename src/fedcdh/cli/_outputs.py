"""Files that commands write: under which name, over which older file, and with which signature."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from fedcdh._io.storage import naming_target, write_atomically
from fedcdh.cli._keys import signature_path
from fedcdh.errors import SettingsError
from fedcdh.messages.signing import SigningKey, sign

MAX_HEAD_BYTES = 1 << 24
"""Bytes in which a file of ours says what it is; in JSON files, the format may follow other keys."""

FORMAT_MARKERS = {
    "summary": b"fedcdh-summary-",
    "profile": b"fedcdh-profile-",
    "plan": b"fedcdh-study-",
    "report": b"fedcdh-report-",
    "letter": b"fedcdh-letter-",
    "request": b"fedcdh-request-",
    "answer": b"fedcdh-answer-",
    "masking": b'"format":"fedcdh-masking-2"',  # not a site's state file, which quotes messages as text
    "aggregate": b"fedcdh-aggregate-",
}


def check_replaceable(path: Path, kind: str) -> None:
    """Refuse to write over anything but an older file of the same kind: a key, say, would be lost."""
    for place, marker in ((path, FORMAT_MARKERS[kind]), (signature_path(path), b"fedcdh-signature-")):
        if not os.path.lexists(place):
            continue
        if not place.is_file():
            raise SettingsError(f"{place} exists already and is not a file. Choose another name with -o.")
        with place.open("rb") as file:
            if marker not in file.read(MAX_HEAD_BYTES):
                raise SettingsError(
                    f"{place} exists already and is something else; it is not overwritten. Choose another name with -o."
                )


def refuse_input_as_output(output: Path, inputs: Iterable[Path]) -> None:
    """Refuse to write over a file that the command reads."""
    for path in inputs:
        if path.exists() and output.exists() and path.samefile(output):
            raise SettingsError(
                f"The output {output} is also an input of this command and would be overwritten. "
                "Choose another name with -o."
            )


def default_file_name(client: str, suffix: str) -> Path:
    """Return the file name of a client, in the current folder."""
    if Path(client).name != client or not client.isprintable() or client.strip(". ") == "":
        raise SettingsError(f"The client {client!r} cannot be the name of a file. Name the file with -o.")
    return Path(client + suffix)


def write_signed(path: Path, content: bytes, kind: str, key: SigningKey | None) -> list[Path]:
    """Write a file and, with a key, its signature.

    An older signature is removed first, so that a stop never leaves a file with the signature of another.
    """
    beside = signature_path(path)
    with naming_target(path):
        beside.unlink(missing_ok=True)
        write_atomically(path, content)
        if key is None:
            return [path]
        write_atomically(beside, sign(key, kind, content))
        return [path, beside]
