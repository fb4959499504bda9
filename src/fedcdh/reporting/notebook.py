"""What a notebook shows of a result: the picture, the edges with their evidence, and the notes, as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from html import escape

from fedcdh.discovery.result import Discovery, Edge
from fedcdh.errors import MissingDependencyError
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.svg import render_svg
from fedcdh.reporting.phrases import ORIENTATION_REASONS, clean_text, format_evidence, to_html_name

MAX_EDGES_SHOWN = 40


def render_html(result: Discovery) -> str:
    """A piece of HTML without a script or a style sheet: it looks alike in notebooks, mails and web pages."""
    return "\n".join(_html_parts(result))


def _html_parts(result: Discovery) -> Iterator[str]:
    total, clients = result.cohort.total, len(result.cohort.clients)
    yield "<div>"
    yield f"<p>{len(result.cohort.plan.names)} variables, {clients} clients, {total.rows} rows.</p>"
    try:
        yield render_svg(result).strip()
    except MissingDependencyError as missing:
        yield f"<p>No picture: {escape(str(missing))}</p>"
    yield from _edge_table([edge for edge in result.edges() if edge.mark and edge.source != DOMAIN])
    changing = ", ".join(map(to_html_name, sorted(result.changing)))
    yield f"<p>Mechanisms that differ between clients: {changing or result.no_change_reason}.</p>"
    if result.notes:
        yield "<ul>" + "".join(f"<li>{escape(clean_text(note))}</li>" for note in result.notes) + "</ul>"
    yield "</div>"


def _edge_table(edges: list[Edge]) -> Iterator[str]:
    if not edges:
        yield "<p>No edges were found.</p>"
        return
    weighed = edges[0].log_bayes_presence is not None
    yield "<table><thead><tr><th>cause</th><th></th><th>effect</th>"
    yield f"<th>{'log Bayes factor' if weighed else 'p-value'}</th><th>direction from</th></tr></thead><tbody>"
    for edge in edges[:MAX_EDGES_SHOWN]:
        why = ORIENTATION_REASONS.get(edge.oriented_by or "", (clean_text(edge.oriented_by or "open"), ""))[0]
        cells = [
            to_html_name(edge.source),
            edge.mark,
            to_html_name(edge.target),
            escape(format_evidence(asdict(edge))),
            escape(why),
        ]
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table>"
    if (more := len(edges) - MAX_EDGES_SHOWN) > 0:
        yield f"<p>and {more} more: <code>result.edges()</code> has all of them.</p>"
