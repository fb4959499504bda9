"""The HTML that a notebook shows for a result: the graph, the edges with their evidence, and the notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from html import escape

from fedcdh.discovery.ancestral_discovery import AncestralDiscovery
from fedcdh.discovery.findings import Findings
from fedcdh.discovery.result import Edge
from fedcdh.discovery.result_text import describe_edge_probability, format_possible, format_probability
from fedcdh.errors import MissingDependencyError
from fedcdh.protocols import DOMAIN
from fedcdh.reporting.graph_drawing.svg import render_svg
from fedcdh.reporting.phrases import (
    clean_text,
    format_evidence,
    format_share,
    format_slope,
    name_orientation,
    to_html_name,
)

MAX_EDGES_SHOWN = 40


def render_html(result: Findings | AncestralDiscovery) -> str:
    """Return a result as HTML without a script or a style sheet.

    Parameters
    ----------
    result : Findings
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
    if isinstance(result, AncestralDiscovery):
        return result._repr_html_()
    return "\n".join(_html_parts(result))


def _html_parts(result: Findings) -> Iterator[str]:
    yield "<div>"
    yield f"<p>{len(result.variables)} variables, {result.client_count}, {result.n_rows} rows.</p>"
    try:
        yield render_svg(result).strip()
    except MissingDependencyError as missing:
        yield f"<p>The graph cannot be drawn. {escape(str(missing))}</p>"
    yield from _edge_table([edge for edge in result.edges() if edge.mark and edge.source != DOMAIN])
    probabilities = result.probability_of_change
    changing = ", ".join(
        to_html_name(name) + (f" ({escape(format_probability(probabilities[name]))})" if probabilities else "")
        for name in sorted(result.changing)
    )
    yield f"<p>Mechanisms that differ between clients: {changing or result.no_change_reason}.</p>"
    for possible in format_possible(result.edges()):
        yield f"<p>{escape(clean_text(possible)).replace('possible', 'Possible', 1)}.</p>"
    if result.notes:
        yield "<ul>" + "".join(f"<li>{escape(clean_text(note))}</li>" for note in result.notes) + "</ul>"
    yield "</div>"


def _edge_table(edges: list[Edge]) -> Iterator[str]:
    if not edges:
        yield "<p>No edges were found.</p>"
        return
    known = edges[0].probability is not None
    sized = any(edge.slope is not None for edge in edges)
    certainty = ["probability", "explains"] if known else ["p-value"]
    heads = ["cause", "", "effect", *certainty, *(["slope (95 %)"] if sized else []), "direction from"]
    yield f"<table><thead><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr></thead><tbody>"
    for edge in edges[:MAX_EDGES_SHOWN]:
        cells = [
            to_html_name(edge.source),
            edge.mark,
            to_html_name(edge.target),
            *(_describe_certainty(edge) if known else [escape(format_evidence(asdict(edge)))]),
            *([escape(format_slope(asdict(edge)) or "no single slope")] if sized else []),
            escape(name_orientation(edge.oriented_by)),
        ]
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table>"
    if (more := len(edges) - MAX_EDGES_SHOWN) > 0:
        yield f"<p>{more} more edges are in <code>result.edges()</code>.</p>"


def _describe_certainty(edge: Edge) -> list[str]:
    """Return the probability of an edge and the share of variance that it explains, as HTML."""
    share = "" if edge.strength is None else format_share(edge.strength)
    return [escape(describe_edge_probability(edge)), share]
