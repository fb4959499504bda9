"""Files that map the columns of a site to the variables of the study."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

from fedcdh._io.storage import read_regular_file
from fedcdh.errors import DataError

MAX_BYTES = 1_000_000
_HEADER = ["column", "variable"]


def read_column_map(path: str | Path) -> dict[str, str]:
    """Read a file that maps the columns of a site to the variables of the study.

    Parameters
    ----------
    path : str or Path
        A TOML file with lines `"their name" = "study name"`, or a CSV file with the header `column,variable`.

    Returns
    -------
    dict of str to str
        From the names of the columns to those of the variables, for `open_tables(..., rename=...)`.

    Raises
    ------
    DataError
        If the file cannot be read, or is not such a file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "names.toml").write_text('"Alter" = "age"')
    ...     read_column_map(Path(folder, "names.toml"))
    {'Alter': 'age'}
    """
    path = Path(path)
    try:
        text = read_regular_file(path, MAX_BYTES, "a file of names").decode("utf-8-sig")
    except OSError as problem:
        raise DataError(
            f"{path} cannot be read ({problem.strerror}); expected the file that maps columns to variables. Check its "
            "name"
        ) from None
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
                f'{path}: the value of {name!r} is not a text; expected "their name" = "study name". Write both with '
                "quotation marks (a name with a dot in it needs them)"
            )
    return found


def _from_csv(path: Path, text: str) -> dict[str, str]:
    try:
        rows = [row for row in csv.reader(text.splitlines(keepends=True), strict=True) if row]
    except csv.Error as problem:
        raise DataError(
            f"{path} is not CSV ({problem}); expected two columns, column,variable. Save it again"
        ) from None
    if not rows or rows[0] != _HEADER:
        raise DataError(
            f"{path} has no header column,variable; expected it above the rows with the site's names and the study's "
            "names. Add it"
        )
    found: dict[str, str] = {}
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != 2:
            raise DataError(
                f"{path}: row {number} has {len(row)} cells; expected two, the site's name and the study's. Correct it"
            )
        if row[0] in found:
            raise DataError(f"{path}: column {row[0]!r} has two rows; expected one name per column. Keep one of them")
        found[row[0]] = row[1]
    return found
