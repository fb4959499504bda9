"""Forest plots of effects: every site and the pooled effect, as a table whose rows are drawn to one scale."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from fedcdh.reporting.html.table_cells import Cell, Row, number_cell, render_table
from fedcdh.reporting.phrases import format_p_value, format_percent, format_short, to_plain_name

WIDTH, HEIGHT = 300.0, 26.0
"""Size of the drawing in a row."""
_PADDING = 10.0
_MIN_SQUARE, _MAX_SQUARE = 5.0, 13.0
_MAX_REACH = 3.0
"""An interval is cut off where it reaches further than this many times the spread of all estimates."""
_DIAMOND_HALF_HEIGHT = 7.0
_MAX_TICKS = 5
_MIN_ERROR = 1e-100  # the square of a smaller standard error is zero
Record = Mapping[str, Any]
Interval = tuple[float, float]


@dataclass(frozen=True)
class ForestRow:
    """An estimate with its interval; a diamond if it is pooled."""

    name: str
    value: float | None
    interval: Interval | None
    weight: float = 0.0
    pooled: bool = False
    rows: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Scale:
    """The values at the two ends of the drawings."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return where a value is drawn, in pixels from the left."""
        share = (value - self.low) / (self.high - self.low)
        return round(_PADDING + min(max(share, 0.0), 1.0) * (WIDTH - 2 * _PADDING), 1)


def render_forest_plot(effect: Record) -> str:
    """Return the forest plot of an effect.

    Parameters
    ----------
    effect : mapping
        An effect of a result document.

    Returns
    -------
    str
        A table with a drawing in every row; empty if no value is known.
    """
    rows = list(forest_rows(effect))
    if not any(row.value is not None for row in rows):
        return ""
    scale = _scale(rows)
    counted = any(row.rows is not None for row in rows)
    heads = ["Site", *(["#Rows"] if counted else []), "Plot", "#Effect (95 % interval)"]
    made = [_render_row(row, scale, counted) for row in rows]
    axis = [
        Cell("scale"),
        *([Cell(" ")] if counted else []),
        Cell(_axis_svg(scale), kind="plot"),
        Cell("units of the data"),
    ]
    made.append(Row(axis, ' class="axis"'))
    name = f"{to_plain_name(effect['cause'])} on {to_plain_name(effect['outcome'])}"
    return render_table(heads, made, f"Forest plot of the effect of {name}", "forest")


def forest_rows(effect: Record) -> Iterator[ForestRow]:
    """Yield the sites of an effect, then what is pooled over them.

    Parameters
    ----------
    effect : mapping
        An effect of a result document.

    Yields
    ------
    ForestRow
        One row per site whose estimate is published; then the common effect, and the mean over sites that differ.
    """
    found = effect.get("by_client") or {}
    weights = {name: _precision(one) for name, one in found.items()}
    heaviest = max(weights.values(), default=0.0)
    for name, one in found.items():
        weight = weights[name] / heaviest if heaviest else 0.0
        note = one.get("note") or ""
        yield ForestRow(name, one.get("value"), _interval(one), weight, rows=one.get("rows"), note=note)
    used = effect.get("pooling")
    for key, words in (("fixed", "common effect"), ("random", "mean over sites")):
        if pooled := effect.get(key):
            chosen = " (used)" if used == key and effect.get("random") and effect.get("fixed") else ""
            yield ForestRow(f"{words}{chosen}", pooled.get("value"), _interval(pooled), pooled=True)


def _precision(one: Record) -> float:
    error = one.get("standard_error")
    return 1 / error**2 if error and error > _MIN_ERROR else 0.0


def _interval(one: Record) -> Interval | None:
    found = one.get("interval")
    return None if found is None else (float(found[0]), float(found[1]))


def _scale(rows: Sequence[ForestRow]) -> Scale:
    """Return a scale with zero, all estimates and their intervals, without intervals that are far wider than others."""
    values = [0.0, *(row.value for row in rows if row.value is not None)]
    spread = max(values) - min(values) or 1.0
    ends = [end for row in rows if row.interval for end in row.interval]
    low = max(min(ends, default=0.0), min(values) - _MAX_REACH * spread)
    high = min(max(ends, default=0.0), max(values) + _MAX_REACH * spread)
    return Scale(min(low, *values), max(high, *values))


def _render_row(row: ForestRow, scale: Scale, counted: bool) -> Row:
    cells = [Cell(f"<bdi>{escape(to_plain_name(row.name))}</bdi>", kind="title")]
    rows = "all" if row.pooled else "not known"
    cells += (
        [Cell(rows, kind="number") if row.rows is None else number_cell(f"{row.rows:,}", row.rows)] if counted else []
    )
    if row.value is None:
        return Row([*cells, Cell("no estimate"), Cell(escape(to_plain_name(row.note or "not estimated")))])
    shown = f"{format_short(row.value)}"
    if row.interval is not None:
        shown += f" ({format_short(row.interval[0])} to {format_short(row.interval[1])})"
    kind = ' class="pooled"' if row.pooled else ""
    return Row([*cells, Cell(_row_svg(row, scale), kind="plot"), number_cell(shown, row.value)], kind)


def _row_svg(row: ForestRow, scale: Scale) -> str:
    """Return the drawing of one estimate: the line of no effect, the interval, and a square or a diamond."""
    middle, value = HEIGHT / 2, scale.place(row.value or 0.0)
    parts = [f'<path class="zero" d="M{scale.place(0.0):g} 0V{HEIGHT:g}"/>']
    low, high = map(scale.place, row.interval or (row.value or 0.0, row.value or 0.0))
    if row.pooled:
        top, bottom = middle - _DIAMOND_HALF_HEIGHT, middle + _DIAMOND_HALF_HEIGHT
        parts.append(
            f'<path class="diamond" d="M{low:g} {middle:g}L{value:g} {top:g}L{high:g} {middle:g}'
            f'L{value:g} {bottom:g}Z"/>'
        )
    else:
        side = _MIN_SQUARE + (_MAX_SQUARE - _MIN_SQUARE) * math.sqrt(row.weight)
        parts.append(f'<path class="whisker" d="M{low:g} {middle:g}H{high:g}"/>')
        parts += [_cut_svg(row, scale, middle)]
        parts.append(
            f'<rect class="estimate" x="{value - side / 2:.1f}" y="{middle - side / 2:.1f}" width="{side:.1f}" '
            f'height="{side:.1f}"/>'
        )
    return _svg("".join(parts))


def _cut_svg(row: ForestRow, scale: Scale, middle: float) -> str:
    """Return arrowheads where an interval goes on beyond the drawing."""
    if row.interval is None:
        return ""
    heads = []
    if row.interval[0] < scale.low:
        heads.append(f"M{_PADDING:g} {middle:g}l7 -4v8Z")
    if row.interval[1] > scale.high:
        heads.append(f"M{WIDTH - _PADDING:g} {middle:g}l-7 -4v8Z")
    return f'<path class="estimate" d="{"".join(heads)}"/>' if heads else ""


def _axis_svg(scale: Scale) -> str:
    marks = [f'<path class="whisker" d="M{_PADDING:g} 1H{WIDTH - _PADDING:g}"/>']
    for tick in _ticks(scale):
        x = scale.place(tick)
        marks.append(f'<path class="whisker" d="M{x:g} 1V6"/><text x="{x:g}" y="20">{format_short(tick)}</text>')
    return _svg("".join(marks))


def _ticks(scale: Scale) -> list[float]:
    """Return round values within the scale, zero among them."""
    rough = (scale.high - scale.low) / _MAX_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * by for by in (1, 2, 5, 10) if power * by >= rough)
    first, last = math.ceil(scale.low / step - 1e-9), math.floor(scale.high / step + 1e-9)
    return [round(at * step, 12) for at in range(first, last + 1)]


def _svg(content: str) -> str:
    size = f'width="{WIDTH:g}" height="{HEIGHT:g}"'
    return f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" {size} aria-hidden="true">{content}</svg>'


def describe_heterogeneity(effect: Record) -> str:
    """Return how much the effects of the sites differ, as a sentence; empty if it is not known.

    Parameters
    ----------
    effect : mapping
        An effect of a result document.

    Returns
    -------
    str
        Plain text.

    Examples
    --------
    >>> found = {"q": 6.64, "degrees_of_freedom": 4, "p_value": 0.156, "i_squared": 0.4}
    >>> describe_heterogeneity({"heterogeneity": found})
    'Differences between sites: I² = 40\xa0%, Q = 6.64 on 4 degrees of freedom (p = 0.156).'
    """
    found = effect.get("heterogeneity")
    if not found:
        return ""
    p_value = found.get("p_value")
    tested = "" if p_value is None else f" (p = {format_p_value(p_value)})".replace("= <", "<")
    share, freedom = format_percent(found["i_squared"]), found["degrees_of_freedom"]
    return (
        f"Differences between sites: I² = {share}, Q = {format_short(found['q'])} on {freedom:g} degrees of "
        f"freedom{tested}."
    )
