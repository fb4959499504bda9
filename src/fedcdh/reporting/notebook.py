"""The HTML that a notebook shows for a result: the graph, the edges with their evidence, and the notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from html import escape

from fedcdh.discovery.result import Discovery, Edge
from fedcdh.errors import MissingDependencyError
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.svg import render_svg
from fedcdh.reporting.phrases import clean_text, format_evidence, name_orientation, to_html_name

MAX_EDGES_SHOWN = 40


def render_html(result: Discovery) -> str:
    """Return a result as HTML without a script or a style sheet.

    Parameters
    ----------
    result : Discovery
        The result to show.

    Returns
    -------
    str
        One element, which looks the same in notebooks, mails and web pages.

    Examples
    --------
    >>> import fedcdh
    >>> result = fedcdh.discover(fedcdh.demo.hospital_study().columns(), domain="hospital")
    >>> render_html(result).splitlines()[1]
    '<p>8 variables, 5 clients, 1939 rows.</p>'
    """
    return "\n".join(_html_parts(result))


def _html_parts(result: Discovery) -> Iterator[str]:
    total, clients = result.cohort.total, len(result.cohort.clients)
    yield "<div>"
    yield f"<p>{len(result.cohort.plan.names)} variables, {clients} clients, {total.rows} rows.</p>"
    try:
        yield render_svg(result).strip()
    except MissingDependencyError as missing:
        yield f"<p>The graph cannot be drawn. {escape(str(missing))}</p>"
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
    evidence = "p-value" if edges[0].log_bayes_presence is None else "log Bayes factor"
    yield "<table><thead><tr><th>cause</th><th></th><th>effect</th>"
    yield f"<th>{evidence}</th><th>direction from</th></tr></thead><tbody>"
    for edge in edges[:MAX_EDGES_SHOWN]:
        cells = [
            to_html_name(edge.source),
            edge.mark,
            to_html_name(edge.target),
            escape(format_evidence(asdict(edge))),
            escape(name_orientation(edge.oriented_by)),
        ]
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table>"
    if (more := len(edges) - MAX_EDGES_SHOWN) > 0:
        yield f"<p>{more} more edges are in <code>result.edges()</code>.</p>"
