"""Files that say what a site's columns are called in the study."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

from fedcdh._io.storage import read_regular_file
from fedcdh.errors import DataError

MAX_BYTES = 1_000_000
_HEADER = ["column", "variable"]


def read_column_map(path: str | Path) -> dict[str, str]:
    """The site's names and the study's, from TOML ("their name" = "study name") or CSV (column,variable)."""
    path = Path(path)
    try:
        text = read_regular_file(path, MAX_BYTES, "a file of names").decode("utf-8-sig")
    except OSError as problem:
        raise DataError(f"{path} cannot be read ({problem.strerror}); check the name of the file of names") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not written in UTF-8; save it in that encoding") from None
    return _from_toml(path, text) if path.suffix.lower() == ".toml" else _from_csv(path, text)


def _from_toml(path: Path, text: str) -> dict[str, str]:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise DataError(
            f'{path} is not TOML ({problem}); write one line "their name" = "study name" per column'
        ) from None
    for name, variable in found.items():
        if not isinstance(variable, str):
            raise DataError(
                f'{path}: {name!r} is not given a text; write "their name" = "study name", with quotation marks around '
                "both (a name with a dot in it needs them)"
            )
    return found


def _from_csv(path: Path, text: str) -> dict[str, str]:
    try:
        rows = [row for row in csv.reader(text.splitlines(keepends=True), strict=True) if row]
    except csv.Error as problem:
        raise DataError(f"{path} is not CSV ({problem}); expected two columns, column,variable") from None
    if not rows or rows[0] != _HEADER:
        raise DataError(f"{path} has no heading column,variable; write it above the site's names and the study's names")
    found: dict[str, str] = {}
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != 2:
            raise DataError(f"{path}: row {number} has {len(row)} cells; expected two, the site's name and the study's")
        if row[0] in found:
            raise DataError(f"{path}: column {row[0]!r} is given two names; keep one")
        found[row[0]] = row[1]
    return found
