"""How a CSV file is written. What no file says about itself, a person has to say once."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from fedcdh.errors import SettingsError

MISSING_VALUES = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
"""Cells that mean "no value". Not "None", which is a level of many variables (pain: None, mild, severe), and not ".":
where numbers are expected, both make themselves heard."""


@dataclass(frozen=True)
class CsvStyle:
    """How cells are set apart, how numbers and letters are written, and which cells mean "no value".

    Without a delimiter, the name of the file decides: tabs in .tsv, .tab and .txt; otherwise commas, or semicolons
    where the comma is the decimal mark. A cell is missing in any column, quoted or not, when it is one of `missing`,
    spaces around it left aside; `CsvStyle(missing=("",))` makes "NA" a label like any other.
    """

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = MISSING_VALUES

    def __post_init__(self) -> None:
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n' or self.delimiter > "~"
        ):
            raise SettingsError(f"the delimiter is {self.delimiter!r}; expected one plain character such as ',' or ';'")
        if self.decimal not in (".", ","):
            raise SettingsError(f"the decimal mark is {self.decimal!r}; expected '.' or ','")
        if self.delimiter == self.decimal:
            raise SettingsError(f"{self.decimal!r} cannot both set cells apart and be the decimal mark; change one")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise SettingsError(f"there is no encoding {self.encoding!r}; try 'utf-8', 'latin-1' or 'utf-16'") from None
        if not isinstance(self.missing, tuple) or not all(isinstance(token, str) for token in self.missing):
            raise SettingsError(f"missing is {self.missing!r}; expected a tuple of texts such as ('', 'NA')")

    @property
    def codec(self) -> str:
        """The encoding under its first name."""
        return codecs.lookup(self.encoding).name

    def delimiter_for(self, ending: str) -> str:
        """What sets the cells apart in a file whose name ends like this."""
        if self.delimiter is not None:
            return self.delimiter
        if ending != ".csv":
            return "\t"
        return ";" if self.decimal == "," else ","
