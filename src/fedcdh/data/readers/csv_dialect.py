"""The dialect of a CSV file, which no file states about itself."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from fedcdh.errors import SettingsError

MISSING_VALUES = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
"""Cells that mean "no value".

"None" is not among them, because it is a level of many variables (pain: None, mild, severe), nor is ".". Both raise an
error where numbers are expected.
"""


@dataclass(frozen=True)
class CsvStyle:
    """The style of a CSV file: delimiter, decimal mark, encoding and missing values.

    Parameters
    ----------
    delimiter : str, optional
        The character between cells. By default the name of the file decides: tabs in .tsv, .tab and .txt; otherwise
        commas, or semicolons where the comma is the decimal mark.
    decimal : {".", ","}, default "."
        The decimal mark.
    encoding : str, default "utf-8"
        The encoding of the file, by any name that Python knows.
    missing : tuple of str
        Cells that mean "no value" in any column, quoted or not, spaces around them ignored. With `missing=("",)`,
        "NA" is a level like any other.

    Raises
    ------
    SettingsError
        If one of these is not possible.

    Examples
    --------
    >>> german = CsvStyle(decimal=",", encoding="latin-1")
    >>> german.delimiter_for(".csv")
    ';'
    """

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = MISSING_VALUES

    def __post_init__(self) -> None:
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n' or self.delimiter > "~"
        ):
            raise SettingsError(
                f"the delimiter is {self.delimiter!r}; expected one plain character such as ',' or ';'",
                parameter="delimiter",
            )
        if self.decimal not in (".", ","):
            raise SettingsError(f"the decimal mark is {self.decimal!r}; expected '.' or ','", parameter="decimal")
        if self.delimiter == self.decimal:
            raise SettingsError(
                f"{self.decimal!r} is both the delimiter and the decimal mark; expected two different characters. "
                "Change one of them",
                parameter="delimiter",
            )
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise SettingsError(
                f"there is no encoding {self.encoding!r}; try 'utf-8', 'latin-1' or 'utf-16'", parameter="encoding"
            ) from None
        if not isinstance(self.missing, tuple) or not all(isinstance(token, str) for token in self.missing):
            raise SettingsError(
                f"the cells that mean 'missing' are {self.missing!r}; expected a tuple of texts such as ('', 'NA')",
                parameter="missing",
            )

    @property
    def codec(self) -> str:
        """Return the standard name of the encoding."""
        return codecs.lookup(self.encoding).name

    def delimiter_for(self, suffix: str) -> str:
        """Return the delimiter of a file with this suffix.

        Parameters
        ----------
        suffix : str
            The suffix of the file's name, such as ".csv".

        Returns
        -------
        str
            One character.
        """
        if self.delimiter is not None:
            return self.delimiter
        if suffix != ".csv":
            return "\t"
        return ";" if self.decimal == "," else ","
