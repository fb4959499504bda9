"""The map of deviations in a report: mechanisms by sites, blue below the common mechanism and orange above it.

The map is a table, so that a screen reader reads it. Where the columns do not fit (on a phone, or with many sites),
every row becomes a line of chips, each with the name of its site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from typing import Any

from fedcdh.reporting.phrases import format_p_value, format_short, format_signed, to_html_name, to_plain_name

SATURATION_DEVIATION = 6.0
"""Deviation in standard errors from which a cell has its full colour."""
COLOUR_STEP = 0.5
"""Deviations are coloured in steps of this many standard errors; style sheets name each step."""
MAX_COLUMNS = 12
"""Number of sites up to which they are columns on a wide page."""
MAX_SITES_SHOWN = 200
"""Number of sites in the map and its table. More would be slow in a browser; result.json has all of them."""
BELOW_RGB, MIDDLE_RGB, ABOVE_RGB = (33, 102, 172), (247, 247, 247), (179, 88, 6)
"""Colours of ColorBrewer's PuOr and RdBu, which colour-blind readers can tell apart."""
INK, PAPER = "#000000", "#ffffff"
EQUAL_CONTRAST_LUMINANCE = 0.179
"""Luminance of a background on which black and white text have the same contrast, 4.6."""
_STEPS = round(SATURATION_DEVIATION / COLOUR_STEP)

DriftRecords = Sequence[Mapping[str, Any]]


def render_heat_map(drift: DriftRecords) -> str:
    """Return the map as a table, with a row per quantity of a mechanism and a column per site.

    Parameters
    ----------
    drift : sequence of mapping
        Records of the drift of a result document.

    Returns
    -------
    str
        One element.
    """
    rows = list(dict.fromkeys((record["variable"], record["quantity"]) for record in drift))
    sites = list(dict.fromkeys(record["client"] for record in drift))
    found = {(record["variable"], record["quantity"], record["client"]): record for record in drift}
    heads = "".join(f'<th scope="col">{to_html_name(site)}</th>' for site in sites)
    body: list[str] = []
    last = None
    for variable, quantity in rows:
        first = variable != last
        cells = "".join(_cell(site, found.get((variable, quantity, site))) for site in sites)
        body.append(f"<tr{' class=rule' if first and body else ''}>{_labels(variable, quantity, first)}{cells}</tr>")
        last = variable
    kind = "heat many" if len(sites) > MAX_COLUMNS else "heat"
    return (
        f'<table class="{kind}"><caption>Deviation of each site from the common mechanism, in standard errors</caption>'
        f'<thead><tr><th scope="col">Mechanism of</th><th scope="col">Quantity</th>{heads}</tr></thead>\n<tbody>'
        + "\n".join(body)
        + "</tbody></table>"
    )


@cache
def style_rules() -> str:
    """Return the rules of the style sheet for the colours of the cells."""
    rules = []
    for step in range(-_STEPS, _STEPS + 1):
        fill = cell_colour(step * COLOUR_STEP)
        ink = INK if relative_luminance(fill) > EQUAL_CONTRAST_LUMINANCE else PAPER
        rules.append(f".heat .{_step_class(step)} {{ background: rgb{fill}; color: {ink}; }}")
    return "\n".join(rules)


def _step_class(step: int) -> str:
    return f"b{-step}" if step < 0 else f"a{step}"


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


def _labels(variable: str, quantity: str, first: bool) -> str:
    """Return the names at the head of a row; that of a variable is seen in its first row only."""
    seen = ' class="variable"' if first else ' class="variable again"'
    return f'<th scope="row"{seen}>{to_html_name(variable)}</th><td class="quantity">{to_html_name(quantity)}</td>'


def _cell(site: str, record: Mapping[str, Any] | None) -> str:
    label = f'data-label="{escape(to_plain_name(site))}"'
    if record is None or record["deviation"] is None:
        note = escape(to_plain_name((record or {}).get("note") or "not compared"))
        return f'<td class="none" {label} title="{note}">none</td>'
    step = round(max(-1.0, min(1.0, record["deviation"] / SATURATION_DEVIATION)) * _STEPS)
    firm = " firm" if record.get("flagged") else ""
    return (
        f'<td class="{_step_class(step)}{firm}" {label} title="{escape(_describe_cell(record))}">'
        f"{format_signed(record['deviation'])}</td>"
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
