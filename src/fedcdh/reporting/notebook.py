"""What a notebook shows of a result: the picture, the edges with their evidence, and the notes, as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from html import escape

from fedcdh.discovery.result import Discovery, Edge
from fedcdh.errors import MissingLibrary
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.svg import svg
from fedcdh.reporting.phrases import REASONS, clean, evidence_of, named

EDGES_AT_MOST = 40


def html(result: Discovery) -> str:
    """A piece of HTML without a script or a style sheet: it looks alike in notebooks, mails and web pages."""
    return "\n".join(_html(result))


def _html(result: Discovery) -> Iterator[str]:
    total, clients = result.cohort.total, len(result.cohort.clients)
    yield "<div>"
    yield f"<p>{len(result.cohort.plan.names)} variables, {clients} clients, {total.rows} rows.</p>"
    try:
        yield svg(result).strip()
    except MissingLibrary as missing:
        yield f"<p>No picture: {escape(str(missing))}</p>"
    yield from _table([edge for edge in result.edges() if edge.mark and edge.source != DOMAIN])
    changing = ", ".join(map(named, sorted(result.changing)))
    yield f"<p>Mechanisms that differ between clients: {changing or result.nothing_changing}.</p>"
    if result.notes:
        yield "<ul>" + "".join(f"<li>{escape(clean(note))}</li>" for note in result.notes) + "</ul>"
    yield "</div>"


def _table(edges: list[Edge]) -> Iterator[str]:
    if not edges:
        yield "<p>No edges were found.</p>"
        return
    weighed = edges[0].log_bayes_presence is not None
    yield "<table><thead><tr><th>cause</th><th></th><th>effect</th>"
    yield f"<th>{'log Bayes factor' if weighed else 'p-value'}</th><th>direction from</th></tr></thead><tbody>"
    for edge in edges[:EDGES_AT_MOST]:
        why = REASONS.get(edge.oriented_by or "", (clean(edge.oriented_by or "open"), ""))[0]
        cells = [named(edge.source), edge.mark, named(edge.target), escape(evidence_of(asdict(edge))), escape(why)]
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table>"
    if (more := len(edges) - EDGES_AT_MOST) > 0:
        yield f"<p>and {more} more: <code>result.edges()</code> has all of them.</p>"
