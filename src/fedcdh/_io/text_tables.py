"""Small tables as aligned text and as HTML, with which values show themselves at a prompt and in notebooks."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

MAX_ROWS_SHOWN = 40
"""Number of rows of a table that are shown; the value itself has all of them."""
_BIDI_CONTROLS = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_CELL_STYLE = "padding: 2px 12px 2px 0; text-align: {side}; vertical-align: top"


def to_one_line(text: str) -> str:
    """Return a text on one line, with invisible and direction-changing characters replaced.

    >>> to_one_line("a\\nb")
    'a b'
    """
    on_one_line = "".join(" " if letter in "\t\n\r" else letter for letter in text)
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cs") or c in _BIDI_CONTROLS else c
        for c in on_one_line
    )


def escape_html(text: str) -> str:
    """Return a text as HTML, on one line and isolated from the writing direction around it.

    >>> escape_html("a < b")
    '<bdi>a &lt; b</bdi>'
    """
    return f"<bdi>{escape(to_one_line(text))}</bdi>"


def format_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as text; columns whose head begins with # hold numbers and are set flush right.

    >>> print(format_table(["name", "#rows"], [["north", "90"], ["south", "110"]]))
    name   rows
    north    90
    south   110
    """
    listed = list(rows)
    cells = [[head.lstrip("#") for head in heads], *([to_one_line(cell) for cell in row] for row in listed)]
    shown = cells[: MAX_ROWS_SHOWN + 1]
    widths = [max(len(row[place]) for row in shown) for place in range(len(heads))]
    lines = [
        "  ".join(
            cell.rjust(width) if head.startswith("#") else cell.ljust(width)
            for cell, width, head in zip(row, widths, heads, strict=True)
        ).rstrip()
        for row in shown
    ]
    return "\n".join([*lines, *_count_hidden(len(listed))])


def render_table_html(heads: Sequence[str], rows: Iterable[Sequence[str]], empty: str = "nothing") -> str:
    """Return a table as HTML with the colours of the page around it, without a script or a style sheet.

    >>> render_table_html(["name"], [], "no names")
    '<p>no names</p>'
    """
    listed = list(rows)
    if not listed:
        return f"<p>{escape(empty)}</p>"
    sides = ["right" if head.startswith("#") else "left" for head in heads]
    head = _render_row("th", [escape(head.lstrip("#")) for head in heads], sides)
    body = (_render_row("td", [escape_html(cell) for cell in row], sides) for row in listed[:MAX_ROWS_SHOWN])
    more = "".join(f"<p>{escape(text)}</p>" for text in _count_hidden(len(listed)))
    return f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>{more}"


def _render_row(tag: str, cells: Iterable[str], sides: Sequence[str]) -> str:
    shown = (
        f'<{tag} style="{_CELL_STYLE.format(side=side)}">{cell}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(shown)}</tr>"


def _count_hidden(rows: int) -> list[str]:
    return [f"... and {rows - MAX_ROWS_SHOWN} more rows"] if rows > MAX_ROWS_SHOWN else []
