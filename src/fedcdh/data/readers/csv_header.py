"""The first lines of a CSV file: the names of its columns, and above them perhaps Excel's word for the delimiter."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from itertools import chain
from typing import TextIO

_SEPARATOR_LINE = re.compile(r'"?sep=([\t -!#-~])"?[\r\n]*', re.IGNORECASE)


@dataclass(frozen=True)
class CsvHeader:
    """The names, the delimiter between them, and how many lines are not part of the table."""

    names: tuple[str, ...]
    delimiter: str
    above: int


def read_header(lines: TextIO, delimiter: str) -> CsvHeader:
    """The heading of a file; a first line `sep=;` is believed. Without any names, there is no heading."""
    first = lines.readline()
    told = _SEPARATOR_LINE.fullmatch(first)
    delimiter = told[1] if told else delimiter
    rest = lines if told else chain([first], lines)
    names = next((tuple(row) for row in csv.reader(rest, delimiter=delimiter) if row), ())
    return CsvHeader(names, delimiter, 1 if told else 0)
