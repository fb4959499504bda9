"""Tables of a report from rows and cells: sortable on a screen, cards on a phone, and no cell without a word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from fedcdh.reporting.phrases import format_percent, format_short, format_signed

NOT_KNOWN = "not known"
"""The word in a cell where there is no value; where the reason is known, another word says it."""
_BAR_WIDTH = 80


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Parameters
    ----------
    content : str
        HTML.
    value : float, optional
        The number by which the column is sorted.
    kind : str, default ""
        Class of the cell, such as "number".

    Examples
    --------
    >>> Cell("0.97", 0.97, "number").value
    0.97
    """

    content: str
    value: float | None = None
    kind: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table, with further attributes of its element."""

    cells: Sequence[Cell]
    attributes: str = ""


def render_table(heads: Sequence[str], rows: Iterable[Row], caption: str, kind: str = "sortable") -> str:
    """Return a table; a column whose head begins with # holds numbers.

    Parameters
    ----------
    heads : sequence of str
        Names of the columns. On a phone every cell has its name beside it; the first is the title of the card.
    rows : iterable of Row
        The rows.
    caption : str
        What the table is, for screen readers.
    kind : str, default "sortable"
        Class of the table.

    Returns
    -------
    str
        HTML.
    """
    names = [escape(head.lstrip("#")) for head in heads]
    numbers = [' class="number"' if head.startswith("#") else "" for head in heads]
    cells = "".join(f'<th scope="col"{number}>{name}</th>' for name, number in zip(names, numbers, strict=True))
    body = "\n".join(_render_row(row, names) for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="{kind} cards"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{cells}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _render_row(row: Row, names: Sequence[str]) -> str:
    cells = "".join(_render_cell(cell, name) for cell, name in zip(row.cells, names, strict=True))
    return f"<tr{row.attributes}>{cells}</tr>"


def _render_cell(cell: Cell, name: str) -> str:
    kind = f' class="{cell.kind}"' if cell.kind else ""
    sort = "" if cell.value is None else f' data-value="{cell.value:g}"'
    return f'<td data-label="{name}"{kind}{sort}>{cell.content or NOT_KNOWN}</td>'


def number_cell(shown: str, value: float | None) -> Cell:
    """Return a number as it is shown, sorted by its value."""
    return Cell(shown, value, "number")


def short_cell(value: float | None, missing: str = NOT_KNOWN) -> Cell:
    """Return a number with three digits, or the word for a missing one."""
    return missing_cell(missing) if value is None else number_cell(format_short(value), value)


def signed_cell(value: float | None, missing: str = NOT_KNOWN) -> Cell:
    """Return a number with its sign, or the word for a missing one."""
    return missing_cell(missing) if value is None else number_cell(format_signed(value), value)


def missing_cell(word: str = NOT_KNOWN) -> Cell:
    """Return the cell of a missing number; it is sorted to the end."""
    return Cell(word, None, "number missing")


def bar_cell(share: float | None, missing: str = NOT_KNOWN) -> Cell:
    """Return a share as a bar and a percentage."""
    if share is None:
        return missing_cell(missing)
    width = _BAR_WIDTH * min(max(share, 0.0), 1.0)
    bar = (
        f'<svg class="share" width="{_BAR_WIDTH}" height="8" aria-hidden="true">'
        f'<rect class="all" width="{_BAR_WIDTH}" height="8" rx="2"/>'
        f'<rect class="part" width="{width:.1f}" height="8" rx="2"/></svg>'
    )
    return Cell(f"{bar} {format_percent(share)}", share, "bar")
