"""Stability as text: the shares of runs that agree with the result, and the findings that hang on one client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fedcdh._io.text import abbreviate_list
from fedcdh._io.text_tables import escape_html, render_table_html

if TYPE_CHECKING:
    from fedcdh.discovery.stability import EdgeStability, Stability

MAX_FINDINGS_PRINTED = 10
"""Number of findings in one row of text."""
_KINDS = {
    "leave-one-out": "each without one client",
    "bootstrap": "with clients resampled",
    "row-bootstrap": "with rows resampled",
}


def list_hinges(stability: Stability) -> Iterator[str]:
    """Yield each finding that changes when a single client is left out, with that client.

    Parameters
    ----------
    stability : Stability
        The stability of a result.

    Yields
    ------
    str
        Such as "v1 → v3 (gone without city)".
    """
    for edge in stability.edges:
        if how := ", ".join(_edge_hinges(edge)):
            yield f"{_name_edge(edge)} ({how})"
    for change in stability.changing:
        if change.differs_without:
            how = "no difference" if change.changing else "differs"
            yield f"mechanism of {change.variable} ({how} without {_either(change.differs_without)})"


def format_hinges(stability: Stability, whom: str = "client") -> str:
    """Return the sentence on findings that hang on one client.

    Parameters
    ----------
    stability : Stability
        The stability of a result, with clients left out.
    whom : str, default "client"
        The word for a client.

    Returns
    -------
    str
        One row of text.
    """
    if found := list(list_hinges(stability)):
        return f"hangs on one {whom}: {abbreviate_list(found, MAX_FINDINGS_PRINTED)}"
    return f"no finding changes when one {whom} is left out"


def format_stability(stability: Stability) -> str:
    """Return stability as text: one row per edge, the differences between clients, and what hangs on one client.

    Parameters
    ----------
    stability : Stability
        The stability of a result.

    Returns
    -------
    str
        Rows without a last line break.
    """
    return "\n".join(_rows(stability))


def render_stability_html(stability: Stability) -> str:
    """Return stability as HTML: a table of the edges, and sentences on what hangs on one client.

    Parameters
    ----------
    stability : Stability
        The stability of a result.

    Returns
    -------
    str
        One element.
    """
    first, *rest = _rows(stability)
    drawn, _ = _split(stability.edges)
    rows = [(_name_edge(edge), f"{edge.adjacent:.0%}", f"{edge.same:.0%}") for edge in drawn]
    table = render_table_html(("edge", "#adjacent", "#same mark"), rows, "the result has no edges")
    sentences = rest[len(drawn) + 1 :] if drawn else rest
    shown = "".join(f"<p>{escape_html(sentence)}</p>" for sentence in sentences)
    return f"<div><p>{escape_html(first)}</p>{table}{shown}</div>"


def _rows(stability: Stability) -> Iterator[str]:
    yield f"{len(stability.runs)} runs, {_KINDS[stability.kind]}; shares of runs that agree with the result"
    drawn, others = _split(stability.edges)
    if drawn:
        width = max(4, *(len(_name_edge(edge)) for edge in drawn))
        yield f"{'edge':<{width}}  adjacent  same mark"
        yield from (f"{_name_edge(edge):<{width}}  {edge.adjacent:>8.0%}  {edge.same:>9.0%}" for edge in drawn)
    if others:
        named = [f"{_name_edge(edge)} {edge.adjacent:.0%}" for edge in others]
        yield f"only in runs: {abbreviate_list(named, MAX_FINDINGS_PRINTED)}"
    found = [one for one in stability.changing if one.share is not None]
    if found:
        yield "mechanisms that differ: " + ", ".join(f"{one.variable} {one.share:.0%}" for one in found)
    if stability.kind == "leave-one-out":
        yield format_hinges(stability)
    yield from (f"note: {note}" for note in stability.notes)


def _split(edges: tuple[EdgeStability, ...]) -> tuple[list[EdgeStability], list[EdgeStability]]:
    """Return the edges of the result, and those that only runs have."""
    return [edge for edge in edges if edge.mark], [edge for edge in edges if not edge.mark]


def _edge_hinges(edge: EdgeStability) -> Iterator[str]:
    """Yield what becomes of an edge without single clients."""
    if edge.gone_without:
        yield f"{'gone' if edge.mark else 'appears'} without {_either(edge.gone_without)}"
    if edge.turned_without:
        how = "direction lost" if edge.mark == "→" else "directed"
        yield f"{how} without {_either(edge.turned_without)}"


def _name_edge(edge: EdgeStability) -> str:
    return f"{edge.source} {edge.mark or '—'} {edge.target}"


def _either(clients: tuple[str, ...]) -> str:
    """Return the clients, each of which is left out alone."""
    if len(clients) == 1:
        return clients[0]
    return f"{', '.join(clients[:-1])} or {clients[-1]}" if len(clients) <= 3 else f"any of {len(clients)} clients"
