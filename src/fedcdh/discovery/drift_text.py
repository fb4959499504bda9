"""Differences between clients as text and HTML: one row per variable, quantity and client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fedcdh._io.text_tables import format_table, render_table_html

if TYPE_CHECKING:
    from fedcdh.discovery.drift import Drift

_HEADS = ("variable", "quantity", "client", "#estimate", "#low", "#high", "#pooled", "#deviation", "")
_NONE = "no mechanisms are described here"


def format_drift(drifts: Iterable[Drift]) -> str:
    """Return the records as aligned text; a star marks significant differences.

    Parameters
    ----------
    drifts : iterable of Drift
        The records.

    Returns
    -------
    str
        Rows without a last line break.
    """
    rows = [_cells(drift) for drift in drifts]
    return format_table(_HEADS, rows) if rows else _NONE


def render_drift_html(drifts: Iterable[Drift]) -> str:
    """Return the records as an HTML table.

    Parameters
    ----------
    drifts : iterable of Drift
        The records.

    Returns
    -------
    str
        One element, and a sentence on rows that are not shown.
    """
    return render_table_html(_HEADS, map(_cells, drifts), _NONE)


def _cells(drift: Drift) -> list[str]:
    numbers = [drift.estimate, drift.low, drift.high, drift.pooled]
    shown = ["" if number is None else f"{number:.3g}" for number in numbers]
    deviation = "" if drift.deviation is None else f"{drift.deviation:+.1f}"
    return [drift.variable, drift.quantity, drift.client, *shown, deviation, "*" if drift.flagged else drift.note]
