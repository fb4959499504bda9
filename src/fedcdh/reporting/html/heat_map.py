"""The map of deviations in a report: sites by mechanisms, blue below the common mechanism and orange above it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from fedcdh.reporting.graph_drawing.scene import fit_label
from fedcdh.reporting.phrases import format_p_value, format_short, format_signed, to_plain_name

CELL_WIDTH, ROW_HEIGHT, LABEL_WIDTH, HEADER_HEIGHT = 76, 30, 430, 42
SATURATION_DEVIATION = 6.0
"""Deviation in standard errors from which a cell has its full colour."""
MAX_SITES_SHOWN = 200
"""Number of sites in the map and its table. More would be slow in a browser; result.json has all of them."""
BELOW_RGB, MIDDLE_RGB, ABOVE_RGB = (33, 102, 172), (247, 247, 247), (179, 88, 6)
"""Colours of ColorBrewer's PuOr and RdBu, which colour-blind readers can tell apart."""
INK, PAPER = "#000000", "#ffffff"
EQUAL_CONTRAST_LUMINANCE = 0.179
"""Luminance of a background on which black and white text have the same contrast, 4.6."""
_BASELINE = 20  # of the text in a row
_MAX_SITE, _MAX_VARIABLE, _MAX_QUANTITY = 9, 20, 34  # characters

DriftRecords = Sequence[Mapping[str, Any]]


def render_heat_map(drift: DriftRecords) -> str:
    """Return the map as SVG, with a row per quantity of a mechanism and a column per site.

    Parameters
    ----------
    drift : sequence of mapping
        Records of the drift of a result document.

    Returns
    -------
    str
        One SVG element.
    """
    rows = list(dict.fromkeys((record["variable"], record["quantity"]) for record in drift))
    sites = list(dict.fromkeys(record["client"] for record in drift))
    width, height = LABEL_WIDTH + CELL_WIDTH * len(sites), HEADER_HEIGHT + ROW_HEIGHT * len(rows) + 4
    start = (
        f'<svg class="heat" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="Deviation of each site from the common mechanism, in standard '
        'errors; the same numbers are in the table below.">'
    )
    parts = [start, *_site_labels(sites), *_row_labels(rows, width)]
    found = {(record["variable"], record["quantity"], record["client"]): record for record in drift}
    for place, row in enumerate(rows):
        for column, site in enumerate(sites):
            if (record := found.get((*row, site))) is not None and record["deviation"] is not None:
                parts.append(_cell(record, LABEL_WIDTH + CELL_WIDTH * column, HEADER_HEIGHT + ROW_HEIGHT * place))
    return "\n".join([*parts, "</svg>"])


def most_deviating(drift: DriftRecords) -> list[Mapping[str, Any]]:
    """Return the records of the sites that deviate most, in their order; all of them if there are few sites."""
    largest: dict[str, float] = {}
    for record in drift:
        largest[record["client"]] = max(abs(record["deviation"] or 0.0), largest.get(record["client"], 0.0))
    shown = {*sorted(largest, key=lambda site: (-largest[site], site))[:MAX_SITES_SHOWN]}
    return [record for record in drift if record["client"] in shown]


def cell_colour(deviation: float) -> tuple[int, int, int]:
    """Return the colour of a deviation, from blue through near white to orange."""
    share, end = min(abs(deviation) / SATURATION_DEVIATION, 1.0), BELOW_RGB if deviation < 0 else ABOVE_RGB
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(MIDDLE_RGB, end, strict=True))
    return red, green, blue


def relative_luminance(rgb: Sequence[int]) -> float:
    """Return the relative luminance as the accessibility guidelines (WCAG 2) define it."""
    linear = [v / 12.92 if (v := c / 255) <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _site_labels(sites: Sequence[str]) -> Iterator[str]:
    for place, site in enumerate(sites):
        x = LABEL_WIDTH + CELL_WIDTH * place + CELL_WIDTH / 2
        yield (
            f'<text class="site" x="{x:g}" y="{HEADER_HEIGHT - 14}"><title>{escape(to_plain_name(site))}</title>'
            f"{escape(fit_label(site, _MAX_SITE))}</text>"
        )


def _row_labels(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield the name of every quantity, and that of a variable at the first of its rows."""
    last = None
    for place, (variable, quantity) in enumerate(rows):
        y = HEADER_HEIGHT + ROW_HEIGHT * place
        if variable != last:
            rule = f'<path class="rule" d="M0 {y}H{width}"/>' if place else ""
            label = escape(fit_label(variable, _MAX_VARIABLE))
            yield f'{rule}<text class="variable" x="0" y="{y + _BASELINE}">{label}</text>'
            last = variable
        label = escape(fit_label(quantity, _MAX_QUANTITY))
        yield f'<text class="quantity" x="{LABEL_WIDTH - 10}" y="{y + _BASELINE}">{label}</text>'


def _cell(record: Mapping[str, Any], x: float, y: float) -> str:
    fill = cell_colour(record["deviation"])
    ink = INK if relative_luminance(fill) > EQUAL_CONTRAST_LUMINANCE else PAPER
    outlined = ' class="firm"' if record.get("flagged") else ""
    return (
        f'<g{outlined}><title>{escape(_describe_cell(record))}</title><rect x="{x + 1:g}" y="{y + 1:g}" '
        f'width="{CELL_WIDTH - 2}" height="{ROW_HEIGHT - 2}" fill="rgb{fill}" rx="2"/>'
        f'<text class="value" x="{x + CELL_WIDTH / 2:g}" y="{y + _BASELINE:g}" '
        f'fill="{ink}">{format_signed(record["deviation"])}</text></g>'
    )


def _describe_cell(record: Mapping[str, Any]) -> str:
    names = ", ".join(to_plain_name(record[key]) for key in ("variable", "quantity", "client"))
    text = f"{names}: deviates by {format_signed(record['deviation'], 2)} standard errors"
    if record.get("estimate") is not None:
        text += f"; estimate {format_short(record['estimate'])}"
        if record.get("low") is not None and record.get("high") is not None:
            text += f" ({format_short(record['low'])} to {format_short(record['high'])})"
        if record.get("pooled") is not None:
            text += f", over all sites {format_short(record['pooled'])}"
    return text + (f"; p = {format_p_value(record['p_value'])}" if record.get("p_value") is not None else "")
