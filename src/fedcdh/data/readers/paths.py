"""Which files are meant by names, folders and patterns; every file once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedcdh.errors import DataError

CSV_SUFFIXES = (".csv", ".tsv", ".tab", ".txt")
PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
_EXPECTED_SUFFIXES = f"{', '.join(CSV_SUFFIXES)} (also with .gz behind it), {', '.join((*PARQUET_SUFFIXES, *ARROW_SUFFIXES[:-1]))} or {ARROW_SUFFIXES[-1]}"


def table_suffix(path: Path) -> str:
    """What the name of a table file ends with, .gz left aside; empty for other files."""
    name = path.name.lower()
    packed = name.removesuffix(".gz")
    found = Path(packed).suffix
    return found if found in CSV_SUFFIXES or (found in PARQUET_SUFFIXES + ARROW_SUFFIXES and packed == name) else ""


def is_gzipped(path: Path) -> bool:
    """Whether the file is packed with gzip."""
    return path.name.lower().endswith(".gz")


def unreadable_file_error(path: Path, problem: Exception, damaged: str, form: str = "") -> DataError:
    """Why a file cannot be read, in the system's words or else as `damaged` says, and what to do about it."""
    if isinstance(problem, PermissionError):
        return DataError(f"{path} cannot be read: you have no right to; ask its owner for it, or read a copy of yours")
    number = problem.errno if isinstance(problem, OSError) else None  # Arrow's own words are long, and name the file
    reason = os.strerror(number) if number else damaged
    return DataError(f"{path} cannot be read{form}: {reason}; save or copy it again")


def expand_paths(given: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """All files meant, in the order given; those of a folder or a pattern sorted by name."""
    listed = [given] if isinstance(given, (str, Path)) else list(given)
    if not listed:
        raise DataError("no file was named; name at least one table file, folder or pattern")
    found = [path for one in listed for path in _expand_path(Path(one).expanduser())]
    seen: dict[tuple[int, int], Path] = {}
    for path in found:
        if not table_suffix(path):
            raise DataError(f"{path} is not a table file by its name; expected {_EXPECTED_SUFFIXES}")
        place = (status := path.stat()).st_dev, status.st_ino  # the same for links and other spellings of a path
        if place in seen:
            raise DataError(
                f"{path} is named twice (as {seen[place]} before), so its rows would count twice; name it once"
            )
        seen[place] = path
    return tuple(found)


def _expand_path(path: Path) -> list[Path]:
    if path.is_file():  # also where brackets in its name look like a pattern
        return [path]
    if path.is_dir():
        return _check_candidates(path, (one for one in path.iterdir() if table_suffix(one) and one.name[0] not in "._"))
    parts = path.parts
    wild = next((i for i, part in enumerate(parts) if any(letter in part for letter in "*?[")), None)
    if wild is None:
        raise DataError(f"there is no file {path}; check the name (relative names start at {Path.cwd()})")
    found = Path(*parts[:wild]).glob("/".join(parts[wild:]))
    hidden = parts[-1].startswith(".")  # asked for by name, as in shells
    return _check_candidates(path, (one for one in found if hidden or not one.name.startswith(".")))


def _check_candidates(given: Path, candidates: Iterator[Path]) -> list[Path]:
    found = sorted(path for path in candidates if path.is_file())
    if not found:
        raise DataError(
            f"{given} stands for no table file at all; expected files ending in {_EXPECTED_SUFFIXES}. "
            "A folder stands for the files directly in it; folder/**/*.csv for those further down as well"
        )
    twins: dict[Path, Path] = {}
    for path in found:
        bare = path.with_name(path.name[: path.name.lower().rindex(table_suffix(path))]) if table_suffix(path) else path
        if bare in twins:
            raise DataError(
                f"{given} stands for both {twins[bare]} and {path}, by their names the same rows in two formats, "
                "which would count twice; name the files you mean"
            )
        twins[bare] = path
    return found
