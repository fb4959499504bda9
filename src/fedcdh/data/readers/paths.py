"""The table files that names, folders and patterns stand for, every file once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedcdh._io.text import suggest_name
from fedcdh.errors import DataError

CSV_SUFFIXES = (".csv", ".tsv", ".tab", ".txt")
PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
EXCEL_SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
STATISTICS_SUFFIXES = (".sav", ".zsav", ".dta", ".sas7bdat", ".xpt")
QUERY_SUFFIX = ".query.toml"
"""The ending of a file that holds a query of a database."""
_BINARY_SUFFIXES = PARQUET_SUFFIXES + ARROW_SUFFIXES + EXCEL_SUFFIXES + STATISTICS_SUFFIXES
_EXPECTED_SUFFIXES = (
    f"{', '.join(CSV_SUFFIXES)} (also with .gz behind it), {', '.join(_BINARY_SUFFIXES)} or {QUERY_SUFFIX}"
)
_SHEET = re.compile(rf"(.+({'|'.join(map(re.escape, EXCEL_SUFFIXES))}))#(.+)", re.IGNORECASE)


def table_suffix(path: Path) -> str:
    """Return the suffix of a table file without .gz; the empty text for other files."""
    name = split_sheet(path)[0].name.lower()
    if name.endswith(QUERY_SUFFIX):
        return QUERY_SUFFIX
    bare = name.removesuffix(".gz")
    found = Path(bare).suffix
    return found if found in CSV_SUFFIXES or (found in _BINARY_SUFFIXES and bare == name) else ""


def split_sheet(path: Path) -> tuple[Path, str]:
    """Return the path of a workbook and the sheet that is named behind it.

    >>> split_sheet(Path("north.xlsx#Patients"))
    (PosixPath('north.xlsx'), 'Patients')
    """
    named = _SHEET.fullmatch(path.name)
    return (path.with_name(named[1]), named[3]) if named and not path.is_file() else (path, "")


def is_gzipped(path: Path) -> bool:
    """Return whether the file is compressed with gzip, by its name."""
    return path.name.lower().endswith(".gz")


def unreadable_file_error(path: Path, problem: Exception, damaged: str, form: str = "") -> DataError:
    """Return the error for a file that cannot be read; `damaged` is the reason where the system gives none."""
    if isinstance(problem, PermissionError):
        return DataError(
            f"{path} cannot be read: you have no right to; ask its owner for permission, or read a copy of your own"
        )
    number = problem.errno if isinstance(problem, OSError) else None  # Arrow's own words are long, and name the file
    reason = os.strerror(number) if number else damaged
    return DataError(f"{path} cannot be read{form}: {reason}; save or copy it again")


def file_state(path: Path) -> tuple[int, int]:
    """Return the size of a file and the time it was written last: if both are the same, so is the file."""
    try:
        status = path.stat()
    except OSError as problem:
        raise unreadable_file_error(path, problem, "it has been removed") from None
    return status.st_size, status.st_mtime_ns


def expand_paths(given: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """Return all files in the order given; those of a folder or a pattern are sorted by name."""
    listed = [given] if isinstance(given, (str, Path)) else list(given)
    if not listed:
        raise DataError("no file was named; expected at least one table file, folder or pattern. Name one")
    found = [path for one in listed for path in _expand_path(Path(one).expanduser())]
    seen: dict[tuple[int, int, str], Path] = {}
    for path in found:
        if not table_suffix(path):
            raise DataError(
                f"{path} is not a table file by its name; expected a name that ends in {_EXPECTED_SUFFIXES}. Rename "
                "the file, or save it in one of these formats"
            )
        file, sheet = split_sheet(path)
        place = (status := file.stat()).st_dev, status.st_ino, sheet  # the same for links and other spellings
        if place in seen:
            raise DataError(
                f"{path} is named twice (as {seen[place]} before), and its rows would count twice; name it once"
            )
        seen[place] = path
    return tuple(found)


def _expand_path(path: Path) -> list[Path]:
    if split_sheet(path)[0].is_file():  # also where brackets in its name look like a pattern
        return [path]
    if path.is_dir():
        return _check_candidates(path, (one for one in path.iterdir() if table_suffix(one) and one.name[0] not in "._"))
    parts = path.parts
    wild = next((i for i, part in enumerate(parts) if any(letter in part for letter in "*?[")), None)
    if wild is None:
        near = suggest_name(path.name, _list_names(path.parent))
        raise DataError(f"there is no file {path}{near}; check the name (relative names start at {Path.cwd()})")
    found = Path(*parts[:wild]).glob("/".join(parts[wild:]))
    hidden = parts[-1].startswith(".")  # hidden files have to be named, as in shells
    return _check_candidates(path, (one for one in found if hidden or not one.name.startswith(".")))


def _list_names(folder: Path) -> list[str]:
    """Return the names of the table files in a folder; none if it cannot be read."""
    try:
        return sorted(path.name for path in folder.iterdir() if table_suffix(path))
    except OSError:
        return []


def _check_candidates(given: Path, candidates: Iterator[Path]) -> list[Path]:
    found = sorted(path for path in candidates if path.is_file())
    if not found:
        raise DataError(
            f"{given} stands for no table file; expected files ending in {_EXPECTED_SUFFIXES}. "
            "A folder stands for the files directly in it; folder/**/*.csv for those further down as well"
        )
    twins: dict[Path, Path] = {}
    for path in found:
        bare = path.with_name(path.name[: path.name.lower().rindex(table_suffix(path))]) if table_suffix(path) else path
        if bare in twins:
            raise DataError(
                f"{given} stands for both {twins[bare]} and {path}, which by their names are the same rows in two "
                "formats and would count twice; name the files to read one by one"
            )
        twins[bare] = path
    return found
