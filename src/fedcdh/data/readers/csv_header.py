"""The first lines of a CSV file: the names of its columns, and above them perhaps a line `sep=;` by Excel."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from itertools import chain
from typing import TextIO

_SEPARATOR_LINE = re.compile(r'"?sep=([\t -!#-~])"?[\r\n]*', re.IGNORECASE)


@dataclass(frozen=True)
class CsvHeader:
    """The names of the columns, the delimiter, and the number of lines above the names."""

    names: tuple[str, ...]
    delimiter: str
    lines_above: int


def read_header(lines: TextIO, delimiter: str) -> CsvHeader:
    """Return the header of a file; a first line `sep=;` sets the delimiter. An empty file has no names."""
    first = lines.readline()
    separator = _SEPARATOR_LINE.fullmatch(first)
    delimiter = separator[1] if separator else delimiter
    rest = lines if separator else chain([first], lines)
    names = next((tuple(row) for row in csv.reader(rest, delimiter=delimiter) if row), ())
    return CsvHeader(names, delimiter, 1 if separator else 0)
