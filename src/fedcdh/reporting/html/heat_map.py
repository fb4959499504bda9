"""What differs where: a map of sites by mechanisms, blue below the common mechanism and orange above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from fedcdh.reporting.html.graph_svg import fit_label
from fedcdh.reporting.phrases import format_p_value, format_short, format_signed, to_plain_name

CELL_WIDTH, ROW_HEIGHT, LABEL_WIDTH, HEADER_HEIGHT = 76, 30, 430, 42
SATURATION_DEVIATION = 6.0
"""Standardised deviation from which a cell has its full colour."""
MAX_SITES_SHOWN = 200
"""Sites that are shown: beyond that, a browser takes long and nobody reads; result.json has them all."""
BELOW_RGB, MIDDLE_RGB, ABOVE_RGB = (
    (33, 102, 172),
    (247, 247, 247),
    (179, 88, 6),
)  # ColorBrewer PuOr and RdBu: seen by all eyes
INK, PAPER = "#000000", "#ffffff"
EQUAL_CONTRAST_LUMINANCE = 0.179
"""Luminance on which black and white have the same contrast, 4.6."""


def render_heat_map(drift: Sequence[Mapping[str, Any]]) -> str:
    """The map as SVG: a line per quantity of a mechanism, a column per site, the deviation in every cell."""
    lines = list(dict.fromkeys((record["variable"], record["quantity"]) for record in drift))
    sites = list(dict.fromkeys(record["client"] for record in drift))
    width, height = LABEL_WIDTH + CELL_WIDTH * len(sites), HEADER_HEIGHT + ROW_HEIGHT * len(lines) + 4
    parts = [
        f'<svg class="heat" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="How far each site deviates from the common mechanism, in standard '
        'errors; the same numbers are in the table below.">'
    ]
    for place, site in enumerate(sites):
        at = LABEL_WIDTH + CELL_WIDTH * place + CELL_WIDTH / 2
        parts.append(
            f'<text class="site" x="{at:g}" y="{HEADER_HEIGHT - 14}"><title>{escape(to_plain_name(site))}</title>'
            f"{escape(fit_label(site, 9))}</text>"
        )
    last = None
    for place, (variable, quantity) in enumerate(lines):
        y = HEADER_HEIGHT + ROW_HEIGHT * place
        if variable != last:
            rule = f'<path class="rule" d="M0 {y}H{width}"/>' if place else ""
            parts.append(f'{rule}<text class="variable" x="0" y="{y + 20}">{escape(fit_label(variable, 20))}</text>')
            last = variable
        parts.append(
            f'<text class="quantity" x="{LABEL_WIDTH - 10}" y="{y + 20}">{escape(fit_label(quantity, 34))}</text>'
        )
    found = {(record["variable"], record["quantity"], record["client"]): record for record in drift}
    for row, line in enumerate(lines):
        for column, site in enumerate(sites):
            if (record := found.get((*line, site))) is not None and record["deviation"] is not None:
                parts.append(_cell(record, LABEL_WIDTH + CELL_WIDTH * column, HEADER_HEIGHT + ROW_HEIGHT * row))
    return "\n".join([*parts, "</svg>"])


def most_deviating(drift: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The records of the sites that deviate most, in their order; of all where these are not too many."""
    most: dict[str, float] = {}
    for record in drift:
        most[record["client"]] = max(abs(record["deviation"] or 0.0), most.get(record["client"], 0.0))
    shown = {*sorted(most, key=lambda site: (-most[site], site))[:MAX_SITES_SHOWN]}
    return [record for record in drift if record["client"] in shown]


def cell_colour(deviation: float) -> tuple[int, int, int]:
    """From blue through near white to orange."""
    share, end = min(abs(deviation) / SATURATION_DEVIATION, 1.0), BELOW_RGB if deviation < 0 else ABOVE_RGB
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(MIDDLE_RGB, end, strict=True))
    return red, green, blue


def relative_luminance(rgb: Sequence[int]) -> float:
    """Relative luminance as accessibility guidelines (WCAG 2) define it."""
    linear = [v / 12.92 if (v := c / 255) <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _cell(record: Mapping[str, Any], x: float, y: float) -> str:
    fill = cell_colour(record["deviation"])
    ink = INK if relative_luminance(fill) > EQUAL_CONTRAST_LUMINANCE else PAPER
    firm = ' class="firm"' if record.get("flagged") else ""
    return (
        f'<g{firm}><title>{escape(_describe_cell(record))}</title><rect x="{x + 1:g}" y="{y + 1:g}" width="{CELL_WIDTH - 2}" '
        f'height="{ROW_HEIGHT - 2}" fill="rgb{fill}" rx="2"/><text class="value" x="{x + CELL_WIDTH / 2:g}" y="{y + 20:g}" '
        f'fill="{ink}">{format_signed(record["deviation"])}</text></g>'
    )


def _describe_cell(record: Mapping[str, Any]) -> str:
    told = (
        f"{to_plain_name(record['variable'])}, {to_plain_name(record['quantity'])}, {to_plain_name(record['client'])}: "
    )
    told += f"deviates by {format_signed(record['deviation'], 2)} standard errors"
    if record.get("estimate") is not None:
        told += f"; {format_short(record['estimate'])}"
        if record.get("low") is not None and record.get("high") is not None:
            told += f" ({format_short(record['low'])} to {format_short(record['high'])})"
        if record.get("pooled") is not None:
            told += f" against {format_short(record['pooled'])} over all sites"
    return told + (f"; p = {format_p_value(record['p_value'])}" if record.get("p_value") is not None else "")
