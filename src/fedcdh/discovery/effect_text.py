"""Effects in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fedcdh._io.text import abbreviate_list
from fedcdh._io.text_tables import escape_html, render_table_html
from fedcdh.discovery.effect import Effect, Interval, PossibleEffect
from fedcdh.inference.effects.pooling import Heterogeneity

MAX_POSSIBLE_SHOWN = 6
"""Possible effects that are printed; the rest is counted."""
_KINDS = {"total": "total effect", "direct": "direct effect"}
_POSSIBLE = "possible effects, by what the graph leaves open:"
_POSSIBLE_HEADS = ("#effect", "#95 % interval", "adjusted for", "#probability")
_TABLE_HEADS = ("cause", "outcome", "#effect", "#95 % interval", "#in standard deviations", "adjusted for")
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
    cause, outcome = name_ends(effect)
    return f"{_KINDS[effect.kind]} of {cause} on {outcome}"


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
        yield _describe_heterogeneity(effect.heterogeneity)
    yield from _possible(effect)
    yield from (f"note: {note}" for note in effect.notes)


def _describe_heterogeneity(spread: Heterogeneity) -> str:
    return (
        f"differences between sites: Q = {spread.q:.3g} on {spread.degrees_of_freedom} degrees of freedom "
        f"(p = {spread.p_value:.2g}), I² = {spread.i_squared:.0%}"
    )


def _standardised(effect: Effect) -> str:
    return format_interval(effect.standardised_interval)


def _possible(effect: Effect) -> Iterator[str]:
    if len(effect.possible) < 2:
        return
    yield _POSSIBLE
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
    '<p><b><bdi>total effect of dose on stay: 1 (0.5 to 1.5)</bdi></b></p>'
    """
    parts = [f"<p><b>{escape_html(summarise_effect(effect))}</b></p>"]
    if effect.adjusted_for is not None and effect.units:
        given = abbreviate_list(effect.adjusted_for) or "nothing"
        pooling = f"; {_POOLING[effect.pooling]}" if effect.pooling else ""
        parts.append(f"<p>{escape_html(f'{effect.units}; adjusted for {given}{pooling}')}</p>")
    if effect.by_client:
        rows = [
            [client, format_number(one.value), format_interval(one.interval), f"{one.rows}", one.note]
            for client, one in effect.by_client.items()
        ]
        parts.append(render_table_html(("site", "#effect", "#95 % interval", "#rows", ""), rows))
    if effect.heterogeneity is not None:
        parts.append(f"<p>{escape_html(_describe_heterogeneity(effect.heterogeneity))}</p>")
    if len(effect.possible) > 1:
        parts += [f"<p>{_POSSIBLE}</p>", render_table_html(_POSSIBLE_HEADS, map(_possible_cells, effect.possible))]
    parts += [f"<p>{escape_html(note)}</p>" for note in effect.notes]
    return "\n".join(parts)


def _possible_cells(one: PossibleEffect) -> list[str]:
    given = "no path to the outcome" if one.adjusted_for is None else ", ".join(one.adjusted_for) or "nothing"
    chance = "unknown" if one.probability is None else f"{one.probability:.2f}"
    return [format_number(one.value), format_interval(one.interval), given, chance]


def tabulate_effects(effects: Iterable[Effect]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heads and cells of a table with a row per effect; heads of numbers begin with #.

    Parameters
    ----------
    effects : iterable of Effect
        The effects.

    Returns
    -------
    tuple of heads and rows
        Texts.

    Examples
    --------
    >>> tabulate_effects([Effect("dose", "stay", "total", 1.0, (0.5, 1.5), ("age",), True)])[1]
    [('dose', 'stay', '1', '0.5 to 1.5', '', 'age')]
    """
    return _TABLE_HEADS, [_table_cells(effect) for effect in effects]


def _table_cells(effect: Effect) -> tuple[str, ...]:
    cause, outcome = name_ends(effect)
    if effect.value is None:
        state = "unknown" if effect.identifiable else describe_unidentified(effect)
        return cause, outcome, "", "", "", state
    given = "" if effect.adjusted_for is None else ", ".join(effect.adjusted_for) or "nothing"
    scaled = "" if effect.standardised is None else format_number(effect.standardised)
    return cause, outcome, format_number(effect.value), format_interval(effect.interval), scaled, given


def describe_unidentified(effect: Effect) -> str:
    """Return that an effect is not identifiable, with the range of what is possible.

    Parameters
    ----------
    effect : Effect
        The effect.

    Returns
    -------
    str
        A phrase.

    Examples
    --------
    >>> possible = (PossibleEffect(0.0, (0.0, 0.0), None), PossibleEffect(1.0, (0.5, 1.5), ("age",)))
    >>> describe_unidentified(Effect("dose", "stay", "total", None, None, None, False, possible=possible))
    'not identifiable; possible: 0 to 1'
    """
    values = [one.value for one in effect.possible if one.value is not None]
    if not values or effect.value is not None:
        return "not identifiable"
    return f"not identifiable; possible: {format_interval((min(values), max(values)))}"


def name_ends(effect: Effect) -> tuple[str, str]:
    """Return the names of cause and outcome, with their levels or values.

    Parameters
    ----------
    effect : Effect
        The effect.

    Returns
    -------
    tuple of str
        Such as "smoker (no to yes)" and "stay".

    Examples
    --------
    >>> name_ends(Effect("dose", "ward", "total", 1.0, (0.5, 1.5), (), True, outcome_level="surgery"))
    ('dose', 'ward = surgery')
    """
    levels = f" ({effect.levels[0]} to {effect.levels[1]})" if effect.levels else ""
    if effect.at is not None:
        levels = f" ({format_number(effect.at[0])} to {format_number(effect.at[1])})"
    outcome = f"{effect.outcome} = {effect.outcome_level}" if effect.outcome_level else effect.outcome
    return f"{effect.cause}{levels}", outcome
