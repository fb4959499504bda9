"""The section of a report on effects: what happens to an outcome if a cause is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from fedcdh._io.text import abbreviate_list
from fedcdh.discovery.result_text import format_probability
from fedcdh.errors import SettingsError
from fedcdh.reporting.exogenous_variables import find_exogenous
from fedcdh.reporting.html.forest_plot import describe_heterogeneity, render_forest_plot
from fedcdh.reporting.html.table_cells import Cell, Row, missing_cell, number_cell, render_table
from fedcdh.reporting.phrases import clean_text, format_short, to_html_name, to_plain_name

MAX_POSSIBLE_SHOWN = 12
"""Number of possible effects in a table; effects.csv and result.json have all of them."""
_KINDS = {"total": "total effect", "direct": "direct effect"}
Document = Mapping[str, Any]
Record = Mapping[str, Any]
NamePair = tuple[str, str]


def render_effects(document: Document, chosen: Sequence[NamePair] = ()) -> str:
    """Return the section on effects.

    Parameters
    ----------
    document : mapping
        A checked result document.
    chosen : sequence of pairs of str, default ()
        Cause and outcome of the effects to show. By default those whose sites are published; if there are none, the
        strongest one.

    Returns
    -------
    str
        HTML; empty if the document has no effects and none was asked for.

    Raises
    ------
    SettingsError
        If an effect that was asked for is not in the document.
    """
    shown = [_find(document, pair) for pair in chosen] or _default_effects(document)
    if not shown:
        return ""
    parts = "\n".join(_render_effect(effect) for effect in shown)
    return (
        '<section id="effects" aria-labelledby="effects-heading">'
        '<h2 id="effects-heading">How large is the effect?</h2>\n'
        "<p>An effect is what happens to the outcome on average when the cause is changed, if the graph is right.</p>\n"
        f"{parts}\n</section>"
    )


def _find(document: Document, pair: NamePair) -> Record:
    """Return the effect of a pair, or say why there is none."""
    cause, outcome = pair
    names = document["variables"]
    if unknown := [name for name in pair if name not in names]:
        raise SettingsError(
            f"The effect {cause}:{outcome} names {unknown[0]!r}, which is not a variable of the result. Expected "
            f"two of {abbreviate_list(names)}. Correct the name.",
            parameter="effects",
        )
    for effect in document.get("effects") or ():
        if (effect["cause"], effect["outcome"]) == pair:
            return dict(effect)
    if document.get("effects") is None:
        raise SettingsError(
            "The result has no effects: it was made with noise, or without them. Expected a result with effects. Leave "
            "the effects out of the report.",
            parameter="effects",
        )
    reason = f"no directed path leads from {cause} to {outcome}, so the graph lets the one have no effect on the other"
    return {"cause": cause, "outcome": outcome, "kind": "total", "value": None, "identifiable": True, "reason": reason}


def _default_effects(document: Document) -> list[Record]:
    """Return the effects whose sites are published, or else the strongest that is identifiable."""
    effects = document.get("effects") or ()
    if published := [effect for effect in effects if effect.get("by_client")]:
        return published
    best = strongest_effect(document)
    return [] if best is None else [best]


def strongest_effect(document: Document) -> Record | None:
    """Return the effect to show where none was asked for.

    Parameters
    ----------
    document : mapping
        A checked result document.

    Returns
    -------
    mapping or None
        The largest standardised effect that is identifiable and clear. Outcomes without effects of their own come
        first, and causes that something can change.
    """
    with_effects = {tail for tail, _ in document["graph"]["arrows"]}
    fixed = set(find_exogenous(document))
    clear = [effect for effect in document.get("effects") or () if _is_clear(effect)]
    return max(
        clear,
        key=lambda effect: (
            effect["outcome"] not in with_effects,
            effect["cause"] not in fixed,
            abs(effect.get("standardised") or 0.0),
        ),
        default=None,
    )


def _is_clear(effect: Record) -> bool:
    """Return whether an effect is identifiable and its interval excludes zero."""
    interval = effect.get("interval")
    if not effect["identifiable"] or effect.get("value") is None or interval is None:
        return False
    return not interval[0] <= 0 <= interval[1]


def _render_effect(effect: Record) -> str:
    parts = [f"<h3>{_name_effect(effect)}</h3>", f"<p>{_sentence(effect)}</p>", render_forest_plot(effect)]
    parts += [f"<p>{escape(text)}</p>" for text in (describe_heterogeneity(effect), _sites_missing(effect)) if text]
    parts += [_possible_table(effect), *(f"<p>{escape(clean_text(note))}</p>" for note in effect.get("notes") or ())]
    return "\n".join(filter(None, parts))


def _name_effect(effect: Record) -> str:
    levels, at = effect.get("levels"), effect.get("at")
    change = ""
    if levels:
        change = f" ({to_html_name(levels[0])} to {to_html_name(levels[1])})"
    elif at:
        change = f" ({format_short(at[0])} to {format_short(at[1])})"
    level = f" = {to_html_name(effect['outcome_level'])}" if effect.get("outcome_level") else ""
    kind = _KINDS.get(effect.get("kind", "total"), "effect").capitalize()
    return f"{kind} of {to_html_name(effect['cause'])}{change} on {to_html_name(effect['outcome'])}{level}"


def _sentence(effect: Record) -> str:
    """Return the value with its interval and what was adjusted for, or why there is none."""
    reason, value = escape(to_plain_name(effect.get("reason") or "")), effect.get("value")
    if value is None:
        state = "Not known" if effect["identifiable"] else "Not identifiable"
        return f"<strong>{state}</strong>{f': {reason}' if reason else ''}."
    if effect["identifiable"] and reason:
        return f"<strong>{format_short(value)}</strong>, because {reason}."
    interval = effect.get("interval")
    shown = format_short(value)
    shown += f" ({format_short(interval[0])} to {format_short(interval[1])})" if interval else ""
    units = f": {escape(to_plain_name(effect['units']))}" if effect.get("units") else ""
    text = f"<strong>{shown}</strong>{units}. {_adjusted(effect)}"
    return text if effect["identifiable"] else f"{text} <strong>Do not rely on it:</strong> {reason}."


def _adjusted(effect: Record) -> str:
    names = effect.get("adjusted_for")
    if names is None:
        return ""
    listed = ", ".join(map(to_html_name, names))
    return f"Adjusted for {listed}." if listed else "Nothing had to be adjusted for."


def _sites_missing(effect: Record) -> str:
    """Return why single sites are not shown, where a value is known."""
    if effect.get("by_client") or effect.get("fixed") is None:
        return ""
    pair = f"{to_plain_name(effect['cause'])}:{to_plain_name(effect['outcome'])}"
    return (
        "Estimates of single sites are not part of this result. Where the summaries of single sites are known, "
        f"`fedcdh discover … --effect {pair}` adds them."
    )


def _possible_table(effect: Record) -> str:
    """Return the effects in all graphs that are possible, if there are several."""
    possible = effect.get("possible") or ()
    if len(possible) < 2:
        return ""
    rows = [Row(list(_possible_cells(one))) for one in possible[:MAX_POSSIBLE_SHOWN]]
    more = len(possible) - len(rows)
    note = f"<p>The {len(rows)} likeliest of {len(possible)}.</p>" if more else ""
    heads = ["#Effect (95 % interval)", "Adjusted for", "#Probability of these graphs"]
    table = render_table(heads, rows, "Effect in each possible graph")
    return f"<p>Where the graph leaves directions open, the effect may be one of these:</p>\n{table}{note}"


def _possible_cells(one: Record) -> Iterator[Cell]:
    value, interval, names, probability = (one.get(key) for key in ("value", "interval", "adjusted_for", "probability"))
    if value is None:
        yield missing_cell("not estimated")
    else:
        ends = f" ({format_short(interval[0])} to {format_short(interval[1])})" if interval else ""
        yield number_cell(f"{format_short(value)}{ends}", value)
    if names is None:
        yield Cell("no path: the effect is 0")
    else:
        yield Cell(", ".join(map(to_html_name, names)) or "nothing")
    yield missing_cell() if probability is None else number_cell(escape(format_probability(probability)), probability)
