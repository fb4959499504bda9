"""Effects in words."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from fedcdh._io.text import abbreviate_list
from fedcdh.discovery.effect import Effect, Interval

MAX_POSSIBLE_SHOWN = 6
"""Possible effects that are printed; the rest is counted."""
_KINDS = {"total": "total effect", "direct": "direct effect"}
_POOLING = {"fixed": "common effect within sites", "random": "mean over sites, whose effects may differ"}


def format_number(number: float | None) -> str:
    """Return a number with three digits.

    Parameters
    ----------
    number : float or None
        A number.

    Returns
    -------
    str
        Such as "0.123"; "unknown" for None.

    Examples
    --------
    >>> format_number(1234.5), format_number(0.01234), format_number(-0.0)
    ('1230', '0.0123', '0')
    """
    if number is None:
        return "unknown"
    text = f"{number:.3g}"
    if "e" in text and 1e-5 <= abs(number) < 1e7:
        text = f"{float(text):.0f}" if abs(number) >= 1 else f"{float(text):.8f}".rstrip("0")
    return "0" if text == "-0" else text


def format_interval(interval: Interval | None) -> str:
    """Return an interval as text.

    Parameters
    ----------
    interval : tuple of float, or None
        Two ends.

    Returns
    -------
    str
        Such as "0.1 to 0.3".

    Examples
    --------
    >>> format_interval((0.1, 0.3))
    '0.1 to 0.3'
    """
    return "unknown" if interval is None else f"{format_number(interval[0])} to {format_number(interval[1])}"


def name_effect(effect: Effect) -> str:
    """Return the name of an effect with its levels.

    Parameters
    ----------
    effect : Effect
        The effect.

    Returns
    -------
    str
        Such as "total effect of smoker (no to yes) on stay".

    Examples
    --------
    >>> name_effect(Effect("dose", "stay", "total", 1.0, (0.5, 1.5), (), True))
    'total effect of dose on stay'
    """
    levels = f" ({effect.levels[0]} to {effect.levels[1]})" if effect.levels else ""
    if effect.at is not None:
        levels = f" ({format_number(effect.at[0])} to {format_number(effect.at[1])})"
    outcome = f"{effect.outcome} = {effect.outcome_level}" if effect.outcome_level else effect.outcome
    return f"{_KINDS[effect.kind]} of {effect.cause}{levels} on {outcome}"


def summarise_effect(effect: Effect) -> str:
    """Return an effect in one line.

    Parameters
    ----------
    effect : Effect
        The effect.

    Returns
    -------
    str
        Name, value and interval; or why there is none.

    Examples
    --------
    >>> summarise_effect(Effect("dose", "stay", "total", 1.0, (0.5, 1.5), (), True))
    'total effect of dose on stay: 1 (0.5 to 1.5)'
    """
    name = name_effect(effect)
    if effect.value is None:
        state = "unknown" if effect.identifiable else "not identifiable"
        return f"{name}: {state}{f', because {effect.reason}' if effect.reason else ''}"
    if effect.identifiable and effect.reason:
        return f"{name}: {format_number(effect.value)}, because {effect.reason}"
    found = f"{name}: {format_number(effect.value)} ({format_interval(effect.interval)})"
    return found if effect.identifiable else f"{found}; not to be trusted: {effect.reason}"


def format_effect(effect: Effect) -> str:
    """Return all that is known about an effect, as text.

    Parameters
    ----------
    effect : Effect
        The effect.

    Returns
    -------
    str
        Some rows of text.

    Examples
    --------
    >>> print(format_effect(Effect("dose", "stay", "total", 1.0, (0.5, 1.5), (), True, pooling="fixed")))
    total effect of dose on stay: 1 (0.5 to 1.5)
    adjusted for nothing; common effect within sites; 95 % confidence interval
    """
    return "\n".join([summarise_effect(effect), *_details(effect)])


def _details(effect: Effect) -> Iterator[str]:
    if effect.units and effect.value is not None:
        yield effect.units
    if effect.value is not None and effect.adjusted_for is not None:
        given = ", ".join(effect.adjusted_for) or "nothing"
        yield f"adjusted for {given}; {_POOLING.get(effect.pooling, 'one estimate')}; 95 % confidence interval"
    if effect.standardised is not None:
        yield f"in standard deviations: {format_number(effect.standardised)} ({_standardised(effect)})"
    for client, one in effect.by_client.items():
        found = f"{format_number(one.value)} ({format_interval(one.interval)})" if one.value is not None else one.note
        yield f"  {client}: {found}, {one.rows} rows"
    if effect.heterogeneity is not None:
        spread = effect.heterogeneity
        yield (
            f"differences between sites: Q = {spread.q:.3g} on {spread.degrees_of_freedom} degrees of freedom "
            f"(p = {spread.p_value:.2g}), I² = {spread.i_squared:.0%}"
        )
    yield from _possible(effect)
    yield from (f"note: {note}" for note in effect.notes)


def _standardised(effect: Effect) -> str:
    return format_interval(effect.standardised_interval)


def _possible(effect: Effect) -> Iterator[str]:
    if len(effect.possible) < 2:
        return
    yield "possible effects, by what the graph leaves open:"
    for one in effect.possible[:MAX_POSSIBLE_SHOWN]:
        chance = "" if one.probability is None else f", probability {one.probability:.2f}"
        if one.adjusted_for is None:
            yield f"  0: no path from {effect.cause} to {effect.outcome}{chance}"
        else:
            given = ", ".join(one.adjusted_for) or "nothing"
            yield f"  {format_number(one.value)} ({format_interval(one.interval)}), adjusted for {given}{chance}"
    if (rest := len(effect.possible) - MAX_POSSIBLE_SHOWN) > 0:
        yield f"  and {rest} more"


def render_effect_html(effect: Effect) -> str:
    """Return an effect as a piece of HTML.

    Parameters
    ----------
    effect : Effect
        The effect.

    Returns
    -------
    str
        A sentence, a table of sites, and notes.

    Examples
    --------
    >>> render_effect_html(Effect("dose", "stay", "total", 1.0, (0.5, 1.5), (), True))
    '<p><b>total effect of dose on stay: 1 (0.5 to 1.5)</b></p>'
    """
    parts = [f"<p><b>{escape(summarise_effect(effect))}</b></p>"]
    if effect.adjusted_for is not None and effect.units:
        given = abbreviate_list(effect.adjusted_for) or "nothing"
        parts.append(f"<p>{escape(effect.units)}; adjusted for {escape(given)}</p>")
    if effect.by_client:
        rows = "".join(
            f"<tr><td>{escape(client)}</td><td>{escape(format_number(one.value))}</td>"
            f"<td>{escape(format_interval(one.interval))}</td><td>{one.rows}</td></tr>"
            for client, one in effect.by_client.items()
        )
        parts.append(
            "<table><thead><tr><th>site</th><th>effect</th><th>95 % interval</th><th>rows</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
    parts += [f"<p>{escape(note)}</p>" for note in effect.notes]
    return "\n".join(parts)
