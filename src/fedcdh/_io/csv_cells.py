"""Texts in CSV files that people open in a spreadsheet program, which may take a text for a formula.

A text is a formula to such programs if it begins with one of = + - @, a tab or a line break, and in some languages
with their wide forms. Programs in countries with a decimal comma separate cells at semicolons, so the beginning of a
cell may be anywhere after one. An apostrophe is written before every such character, and before every apostrophe in
such a place, so that it can be taken away again. Numbers are left as they are.
"""

from __future__ import annotations

import re

_FORMULA_STARTS = "=+\\-@\t\r\n＝＋－＠'"
_CELL_START = r"((?:^|[;|\t\r\n])[ \u00a0]*)"
_TO_ESCAPE = re.compile(f"{_CELL_START}(?=[{_FORMULA_STARTS}])")
_TO_UNESCAPE = re.compile(f"{_CELL_START}'")


def escape_cell(value: object) -> object:
    r"""Return a value as it is written to a CSV file: a text cannot be a formula, and all else is unchanged.

    >>> escape_cell('=HYPERLINK("http://example.org")'), escape_cell("age"), escape_cell(-0.5)
    ('\'=HYPERLINK("http://example.org")', 'age', -0.5)
    """
    return _TO_ESCAPE.sub(r"\1'", value) if isinstance(value, str) else value


def unescape_cell(text: str) -> str:
    """Return the text that `escape_cell` was given.

    >>> unescape_cell("'-log p")
    '-log p'
    """
    return _TO_UNESCAPE.sub(r"\1", text)
